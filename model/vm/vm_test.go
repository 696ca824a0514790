package vm_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/model/op"
	"cne/model/vm"
)

func dense(shape []int, backing any) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))
}

// A graph of Gorgonia's own operations, where nodes are used more than once and gradients
// are added up, against the tape machine.
func TestForeignGraphAgainstTapeMachine(t *testing.T) {
	build := func() (g *gorgonia.ExprGraph, outputs gorgonia.Nodes) {
		g = gorgonia.NewGraph()
		x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{2, 3}, []float64{1, -2, 3, 0.5, 4, -1})))
		w := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("w"), gorgonia.WithValue(dense([]int{3, 2}, []float64{0.1, 0.2, -0.3, 0.4, 0.5, -0.6})))
		h := gorgonia.Must(gorgonia.Tanh(gorgonia.Must(gorgonia.Mul(x, w))))
		y := gorgonia.Must(gorgonia.Add(gorgonia.Must(gorgonia.HadamardProd(h, h)), gorgonia.Must(gorgonia.Exp(h))))
		loss := gorgonia.Must(gorgonia.Sum(y))
		grads, err := gorgonia.Grad(loss, x, w)
		if err != nil {
			t.Fatal(err)
		}
		return g, append(gorgonia.Nodes{loss, y}, grads...)
	}
	g, want := build()
	tape := gorgonia.NewTapeMachine(g)
	defer tape.Close()
	if err := tape.RunAll(); err != nil {
		t.Fatal(err)
	}
	_, got := build()
	p, err := vm.Compile(nil, got...)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second run starts from what the first left behind
		if err := p.RunAll(); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			a, b := want[i].Value(), got[i].Value()
			if !a.Shape().Eq(b.Shape()) {
				t.Errorf("output %d: shape %v, want %v", i, b.Shape(), a.Shape())
			}
			av, aok := a.Data().([]float64)
			bv, bok := b.Data().([]float64)
			if !aok || !bok {
				av, bv = []float64{a.Data().(float64)}, []float64{b.Data().(float64)}
			}
			if !slices.EqualFunc(av, bv, func(x, y float64) bool { return math.Abs(x-y) < 1e-12 }) {
				t.Errorf("output %d: %v, want %v", i, bv, av)
			}
		}
	}
}

// table is a small embedding graph: gathered rows and their loss.
type table struct {
	g                                     *gorgonia.ExprGraph
	source, index, negatives, runs, theta *gorgonia.Node
	loss, grad                            *gorgonia.Node
}

func newTable(t testing.TB) *table {
	t.Helper()
	g := gorgonia.NewGraph()
	n := &table{
		g:         g,
		source:    gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(4, 2), gorgonia.WithName("source")),
		index:     gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(4), gorgonia.WithName("index")),
		negatives: gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithShape(1, 2), gorgonia.WithName("negatives")),
		runs:      gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(1), gorgonia.WithName("runs")),
		theta:     gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("theta")),
	}
	features, err := op.Gather(n.source, n.index)
	if err != nil {
		t.Fatal(err)
	}
	if n.loss, err = op.Contrastive(features, n.negatives, n.runs, n.theta, op.ContrastiveOptions{Clamp: 1e-10}); err != nil {
		t.Fatal(err)
	}
	grads, err := gorgonia.Grad(n.loss, n.source)
	if err != nil {
		t.Fatal(err)
	}
	n.grad = grads[0]
	return n
}

// fill binds a batch of b edges between b+1 points on a line.
func (n *table) fill(p *vm.Program, b, m int) {
	points := make([]float32, 2*(b+1))
	for i := range b + 1 {
		points[2*i] = float32(i)
	}
	index, negatives := make([]int32, 2*b), make([]int32, m*b)
	for i := range b {
		index[i], index[b+i] = int32(i), int32(i+1)
	}
	for i := range negatives {
		negatives[i] = int32((i + 1) % (2 * b))
	}
	if err := errors.Join(
		op.Share(p.Input(n.source), points, b+1, 2),
		op.Share(p.Input(n.index), index, 2*b),
		op.Share(p.Input(n.negatives), negatives, m, b),
		op.Share(p.Input(n.runs), []int32{0}, 1),
		op.Share(p.Input(n.theta), []float32{0}),
	); err != nil {
		panic(err)
	}
}

