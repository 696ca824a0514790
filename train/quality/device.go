package quality

import (
	"cmp"
	"context"

	"cne/internal/device"
	"cne/internal/selection"
)

// This file has the measures over all pairs of points for an accelerator.

// Pairs are divided into pieces of pairRows rows and pairColumns columns. The CPU adds
// their sums in order. pairRows is also the kernel's number of threads.
const (
	pairRows    = 256
	pairColumns = 2048
)

// devicePairs returns the sum of 1/(1+x) over the squared distances x of the unordered
// pairs, computed on an accelerator. It computes terms in single precision, and adds 32 of
// them in single precision, and these sums in double precision.
func devicePairs(ctx context.Context, on *Device, e []float32, n, d int) (sum float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	parts := make([]float64, (n+pairRows-1)/pairRows*((n+pairColumns-1)/pairColumns))
	memory, err := on.AllocPieces(len(parts)*8, len(e)*4)
	if err != nil {
		return 0, err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(1), planesOf(e, n, d)); err != nil {
		return 0, err
	}
	if err := on.Launch("metrics_partition", device.Launch{Grid: len(parts), Block: pairRows},
		device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d), device.Int(pairColumns)); err != nil {
		return 0, err
	}
	err = device.Download(on, parts, memory.At(0))
	return selection.Sum(parts), err
}

// edgesOfPart is the number of edges that a block of metrics_edges adds up, and
// edgesAtOnce the number of edges per call.
const (
	edgesOfPart = 16 * pairRows
	edgesAtOnce = 1 << 20
)

// deviceOverEdges sums log(1+x) over the squared distances x of edges, on an accelerator:
// terms in single precision, their sums in double.
func deviceOverEdges(ctx context.Context, on *Device, heads, tails []int32, e []float32, d int) (sum float64, err error) {
	edges := min(len(heads), edgesAtOnce)
	parts := make([]float64, (edges+edgesOfPart-1)/edgesOfPart)
	memory, err := on.AllocPieces(len(e)*4, edges*4, edges*4, len(parts)*8)
	if err != nil {
		return 0, err
	}
	defer memory.Free()
	if err := device.Upload(on, memory.At(0), planesOf(e, len(e)/d, d)); err != nil {
		return 0, err
	}
	for lo := 0; lo < len(heads); lo += edgesAtOnce {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		hi := min(len(heads), lo+edgesAtOnce)
		parts := parts[:(hi-lo+edgesOfPart-1)/edgesOfPart]
		if err := cmp.Or(
			device.Upload(on, memory.At(1), heads[lo:hi]), device.Upload(on, memory.At(2), tails[lo:hi]),
			on.Launch("metrics_edges", device.Launch{Grid: len(parts), Block: pairRows},
				device.Arg(memory.At(3)), device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)),
				device.Int(len(e)/d), device.Int(d), device.Int(hi-lo)),
			device.Download(on, parts, memory.At(3)),
		); err != nil {
			return 0, err
		}
		for _, v := range parts {
			sum += v
		}
	}
	return sum, nil
}
