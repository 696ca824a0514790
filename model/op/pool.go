package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
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
	kernel := "pixel_means"
	if in[0].half() {
		kernel = "pixel_means_h"
	}
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
	if x, g := in[0], in[1]; g.dims != 2 || g.shape[0] != x.shape[0] || g.shape[1] != x.shape[3] {
		return nil, kind.Errorf(ErrInput,
			"op: global_avg_pool_grad: got shapes %v and %v, want images [n,h,w,c] and gradients [n,c]", x.Shape(), g.Shape())
	}
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
	kernel := "pixel_means_grad"
	if dst.half() {
		kernel = "pixel_means_grad_h"
	}
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