// A program takes batches of any size, one after the other, and gives what a
// fresh program gives.
func TestShapesFollowTheInputs(t *testing.T) {
	n := newTable(t)
	p, err := vm.Compile(nil, n.loss, n.grad)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []struct{ b, m int }{{3, 2}, {100, 5}, {7, 1}, {1, 0}, {100, 3}} {
		n.fill(p, size.b, size.m)
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		other := newTable(t)
		fresh, err := vm.Compile(nil, other.loss, other.grad)
		if err != nil {
			t.Fatal(err)
		}
		other.fill(fresh, size.b, size.m)
		if err := fresh.Run(); err != nil {
			t.Fatal(err)
		}
		if got, want := op.Data[float32](p.Output(n.loss))[0], op.Data[float32](fresh.Output(other.loss))[0]; got != want || got == 0 {
			t.Errorf("b=%d m=%d: loss %g, want %g", size.b, size.m, got, want)
		}
		if got, want := p.Output(n.grad), fresh.Output(other.grad); !slices.Equal(got.Shape(), []int{size.b + 1, 2}) || !slices.Equal(op.Data[float32](got), op.Data[float32](want)) {
			t.Errorf("b=%d m=%d: gradient of shape %v is %v, want %v", size.b, size.m, got.Shape(), op.Data[float32](got), op.Data[float32](want))
		}
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	n := newTable(t)
	p, err := vm.Compile(nil, n.loss, n.grad)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []int{1024, 32768} { // the larger runs on two goroutines
		n.fill(p, b, 5)
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(20, func() {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("b=%d: %g allocations in a run", b, allocs)
		}
	}
}

func TestRunCheckedNamesTheCulprit(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("x"), gorgonia.WithShape(3, 2))
	unit, err := op.Normalize(x)
	if err != nil {
		t.Fatal(err)
	}
	p, err := vm.Compile(nil, gorgonia.Must(gorgonia.Log(unit)))
	if err != nil {
		t.Fatal(err)
	}
	values := []float64{1, 2, 3, 4, 5, 6}
	if err := op.Share(p.Input(x), values, 3, 2); err != nil {
		t.Fatal(err)
	}
	if err := p.RunChecked(); err != nil {
		t.Fatal(err)
	}
	values[4] = -1
	var bad *vm.NonFiniteError
	if err := p.RunChecked(); !errors.As(err, &bad) || bad.Op != "ln" || bad.Row != 2 {
		t.Errorf("error %v, want one that names the logarithm and row 2", err)
	}
	values[1] = math.Inf(1)
	if err := p.RunChecked(); !errors.As(err, &bad) || bad.Input != "x" || bad.Row != 0 {
		t.Errorf("error %v, want one that names row 0 of x", err)
	}
}

// Values that do not lie row after row are refused, not misread.
func TestRunAllRefusesOtherLayouts(t *testing.T) {
	transposed := dense([]int{3, 2}, []float32{1, 2, 3, 4, 5, 6})
	if err := transposed.T(); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*tensor.Dense{
		"column-major": tensor.New(tensor.WithShape(2, 3), tensor.AsFortran([]float32{1, 4, 2, 5, 3, 6})),
		"transposed":   transposed,
	} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"), gorgonia.WithValue(v))
		i := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithName("i"), gorgonia.WithValue(dense([]int{1}, []int32{1})))
		y, err := op.Gather(x, i)
		if err != nil {
			t.Fatal(err)
		}
		p, err := vm.Compile(nil, y)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.RunAll(); err == nil || !strings.Contains(err.Error(), "row after row") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestShareChecks(t *testing.T) {
	n := newTable(t)
	p, err := vm.Compile(nil, n.loss)
	if err != nil {
		t.Fatal(err)
	}
	source := p.Input(n.source)
	for want, err := range map[string]error{
		"got 8 elements, want as many as shape [1000 2] has": op.Share(source, make([]float32, 8), 1000, 2),
		"got elements of float64, want float32":              op.Share(source, make([]float64, 8), 4, 2),
		"want at most 4 dimensions":                          op.Share(source, make([]float32, 1), 1, 1, 1, 1, 1),
		"got 0 elements, want as many as shape [] has":       op.Share(p.Input(n.theta), []float32{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := op.NewArray(nil, tensor.Float32, -3, 2); err == nil {
		t.Error("a negative dimension is accepted")
	}
}

func TestErrors(t *testing.T) {
	if _, err := vm.Compile(nil); err == nil {
		t.Error("a program of nothing compiles")
	}
	if _, err := vm.Compile(nil, newTable(t).loss, newTable(t).loss); err == nil || !strings.Contains(err.Error(), "another graph") {
		t.Errorf("outputs of two graphs: error %v", err)
	}
	n := newTable(t)
	p, err := vm.Compile(nil, n.loss)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RunAll(); !errors.Is(err, vm.ErrUnbound) {
		t.Errorf("unbound inputs: error %v", err)
	}
	if p.Input(n.loss) != nil || p.Output(n.source) != nil {
		t.Error("an output is taken for an input or the other way round")
	}
}

// BenchmarkOverhead runs a graph of operations that do next to nothing: the
// time per operation is what the machine itself costs.
func BenchmarkOverhead(b *testing.B) {
	const ops = 10
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{2, 2}, []float32{1, 2, 3, 4})))
	index := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithName("index"), gorgonia.WithValue(dense([]int{2}, []int32{1, 0})))
	y := x
	for range ops {
		n, err := op.Gather(y, index)
		if err != nil {
			b.Fatal(err)
		}
		y = n
	}
	b.Run("vm", func(b *testing.B) {
		p, err := vm.Compile(nil, y)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.RunAll(); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := p.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ops, "ns/op-node")
	})
	b.Run("tape", func(b *testing.B) {
		m := gorgonia.NewTapeMachine(g)
		defer m.Close()
		b.ReportAllocs()
		for b.Loop() {
			if err := m.RunAll(); err != nil {
				b.Fatal(err)
			}
			m.Reset()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ops, "ns/op-node")
	})
}

