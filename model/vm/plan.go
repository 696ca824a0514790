package vm

import (
	"fmt"
	"math"

	"cne/model/op"
)

// A Plan is the memory that a program needs for operands of certain sizes, in bytes.
type Plan struct {
	// Arrays are the results of its steps, and Scratch what its operations need beside
	// them.
	Arrays, Scratch int64
}

// Plan returns the memory that a run would need if the inputs had the given shapes, and
// those that are not named the shapes of their nodes. It allocates nothing.
func (p *Program) Plan(inputs map[*op.Array][]int) (Plan, error) {
	shapes := map[*op.Array]*op.Array{} // stand-ins without elements
	sizes := map[*op.Array]float64{}
	standIn := func(a *op.Array) *op.Array {
		s := shapes[a]
		if s == nil {
			s = op.ShapeOnly(a.Dtype(), a.Shape()...)
			shapes[a] = s
		}
		return s
	}
	for _, in := range p.inputs {
		shape, ok := inputs[in.array]
		if !ok {
			shape = in.node.Shape()
		}
		shapes[in.array] = op.ShapeOnly(in.array.Dtype(), shape...)
	}
	var plan Plan
	for i := range p.steps {
		s := &p.steps[i]
		if s.kernel == nil {
			return Plan{}, fmt.Errorf("vm: the size of %v is not known before it runs", s.op)
		}
		operands := make([]*op.Array, len(s.in))
		for k, a := range s.in {
			operands[k] = standIn(a)
		}
		shape, err := s.kernel.ResultShape(nil, operands)
		if err != nil {
			return Plan{}, fmt.Errorf("vm: %w", err)
		}
		out := op.ShapeOnly(s.out.Dtype(), shape...)
		shapes[s.out] = out
		bytes := float64(out.Dtype().Size())
		for _, d := range shape {
			bytes *= float64(d)
		}
		sizes[s.out] = max(sizes[s.out], bytes)
		if k, ok := s.kernel.(op.Scratcher); ok {
			plan.Scratch = max(plan.Scratch, k.Scratch(out, operands)) // operations of a kind share it
		}
	}
	total := 0.
	for _, bytes := range sizes {
		total += bytes
	}
	plan.Arrays = int64(min(total, math.MaxInt64/4))
	return plan, nil
}
