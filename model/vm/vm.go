// Package vm runs Gorgonia graphs. Compile puts the nodes that the outputs need into a
// fixed order and gives them memory. Run then computes one after the other. It does not
// allocate, lock or switch goroutines in between, so small batches are fast.
//
// Operations that are op.Kernels write straight into the program's memory, and batches
// may differ in size between runs. Gorgonia's sums of gradients run in the same way. Any
// other Gorgonia operation runs through its Do method, and its result is copied.
//
// A Program is also a gorgonia.VM: RunAll takes the values that gorgonia.Let bound to the
// inputs and binds the outputs' values to their nodes. Gorgonia differentiates, package
// op has the operations, and package train uses the outputs.
package vm

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model/op"
)

// ErrUnbound is wrapped by errors about inputs without a value.
var ErrUnbound = errors.New("vm: input has no value")

// A NonFiniteError is returned by RunChecked when an operation computes a NaN
// or an infinity from finite inputs.
type NonFiniteError struct {
	// Op is the operation, and Row the first row of its result that is not finite. If Op is
	// empty, Row is a row of the input with the name Input.
	Op, Input string
	Row       int
}

func (e *NonFiniteError) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("vm: input %s is not finite in row %d", e.Input, e.Row)
	}
	return fmt.Sprintf("vm: the result of %s is not finite in row %d", e.Op, e.Row)
}

// A Program is a compiled graph with its memory. Two goroutines must not use it at once,
// and two programs of the same graph must not be used together, because operations keep
// state from one step to the next.
type Program struct {
	device  *op.Device
	steps   []step
	inputs  []input
	outputs gorgonia.Nodes
	arrays  map[*gorgonia.Node]*op.Array
}

// A step computes one node.
type step struct {
	op       gorgonia.Op
	kernel   op.Kernel // nil for other operations
	device   *op.Device
	launcher op.Launcher   // nil on the CPU
	again    op.Recomputer // not nil if the step recomputes a dropped result
	in       []*op.Array
	out      *op.Array
	shape    [op.MaxDims]int

	// size is the node's size when it was compiled, and most the size of the largest node
	// that uses the same array.
	size, most int
}

type input struct {
	node  *gorgonia.Node
	array *op.Array
}

// Compile makes a program that computes the outputs, nodes of one graph, on a device (nil
// means the CPU), where its arrays are. On an accelerator every operation must be an
// op.Launcher.
//
// Nodes that no output depends on are left out. Nodes that are not needed at the same
// time, and are of about the same size, share memory; outputs have memory of their own.
// The result of an op.Recomputer is dropped, and computed again, if it is not needed for
// many steps, unless it is stored in bfloat16 (op.ResultDtype).
func Compile(d *op.Device, outputs ...*gorgonia.Node) (_ *Program, err error) {
	defer kind.Catch(&err)
	if len(outputs) == 0 {
		return nil, errors.New("vm: outputs: got none")
	}
	order := kind.Got(executionOrder(outputs))
	stored := storedTypes(d, order)
	uses := usesOf(order, outputs, stored)
	p := &Program{device: d, outputs: outputs, arrays: make(map[*gorgonia.Node]*op.Array, len(order))}
	spare := freeBuffers{device: d, sizes: map[*op.Array]int{}}
	for i, n := range order {
		if !computed(n) {
			a, err := op.NewArray(d, n.Dtype())
			if err != nil {
				return nil, fmt.Errorf("vm: node %v: %w", n, err)
			}
			p.arrays[n] = a
			if n.Op() == nil {
				p.inputs = append(p.inputs, input{n, a})
			} else {
				kind.Check(setConstant(a, n))
			}
			continue
		}
		operands := operandsOf(n)
		for _, c := range operands {
			if uses[c].again == i {
				kind.Check(p.compute(c, stored[c], &spare))
			}
		}
		kind.Check(p.compute(n, stored[n], &spare))
		for _, c := range operands {
			if u := uses[c]; (u.last == i || u.before == i) && computed(c) {
				spare.free = append(spare.free, p.arrays[c])
			}
		}
	}
	for i := range p.steps {
		s := &p.steps[i]
		s.most = max(s.size, spare.sizes[s.out])
	}
	return p, nil
}

