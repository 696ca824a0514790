package neighbors

import (
	"slices"

	"cne/data"
	"cne/internal/device"
)

// RanksOn is Ranks on a device, with the same result. An accelerator needs memory
// for two copies of m and 64 MiB; errors are also the device's.
func RanksOn(d *device.Device, m *data.Matrix, index []int32, k int) ([]int32, error) {
	if d.OnHost() {
		return Ranks(m, index, k)
	}
	if err := checkRanks(m, index, k); err != nil {
		return nil, err
	}
	base, err := newRemoteBase(d, m)
	if err != nil {
		return nil, err
	}
	defer base.free()
	stride := min(base.columns(0, m.N), pointBlock)
	bounds := base.boundsOf(stride)
	rows := min(m.N, queryBlock)
	memory, err := d.AllocPieces(rows*stride*4, len(m.X)*4, m.N*8, len(bounds)*8, rows*k*4, rows*k*4, rows*k*8)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	products, points, norms, bound, asked, ranks, dist2 := memory.At(0), memory.At(1), memory.At(2), memory.At(3), memory.At(4), memory.At(5), memory.At(6)
	if err := device.Upload(d, points, m.X); err != nil {
		return nil, err
	}
	if err := device.Upload(d, norms, base.norm); err != nil {
		return nil, err
	}
	if err := device.Upload(d, bound, bounds); err != nil {
		return nil, err
	}
	all := make([]int32, len(index))
	for lo := 0; lo < m.N; lo += rows {
		n := min(rows, m.N-lo)
		if err := device.Upload(d, asked, index[lo*k:(lo+n)*k]); err != nil {
			return nil, err
		}
		if err := d.Zero(ranks, n*k*4); err != nil {
			return nil, err
		}
		if err := d.Each("neighbours_distances", n*k, device.Arg(dist2), device.Arg(points), device.Arg(asked),
			device.Int(lo), device.Int(m.D), device.Int(k), device.Int(n)); err != nil {
			return nil, err
		}
		q := queries{z: base.z.Pointer().At(lo*base.width, 4), h: base.h.Pointer().At(lo, 4), self: lo}
		l := device.Launch{Grid: (n + mostWarps - 1) / mostWarps, Block: mostWarps * warp, Shared: mostWarps * countTile * 4}
		err := base.multiply(q, n, products, stride, func(block, first, columns int) error {
			return d.Launch("neighbours_count", l, device.Arg(ranks), device.Arg(products), device.Arg(base.h.Pointer().At(first, 4)),
				device.Arg(q.h), device.Arg(norms), device.Arg(bound.At(block*boundWidth, 8)), device.Arg(points), device.Int(m.D),
				device.Arg(asked), device.Arg(dist2), device.Int(n), device.Int(lo), device.Int(first), device.Int(columns),
				device.Int(stride), device.Int(k))
		})
		if err != nil {
			return nil, err
		}
		if err := device.Download(d, all[lo*k:(lo+n)*k], ranks); err != nil {
			return nil, err
		}
	}
	for e := range all {
		all[e]++
	}
	return all, nil
}

const (
	countTile  = 128 // floats of shared memory of a warp that counts
	boundWidth = 6   // numbers of a block in boundsOf
)

// boundsOf returns what the kernel that counts is told about each block of so many
// base points: their largest norm, and what bounds the errors of the products.
func (b *remoteBase) boundsOf(stride int) []float64 {
	e := newErrorBound(b.d) // of products, in few dimensions too
	var bounds []float64
	for norms := range slices.Chunk(b.norm, stride) {
		bounds = append(bounds, slices.Max(norms), e.gamma, e.shift, e.product, e.distance, b.scale)
	}
	return bounds
}