// Small results do not take the memory of large ones, and large ones share
// theirs: a row of matrices needs two arrays, and one for the last, an output.
func TestMemoryIsSharedBySize(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{100, 100}, make([]float32, 10000))))
	w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("w"), gorgonia.WithValue(dense([]int{100, 100}, make([]float32, 10000))))
	b := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithName("b"), gorgonia.WithValue(dense([]int{100}, make([]float32, 100))))
	small := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("small"), gorgonia.WithValue(dense([]int{2, 100}, make([]float32, 200))))
	y, z := x, small
	for range 6 {
		y = gorgonia.Must(op.Linear(y, w, b, op.ReLUActivation))
		z = gorgonia.Must(op.Linear(z, w, b, op.ReLUActivation))
	}
	p, err := vm.Compile(nil, y, z)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RunAll(); err != nil {
		t.Fatal(err)
	}
	if got, most := p.Elements(), 3*10000+3*200; got > most {
		t.Errorf("%d elements are held for the results, want at most %d", got, most)
	}
}

// The memory does not depend on the size of the batch that the graph was made for: then
// the weights' gradients are as large as the layers' results.
func TestMemoryFollowsTheBatch(t *testing.T) {
	const width, rows = 10, 1000
	var held []int
	for _, made := range []int{width, rows} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithShape(made, width))
		grad := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("grad"), gorgonia.WithShape(made, width))
		b := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithName("b"), gorgonia.WithValue(dense([]int{width}, make([]float32, width))))
		y := x
		var weights gorgonia.Nodes
		for i := range 4 {
			w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName(fmt.Sprint("w", i)), gorgonia.WithShape(width, width))
			weights = append(weights, w)
			y = gorgonia.Must(op.Linear(y, w, b, op.ReLUActivation))
		}
		outputs, err := gorgonia.Backpropagate(gorgonia.Nodes{y}, gorgonia.Nodes{grad}, weights)
		if err != nil {
			t.Fatal(err)
		}
		p, err := vm.Compile(nil, outputs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range weights {
			err = errors.Join(err, op.Share(p.Input(w), make([]float32, width*width), width, width))
		}
		if err := errors.Join(err,
			op.Share(p.Input(x), make([]float32, rows*width), rows, width),
			op.Share(p.Input(grad), make([]float32, rows*width), rows, width),
			op.Share(p.Input(b), make([]float32, width), width),
			p.Run(),
		); err != nil {
			t.Fatal(err)
		}
		held = append(held, p.Elements())
	}
	if held[0] != held[1] {
		t.Errorf("%d elements are held, or %d if the graph was made for the batch", held[0], held[1])
	}
}

// recomputed is an operation that may be computed again, and counts.
type recomputed struct {
	op.Kernel
	runs, again int
	clock       *int // counts the runs of all that have it
	at          int  // what it was when the result was computed again
}

func (r *recomputed) Type() hm.Type {
	matrix := gorgonia.TensorType{Dims: 2, Of: hm.TypeVariable('a')}
	return hm.NewFnType(matrix, matrix)
}

func (r *recomputed) Run(dst *op.Array, in []*op.Array) error {
	r.runs++
	*r.clock++
	return r.Kernel.Run(dst, in)
}

func (r *recomputed) Recompute(dst *op.Array, in []*op.Array) error {
	r.again++
	r.at = *r.clock
	return r.Kernel.Run(dst, in)
}

func (r *recomputed) RecomputeOnDevice(d *device.Device, dst *op.Array, in []*op.Array) error {
	return r.Kernel.(op.Launcher).Launch(d, dst, in)
}

// ends are rows of unit length, which Normalize leaves as they are.
var ends = []float32{1, 0, 0, -1}