// compute adds the step of a node, with an array of the given type for its result. If the
// node already has a step, the new one recomputes it.
func (p *Program) compute(n *gorgonia.Node, dtype tensor.Dtype, spare *freeBuffers) (err error) {
	s := step{op: n.Op(), kernel: op.KernelOf(n), device: p.device}
	if !p.device.OnHost() {
		var ok bool
		if s.launcher, ok = s.kernel.(op.Launcher); !ok {
			return fmt.Errorf("vm: %v does not run on %s", n.Op(), p.device.Name())
		}
	}
	if p.arrays[n] != nil {
		s.again = s.kernel.(op.Recomputer)
	}
	s.in = selection.Map(childrenOf(n), func(c *gorgonia.Node) *op.Array { return p.arrays[c] })
	if slices.Contains(p.outputs, n) {
		// An output keeps its array. It must not be the array of a batch of images, although that
		// was as small as some gradient of weights when the graph was made.
		s.out, err = op.NewArray(p.device, dtype)
	} else {
		s.out, err = spare.take(dtype, n.Shape().TotalSize())
	}
	if err != nil {
		return fmt.Errorf("vm: node %v: %w", n, err)
	}
	p.arrays[n] = s.out
	s.size = n.Shape().TotalSize()
	p.steps = append(p.steps, s)
	return nil
}

// A use describes the steps that need a node's result. last is the last of them. The
// result is dropped at most once, during the longest gap between such steps. before is
// then the last step before the gap and again the first step after it; otherwise both are
// −1.
type use struct{ last, before, again int }

// minDropGap is the shortest gap, in steps, to drop a result for. It is longer than the
// gap between neighbouring layers. It is shorter than the gap between the forward and
// backward pass, except for the last layers, whose results are small.
const minDropGap = 8

// storedTypes returns the types that a device stores the nodes of order in.
func storedTypes(d *op.Device, order gorgonia.Nodes) map[*gorgonia.Node]tensor.Dtype {
	stored := map[*gorgonia.Node]tensor.Dtype{}
	for _, n := range order {
		stored[n] = n.Dtype()
		if computed(n) && !d.OnHost() {
			in := selection.Map(childrenOf(n), func(c *gorgonia.Node) tensor.Dtype { return stored[c] })
			stored[n] = op.ResultDtype(d, op.KernelOf(n), n, in)
		}
	}
	return stored
}

// usesOf finds the uses of nodes in order. Outputs are read after all steps. Results in
// bfloat16 are not dropped: they take half the memory, and computing them again would only
// wait for memory.
func usesOf(order, outputs gorgonia.Nodes, stored map[*gorgonia.Node]tensor.Dtype) map[*gorgonia.Node]use {
	steps := make(map[*gorgonia.Node][]int, len(order))
	for i, n := range order {
		for _, c := range operandsOf(n) {
			steps[c] = append(steps[c], i)
		}
	}
	for _, n := range outputs {
		steps[n] = append(steps[n], len(order))
	}
	uses := make(map[*gorgonia.Node]use, len(order))
	for n, at := range steps {
		uses[n] = use{at[len(at)-1], -1, -1}
	}
	// The order matters: whether a node is dropped depends on which of its operands are.
	for _, n := range order {
		if _, ok := n.Op().(op.Recomputer); !ok || stored[n] == op.DtypeBFloat16 || slices.Contains(outputs, n) {
			continue
		}
		at, longest := steps[n], minDropGap
		for k := 1; k < len(at); k++ {
			if gap := at[k] - at[k-1]; gap > longest && operandsLiveUntil(n, uses, at[k]) {
				uses[n], longest = use{at[len(at)-1], at[k-1], at[k]}, gap
			}
		}
	}
	return uses
}

// operandsLiveUntil reports whether the operands of a node are kept until a step anyway.
func operandsLiveUntil(n *gorgonia.Node, uses map[*gorgonia.Node]use, step int) bool {
	return !slices.ContainsFunc(childrenOf(n), func(c *gorgonia.Node) bool {
		return computed(c) && (uses[c].last < step || uses[c].again >= 0)
	})
}

