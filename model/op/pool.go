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
	"cne/internal/selection"
	"cne/internal/simd"
)

// GlobalAvgPool returns the means of images x [n, h, w, c] over their pixels, at least
// one: [n, c].
func GlobalAvgPool(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&globalAvgPool{newRowwise(meansOf[float32], meansOf[float64], "global_avg_pool", images, matrix)}, x)
}

type globalAvgPool struct{ rowwise }

func (o *globalAvgPool) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 4 || in[0].shape[1]*in[0].shape[2] == 0 {
		return nil, kind.Errorf(ErrInput, "op: global_avg_pool: got shape %v, want images [n,h,w,c] of one pixel or more", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[3]), nil
}

// Launch implements Launcher.
func (o *globalAvgPool) Launch(d *Device, dst *Array, in []*Array) error {
	pixels := in[0].shape[1] * in[0].shape[2]
	kernel := selection.If(in[0].half(), "pixel_means_h", "pixel_means")
	return d.Each(kernel, dst.Len(), dst.Arg(), in[0].Arg(), device.Int(pixels), device.Int(in[0].shape[3]), device.Int(dst.Len()))
}

// meansOf writes the means over the pixels of images.
func meansOf[T Float](to *Array, in []*Array, lo, hi int) {
	dst, x, c, size := rowsIn[T](to, lo, hi), rowsIn[T](in[0], lo, hi), to.Cols(), in[0].Cols()
	clear(dst)
	for at := 0; at < len(x) && c > 0; at += size {
		means := dst[at/size*c:][:c]
		simd.ColumnSums(means, x[at:at+size], c)
		simd.Scale(means, T(c)/T(size))
	}
}

func (o *globalAvgPool) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(&globalAvgPoolGrad{newRowwise(scatterMeans[float32], scatterMeans[float64], "global_avg_pool_grad",
		images, matrix, images)}, in[0], grad)
	return gorgonia.Nodes{n}, err
}

// globalAvgPoolGrad spreads the gradient of each mean over the pixels. Its inputs
// are the images, for their shape, and the gradient that comes in.
type globalAvgPoolGrad struct{ rowwise }

// Launch implements Launcher.
func (o *globalAvgPoolGrad) Launch(d *Device, dst *Array, in []*Array) error {
	pixels := dst.shape[1] * dst.shape[2]
	kernel := selection.If(dst.half(), "pixel_means_grad_h", "pixel_means_grad")
	return d.Each(kernel, dst.Len(), dst.Arg(), in[1].Arg(), device.Int(pixels), device.Int(dst.shape[3]), device.Int(dst.Len()))
}

// scatterMeans writes the gradients of images.
func scatterMeans[T Float](to *Array, in []*Array, lo, hi int) {
	dst, g, c, size := rowsIn[T](to, lo, hi), rowsIn[T](in[1], lo, hi), in[1].Cols(), to.Cols()
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
	rowwise
	back bool
}

func newRelayout(back bool) *relayout {
	o := &relayout{back: back}
	o.rowwise = newRowwise(
		func(dst *Array, in []*Array, lo, hi int) { transposeImages[float32](dst, in, lo, hi, o.rows(in[0])) },
		func(dst *Array, in []*Array, lo, hi int) { transposeImages[float64](dst, in, lo, hi, o.rows(in[0])) },
		selection.If(back, "channels_first", "channels_last"), images, images)
	return o
}

