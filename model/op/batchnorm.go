package op

import (
	"cmp"
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// NormEpsilon is added to the variances before BatchNorm divides by their roots.
	// normMomentum is the share of a batch in the running statistics. Both are PyTorch's.
	NormEpsilon  = 1e-5
	normMomentum = 0.1
)

// BatchStats are the running statistics of one layer of batch normalisation,
// and which statistics it uses. They belong only to that layer. Between runs
// the caller may read, save and set them.
type BatchStats struct {
	// Mean and Var [c] are the running mean and the running unbiased variance
	// of each channel. Each run in training moves them a tenth of the way to
	// the statistics of its batch.
	Mean, Var *Array
	// Evaluate makes the layer use Mean and Var and leave them as they are,
	// instead of the statistics of the batch.
	Evaluate bool
}

// NewBatchStats returns the statistics of a layer before its first run, means of 0 and
// variances of 1, on the layer's device (nil: the CPU). The dtype is the type of the
// layer's input, tensor.Float32 or Float64.
func NewBatchStats(d *Device, dtype tensor.Dtype, channels int) (_ *BatchStats, err error) {
	defer kind.Catch(&err)
	kind.Need(dtype == tensor.Float32 || dtype == tensor.Float64, ErrInput,
		"op: batch statistics: got type %v, want float32 or float64", dtype)
	s := &BatchStats{Mean: kind.Got(NewArray(d, dtype, channels)), Var: kind.Got(NewArray(d, dtype, channels))}
	if !d.OnHost() {
		return s, cmp.Or(s.Mean.Zero(), d.Fill(s.Var.Pointer(), math.Float32bits(1), channels))
	}
	selection.Fill(s.Var.f32, 1)
	selection.Fill(s.Var.f64, 1)
	return s, nil
}

// BatchNorm returns act(scale·(x−mean)/√(variance+1e-5) + shift) for images x [n, h, w,
// c], c ≥ 1, with scale and shift [c] per channel (Ioffe and Szegedy, 2015). In training,
// mean and biased variance are computed for each channel over the batch, and gradients
// flow through them. The batch must have at least two values per channel. In evaluation
// they are the running statistics: see BatchStats.
//
// The gradient nodes use state of the last run. Therefore do not run one graph on two
// machines at once, do not switch between training and evaluation between the two passes
// of a step, and differentiate only one scalar of a graph.
func BatchNorm(x, scale, shift *gorgonia.Node, stats *BatchStats, act Activation) (_ *gorgonia.Node, err error) {
	defer kind.Catch(&err)
	o := newBatchNorm(x, stats, act)
	y := kind.Got(apply(o, x, scale, shift))
	o.addDone(y)
	return y, nil
}

// newBatchNorm returns the operation for images x, or fails as kind.Need does.
func newBatchNorm(x *gorgonia.Node, stats *BatchStats, act Activation) *batchNorm {
	kind.Need(stats != nil && stats.Mean != nil && stats.Var != nil, ErrInput,
		"op: batch_norm: got no batch statistics, want some of NewBatchStats")
	kind.Need(stats.Mean.dtype == x.Dtype() && stats.Var.dtype == x.Dtype(), ErrInput,
		"op: batch_norm: got statistics of %v and %v, want %v", stats.Mean.dtype, stats.Var.dtype, x.Dtype())
	kind.Check(checkActivation(act))
	floor := selection.If(act == NoActivation, math.Inf(-1), 0)
	o := &batchNorm{base: newStateful("batch_norm", images, vector, vector, images), stats: stats,
		onHost: newNormalization[float32](floor), onDevice: deviceNorm{floor: floor}}
	if x.Dtype() == tensor.Float64 {
		o.onHost = newNormalization[float64](floor)
	}
	return o
}

// addDone adds the batchNormDone node of the layer's result y. It is made with the
// result, not with the gradient, so it runs soon after the result. It fails as kind.Need does.
func (o *batchNorm) addDone(y *gorgonia.Node) {
	o.done = kind.Got(apply(&batchNormDone{newStateful("batch_norm_done", images, real)}, y))
}

