package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/blas"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// An Activation is the function that a layer applies to its sums.
type Activation = blas.Activation

const (
	// NoActivation leaves the sums unchanged.
	NoActivation = blas.NoActivation
	// ReLUActivation is max(0, x), with derivative 0 at 0. NaN stays NaN.
	ReLUActivation = blas.ReLU
	// SoftmaxActivation is exp(x)/Σ exp(x), with the sum over a row. It has no kernel for devices.
	SoftmaxActivation = blas.Softmax
)

func checkActivation(act Activation) error {
	if act < NoActivation || act > SoftmaxActivation {
		return kind.Errorf(ErrInput, "op: activation: got %d, want a constant of this package", int(act))
	}
	return nil
}

// Linear returns act(x·Wᵀ + b), [n, out], for x [n, in], weights W [out, in] and bias b
// [out]. It computes a layer and its activation in one pass.
func Linear(x, weights, bias *gorgonia.Node, act Activation) (*gorgonia.Node, error) {
	return applyLinear("", layerInput{}, act, weights, bias, x)
}

// LinearRows is Linear, [r, out], for rows of points [n, in]. index [r] (int32) has their
// numbers. The rows are not copied.
func LinearRows(points, index, weights, bias *gorgonia.Node, act Activation) (*gorgonia.Node, error) {
	return applyLinear("_rows", layerInput{indexed: true}, act, weights, bias, points, index)
}

// LinearOfSparse is LinearRows for a constant sparse matrix of points.
func LinearOfSparse(points *Sparse, index, weights, bias *gorgonia.Node, act Activation) (*gorgonia.Node, error) {
	return applyLinear("_rows_sparse", layerInput{indexed: true, sparse: points}, act, weights, bias, index)
}

// A layerInput says which operands, the last ones, are the input of a layer: a matrix, unless
// a sparse one takes its place, and an index, unless all rows are the input.
type layerInput struct {
	sparse  *Sparse
	indexed bool
}

// operation returns the types of an operation with some operands before the input, and a
// matrix as result.
func (l layerInput) operation(types ...hm.Type) []hm.Type {
	if l.sparse == nil {
		types = append(types, matrix)
	}
	if l.indexed {
		types = append(types, indices)
	}
	return append(types, matrix)
}

// take returns the matrix and the index of a layer's operands, or nil for what is no operand.
func (l layerInput) take(in []*Array) (x, index *Array) {
	if l.indexed {
		index, in = in[len(in)-1], in[:len(in)-1]
	}
	if l.sparse == nil {
		x = in[len(in)-1]
	}
	return x, index
}

// size returns the size of the matrix.
func (l layerInput) size(x *Array) (rows, cols int) {
	if l.sparse != nil {
		return l.sparse.matrix.Size()
	}
	return x.shape[0], x.shape[1]
}

// elementsPerBlock bounds the elements of gathered rows, to 32 MiB. They stay in the
// second-level cache of large accelerators between being written and read.
const elementsPerBlock = 1 << 23

// each calls use for the input's rows on an accelerator: without an index once, with all rows
// in place; otherwise for the rows in index, which it gathers block by block. use gets the
// rows' address, the position of the first in index, and their number.
func (l layerInput) each(d *Device, block *scratch, x, index *Array, use func(x Pointer, first, n int) error) (err error) {
	defer kind.Catch(&err)
	if index == nil {
		return use(x.Pointer(), 0, x.Rows())
	}
	_, width := l.size(x)
	count := index.Rows()
	most := min(count, max(1, elementsPerBlock/max(1, width)))
	rows := block.of(d, tensor.Float32, most*width)
	for first := 0; first < count; first += most {
		n := min(most, count-first)
		if l.sparse != nil {
			l.sparse.expand(d, rows.Pointer(), index, first, n)
		} else {
			kind.Check(gatherRows(d, rows.Pointer(), x, index, first, n))
		}
		kind.Check(use(rows.Pointer(), first, n))
	}
	return nil
}

type linear struct {
	base
	layerInput
	act     Activation
	block   scratch
	softmax rowwise
}

