package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
)

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
	name := "channels_last"
	if back {
		name = "channels_first"
	}
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