// BatchNormAddReLU returns ReLU(BatchNorm(x) + residual), with residual of x's shape: the
// end of a residual block. It keeps one result instead of two, and takes fewer passes over
// memory on an accelerator. The result has the same bits as BatchNorm, a sum and a ReLU,
// except where an accelerator stores bfloat16: there only the sum is rounded.
func BatchNormAddReLU(x, scale, shift, residual *gorgonia.Node, stats *BatchStats) (_ *gorgonia.Node, err error) {
	defer kind.Catch(&err)
	n := newBatchNorm(x, stats, NoActivation)
	o := &batchNormAdd{newRowwise(addReLU[float32], addReLU[float64], "batch_norm_add_relu", images, vector, vector, images, images), n}
	y := kind.Got(apply(o, x, scale, shift, residual))
	n.addDone(y)
	return y, nil
}

type batchNorm struct {
	base
	stats     *BatchStats
	done      *gorgonia.Node // the result of batchNormDone
	evaluated bool           // whether the last run used the running statistics
	onHost    normalizer
	onDevice  deviceNorm
}

// A normalizer is a normalization of a type.
type normalizer interface {
	run(dst, x, scale, shift *Array, stats *BatchStats, evaluate bool)
	recompute(dst, x *Array)
	gradient(dst, x, scale, g *Array, evaluated bool) error
	sumsTo(dst *Array, ofScale bool)
}

func (o *batchNorm) ResultShape(dst []int, in []*Array) ([]int, error) {
	x, scale, shift := in[0], in[1], in[2]
	if x.dims != 4 || x.shape[3] == 0 || scale.dims != 1 || shift.dims != 1 || scale.shape[0] != x.shape[3] || shift.shape[0] != x.shape[3] {
		return nil, kind.Errorf(ErrInput,
			"op: batch_norm: got shapes %v, %v and %v, want images [n,h,w,c] of one channel or more, a scale [c] and a shift [c]", x.Shape(), scale.Shape(), shift.Shape())
	}
	if mean, variance := o.stats.Mean, o.stats.Var; mean.dims != 1 || variance.dims != 1 || mean.shape[0] != x.shape[3] ||
		variance.shape[0] != x.shape[3] {
		return nil, kind.Errorf(ErrInput,
			"op: batch_norm: got statistics of shapes %v and %v, want a number for each of %d channels", mean.Shape(), variance.Shape(), x.shape[3])
	}
	return append(dst, x.Shape()...), nil
}

func (o *batchNorm) Run(dst *Array, in []*Array) error {
	x := in[0]
	if err := o.begin(x); err != nil {
		return err
	}
	o.onHost.run(dst, x, in[1], in[2], o.stats, o.evaluated)
	return nil
}

// begin records which statistics a run on images x uses.
func (o *batchNorm) begin(x *Array) error {
	o.evaluated = o.stats.Evaluate
	if n := x.shape[0] * x.shape[1] * x.shape[2]; n < 2 && !o.evaluated {
		return kind.Errorf(ErrInput,
			"op: batch_norm in training: got %d values of a channel in images of shape %v, want 2 or more; take a larger batch", n, x.Shape())
	}
	return nil
}

// Recompute implements Recomputer.
func (o *batchNorm) Recompute(dst *Array, in []*Array) error {
	o.onHost.recompute(dst, in[0])
	return nil
}

// A normalization computes a BatchNorm and its gradient.
type normalization[T Float] struct {
	// norm is the last run's map of the channels. Its pivots are the rounded means. In a
	// channel that is far from 0, differences from its pivot are exact.
	norm simd.Norm[T]
	// mean and inverse [c] are the mean and 1/√(variance+ε) that it used.
	mean, inverse []float64

	// first and second [pieces, c] are sums over each channel, first of each piece and then
	// of all.
	first, second []float64
	ofG, ofX, o   []T // of the gradient

	dst, g, x                       []T
	moments, apply, products, blend parallel.Loop
}