// applyLinear returns a layer of operands: the weights, the bias and the input. suffix ends
// the operation's name.
func applyLinear(suffix string, input layerInput, act Activation, operands ...*gorgonia.Node) (*gorgonia.Node, error) {
	if err := checkActivation(act); err != nil {
		return nil, err
	}
	if dtype := operands[0].Dtype(); input.sparse != nil && dtype != tensor.Float32 {
		return nil, kind.Errorf(ErrInput, "op: linear of sparse points: got type %v, want float32", dtype)
	}
	name := [...]string{NoActivation: "linear", ReLUActivation: "linear_relu", SoftmaxActivation: "linear_softmax"}[act]
	o := &linear{base: newStateful(name+suffix, input.operation(matrix, vector)...), layerInput: input, act: act}
	o.softmax.single, o.softmax.double = softmax[float32], softmax[float64]
	return apply(o, operands...)
}

func (o *linear) ResultShape(dst []int, in []*Array) ([]int, error) {
	w, b := in[0], in[1]
	x, index := o.take(in)
	ok := w.dims == 2 && b.dims == 1 && w.shape[0] == b.shape[0] && (index == nil || index.dims == 1) && (x == nil || x.dims == 2)
	rows, cols := o.size(x)
	switch {
	case ok && w.shape[1] == cols:
	case o.sparse != nil:
		return nil, kind.Errorf(ErrInput, "op: %s: got shapes %v, %v and %v, want weights [out,%d], a bias [out] and row numbers [n]",
			o.name, w.Shape(), b.Shape(), index.Shape(), cols)
	default:
		return nil, kind.Errorf(ErrInput, "op: %s: got shapes %v, %v and %v, want rows [n,in], weights [out,in] and a bias [out]",
			o.name, x.Shape(), w.Shape(), b.Shape())
	}
	if index != nil {
		rows = index.shape[0]
	}
	return append(dst, rows, w.shape[0]), nil
}

func (o *linear) Run(dst *Array, in []*Array) error {
	w, b := in[0], in[1]
	x, index := o.take(in)
	points, k := o.size(x)
	rows, err := rowsOf(o.name, points, index)
	if err != nil {
		return err
	}
	m, n, relu := dst.shape[0], dst.shape[1], o.act == ReLUActivation
	switch {
	case o.sparse != nil:
		o.sparse.matrix.Linear(rows, n, w.f32, k, b.f32, relu, dst.f32, n)
	case dst.dtype == tensor.Float64:
		blas.Linear(m, n, k, x.f64, k, rows, w.f64, k, b.f64, relu, dst.f64, n)
	default:
		blas.Linear(m, n, k, x.f32, k, rows, w.f32, k, b.f32, relu, dst.f32, n)
	}
	if o.act == SoftmaxActivation {
		return o.softmax.Run(dst, in)
	}
	return nil
}

// Launch implements Launcher.
func (o *linear) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	if o.act == SoftmaxActivation {
		return kind.Errorf(ErrInput, "op: %s has no kernel for devices", o.name)
	}
	w, b := in[0], in[1]
	x, index := o.take(in)
	rows, cols, out := dst.shape[0], w.shape[1], dst.shape[1]
	if o.sparse == nil && out <= mostNarrow {
		lanes := device.Lanes(cols)
		return d.Each("linear_narrow", rows<<lanes, dst.Arg(), x.Arg(), addressOf(index), w.Arg(), b.Arg(),
			device.Int(rows), device.Int(cols), device.Int(out), device.Int(int(o.act)), device.Int(lanes))
	}
	kind.Check(o.each(d, &o.block, x, index, func(x Pointer, first, n int) error {
		return d.Multiply(device.Product{TransB: true, M: n, N: out, K: cols, Alpha: 1,
			A: x, LDA: cols, B: w.Pointer(), LDB: cols, C: dst.Pointer().At(first*out, elementSize), LDC: out})
	}))
	lanes := device.Lanes(out)
	return d.Each("add_bias", rows<<lanes, dst.Arg(), b.Arg(), device.Int(rows), device.Int(out), device.Int(int(o.act)), device.Int(lanes))
}

// rowsOf returns the checked row numbers, below n, of an index; nil for no index.
func rowsOf(name string, n int, index *Array) ([]int32, error) {
	if index == nil {
		return nil, nil
	}
	if bad := outOfRange(index.i32, n); bad >= 0 {
		return nil, kind.Errorf(ErrInput, "op: %s: row %d of the index: got %d, want 0 to %d", name, bad, index.i32[bad], n-1)
	}
	if index.i32 == nil {
		return []int32{}, nil // nil stands for all rows
	}
	return index.i32, nil
}

