package quality

import (
	"context"
	"math"

	"cne/internal/device"
	"cne/internal/simd"
)

// On an accelerator: the measures that take all pairs of points.

// The pairs are cut into pieces of pairRows rows and pairColumns columns, whose sums
// are added up on the CPU in the order of the pieces. pairRows is also the kernel's
// number of threads.
const (
	pairRows    = 256
	pairColumns = 2048
	tileSide    = 16 // pairs of a tile of distances, in both directions
)

// devicePairs sums, on an accelerator and over the unordered pairs with squared
// distance x, 1/(1+x) or, if there are any, the losses of discriminators. It computes
// terms in single precision, and adds up 32 of them before it goes on in double
// precision.
func devicePairs(ctx context.Context, on *Device, e []float32, n, d int, discriminators []Discriminator, bound simd.Bound[float32]) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pieces := (n + pairRows - 1) / pairRows * ((n + pairColumns - 1) / pairColumns)
	count := max(1, len(discriminators))
	var terms []float32
	for _, p := range discriminators {
		terms = append(terms, float32(p.slope), float32(p.offset))
	}
	memory, err := on.AllocPieces(pieces*count*8, len(e)*4, len(terms)*4)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(1), planesOf(e, n, d)); err != nil {
		return nil, err
	}
	if err := device.Upload(on, memory.At(2), terms); err != nil {
		return nil, err
	}
	l := device.Launch{Grid: pieces * count, Block: pairRows}
	if len(discriminators) == 0 {
		err = on.Launch("metrics_partition", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d), device.Int(pairColumns))
	} else {
		limit := float64(1 / bound.Clamp())
		err = on.Launch("metrics_losses", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)), device.Int(n), device.Int(d),
			device.Int(pairColumns), device.F32(limit), device.F32(math.Log(limit)))
	}
	if err != nil {
		return nil, err
	}
	parts := make([]float64, pieces*count)
	if err := device.Download(on, parts, memory.At(0)); err != nil {
		return nil, err
	}
	sums := make([]float64, count)
	for k := range sums {
		for _, v := range parts[k*pieces : (k+1)*pieces] {
			sums[k] += v
		}
	}
	return sums, nil
}

// deviceDistances is distances on an accelerator.
func deviceDistances(on *Device, out []uint64, x []float32, d int) error {
	memory, err := on.AllocPieces(len(out)*8, len(x)*4)
	if err != nil {
		return err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(1), x); err != nil {
		return err
	}
	n := len(x) / d
	tiles := (n + tileSide - 1) / tileSide
	if err := on.Launch("metrics_distances", device.Launch{Grid: tiles * tiles, Block: tileSide * tileSide},
		device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d)); err != nil {
		return err
	}
	return device.Download(on, out, memory.At(0))
}