func newNormalization[T Float](floor float64) *normalization[T] {
	n := &normalization[T]{norm: simd.Norm[T]{Floor: T(floor)}}
	n.moments.Body = func(piece, lo, hi int) {
		c := len(n.norm.Pivot)
		simd.ColumnMoments(n.first[piece*c:(piece+1)*c], n.second[piece*c:(piece+1)*c], n.x[lo*c:hi*c], n.norm.Pivot)
	}
	n.apply.Body = func(_, lo, hi int) {
		c := len(n.norm.Pivot)
		n.norm.Apply(n.dst[lo*c:hi*c], n.x[lo*c:hi*c])
	}
	n.products.Body = func(piece, lo, hi int) {
		c := len(n.norm.Pivot)
		n.norm.Products(n.first[piece*c:(piece+1)*c], n.second[piece*c:(piece+1)*c], n.g[lo*c:hi*c], n.x[lo*c:hi*c])
	}
	n.blend.Body = func(_, lo, hi int) {
		c := len(n.norm.Pivot)
		n.norm.Gradient(n.dst[lo*c:hi*c], n.g[lo*c:hi*c], n.x[lo*c:hi*c], n.ofG, n.ofX, n.o)
	}
	return n
}

// sums runs a loop over the rows of x that adds to first and second for each of
// its pieces, and adds these up.
func (n *normalization[T]) sums(loop *parallel.Loop, channels int) {
	rows, grain := len(n.x)/channels, itemsPerPiece(channels)
	pieces := max(1, parallel.Pieces(rows, grain))
	n.first, n.second = grow(n.first, pieces*channels), grow(n.second, pieces*channels)
	clear(n.first)
	clear(n.second)
	loop.Run(rows, grain)
	for i := channels; i < pieces*channels; i++ {
		n.first[i%channels] += n.first[i]
		n.second[i%channels] += n.second[i]
	}
}

func (n *normalization[T]) run(dst, x, scales, shifts *Array, stats *BatchStats, evaluate bool) {
	scale, shift, means, variances := Data[T](scales), Data[T](shifts), Data[T](stats.Mean), Data[T](stats.Var)
	n.x = Data[T](x)
	c := len(scale)
	for _, s := range []*[]T{&n.norm.Pivot, &n.norm.Scale, &n.norm.Shift} {
		*s = grow(*s, c)
	}
	n.mean, n.inverse = grow(n.mean, c), grow(n.inverse, c)
	if !evaluate {
		// The moments are about one of the values. They do not cancel in a channel that is far
		// from 0, and the squares are at most n+1 times the scatter.
		copy(n.norm.Pivot, n.x[:c])
		n.sums(&n.moments, c)
	}
	count := float64(len(n.x) / c)
	for k := range c {
		mean, variance := float64(means[k]), float64(variances[k])
		if !evaluate {
			pivot := float64(n.norm.Pivot[k])
			scatter := n.second[k] - float64(n.first[k]/count*n.first[k])
			means[k] = T(float64((1-normMomentum)*mean) + float64(normMomentum*(pivot+n.first[k]/count)))
			variances[k] = T(float64((1-normMomentum)*variance) + normMomentum*scatter/(count-1))
			mean, variance = pivot+n.first[k]/count, scatter/count
		}
		n.mean[k], n.inverse[k] = mean, 1/math.Sqrt(variance+NormEpsilon)
		factor := float64(scale[k]) * n.inverse[k]
		n.norm.Pivot[k], n.norm.Scale[k] = T(mean), T(factor)
		n.norm.Shift[k] = T(float64(shift[k]) - float64(factor*(mean-float64(n.norm.Pivot[k]))))
	}
	n.recompute(dst, x)
}

// recompute applies what run found.
func (n *normalization[T]) recompute(dst, x *Array) {
	n.dst, n.x = Data[T](dst), Data[T](x)
	c := len(n.norm.Pivot)
	n.apply.Run(len(n.x)/c, itemsPerPiece(c))
	n.dst, n.x = nil, nil // for the garbage collector
}