func (o *linear) DiffWRT(int) []bool {
	wrt := o.base.DiffWRT(o.Arity())
	wrt[len(wrt)-1] = !o.indexed
	return wrt
}

func (o *linear) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (_ gorgonia.Nodes, err error) {
	defer kind.Catch(&err)
	switch o.act {
	case ReLUActivation:
		grad = kind.Got(apply(newReLUGrad(matrix), out, grad))
	case SoftmaxActivation:
		grad = kind.Got(apply(newSoftmaxGrad(), out, grad))
	}
	grads, input := make(gorgonia.Nodes, len(in)), in[2:]
	if o.sparse == nil {
		grads[2] = kind.Got(apply(&inputGrad{newBase("product", matrix, matrix, matrix)}, grad, in[0]))
		if o.indexed {
			grads[2] = kind.Got(ScatterAdd(grads[2], input[1], input[0]))
		}
	}
	grads[0] = kind.Got(apply(&weightGrad{base: newStateful("weight_grad", o.operation(matrix)...), layerInput: o.layerInput},
		append(gorgonia.Nodes{grad}, input...)...))
	grads[1], err = apply(newColumnSums(), grad)
	return grads, err
}

// inputGrad is the gradient of a layer's input: g [n, out] times the weights
// [out, in].
type inputGrad struct{ base }

func (o *inputGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[0], in[1].shape[1]), nil
}

// Launch implements Launcher.
func (o *inputGrad) Launch(d *Device, dst *Array, in []*Array) error {
	g, w := in[0], in[1]
	rows, cols, out := dst.shape[0], dst.shape[1], w.shape[0]
	if out <= mostNarrow {
		lanes := device.Lanes(cols)
		return d.Each("product_narrow", rows<<lanes, dst.Arg(), g.Arg(), w.Arg(),
			device.Int(rows), device.Int(cols), device.Int(out), device.Int(lanes))
	}
	return d.Multiply(device.Product{M: rows, N: cols, K: out, Alpha: 1,
		A: g.Pointer(), LDA: out, B: w.Pointer(), LDB: cols, C: dst.Pointer(), LDC: cols})
}

func (o *inputGrad) Run(dst *Array, in []*Array) error {
	g, w := in[0], in[1]
	m, n, k := dst.shape[0], dst.shape[1], g.shape[1]
	if dst.dtype == tensor.Float64 {
		blas.Gemm(false, false, m, n, k, 1, g.f64, k, w.f64, n, 0, dst.f64, n)
	} else {
		blas.Gemm(false, false, m, n, k, 1, g.f32, k, w.f32, n, 0, dst.f32, n)
	}
	return nil
}

// weightGrad is the gradient of a layer's weights: gᵀ·x [out, in] for the gradient g [n,
// out] of its sums and its input x [n, in], or for the rows of x in an index.
type weightGrad struct {
	base
	layerInput
	block scratch
	sums  columnSummer
}

func (o *weightGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	x, _ := o.take(in)
	_, cols := o.size(x)
	return append(dst, in[0].shape[1], cols), nil
}

func (o *weightGrad) Run(dst *Array, in []*Array) error {
	g := in[0]
	x, index := o.take(in)
	points, k := o.size(x)
	rows, err := rowsOf(o.name, points, index)
	if err != nil {
		return err
	}
	m, n := g.shape[0], dst.shape[0]
	switch {
	case o.sparse != nil:
		o.sparse.matrix.LinearGrad(rows, n, g.f32, n, dst.f32, k)
	case dst.dtype == tensor.Float64:
		blas.LinearGrad(m, n, k, g.f64, n, x.f64, k, rows, dst.f64, k)
	default:
		blas.LinearGrad(m, n, k, g.f32, n, x.f32, k, rows, dst.f32, k)
	}
	return nil
}

// Launch implements Launcher.
func (o *weightGrad) Launch(d *Device, dst *Array, in []*Array) error {
	g := in[0]
	x, index := o.take(in)
	out, width := dst.shape[0], dst.shape[1]
	if o.sparse == nil && out <= mostNarrow {
		return o.sums.launch(d, dst, g, x, index)
	}
	if g.Rows() == 0 {
		return dst.Zero()
	}
	// The first rows overwrite dst, and the others are added.
	return o.each(d, &o.block, x, index, func(x Pointer, first, n int) error {
		return d.Multiply(device.Product{TransA: true, M: out, N: width, K: n, Alpha: 1,
			A: g.Pointer().At(first*out, elementSize), LDA: out, B: x, LDB: width, Beta: float32(min(first, 1)), C: dst.Pointer(), LDC: width})
	})
}

