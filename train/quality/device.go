package quality

import (
	"context"

	"cne/internal/device"
	"cne/internal/kind"
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
	defer kind.Catch(&err)
	kind.Check(ctx.Err())
	parts := make([]float64, (n+pairRows-1)/pairRows*((n+pairColumns-1)/pairColumns))
	memory := kind.Got(on.AllocPieces(len(parts)*8, len(e)*4))
	defer memory.Free()
	kind.Check(device.Upload(on, memory.At(1), planesOf(e, n, d)))
	kind.Check(on.Launch("metrics_partition", device.Launch{Grid: len(parts), Block: pairRows},
		device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Int(n), device.Int(d), device.Int(pairColumns)))
	kind.Check(device.Download(on, parts, memory.At(0)))
	return selection.Sum(parts), nil
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
	defer kind.Catch(&err)
	edges := min(len(heads), edgesAtOnce)
	parts := make([]float64, (edges+edgesOfPart-1)/edgesOfPart)
	memory := kind.Got(on.AllocPieces(len(e)*4, edges*4, edges*4, len(parts)*8))
	defer memory.Free()
	kind.Check(device.Upload(on, memory.At(0), planesOf(e, len(e)/d, d)))
	for lo := 0; lo < len(heads); lo += edgesAtOnce {
		kind.Check(ctx.Err())
		hi := min(len(heads), lo+edgesAtOnce)
		parts := parts[:(hi-lo+edgesOfPart-1)/edgesOfPart]
		kind.Check(device.Upload(on, memory.At(1), heads[lo:hi]))
		kind.Check(device.Upload(on, memory.At(2), tails[lo:hi]))
		kind.Check(on.Launch("metrics_edges", device.Launch{Grid: len(parts), Block: pairRows},
			device.Arg(memory.At(3)), device.Arg(memory.At(0)), device.Arg(memory.At(1)), device.Arg(memory.At(2)),
			device.Int(len(e)/d), device.Int(d), device.Int(hi-lo)))
		kind.Check(device.Download(on, parts, memory.At(3)))
		for _, v := range parts {
			sum += v
		}
	}
	return sum, nil
}
