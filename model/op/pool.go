package op

import (
	"math"
	"reflect"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// GlobalAvgPool returns the means of images x [n, h, w, c] over their pixels, at least
// one: [n, c].
func GlobalAvgPool(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := &globalAvgPool{base: base{name: "global_avg_pool", arity: 1, typ: hm.NewFnType(images, matrix), id: newID()}}
	o.loop.Body = o.images
	return apply(o, x)
}

type globalAvgPool struct {
	base
	loop   parallel.Loop
	dst, x *Array
}

func (o *globalAvgPool) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 4 || in[0].shape[1]*in[0].shape[2] == 0 {
		return nil, kind.Errorf(ErrInput, "op: global_avg_pool: got shape %v, want images [n,h,w,c] of one pixel or more", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[3]), nil
}

func (o *globalAvgPool) Run(dst *Array, in []*Array) error {
	o.dst, o.x = dst, in[0]
	o.loop.Run(dst.shape[0], itemsPerPiece(o.x.Cols()))
	return nil
}

// Launch implements Launcher.
func (o *globalAvgPool) Launch(d *Device, dst *Array, in []*Array) error {
	pixels := in[0].shape[1] * in[0].shape[2]
	kernel := selection.If(in[0].half(), "pixel_means_h", "pixel_means")
	return d.Each(kernel, dst.Len(), dst.Arg(), in[0].Arg(), device.Int(pixels), device.Int(in[0].shape[3]), device.Int(dst.Len()))
}

func (o *globalAvgPool) images(_, lo, hi int) {
	size, c := o.x.Cols(), o.x.shape[3]
	if o.dst.dtype == tensor.Float64 {
		meansOf(o.dst.f64[lo*c:hi*c], o.x.f64[lo*size:hi*size], c, size)
	} else {
		meansOf(o.dst.f32[lo*c:hi*c], o.x.f32[lo*size:hi*size], c, size)
	}
}

// meansOf writes the means over the pixels of images of size elements each.
func meansOf[T Float](dst, x []T, c, size int) {
	clear(dst)
	for at := 0; at < len(x) && c > 0; at += size {
		means := dst[at/size*c:][:c]
		simd.ColumnSums(means, x[at:at+size], c)
		simd.Scale(means, T(c)/T(size))
	}
}

func (o *globalAvgPool) DiffWRT(int) []bool { return []bool{true} }

func (o *globalAvgPool) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	g := &globalAvgPoolGrad{base: base{name: "global_avg_pool_grad", arity: 2, typ: hm.NewFnType(images, matrix, images), id: newID()}}
	g.loop.Body = g.images
	n, err := apply(g, in[0], grad)
	return gorgonia.Nodes{n}, err
}

// globalAvgPoolGrad spreads the gradient of each mean over the pixels. Its inputs
// are the images, for their shape, and the gradient that comes in.
type globalAvgPoolGrad struct {
	base
	loop   parallel.Loop
	dst, g *Array
}

func (o *globalAvgPoolGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].Shape()...), nil
}

func (o *globalAvgPoolGrad) Run(dst *Array, in []*Array) error {
	o.dst, o.g = dst, in[1]
	o.loop.Run(dst.shape[0], itemsPerPiece(dst.Cols()))
	return nil
}

// Launch implements Launcher.
func (o *globalAvgPoolGrad) Launch(d *Device, dst *Array, in []*Array) error {
	pixels := dst.shape[1] * dst.shape[2]
	kernel := selection.If(dst.half(), "pixel_means_grad_h", "pixel_means_grad")
	return d.Each(kernel, dst.Len(), dst.Arg(), in[1].Arg(), device.Int(pixels), device.Int(dst.shape[3]), device.Int(dst.Len()))
}

func (o *globalAvgPoolGrad) images(_, lo, hi int) {
	size, c := o.dst.Cols(), o.dst.shape[3]
	if o.dst.dtype == tensor.Float64 {
		scatterMeans(o.dst.f64[lo*size:hi*size], o.g.f64[lo*c:hi*c], c, size)
	} else {
		scatterMeans(o.dst.f32[lo*size:hi*size], o.g.f32[lo*c:hi*c], c, size)
	}
}

// scatterMeans writes the gradients of images of size elements each.
func scatterMeans[T Float](dst, g []T, c, size int) {
	for at := 0; at < len(dst) && c > 0; at += size {
		first := dst[at : at+c]
		copy(first, g[at/size*c:])
		simd.Scale(first, T(c)/T(size))
		for pixel := at + c; pixel < at+size; pixel += c {
			copy(dst[pixel:pixel+c], first)
		}
	}
}

// ChannelsLast returns images x [N, C, H, W], the layout of files and of PyTorch, as [N,
// H, W, C], the layout of the operations on images.
func ChannelsLast(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(newRelayout(false), x)
}