// freeBuffers are arrays that no node needs any more. sizes holds the size of the largest
// node that has used each array.
type freeBuffers struct {
	device *op.Device
	free   []*op.Array
	sizes  map[*op.Array]int
}

// take returns a spare array of about the node's size, or a new one. A small node must
// not take a large array from large nodes.
func (s *freeBuffers) take(dtype tensor.Dtype, size int) (*op.Array, error) {
	best := -1
	for i, a := range s.free {
		if have := s.sizes[a]; a.Dtype() == dtype && have <= 2*size && size <= 2*have &&
			(best < 0 || isFarther(s.sizes[s.free[best]], have, size)) {
			best = i
		}
	}
	if best < 0 {
		a, err := op.NewArray(s.device, dtype)
		s.sizes[a] = size
		return a, err
	}
	a := s.free[best]
	s.free = slices.Delete(s.free, best, best+1)
	s.sizes[a] = max(s.sizes[a], size)
	return a, nil
}

// isFarther reports whether a differs more from size than b.
func isFarther(a, b, size int) bool { return max(a-size, size-a) > max(b-size, size-b) }

// computed reports whether a node takes a step; inputs and constants do not.
func computed(n *gorgonia.Node) bool { return n.Op() != nil && n.Op().Arity() != 0 }

// executionOrder returns the nodes that the outputs depend on, each after its children.
// Nodes without a step come first, so distances in the order are numbers of steps.
func executionOrder(outputs gorgonia.Nodes) (gorgonia.Nodes, error) {
	g := outputs[0].Graph()
	needed := map[*gorgonia.Node]bool{}
	var need func(n *gorgonia.Node)
	need = func(n *gorgonia.Node) {
		if needed[n] {
			return
		}
		needed[n] = true
		for _, c := range childrenOf(n) {
			need(c)
		}
	}
	for _, n := range outputs {
		if n.Graph() != g {
			return nil, fmt.Errorf("vm: output %v belongs to another graph", n)
		}
		need(n)
	}
	sorted, err := gorgonia.Sort(g)
	if err != nil {
		return nil, fmt.Errorf("vm: %w", err)
	}
	order := make(gorgonia.Nodes, 0, len(needed))
	slices.Reverse(sorted)
	for _, steps := range []bool{false, true} {
		for _, n := range sorted {
			if needed[n] && computed(n) == steps {
				order = append(order, n)
			}
		}
	}
	return order, nil
}

// childrenOf returns the operands of a node in order.
func childrenOf(n *gorgonia.Node) gorgonia.Nodes {
	it := n.Graph().From(n.ID())
	children := make(gorgonia.Nodes, 0, it.Len())
	for it.Next() {
		children = append(children, it.Node().(*gorgonia.Node))
	}
	return children
}

// operandsOf returns the operands of a node, each once.
func operandsOf(n *gorgonia.Node) gorgonia.Nodes {
	var operands gorgonia.Nodes
	for _, c := range childrenOf(n) {
		if !slices.Contains(operands, c) {
			operands = append(operands, c)
		}
	}
	return operands
}

func setConstant(a *op.Array, n *gorgonia.Node) error {
	v, err := n.Op().Do()
	if err != nil {
		return fmt.Errorf("vm: constant %v: %w", n, err)
	}
	return a.CopyValue(v)
}

// Input returns the array of an input node, for the caller to fill, resize or
// share with its own memory (op.Share) before a run; nil if the program has no
// such input.
func (p *Program) Input(n *gorgonia.Node) *op.Array {
	for _, in := range p.inputs {
		if in.node == n {
			return in.array
		}
	}
	return nil
}

// Output returns the array that holds an output node's value after a run; nil if n is not
// an output. The next run overwrites it.
func (p *Program) Output(n *gorgonia.Node) *op.Array {
	if slices.Contains(p.outputs, n) {
		return p.arrays[n]
	}
	return nil
}

