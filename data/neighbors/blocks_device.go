package neighbors

import (
	"context"
	"math"
	"math/bits"

	"cne/data"
	"cne/internal/device"
	"cne/internal/parallel"
)

// Candidates on a device.
//
// As on the CPU (blocks.go), float32 products (no TF32) of blocks of points give each
// query's k+slack candidates; a warp selects them for one query. In few dimensions,
// where products lose the distances of close points to rounding, coordinates are
// subtracted instead: n² differences take a device no longer than a tree search takes
// the CPU.
//
// A block has the products of queryBlock queries and pointBlock base points: 32 MiB,
// which stay in the cache between the product and the selection. While the CPU ranks a
// block's candidates, the device finds the next ones.
const (
	queryBlock = 4096
	pointBlock = 2048
	// columnStep is how many columns a warp reads at a time: numbers of columns are
	// rounded up to a multiple of it.
	columnStep = 512
	// maxShared is the shared memory of a block's warps for their candidates, in bytes,
	// and maxRoom the number of candidates that fit.
	maxShared = 64 << 10
	maxRoom   = maxShared / 8
	maxWarps  = 8  // of a block of threads
	warp      = 32 // threads
	// nearTile is how many points the kernel of differences keeps in shared memory.
	nearTile = 1024
)

// deviceMaxK is the largest k with roomFor(k+slack) ≤ maxRoom.
const deviceMaxK = maxRoom - warp - slack

// roomFor returns the room of a warp that keeps so many candidates: a power of two,
// with room to spare for one from each thread.
func roomFor(keep int) int { return max(2*warp, 1<<bits.Len(uint(keep+warp-1))) }

// deviceBlocks holds the centred and scaled points on a device.
type deviceBlocks struct {
	frame
	device      *device.Device
	differences bool           // instead of products
	width       int            // of a row of z: d, and zeros up to a multiple of 4
	z           *device.Memory // [n, width]
	h           *device.Memory // [n], and infinite up to a multiple of columnStep
}

func newDeviceBlocks(ctx context.Context, d *device.Device, m *data.Matrix) (*deviceBlocks, error) {
	b := &deviceBlocks{device: d, differences: m.D <= treeMaxD, width: (m.D + 3) / 4 * 4}
	if b.differences {
		b.frame = newFrame(m, newDifferenceBound(m.D))
	} else {
		b.frame = newFrame(m, newErrorBound(m.D))
	}
	h := make([]float32, columns(m.N))
	for i := m.N; i < len(h); i++ {
		h[i] = float32(math.Inf(1))
	}
	memory, err := d.AllocPieces(m.N*b.width*4, len(h)*4)
	if err != nil {
		return nil, err
	}
	b.z, b.h = memory[0], memory[1]
	if err := b.upload(ctx, m, h); err != nil {
		b.free()
		return nil, err
	}
	b.setMaxNorm()
	return b, nil
}

// upload fills z, h and the norms with those of the points. It uploads all of h, also
// beyond the points.
func (b *deviceBlocks) upload(ctx context.Context, m *data.Matrix, h []float32) error {
	const chunk = 16 << 20 / 4
	rows := min(m.N, max(blockSize, chunk/b.width))
	z := make([]float32, rows*b.width)
	for lo := 0; lo < m.N; lo += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(m.N, lo+rows)
		b.place(z, h[lo:], m.Rows(lo, hi), b.norm[lo:])
		if err := device.Upload(b.device, b.z.Pointer().At(lo*b.width, 4), z[:(hi-lo)*b.width]); err != nil {
			return err
		}
	}
	return device.Upload(b.device, b.h.Pointer(), h)
}

// free implements candidates.
func (b *deviceBlocks) free() {
	b.z.Free()
	b.h.Free()
}

// columns returns the number of columns of the products with so many base points.
func columns(points int) int { return (points + columnStep - 1) / columnStep * columnStep }

// place centres and scales points into rows of z, and sets their h and norms.
func (b *deviceBlocks) place(z, h []float32, m *data.Matrix, norm []float64) {
	parallel.For(m.N, blockSize, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := 0.0
			row := z[i*b.width:]
			for l, v := range m.Row(i) {
				zl := b.move(v, l)
				row[l] = zl
				sum += float64(zl) * float64(zl)
			}
			h[i] = float32(sum / 2)
			norm[i] = math.Sqrt(sum)
		}
	})
}

// deviceQueries are up to queryBlock queries on a device: z [·, width] and h. They are
// base points from self on, or none if self is noSelf.
type deviceQueries struct {
	z, h device.Pointer
	norm []float64
	self int
}

// own returns base points lo to hi−1 as queries.
func (b *deviceBlocks) own(lo, hi int) deviceQueries {
	return deviceQueries{z: b.z.Pointer().At(lo*b.width, 4), h: b.h.Pointer().At(lo, 4), norm: b.norm[lo:hi], self: lo}
}

// join implements candidates.
func (b *deviceBlocks) join(ctx context.Context, k int, rank ranker) error {
	return b.find(ctx, b.n, k, rank, func(lo, hi int) (deviceQueries, error) { return b.own(lo, hi), nil })
}

