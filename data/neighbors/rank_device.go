package neighbors

import (
	"cmp"
	"context"
	"slices"

	"cne/data"
	"cne/internal/device"
)

// ranksOnDevice is Ranks on a device, for checked arguments.
func ranksOnDevice(ctx context.Context, d *device.Device, m *data.Matrix, index []int32, k int) ([]int32, error) {
	base := frameOnDevice(d, m)
	var err error
	if base.all, err = base.newSegment(m.N, false, single); err != nil {
		return nil, err
	}
	if err := base.loadAll(ctx); err != nil {
		return nil, err
	}
	defer base.free()
	stride := min(columns(m.N), pointBlock)
	bounds := base.boundsOf(stride)
	rows := min(m.N, queryBlock)
	memory, err := d.AllocPieces(rows*stride*4, len(m.X)*4, m.N*8, len(bounds)*8, rows*k*4, rows*k*4, rows*k*8)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	products, points, norms, bound, targets, ranks, dist2 := memory.At(0), memory.At(1), memory.At(2), memory.At(3), memory.At(4), memory.At(5), memory.At(6)
	if err := cmp.Or(device.Upload(d, points, m.X), device.Upload(d, norms, base.norm), device.Upload(d, bound, bounds)); err != nil {
		return nil, err
	}
	all := make([]int32, len(index))
	for lo := 0; lo < m.N; lo += rows {
		n := min(rows, m.N-lo)
		if err := cmp.Or(ctx.Err(),
			device.Upload(d, targets, index[lo*k:(lo+n)*k]),
			d.Zero(ranks, n*k*4),
			d.Each("neighbors_distances", n*k, device.Arg(dist2), device.Arg(points), device.Arg(targets),
				device.Int(lo), device.Int(m.D), device.Int(k), device.Int(n)),
		); err != nil {
			return nil, err
		}
		q := deviceQueries{z: base.all.z[single].At(lo*base.width, 4), h: base.all.h[single].At(lo, 4), n: n}
		l := device.Launch{Grid: (n + maxWarps - 1) / maxWarps, Block: maxWarps * warp, Shared: maxWarps * countTile * 4}
		err := base.multiply(single, q, base.all, products, stride, func(first, columns int) error {
			return d.Launch("neighbors_count", l, device.Arg(ranks), device.Arg(products), device.Arg(base.all.h[single].At(first, 4)),
				device.Arg(q.h), device.Arg(norms), device.Arg(bound.At(first/stride*boundWidth, 8)), device.Arg(points), device.Int(m.D),
				device.Arg(targets), device.Arg(dist2), device.Int(n), device.Int(lo), device.Int(first), device.Int(columns),
				device.Int(stride), device.Int(k))
		})
		if err := cmp.Or(err, device.Download(d, all[lo*k:(lo+n)*k], ranks)); err != nil {
			return nil, err
		}
	}
	for e := range all {
		all[e]++
	}
	return all, nil
}

const (
	countTile  = 128 // floats of shared memory for a warp of neighbors_count
	boundWidth = 6   // numbers of a block in boundsOf
)

// boundsOf returns what the kernel neighbors_count needs for each block of stride base
// points: the largest norm, and the bounds of the products' errors.
func (b *deviceBlocks) boundsOf(stride int) []float64 {
	e := newErrorBound(b.d) // of products, in few dimensions too
	var bounds []float64
	for norms := range slices.Chunk(b.norm, stride) {
		bounds = append(bounds, slices.Max(norms), e.gamma, e.shift, e.product, e.distance, b.scale)
	}
	return bounds
}