// recompute adds a recomputed Normalize of a matrix to its graph.
func recompute(x *gorgonia.Node, clock *int) (*gorgonia.Node, *recomputed) {
	elsewhere := gorgonia.NewMatrix(gorgonia.NewGraph(), tensor.Float32, gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
	r := &recomputed{Kernel: gorgonia.Must(op.Normalize(elsewhere)).Op().(op.Kernel), clock: clock}
	return gorgonia.Must(gorgonia.ApplyOp(r, x)), r
}

// What is needed long after it was computed is computed again, if its operands
// are there then.
func TestLongUnusedResultsAreComputedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		steps  int  // until it is needed again
		inputs bool // that every step has besides
		keep   bool // the operand is needed as well
		output bool
		again  int
	}{
		"long":            {steps: 12, keep: true, again: 1},
		"short":           {steps: 3, keep: true},
		"many inputs":     {steps: 6, keep: true, inputs: true},
		"without operand": {steps: 12},
		"output":          {steps: 12, keep: true, output: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := gorgonia.NewGraph()
			x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{2, 2}, slices.Clone(ends))))
			operand := gorgonia.Must(op.Normalize(x)) // not an input, which is there always
			y, r := recompute(operand, new(int))
			z := y
			for i := range tc.steps {
				if tc.inputs {
					zero := dense([]int{2, 2}, make([]float32, 4))
					z = gorgonia.Must(gorgonia.Add(z, gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName(fmt.Sprint("zero", i)), gorgonia.WithValue(zero))))
				} else {
					z = gorgonia.Must(op.Normalize(z))
				}
			}
			sum := gorgonia.Must(gorgonia.Add(z, y))
			if tc.keep {
				sum = gorgonia.Must(gorgonia.Add(sum, operand))
			}
			outputs := gorgonia.Nodes{sum}
			if tc.output {
				outputs = append(outputs, y)
			}
			p, err := vm.Compile(nil, outputs...)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.RunAll(); err != nil {
				t.Fatal(err)
			}
			if r.runs != 1 || r.again != tc.again {
				t.Errorf("computed %d times and %d times again, want 1 and %d", r.runs, r.again, tc.again)
			}
			times := float32(2)
			if tc.keep {
				times = 3
			}
			if got, want := sum.Value().Data().([]float32), []float32{times, 0, 0, -times}; !slices.Equal(got, want) {
				t.Errorf("the sum is %v, want %v", got, want)
			}
		})
	}
}

// If two in a row may be computed again, only the first is, since the second needs it;
// and once, though it is needed twice in a step.
func TestOperandsAreNotDropped(t *testing.T) {
	for range 20 { // it must not depend on the order of a map
		g := gorgonia.NewGraph()
		x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{2, 2}, slices.Clone(ends))))
		operand := gorgonia.Must(op.Normalize(x))
		a, first := recompute(operand, new(int))
		b, second := recompute(a, new(int))
		z := b
		for range 20 {
			z = gorgonia.Must(gorgonia.Add(z, z)) // other numbers in each array
		}
		sum := gorgonia.Must(gorgonia.Add(z, b))
		for _, n := range []*gorgonia.Node{gorgonia.Must(gorgonia.Add(a, a)), operand} {
			sum = gorgonia.Must(gorgonia.Add(sum, n))
		}
		p, err := vm.Compile(nil, sum)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.RunAll(); err != nil {
			t.Fatal(err)
		}
		if first.again != 1 || second.again != 0 {
			t.Fatalf("computed again %d and %d times, want 1 and 0", first.again, second.again)
		}
		const times = 1<<20 + 1 + 2 + 1
		if got, want := sum.Value().Data().([]float32), []float32{times, 0, 0, -times}; !slices.Equal(got, want) {
			t.Fatalf("the sum is %v, want %v", got, want)
		}
	}
}

// What is needed three times is dropped for the longer of the two waits.
func TestTheLongestWaitIsSpared(t *testing.T) {
	for _, waits := range [][2]int{{10, 20}, {20, 10}} {
		g, clock := gorgonia.NewGraph(), new(int)
		x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithValue(dense([]int{2, 2}, slices.Clone(ends))))
		operand := gorgonia.Must(op.Normalize(x))
		y, r := recompute(operand, clock)
		z := y
		for _, n := range waits {
			for range n {
				z, _ = recompute(z, clock)
			}
			z = gorgonia.Must(gorgonia.Add(z, y))
		}
		z = gorgonia.Must(gorgonia.Add(z, operand))
		p, err := vm.Compile(nil, z)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.RunAll(); err != nil {
			t.Fatal(err)
		}
		want := 1 + waits[0]
		if waits[1] > waits[0] {
			want += waits[1]
		}
		if r.again != 1 || r.at != want {
			t.Errorf("waits of %v: computed again %d times, at last after %d steps, want once after %d", waits, r.again, r.at, want)
		}
		// The last wait begins with a unit; y and the operand are added to it.
		if got := z.Value().Data().([]float32); !slices.Equal(got, []float32{3, 0, 0, -3}) {
			t.Errorf("waits of %v: %v", waits, got)
		}
	}
}
