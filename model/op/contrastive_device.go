package op

import (
	"cmp"
	"fmt"
	"strconv"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// A deviceLoop computes a contrastive loss on an accelerator, and holds its unscaled
// gradients.
//
// Only the device knows the contents of the layout, so the kernel is chosen only by shapes:
// a layout of more than one number, or negatives without rows (as package train has them
// where none are listed), suggest that the negatives are runs of consecutive rows. The
// choice affects speed only: each kernel reads the layout on the device and handles every
// kind of negatives that its inputs' shapes allow.
type deviceLoop struct {
	// gradient [rows, d] is the last batch's, without norm, in fixed point; if
	// inFloats, floats has it. parts [blocks, 2] are sums of losses and of derivatives
	// with respect to theta, and pairs [tile, rows] a tile of cosines over τ.
	gradient, floats, parts, pairs *Array
	inFloats                       bool
	dTheta                         *Array
	norm                           float64 // Scale, times 1/b for the mean
	ready                          bool    // the gradient is there
}

const (
	// threadsPerBlock is the number of threads of a block of heads or of rows.
	threadsPerBlock = 128
	// threadsOfTotal is that of the one block that adds up the others' sums.
	threadsOfTotal = 1024
	// devicePairs bounds the pairs of a tile of cosines over τ: 256 MiB.
	devicePairs = 1 << 26
	// maxThreadWidth is the largest width of rows that one thread holds.
	maxThreadWidth = 4
)

// KernelForWidth returns the kernel for points of so many coordinates, and its arguments:
// one whose name ends with the number, or else the one that ends with "any", whose last
// argument is the number.
func KernelForWidth(kernel string, width int, args ...Arg) (string, []Arg) {
	if HasOwnKernels(width) {
		return fmt.Sprintf(kernel, strconv.Itoa(width)), args
	}
	return fmt.Sprintf(kernel, "any"), append(args, device.Int(width))
}

// HasOwnKernels reports whether there are kernels for points of exactly so many
// coordinates.
func HasOwnKernels(width int) bool { return width == 2 || width == 3 }

// The kernels' flags.
const (
	flagGradient = 1 << iota
	flagExcludePositive
)

// on makes the arrays on a device, if they are not there yet.
func (s *deviceLoop) on(d *Device) error {
	if s.parts != nil && s.parts.Device() == d {
		return nil
	}
	for _, a := range []**Array{&s.gradient, &s.floats, &s.parts, &s.pairs, &s.dTheta} {
		if *a != nil {
			(*a).Free()
		}
		var err error
		// Kernels resize them; the derivative is one number.
		if *a, err = NewArray(d, tensor.Float32, 0); err != nil {
			return err
		}
	}
	return s.dTheta.Resize([]int{1})
}

// Launch implements Launcher.
func (o *contrastive) Launch(d *Device, dst *Array, in []*Array) error {
	if err := o.options.CheckOnDevice(); err != nil {
		return err
	}
	s := &o.onDevice
	if err := s.on(d); err != nil {
		return err
	}
	f, n, layout, theta := in[0], in[1], in[2], in[3]
	b := n.shape[1]
	s.norm = o.options.Scale
	if o.options.Mean {
		s.norm /= float64(b)
	}
	dense := layout.Len() > 1 || n.shape[0] == 0
	s.inFloats = dense && o.options.Metric == Cosine
	s.ready = o.differentiated
	var blocks int
	var err error
	switch {
	case s.inFloats:
		blocks = b
		err = o.launchGemm(d, f, layout, theta, b)
	default:
		blocks, err = o.launchPairs(d, f, n, layout, theta, dense)
	}
	if err != nil {
		return err
	}
	return d.Launch("contrast_total", device.Launch{Grid: 1, Block: threadsOfTotal}, dst.Arg(), s.dTheta.Arg(), s.parts.Arg(), device.Int(blocks), device.F32(s.norm))
}

// flags returns the options as flags for the kernels.
func (o *contrastive) flags() (flags int) {
	if o.differentiated {
		flags |= flagGradient
	}
	if o.options.ExcludePositive {
		flags |= flagExcludePositive
	}
	return flags
}

// launchPairs launches a kernel that sums the gradient in fixed point, and returns its
// number of blocks.
func (o *contrastive) launchPairs(d *Device, f, n, layout, theta *Array, dense bool) (blocks int, err error) {
	s, rows, width, m, b := &o.onDevice, f.Rows(), f.shape[1], n.shape[0], n.shape[1]
	grouped, own := dense && width <= maxThreadWidth, HasOwnKernels(width)
	heads := threadsPerBlock / 32 // of a block
	switch {
	case grouped:
		heads = GroupHeads / 2
	case own:
		heads = threadsPerBlock
	}
	blocks = parallel.Pieces(b, heads)
	err = s.parts.Resize([]int{blocks, 2})
	if o.differentiated {
		err = cmp.Or(err, s.gradient.Resize([]int{rows, width, 2}), s.gradient.Zero())
	}
	if err != nil {
		return 0, err
	}
	limit := device.F32(float64(1 / simd.BoundOf[float32](o.options.Clamp).Clamp()))
	loss, flags := device.Int(int(o.options.Loss)), device.Int(o.flags())
	kernel, args := "contrast_heads_%s", []Arg{s.gradient.Arg(), s.parts.Arg(), f.Arg()}
	if grouped {
		kernel = "contrast_groups_%s"
		if own && o.options.Loss.Info().PerHead {
			kernel = "contrast_info_groups_%s"
		}
		args = append(args, layout.Arg(), theta.Arg(), device.Int(rows), device.Int(b), loss, flags, limit)
	} else {
		args = append(args, n.Arg(), layout.Arg(), theta.Arg(), device.Int(rows), device.Int(b), device.Int(m),
			loss, device.Int(int(o.options.Metric)), flags, limit, device.F32(1/o.options.Temperature))
	}
	kernel, args = KernelForWidth(kernel, width, args...)
	return blocks, d.Launch(kernel, device.Launch{Grid: blocks, Block: threadsPerBlock}, args...)
}

// launchGemm computes the cosines over τ by matrix products, heads in tiles, and the
// gradient by products of their derivatives with the features.
func (o *contrastive) launchGemm(d *Device, f, layout, theta *Array, b int) error {
	s, rows, width := &o.onDevice, f.Rows(), f.shape[1]
	tile := min(b, max(1, devicePairs/rows))
	err := cmp.Or(s.parts.Resize([]int{b, 2}), s.pairs.Resize([]int{tile, rows}))
	if o.differentiated {
		err = cmp.Or(err, s.floats.Resize([]int{rows, width}))
	}
	if err != nil {
		return err
	}
	invTau := float32(1 / o.options.Temperature)
	for from := 0; from < b; from += tile {
		heads := f.Pointer().At(from*width, elementSize)
		count := min(tile, b-from)
		if err := cmp.Or(
			d.Multiply(device.Product{TransB: true, M: count, N: rows, K: width, Alpha: invTau,
				A: heads, LDA: width, B: f.Pointer(), LDB: width, C: s.pairs.Pointer(), LDC: rows}),
			d.Launch("contrast_gemm", device.Launch{Grid: count, Block: threadsPerBlock}, s.pairs.Arg(),
				Arg(s.parts.Pointer().At(2*from, elementSize)), layout.Arg(), theta.Arg(), device.Int(from), device.Int(rows), device.Int(b),
				device.Int(int(o.options.Loss)), device.Int(o.flags())),
		); err != nil {
			return err
		}
		if !o.differentiated {
			continue
		}
		var beta float32
		if from > 0 {
			beta = 1
		}
		if err := cmp.Or(
			d.Multiply(device.Product{TransA: true, M: rows, N: width, K: count, Alpha: invTau, A: s.pairs.Pointer(), LDA: rows,
				B: heads, LDB: width, Beta: beta, C: s.floats.Pointer(), LDC: width}),
			d.Multiply(device.Product{M: count, N: width, K: rows, Alpha: invTau, A: s.pairs.Pointer(), LDA: rows,
				B: f.Pointer(), LDB: width, Beta: 1, C: s.floats.Pointer().At(from*width, elementSize), LDC: width}),
		); err != nil {
			return err
		}
	}
	return nil
}

// Launch implements Launcher.
func (o *contrastiveGrad) Launch(d *Device, dst *Array, in []*Array) error {
	s := &o.of.onDevice
	kernel, from := "contrast_gradient", s.gradient
	if s.inFloats {
		kernel, from = "contrast_gradient_f", s.floats
	}
	if !s.ready {
		return fmt.Errorf("op: the gradient of a contrastive loss was asked for before the loss was computed")
	}
	return d.Each(kernel, dst.Len(), dst.Arg(), from.Arg(), in[2].Arg(), device.F32(s.norm), device.Int(dst.Len()))
}

// Launch implements Launcher.
func (o *contrastiveGradTheta) Launch(d *Device, dst *Array, in []*Array) error {
	s := &o.of.onDevice
	if !s.ready {
		return fmt.Errorf("op: the derivative of a contrastive loss was asked for before the loss was computed")
	}
	return d.Launch("contrast_theta", device.Launch{Grid: 1, Block: 32}, dst.Arg(), s.dTheta.Arg(), in[2].Arg())
}

var (
	_ Launcher = (*contrastive)(nil)
	_ Launcher = (*contrastiveGrad)(nil)
	_ Launcher = (*contrastiveGradTheta)(nil)
)
