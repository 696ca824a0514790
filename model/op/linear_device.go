package op

import (
	"gorgonia.org/tensor"

	"cne/internal/device"
)

// The launches of linear, sparseLinear and their gradients on an accelerator.

// mostNarrow is the largest number of outputs of a narrow layer, which has kernels of
// its own; wider layers are matrix products.
const mostNarrow = 4

// elementsPerBlock bounds the elements of a rowBlock: 32 MiB, which stay in the
// second-level cache of large accelerators between being written and read.
const elementsPerBlock = 1 << 23

// A rowBlock holds gathered rows for a matrix product.
type rowBlock struct{ rows scratch }

// each gathers the rows of a matrix that index names, block by block, and calls use
// with their address, the number of the first, and how many they are. Without an index
// it calls use once, with all rows in place.
func (b *rowBlock) each(d *Device, points, index *Array, use func(x Pointer, first, n int) error) error {
	if index == nil {
		return use(points.Pointer(), 0, points.Rows())
	}
	return b.fill(d, index.Rows(), points.shape[1], func(x Pointer, first, n int) error {
		if err := gatherRows(d, x, points, index, first, n); err != nil {
			return err
		}
		return use(x, first, n)
	})
}

// fill has use fill the block, for count rows block by block.
func (b *rowBlock) fill(d *Device, count, width int, use func(x Pointer, first, n int) error) error {
	most := min(count, max(1, elementsPerBlock/max(1, width)))
	x, err := b.rows.of(d, tensor.Float32, most*width)
	if err != nil {
		return err
	}
	for first := 0; first < count; first += most {
		if err := use(x.Pointer(), first, min(most, count-first)); err != nil {
			return err
		}
	}
	return nil
}

// weightRows sets rows [first, first+n) of dst to n rows x times the transposed
// weights.
func weightRows(d *Device, dst *Array, first, n int, x Pointer, weights *Array) error {
	out, width := weights.shape[0], weights.shape[1]
	return d.Multiply(device.Product{TransB: true, M: n, N: out, K: width, Alpha: 1,
		A: x, LDA: width, B: weights.Pointer(), LDB: width, C: dst.Pointer().At(first*out, elementSize), LDC: out})
}

// addBias adds the bias to every row of dst and applies the activation.
func addBias(d *Device, dst, bias *Array, act Activation) error {
	rows, cols := dst.shape[0], dst.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("add_bias", rows<<lanes, dst.Arg(), bias.Arg(),
		device.Int(rows), device.Int(cols), device.Int(int(act)), device.Int(lanes))
}

// addWeightGrad adds to the weights' gradient dst the product of n rows of the gradient
// g, from first on, and the rows x. With first = 0 it overwrites dst.
func addWeightGrad(d *Device, dst, g *Array, first, n int, x Pointer) error {
	out, width := dst.shape[0], dst.shape[1]
	var beta float32
	if first > 0 {
		beta = 1
	}
	return d.Multiply(device.Product{TransA: true, M: out, N: width, K: n, Alpha: 1,
		A: g.Pointer().At(first*out, elementSize), LDA: out, B: x, LDB: width, Beta: beta, C: dst.Pointer(), LDC: width})
}

// linearNarrow computes a narrow layer.
func linearNarrow(d *Device, dst, x, index, weights, bias *Array, act Activation) error {
	rows, cols := dst.shape[0], weights.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("linear_narrow", rows<<lanes, dst.Arg(), x.Arg(), addressOf(index), weights.Arg(), bias.Arg(),
		device.Int(rows), device.Int(cols), device.Int(dst.shape[1]), device.Int(int(act)), device.Int(lanes))
}

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

// launch sets dst to the sum of the rows of x [n, d] that index names, or of all rows
// without an index: [d]. With factors g [n, out], out ≤ mostNarrow, dst is [out, d],
// and row i counts g[i, o] times in dst[o].
func (s *columnSummer) launch(d *Device, dst, g, x, index *Array) error {
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
		var err error
		if sums, err = s.parts.of(d, tensor.Float32, parts*dst.Len()); err != nil {
			return err
		}
		begun := s.done.array
		fresh := begun == nil || begun.on.device != d || begun.Cap() < tiles
		if done, err = s.done.of(d, tensor.Int32, tiles); err != nil {
			return err
		}
		if fresh {
			if err := done.Zero(); err != nil {
				return err
			}
		}
	}
	return d.Launch("column_sums", device.Launch{Grid: parts * tiles, Block: 256},
		dst.Arg(), addressOf(g), x.Arg(), addressOf(index), device.Int(rows), device.Int(cols), device.Int(out),
		device.Int(step), device.Int(tiles), device.Int(lanes), addressOf(sums), addressOf(done))
}