// rows returns the number of rows of the matrices that images are: of their channels or, on
// the way back, of their pixels.
func (o *relayout) rows(x *Array) int {
	if o.back {
		return x.shape[1] * x.shape[2]
	}
	return x.shape[1]
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

// Launch implements Launcher.
func (o *relayout) Launch(d *Device, dst *Array, in []*Array) error {
	rows := o.rows(in[0])
	return transposeEach(d, dst, in[0], rows, in[0].Cols()/max(1, rows))
}

// transposeEach writes the transposes of consecutive rows×cols matrices to dst.
func transposeEach(d *Device, dst, x *Array, rows, cols int) error {
	return d.Each("transpose_each", dst.Len(), dst.Arg(), x.Arg(), device.Int(rows), device.Int(cols), device.Int(dst.Len()))
}

// transposeImages transposes images that are matrices of the given number of rows.
func transposeImages[T Float](dst *Array, in []*Array, lo, hi, rows int) {
	size := in[0].Cols()
	if rows == 0 || size == 0 {
		return
	}
	cols := size / rows
	for at := lo * size; at < hi*size; at += size {
		to, from := Data[T](dst)[at:at+size], Data[T](in[0])[at:at+size]
		for i := range rows {
			for j, v := range from[i*cols : (i+1)*cols] {
				to[j*rows+i] = v
			}
		}
	}
}

func (o *relayout) SymDiff(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(newRelayout(!o.back), grad)
	return gorgonia.Nodes{n}, err
}

// minNorm is the least norm that Normalize divides by, as in PyTorch's normalize.
const minNorm = 1e-12

// Normalize returns the rows of x [n, d] scaled to unit length. A row whose
// norm is below 1e-12 is divided by 1e-12.
func Normalize(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&normalize{newRowwise(normalizeRows[float32], normalizeRows[float64], "normalize", matrix, matrix)}, x)
}

type normalize struct{ rowwise }

func (o *normalize) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 {
		return nil, kind.Errorf(ErrInput, "op: normalize: got shape %v, want a matrix", in[0].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

// Launch implements Launcher.
func (o *normalize) Launch(d *Device, dst *Array, in []*Array) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("normalize_rows", rows<<lanes, dst.Arg(), in[0].Arg(), device.F32(minNorm),
		device.Int(rows), device.Int(cols), device.Int(lanes))
}

func (o *normalize) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := apply(&normalizeGrad{newRowwise(normalizeGradRows[float32], normalizeGradRows[float64], "normalize_grad",
		matrix, matrix, matrix, matrix)}, in[0], out, grad)
	return gorgonia.Nodes{n}, err
}

// normalizeGrad is (g − y·(y·g))/‖x‖, row by row. Its inputs are x, the normalised y and
// the incoming gradient g.
type normalizeGrad struct{ rowwise }

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

func normalizeRows[T Float](to *Array, in []*Array, lo, hi int) {
	dst, x, d := rowsIn[T](to, lo, hi), rowsIn[T](in[0], lo, hi), to.Cols()
	for i := 0; i < len(x); i += d {
		f := T(1 / max(Norm(x[i:i+d]), minNorm))
		for j, v := range x[i : i+d] {
			dst[i+j] = f * v
		}
	}
}

func normalizeGradRows[T Float](to *Array, in []*Array, lo, hi int) {
	dst, x, y, g, d := rowsIn[T](to, lo, hi), rowsIn[T](in[0], lo, hi), rowsIn[T](in[1], lo, hi), rowsIn[T](in[2], lo, hi), to.Cols()
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
	rowwise
	kernels variants
}

// newPairwise returns a pairwise for nodes of a type.
func newPairwise(single, double rowsFunc, t hm.Type, kernels variants) *pairwise {
	return &pairwise{newRowwise(single, double, kernels[0], t, t, t), kernels}
}

// newReLUGrad returns the gradient of another operation's final ReLU, for nodes of a
// type. It takes the output y and the incoming gradient g: g where y is positive, else 0.
func newReLUGrad(t hm.Type) *pairwise {
	return newPairwise(maskPositive[float32], maskPositive[float64], t, variants{"relu_grad", "relu_grad_4", "relu_grad_h1", "relu_grad_h4"})
}

func maskPositive[T Float](dst *Array, in []*Array, lo, hi int) {
	simd.MaskPositive(rowsIn[T](dst, lo, hi), rowsIn[T](in[0], lo, hi), rowsIn[T](in[1], lo, hi))
}

func sumTo[T Float](dst *Array, in []*Array, lo, hi int) {
	sum := rowsIn[T](dst, lo, hi)
	copy(sum, rowsIn[T](in[0], lo, hi))
	simd.Add(sum, rowsIn[T](in[1], lo, hi))
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
		return newPairwise(sumTo[float32], sumTo[float64], typeOf(n.Dims()), variants{"sum", "sum_4", "sum_h1", "sum_h4"})
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