// columnSums is the gradient of a layer's bias: the sum of the rows of g
// [n, out], [out].
type columnSums struct {
	base
	loop parallel.Loop
	g    *Array
	// partial holds the sums of each piece of the rows; they are added in
	// order.
	partial Array
	sums    columnSummer
}

// rowsPerSum is the number of rows summed in one piece.
const rowsPerSum = 1024

func newColumnSums() *columnSums {
	o := &columnSums{base: newStateful("column_sums", matrix, vector)}
	o.loop.Body = o.piece
	return o
}

func (o *columnSums) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[1]), nil
}

func (o *columnSums) Run(dst *Array, in []*Array) error {
	o.g = in[0]
	rows, d := o.g.shape[0], o.g.shape[1]
	o.partial.dtype = dst.dtype
	shape := [2]int{parallel.Pieces(rows, rowsPerSum), d}
	if err := o.partial.Resize(shape[:]); err != nil {
		return err
	}
	clear(o.partial.f32)
	clear(o.partial.f64)
	o.loop.Run(rows, rowsPerSum)
	clear(dst.f32)
	clear(dst.f64)
	if dst.dtype == tensor.Float64 {
		simd.ColumnSums(dst.f64, o.partial.f64, d)
	} else {
		simd.ColumnSums(dst.f32, o.partial.f32, d)
	}
	return nil
}

// Launch implements Launcher.
func (o *columnSums) Launch(d *Device, dst *Array, in []*Array) error {
	return o.sums.launch(d, dst, nil, in[0], nil)
}

func (o *columnSums) piece(p, lo, hi int) {
	d := o.g.shape[1]
	if o.g.dtype == tensor.Float64 {
		simd.ColumnSums(o.partial.f64[p*d:(p+1)*d], o.g.f64[lo*d:hi*d], d)
	} else {
		simd.ColumnSums(o.partial.f32[p*d:(p+1)*d], o.g.f32[lo*d:hi*d], d)
	}
}

// The rest of this file launches linear and its gradients on an accelerator.

// mostNarrow is the largest number of outputs of a narrow layer. Narrow layers have their
// own kernels; wider layers are matrix products.
const mostNarrow = 4

// addressOf returns an array's address as an argument, or 0 for nil.
func addressOf(a *Array) Arg {
	if a == nil {
		return 0
	}
	return a.Arg()
}

// A columnSummer adds up rows on an accelerator: first in parts, then the parts' sums,
// in an order that depends only on the sizes.
type columnSummer struct {
	parts scratch // the parts' sums
	done  scratch // counters of finished blocks, 0 between launches
}

const (
	// rowsPerLane is the smallest number of rows that a thread adds up, and mostParts
	// the largest number of parts.
	rowsPerLane = 32
	mostParts   = 256
)

// launch sets dst [d] to the sum of the rows of x [n, d] in index, or of all rows without
// an index. With factors g [n, out], out ≤ mostNarrow, dst is [out, d], and row i counts
// g[i, o] times in dst[o].
func (s *columnSummer) launch(d *Device, dst, g, x, index *Array) (err error) {
	defer kind.Catch(&err)
	rows, cols, out := x.shape[0], x.shape[1], 1
	if g != nil {
		rows, out = g.shape[0], g.shape[1]
	}
	if dst.Len() == 0 {
		return nil
	}
	lanes := device.Lanes(cols)
	step := max(rowsPerLane*(256>>lanes), (rows+mostParts-1)/mostParts)
	parts, tiles := max(1, (rows+step-1)/step), (cols+1<<lanes-1)>>lanes
	var sums, done *Array
	if parts > 1 {
		sums = s.parts.of(d, tensor.Float32, parts*dst.Len())
		begun := s.done.array
		fresh := begun == nil || begun.on.device != d || begun.Cap() < tiles
		if done = s.done.of(d, tensor.Int32, tiles); fresh {
			kind.Check(done.Zero())
		}
	}
	return d.Launch("column_sums", device.Launch{Grid: parts * tiles, Block: 256},
		dst.Arg(), addressOf(g), x.Arg(), addressOf(index), device.Int(rows), device.Int(cols), device.Int(out),
		device.Int(step), device.Int(tiles), device.Int(lanes), addressOf(sums), addressOf(done))
}