// gradient writes, with z = (x−mean)/√(variance+ε) and g where the activation
// lets it pass, scale/√(variance+ε)·(g − Σg/n − z·Σgz/n) in training, and without
// the sums in evaluation. It leaves Σg and Σgz in first and second.
func (n *normalization[T]) gradient(dst, x, scales, g *Array, evaluated bool) error {
	scale := Data[T](scales)
	c := len(scale)
	if len(n.mean) != c {
		return errNotRun
	}
	n.dst, n.x, n.g = Data[T](dst), Data[T](x), Data[T](g)
	n.ofG, n.ofX, n.o = grow(n.ofG, c), grow(n.ofX, c), grow(n.o, c)
	n.sums(&n.products, c)
	count := float64(len(n.x) / c)
	for k := range c {
		off := n.mean[k] - float64(n.norm.Pivot[k])
		n.second[k] = n.inverse[k] * (n.second[k] - float64(off*n.first[k]))
		factor := float64(scale[k]) * n.inverse[k]
		n.ofG[k], n.ofX[k], n.o[k] = T(factor), 0, 0
		if !evaluated && count > 0 {
			ofX := -factor * n.inverse[k] * n.second[k] / count
			n.ofX[k], n.o[k] = T(ofX), T(-factor*n.first[k]/count-float64(ofX*off))
		}
	}
	n.blend.Run(len(n.x)/c, itemsPerPiece(c))
	n.dst, n.x, n.g = nil, nil, nil
	return nil
}

// sumsTo writes the gradient of the scale or of the shift that gradient has left.
func (n *normalization[T]) sumsTo(dst *Array, ofScale bool) {
	selection.Convert(Data[T](dst), selection.If(ofScale, n.second, n.first)[:dst.Len()])
}

// batchNormAdd is a batchNorm without activation. Another array is added to its result
// before a ReLU.
type batchNormAdd struct {
	rowwise
	norm *batchNorm
}

func (o *batchNormAdd) ResultShape(dst []int, in []*Array) ([]int, error) {
	if x, r := in[0], in[3]; x.dims != r.dims || x.shape != r.shape {
		return nil, kind.Errorf(ErrInput, "op: %s: got shapes %v and %v, want images and others of their shape", o.name, x.Shape(), r.Shape())
	}
	return o.norm.ResultShape(dst, in[:3])
}

func (o *batchNormAdd) Run(dst *Array, in []*Array) error {
	if err := o.norm.Run(dst, in[:3]); err != nil {
		return err
	}
	return o.rowwise.Run(dst, in)
}

func addReLU[T Float](dst *Array, in []*Array, lo, hi int) {
	sums := rowsIn[T](dst, lo, hi)
	simd.AddReLU(sums, sums, rowsIn[T](in[3], lo, hi))
}

func (o *batchNormAdd) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (_ gorgonia.Nodes, err error) {
	defer kind.Catch(&err)
	through := kind.Got(apply(newReLUGrad(typeOf(out.Dims())), out, grad))
	grads, err := o.norm.SymDiff(in[:3], nil, through)
	return append(grads, through), err
}

func (o *batchNorm) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (_ gorgonia.Nodes, err error) {
	defer kind.Catch(&err)
	g := &batchNormGrad{newStateful("batch_norm_grad", images, vector, images, real, images), o}
	dx := kind.Got(apply(g, in[0], in[1], grad, o.done))
	out := gorgonia.Nodes{dx, nil, nil}
	for i, name := range []string{"batch_norm_grad_scale", "batch_norm_grad_shift"} {
		s := &batchNormSums{newStateful(name, vector, images, vector), o, i == 0}
		out[1+i] = kind.Got(apply(s, in[1+i], dx))
	}
	return out, nil
}

// batchNormDone makes a scalar that marks that the layer has run. The gradient depends on
// it instead of the layer's output, so the output's memory can be reused.
type batchNormDone struct{ base }

func (o *batchNormDone) ResultShape(dst []int, _ []*Array) ([]int, error) { return dst, nil }

func (o *batchNormDone) Run(dst *Array, _ []*Array) error { return dst.Zero() }

// DiffWRT implements gorgonia.SDOp. Gorgonia refuses to differentiate graphs with
// operations that do not have it.
func (o *batchNormDone) DiffWRT(int) []bool { return []bool{false} }