// search implements candidates.
func (b *deviceBlocks) search(ctx context.Context, queries *data.Matrix, k int, rank ranker) error {
	rows := min(queries.N, queryBlock)
	memory, err := b.device.AllocPieces(rows*b.width*4, rows*4)
	if err != nil {
		return err
	}
	defer memory.Free()
	z, h, norm := make([]float32, rows*b.width), make([]float32, rows), make([]float64, queries.N)
	return b.find(ctx, queries.N, k, rank, func(lo, hi int) (deviceQueries, error) {
		b.place(z, h, queries.Rows(lo, hi), norm[lo:])
		for r, a := range norm[lo:hi] {
			if far(a) {
				h[r] = 2 * beyond
				clear(z[r*b.width : (r+1)*b.width])
			}
		}
		q := deviceQueries{z: memory.At(0), h: memory.At(1), norm: norm[lo:hi], self: noSelf}
		if err := device.Upload(b.device, q.z, z[:(hi-lo)*b.width]); err != nil {
			return q, err
		}
		return q, device.Upload(b.device, q.h, h[:hi-lo])
	})
}

// find finds the candidates of n queries, block by block. It calls prepare for the
// queries lo to hi−1, which must be valid until its next call, and then rank, for one
// block at a time but possibly while the device works on the next.
func (b *deviceBlocks) find(ctx context.Context, n, k int, rank ranker, prepare func(lo, hi int) (deviceQueries, error)) error {
	d, keep := b.device, k+slack
	rows, stride := min(n, queryBlock), min(columns(b.n), pointBlock)
	if b.differences {
		stride = 0
	}
	memory, err := d.AllocPieces(rows*stride*4, rows*keep*8, rows*4, rows*4)
	if err != nil {
		return err
	}
	defer memory.Free()
	products, keys, count, threshold := memory.At(0), memory.At(1), memory.At(2), memory.At(3)
	room := roomFor(keep)
	warps := min(maxWarps, maxShared/(8*room))
	shared := warps * room * 8
	var lists [2]shortlists // that of a block is ranked while that of the next is made
	for i := range lists {
		lists[i] = shortlists{room: keep, keys: make([]uint64, rows*keep), count: make([]int32, rows), threshold: make([]uint32, rows)}
	}
	ranked := make(chan struct{}, 1)
	ranked <- struct{}{}
	defer func() { <-ranked }()
	for lo := 0; lo < n; lo += queryBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(n, lo+queryBlock)
		q, err := prepare(lo, hi)
		if err != nil {
			return err
		}
		l := device.Launch{Grid: (hi - lo + warps - 1) / warps, Block: warps * warp, Shared: shared}
		state := []device.Arg{device.Arg(keys), device.Arg(count), device.Arg(threshold)}
		if b.differences {
			l.Shared += nearTile * b.width * 4
			err = d.Launch("neighbors_differences", l, append(state, device.Arg(b.z.Pointer()), device.Arg(q.z), device.Int(b.n), device.Int(b.width),
				device.Int(hi-lo), device.Int(q.self), device.Int(keep), device.Int(room))...)
		} else {
			err = b.multiply(q, products, stride, func(_, first, wanted int) error {
				begin := 0
				if first == 0 {
					begin = 1
				}
				return d.Launch("neighbors_select", l, append(state[:3:3], device.Arg(products),
					device.Arg(b.h.Pointer().At(first, 4)), device.Arg(q.h), device.Int(hi-lo), device.Int(q.self),
					device.Int(first), device.Int(wanted), device.Int(stride), device.Int(keep), device.Int(room), device.Int(begin))...)
			})
		}
		if err != nil {
			return err
		}
		s := &lists[lo/queryBlock%2]
		s.norm = q.norm
		for _, err := range []error{
			device.Download(d, s.keys[:(hi-lo)*keep], keys),
			device.Download(d, s.count[:hi-lo], count),
			device.Download(d, s.threshold[:hi-lo], threshold),
		} {
			if err != nil {
				return err
			}
		}
		<-ranked
		go func() {
			rank(lo, hi, s)
			ranked <- struct{}{}
		}()
	}
	return nil
}

// multiply computes products [queries, stride] of z·z' for queries and all base points,
// a block of stride points at a time, and calls use with the block's number, its first
// point and its number of columns.
func (b *deviceBlocks) multiply(q deviceQueries, products device.Pointer, stride int, use func(block, first, columns int) error) error {
	for first := 0; first < b.n; first += stride {
		points := min(stride, b.n-first)
		err := b.device.Multiply(device.Product{
			TransB: true, M: len(q.norm), N: points, K: b.width, Alpha: 1,
			A: q.z, LDA: b.width, B: b.z.Pointer().At(first*b.width, 4), LDB: b.width, C: products, LDC: stride, Exact: true,
		})
		if err != nil {
			return err
		}
		if err := use(first/stride, first, columns(points)); err != nil {
			return err
		}
	}
	return nil
}