// relayout is ChannelsLast, or its inverse and gradient.
type relayout struct {
	base
	back   bool
	loop   parallel.Loop
	dst, x *Array
}

func newRelayout(back bool) *relayout {
	name := selection.If(back, "channels_first", "channels_last")
	o := &relayout{base: base{name: name, arity: 1, typ: hm.NewFnType(images, images)}, back: back}
	o.loop.Body = o.images
	return o
}

func (o *relayout) ResultShape(dst []int, in []*Array) ([]int, error) {
	s := in[0].shape
	if in[0].dims != 4 {
		return nil, kind.Errorf(ErrInput, "op: %s: got shape %v, want images [N,C,H,W]", o.name, in[0].Shape())
	}
	if o.back {
		return append(dst, s[0], s[3], s[1], s[2]), nil
	}
	return append(dst, s[0], s[2], s[3], s[1]), nil
}

func (o *relayout) Run(dst *Array, in []*Array) error {
	o.dst, o.x = dst, in[0]
	o.loop.Run(dst.shape[0], itemsPerPiece(dst.Cols()))
	return nil
}

// Launch implements Launcher.
func (o *relayout) Launch(d *Device, dst *Array, in []*Array) error {
	s := in[0].shape
	rows, cols := s[1], s[2]*s[3]
	if o.back {
		rows, cols = s[1]*s[2], s[3]
	}
	return transposeEach(d, dst, in[0], rows, cols)
}

// transposeEach writes the transposes of consecutive rows×cols matrices to dst.
func transposeEach(d *Device, dst, x *Array, rows, cols int) error {
	return d.Each("transpose_each", dst.Len(), dst.Arg(), x.Arg(), device.Int(rows), device.Int(cols), device.Int(dst.Len()))
}

// images transposes some images: [C, H·W] to [H·W, C], or back.
func (o *relayout) images(_, lo, hi int) {
	size, rows := o.x.Cols(), o.x.shape[1]
	if o.back {
		rows *= o.x.shape[2]
	}
	for i := lo; i < hi; i++ {
		if o.dst.dtype == tensor.Float64 {
			transposeTo(o.dst.f64[i*size:(i+1)*size], o.x.f64[i*size:(i+1)*size], rows)
		} else {
			transposeTo(o.dst.f32[i*size:(i+1)*size], o.x.f32[i*size:(i+1)*size], rows)
		}
	}
}

// transposeTo writes the transpose of x. x has the given number of rows.
func transposeTo[T Float](dst, x []T, rows int) {
	if rows == 0 {
		return
	}
	cols := len(x) / rows
	for i := range rows {
		for j, v := range x[i*cols : (i+1)*cols] {
			dst[j*rows+i] = v
		}
	}
}

func (o *relayout) DiffWRT(int) []bool { return []bool{true} }

func (o *relayout) SymDiff(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(newRelayout(!o.back), grad)
	return gorgonia.Nodes{n}, err
}

// minNorm is the least norm that Normalize divides by, as in PyTorch's normalize.
const minNorm = 1e-12

// Normalize returns the rows of x [n, d] scaled to unit length. A row whose
// norm is below 1e-12 is divided by 1e-12.
func Normalize(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&normalize{base{name: "normalize", arity: 1, typ: hm.NewFnType(matrix, matrix)}}, x)
}

type normalize struct{ base }

func (o *normalize) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 {
		return nil, kind.Errorf(ErrInput, "op: normalize: got shape %v, want a matrix", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *normalize) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		normalizeRows(dst.f64, in[0].f64, dst.shape[1])
	} else {
		normalizeRows(dst.f32, in[0].f32, dst.shape[1])
	}
	return nil
}

// Launch implements Launcher.
func (o *normalize) Launch(d *Device, dst *Array, in []*Array) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("normalize_rows", rows<<lanes, dst.Arg(), in[0].Arg(), device.F32(minNorm),
		device.Int(rows), device.Int(cols), device.Int(lanes))
}

func (o *normalize) DiffWRT(int) []bool { return []bool{true} }

func (o *normalize) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(&normalizeGrad{base{name: "normalize_grad", arity: 3, typ: hm.NewFnType(matrix, matrix, matrix, matrix)}},
		in[0], out, grad)
	return gorgonia.Nodes{n}, err
}

// normalizeGrad is (g − y·(y·g))/‖x‖, row by row. Its inputs are x, the normalised y and
// the incoming gradient g.
type normalizeGrad struct{ base }

func (o *normalizeGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *normalizeGrad) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		normalizeGradRows(dst.f64, in[0].f64, in[1].f64, in[2].f64, dst.shape[1])
	} else {
		normalizeGradRows(dst.f32, in[0].f32, in[1].f32, in[2].f32, dst.shape[1])
	}
	return nil
}