func (o *batchNormDone) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return nil, kind.Errorf(ErrInput, "op: batch_norm_done has no gradient")
}

// batchNormGrad is the gradient with respect to the images. Its inputs are the
// images, the scale, the incoming gradient and batchNormDone. It also leaves the
// gradients of scale and shift, for batchNormSums.
type batchNormGrad struct {
	base
	of *batchNorm
}

func (o *batchNormGrad) Run(dst *Array, in []*Array) error {
	return o.of.onHost.gradient(dst, in[0], in[1], in[2], o.of.evaluated)
}

var errNotRun = kind.Errorf(ErrInput, "op: the gradient of a batch_norm was asked for before it was run")

// batchNormSums is the gradient of scale or shift. Its inputs are that vector, for its
// shape, and the gradient of the images, after which it must run.
type batchNormSums struct {
	base
	of    *batchNorm
	scale bool
}

func (o *batchNormSums) Run(dst *Array, _ []*Array) error {
	o.of.onHost.sumsTo(dst, o.scale)
	return nil
}

// deviceNorm is the state of a BatchNorm on an accelerator: see kernels/src/images.c.
type deviceNorm struct {
	floor   float64 // 0 with a ReLU, −∞ without
	state   *Array  // [normState, c]
	partial scratch // [parts·2, c], sums over parts of the rows
}

// The rows of the state, as the kernels number them.
const (
	normSumG  = 9  // the gradient of the shift
	normSumGZ = 10 // the gradient of the scale
	normState = 11
)

const (
	// normThreads is the number of threads of a block, and normBlocks the largest
	// number of blocks: as many as a large GPU runs at once.
	normThreads, normBlocks = 256, 384
	// normLanes is the largest number of threads that share a row.
	normLanes = 32
	// normRows is the smallest number of rows for a thread.
	normRows = 4
)

// A normLayout divides images among blocks and threads, only by their size.
type normLayout struct {
	rows, c              int
	half                 bool
	width                int // how many channels a thread takes at a time, 1 or 4
	lanes, strips, parts int
}

// newNormLayout returns the layout of x and of other arrays of its shape and type.
func newNormLayout(x *Array, others ...*Array) normLayout {
	l := normLayout{rows: x.shape[0] * x.shape[1] * x.shape[2], c: x.shape[3], lanes: 1, width: 1, half: x.half()}
	for _, a := range others {
		kind.Need(a.half() == l.half, ErrInput, "op: batch_norm: got arrays of float32 and of bfloat16, want one type")
	}
	if byFours(l.c, append(others, x)...) {
		l.width = 4
	}
	groups := l.c / l.width
	for l.lanes < min(groups, normLanes) {
		l.lanes *= 2
	}
	l.strips = (groups + l.lanes - 1) / l.lanes
	rows := normRows * normThreads / l.lanes
	l.parts = max(1, min(normBlocks/l.strips, (l.rows+rows-1)/rows))
	return l
}

// The kernels that see all images.
var (
	normMoments  = variants{"norm_moments_1", "norm_moments_4", "norm_moments_h1", "norm_moments_h4"}
	normApply    = variants{"norm_apply_1", "norm_apply_4", "norm_apply_h1", "norm_apply_h4"}
	normAdd      = variants{"norm_add_1", "norm_add_4", "norm_add_h1", "norm_add_h4"}
	normProducts = variants{"norm_products_1", "norm_products_4", "norm_products_h1", "norm_products_h4"}
	normGradient = variants{"norm_gradient_1", "norm_gradient_4", "norm_gradient_h1", "norm_gradient_h4"}
)

// launch runs one of the kernels v. They take the layout as their last arguments.
func (l normLayout) launch(d *Device, v *variants, args ...Arg) {
	args = append(args, device.Int(l.rows), device.Int(l.c), device.Int(l.lanes), device.Int(l.strips))
	kind.Check(d.Launch(v.of(l.half, l.width), device.Launch{Grid: l.strips * l.parts, Block: normThreads}, args...))
}