// Run computes the outputs from the inputs.
func (p *Program) Run() (err error) {
	defer kind.Catch(&err)
	for i := range p.steps {
		p.steps[i].run()
	}
	return nil
}

// RunChecked is Run with a check of every result. It stops with a NonFiniteError at the
// first result that has a NaN or an infinity.
func (p *Program) RunChecked() (err error) {
	defer kind.Catch(&err)
	for _, in := range p.inputs {
		checkFinite(in.array, NonFiniteError{Input: in.node.Name()})
	}
	for i := range p.steps {
		s := &p.steps[i]
		s.run()
		checkFinite(s.out, NonFiniteError{Op: s.op.String()})
	}
	return nil
}

// run runs the step, or fails as kind.Need does.
func (s *step) run() {
	if s.kernel == nil {
		kind.Check(s.runGorgonia())
		return
	}
	shape := kind.Got(s.kernel.ResultShape(s.shape[:0], s.in))
	// The array is allocated at once for the largest of its nodes, if that grows with the batch
	// as the step's own node does. If arrays grew step by step, memory that they outgrew would
	// stay allocated for a while.
	if n := tensor.ProdInts(shape); s.size > 0 && n > s.out.Cap() {
		kind.Check(s.out.Reserve(n * s.most / s.size))
	}
	kind.Check(s.out.Resize(shape))
	switch {
	case s.launcher != nil && s.again != nil:
		kind.Check(s.again.RecomputeOnDevice(s.device, s.out, s.in))
	case s.launcher != nil:
		kind.Check(s.launcher.Launch(s.device, s.out, s.in))
	case s.again != nil:
		kind.Check(s.again.Recompute(s.out, s.in))
	default:
		kind.Check(s.kernel.Run(s.out, s.in))
	}
}

// runGorgonia runs an operation without a kernel on Gorgonia's values.
func (s *step) runGorgonia() error {
	values := selection.Map(s.in, (*op.Array).Value)
	v, err := s.op.Do(values...)
	if err != nil {
		return fmt.Errorf("vm: %v: %w", s.op, err)
	}
	return s.out.CopyValue(v)
}

// checkFinite fails with e and the first row of a that has a NaN or an infinity, if there is
// one.
func checkFinite(a *op.Array, e NonFiniteError) {
	if !a.Device().OnHost() {
		dtype := a.Dtype()
		if dtype == op.DtypeBFloat16 {
			dtype = tensor.Float32 // Copy widens
		}
		here := kind.Got(op.NewArray(nil, dtype))
		kind.Check(op.Copy(here, a))
		a = here
	}
	at := max(simd.FirstNotFinite(op.Data[float32](a)), simd.FirstNotFinite(op.Data[float64](a))) // one of them is empty
	if at >= 0 {
		e.Row = at / max(1, a.Cols())
		kind.Check(&e)
	}
}

// RunAll runs the program on the values that are bound to the input nodes and
// binds the results to the output nodes. It is for interchange with Gorgonia's
// own machines; training uses Input, Run and Output. The values share the
// program's memory: the next run changes them.
func (p *Program) RunAll() (err error) {
	defer kind.Catch(&err)
	for _, in := range p.inputs {
		v := in.node.Value()
		if v == nil {
			return fmt.Errorf("%w: %v", ErrUnbound, in.node)
		}
		err := in.array.SetValue(v)
		kind.Checkf(err, "vm: input %v: %w", in.node, err)
	}
	kind.Check(p.Run())
	for _, n := range p.outputs {
		err := gorgonia.UnsafeLet(n, p.arrays[n].Value())
		kind.Checkf(err, "vm: output %v: %w", n, err)
	}
	return nil
}

// Reset does nothing: a program can be run again at any time.
func (p *Program) Reset() {}

// Close frees the program's memory on an accelerator. On the CPU it does nothing.
func (p *Program) Close() error {
	for i := range p.steps {
		p.steps[i].out.Free()
	}
	for i := range p.inputs {
		p.inputs[i].array.Free()
	}
	return nil
}

// Device returns the device that was given to Compile.
func (p *Program) Device() *op.Device { return p.device }

var _ gorgonia.VM = (*Program)(nil)
