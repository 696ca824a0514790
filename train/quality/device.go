package quality

import (
	"cmp"
	"context"

	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/simd"
)

// This file has the measures over all pairs of points for an accelerator.

// Pairs are divided into pieces of pairRows rows and pairColumns columns. The CPU adds
// their sums in order. pairRows is also the kernel's number of threads.
const (
	pairRows    = 256
	pairColumns = 2048
	tileSide    = 16 // pairs of a tile of distances, in both directions
)

// devicePairs returns sums over the unordered pairs, computed on an accelerator: of
// 1/(1+x) for the squared distance x or, if there are discriminators, of their losses. It
// computes terms in single precision, and adds 32 of them in single precision, and these
// sums in double precision.
func devicePairs(ctx context.Context, on *Device, e []float32, n, d int, discriminators []Discriminator,
	bound simd.Bound[float32]) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pieces := (n + pairRows - 1) / pairRows * ((n + pairColumns - 1) / pairColumns)
	count := max(1, len(discriminators))
	var terms []float32
	for _, p := range discriminators {
		slope, offset, _ := p.odds()
		terms = append(terms, float32(slope), float32(offset))
	}
	memory, err := on.AllocPieces(pieces*count*8, len(e)*4, len(terms)*4)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	if err := cmp.Or(device.Upload(on, memory.At(1), planesOf(e, n, d)), device.Upload(on, memory.At(2), terms)); err != nil {
		return nil, err
	}
	l := device.Launch{Grid: pieces * count, Block: pairRows}
	if len(discriminators) == 0 {
		err = on.Launch("metrics_partition", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d),
			device.Int(pairColumns))
	} else {
		limit := float64(1 / bound.Clamp())
		err = on.Launch("metrics_losses", l, device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)),
			device.Int(n), device.Int(d),
			device.Int(pairColumns), device.F32(limit), device.F32(elementary.Log(limit)))
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

// edgesOfPart is the number of edges that a block of metrics_edges adds up, and
// edgesAtOnce the number of edges per call.
const (
	edgesOfPart = 16 * pairRows
	edgesAtOnce = 1 << 20
)

// deviceEdges calls f for consecutive groups of edges on an accelerator, with the first
// edge and their number. memory has the embedding's planes, heads, tails, and 16 bytes
// per edge for results.
func deviceEdges(ctx context.Context, on *Device, heads, tails []int32, e []float32, d int,
	f func(memory device.Pieces, first, count int) error) error {
	edges := min(len(heads), edgesAtOnce)
	memory, err := on.AllocPieces(len(e)*4, edges*4, edges*4, edges*16)
	if err != nil {
		return err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(0), planesOf(e, len(e)/d, d)); err != nil {
		return err
	}
	for lo := 0; lo < len(heads); lo += edgesAtOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(len(heads), lo+edgesAtOnce)
		if err := cmp.Or(device.Upload(on, memory.At(1), heads[lo:hi]), device.Upload(on, memory.At(2), tails[lo:hi])); err != nil {
			return err
		}
		if err := f(memory, lo, hi-lo); err != nil {
			return err
		}
	}
	return nil
}

// deviceOverEdges sums log(1 + slope·x + offset), at most limit, over the squared
// distances x of edges, on an accelerator: terms in single precision, their sums in
// double.
func deviceOverEdges(ctx context.Context, on *Device, heads, tails []int32, e []float32, d int,
	slope, offset, limit float64) (sum float64, err error) {
	err = deviceEdges(ctx, on, heads, tails, e, d, func(memory device.Pieces, _, count int) error {
		parts := make([]float64, (count+edgesOfPart-1)/edgesOfPart)
		if err := on.Launch("metrics_edges", device.Launch{Grid: len(parts), Block: pairRows},
			device.Arg(memory.At(3)), device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)),
			device.Int(len(e)/d), device.Int(d), device.Int(count),
			device.F32(slope), device.F32(offset), device.F32(elementary.Exp(limit)), device.F32(limit)); err != nil {
			return err
		}
		if err := device.Download(on, parts, memory.At(3)); err != nil {
			return err
		}
		for _, v := range parts {
			sum += v
		}
		return nil
	})
	return sum, err
}

// deviceLogTotals is logTotal for edges on an accelerator, from the first edge of the
// stream. It returns means and variances.
func deviceLogTotals(ctx context.Context, on *Device, heads, tails []int32, e []float32, d, m, draws int, clamp float64,
	state uint64) (means, variances []float64, err error) {
	means, variances = make([]float64, len(heads)), make([]float64, len(heads))
	both := make([]float64, 2*min(len(heads), edgesAtOnce))
	return means, variances, deviceEdges(ctx, on, heads, tails, e, d, func(memory device.Pieces, first, count int) error {
		if err := on.Each("metrics_infonc", count,
			device.Arg(memory.At(3)), device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)),
			device.Int(len(e)/d), device.Int(d), device.Int(count),
			device.Int(first), device.Int(m), device.Int(draws), device.Word(state), device.F32(clamp)); err != nil {
			return err
		}
		if err := device.Download(on, both[:2*count], memory.At(3)); err != nil {
			return err
		}
		for k := range count {
			means[first+k], variances[first+k] = both[2*k], both[2*k+1]
		}
		return nil
	})
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