// Launch implements Launcher.
func (o *normalizeGrad) Launch(d *Device, dst *Array, in []*Array) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("normalize_grad", rows<<lanes, dst.Arg(), in[0].Arg(), in[1].Arg(), in[2].Arg(), device.F32(minNorm),
		device.Int(rows), device.Int(cols), device.Int(lanes))
}

// Norm returns the length of a vector.
func Norm[T Float](x []T) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum)
}

func normalizeRows[T Float](dst, x []T, d int) {
	for i := 0; i < len(x); i += d {
		f := T(1 / max(Norm(x[i:i+d]), minNorm))
		for j, v := range x[i : i+d] {
			dst[i+j] = f * v
		}
	}
}

func normalizeGradRows[T Float](dst, x, y, g []T, d int) {
	for i := 0; i < len(x); i += d {
		length := Norm(x[i : i+d])
		var along T
		if length >= minNorm { // below it the divisor is constant
			for j, v := range y[i : i+d] {
				along += T(v * g[i+j])
			}
		}
		f := T(1 / max(length, minNorm))
		for j, v := range y[i : i+d] {
			dst[i+j] = f * (g[i+j] - T(along*v))
		}
	}
}

// pairwise computes a function of two arrays of one shape, element by element.
type pairwise struct {
	base
	single    func(dst, a, b []float32)
	double    func(dst, a, b []float64)
	kernels   variants
	loop      parallel.Loop
	dst, a, b *Array
}

// newPairwise returns a pairwise for nodes of a type. The caller sets its functions.
func newPairwise(t hm.Type, kernels variants) *pairwise {
	o := &pairwise{base: base{name: kernels[0], arity: 2, typ: hm.NewFnType(t, t, t), id: newID()}, kernels: kernels}
	o.loop.Body = o.piece
	return o
}

// newReLUGrad returns the gradient of another operation's final ReLU, for nodes of a
// type. It takes the output y and the incoming gradient g: g where y is positive, else 0.
func newReLUGrad(t hm.Type) *pairwise {
	o := newPairwise(t, variants{"relu_grad", "relu_grad_4", "relu_grad_h1", "relu_grad_h4"})
	o.single, o.double = simd.MaskPositive[float32], simd.MaskPositive[float64]
	return o
}

func sumTo[T Float](dst, a, b []T) {
	copy(dst, a)
	simd.Add(dst, b)
}

func (o *pairwise) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].Shape()...), nil
}

func (o *pairwise) Run(dst *Array, in []*Array) error {
	o.dst, o.a, o.b = dst, in[0], in[1]
	o.loop.Run(dst.Len(), elementsPerPiece)
	return nil
}

func (o *pairwise) piece(_, lo, hi int) {
	if o.dst.dtype == tensor.Float64 {
		o.double(o.dst.f64[lo:hi], o.a.f64[lo:hi], o.b.f64[lo:hi])
	} else {
		o.single(o.dst.f32[lo:hi], o.a.f32[lo:hi], o.b.f32[lo:hi])
	}
}

// Launch implements Launcher.
func (o *pairwise) Launch(d *Device, dst *Array, in []*Array) error {
	return o.kernels.each(d, dst, in[0], in[1])
}

// typeOf returns the type of nodes with n dimensions.
func typeOf(n int) hm.Type { return gorgonia.TensorType{Dims: n, Of: real} }

// KernelOf returns a kernel that computes a node: its operation, if that is a kernel. For
// Gorgonia's own elementwise sum it returns an equivalent kernel. (Gorgonia uses this sum
// to add up the gradients of a node that is used more than once.) For other operations it
// returns nil.
func KernelOf(n *gorgonia.Node) Kernel {
	if k, ok := n.Op().(Kernel); ok {
		return k
	}
	if n.Op().Arity() == 2 && n.Dims() > 0 && (n.Dtype() == tensor.Float32 || n.Dtype() == tensor.Float64) && isSum(n) {
		o := newPairwise(typeOf(n.Dims()), variants{"sum", "sum_4", "sum_h1", "sum_h4"})
		o.single, o.double = sumTo[float32], sumTo[float64]
		return o
	}
	return nil
}

// isSum reports whether a node's operation is Gorgonia's sum of two arrays. Gorgonia does
// not export its type, so the node is compared with such a sum.
func isSum(n *gorgonia.Node) bool {
	g := gorgonia.NewGraph()
	shape := slices.Repeat([]int{2}, n.Dims())
	a := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("a"))
	b := gorgonia.NewTensor(g, n.Dtype(), n.Dims(), gorgonia.WithShape(shape...), gorgonia.WithName("b"))
	sum, err := gorgonia.Add(a, b)
	return err == nil && reflect.TypeOf(sum.Op()) == reflect.TypeOf(n.Op()) && sum.Op().Hashcode() == n.Op().Hashcode()
}