// finish runs a kernel that adds up the parts' sums.
func (l normLayout) finish(d *Device, kernel string, args ...Arg) {
	kind.Check(d.Launch(kernel, device.Launch{Grid: (l.c + 31) / 32, Block: 1024}, args...))
}

// reserve allocates memory for the state and the parts' sums.
func (n *deviceNorm) reserve(d *Device, l normLayout) {
	if n.state == nil {
		n.state = kind.Got(NewArray(d, tensor.Float32, normState, l.c))
	}
	if n.state.Device() != d {
		kind.Check(fmt.Errorf("op: batch_norm: got the device %s after %s, want one device", d.Name(), n.state.Device().Name()))
	}
	n.partial.of(d, tensor.Float32, 2*l.parts, l.c)
}

// row returns the address of a row of the state.
func (n *deviceNorm) row(k int) Pointer {
	return n.state.Pointer().At(k*n.state.shape[1], elementSize)
}

// Launch implements Launcher.
func (o *batchNorm) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	o.prepare(d, in)
	return o.RecomputeOnDevice(d, dst, in)
}

// prepare sets the state that forward passes need.
func (o *batchNorm) prepare(d *Device, in []*Array) {
	x, scale, shift := in[0], in[1], in[2]
	mean, variance := o.stats.Mean, o.stats.Var
	if mean.Device() != d || variance.Device() != d {
		kind.Check(fmt.Errorf("op: batch_norm: got statistics on %s, want them on %s", mean.Device().Name(), d.Name()))
	}
	kind.Check(o.begin(x))
	l := newNormLayout(x)
	o.onDevice.reserve(d, l)
	state, partial, c := o.onDevice.state.Arg(), o.onDevice.partial.array.Arg(), device.Int(l.c)
	if o.evaluated {
		kind.Check(d.Each("norm_running", l.c, state, mean.Arg(), variance.Arg(), scale.Arg(), shift.Arg(), c))
		return
	}
	l.launch(d, &normMoments, partial, state, x.Arg())
	l.finish(d, "norm_batch", state, mean.Arg(), variance.Arg(), partial, scale.Arg(), shift.Arg(), device.Int(l.parts), c, device.Int(l.rows))
}

// RecomputeOnDevice implements Recomputer.
func (o *batchNorm) RecomputeOnDevice(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	newNormLayout(dst, in[0]).launch(d, &normApply, dst.Arg(), in[0].Arg(), o.onDevice.state.Arg(), device.F32(o.onDevice.floor))
	return nil
}

// Launch implements Launcher.
func (o *batchNormAdd) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	o.norm.prepare(d, in)
	newNormLayout(dst, in[0], in[3]).launch(d, &normAdd, dst.Arg(), in[0].Arg(), in[3].Arg(), o.norm.onDevice.state.Arg(), device.F32(0))
	return nil
}

// Launch implements Launcher.
func (o *batchNormDone) Launch(_ *Device, dst *Array, _ []*Array) error { return dst.Zero() }

// Launch implements Launcher.
func (o *batchNormGrad) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	x, scale, g := in[0], in[1], in[2]
	n := &o.of.onDevice
	if n.state == nil || n.state.shape[1] != x.shape[3] {
		return errNotRun
	}
	evaluated := selection.If(o.of.evaluated, 1, 0)
	l := newNormLayout(x, g, dst)
	n.reserve(d, l)
	state, partial, floor := n.state.Arg(), n.partial.array.Arg(), device.F32(n.floor)
	l.launch(d, &normProducts, partial, g.Arg(), x.Arg(), state, floor)
	l.finish(d, "norm_blend", state, partial, scale.Arg(), device.Int(l.parts), device.Int(l.c), device.Int(l.rows), device.Int(evaluated))
	l.launch(d, &normGradient, dst.Arg(), g.Arg(), x.Arg(), state, floor)
	return nil
}

// Launch implements Launcher.
func (o *batchNormSums) Launch(d *Device, dst *Array, _ []*Array) error {
	row := selection.If(o.scale, normSumGZ, normSumG)
	return d.Copy(dst.Pointer(), o.of.onDevice.row(row), dst.Len()*elementSize)
}
