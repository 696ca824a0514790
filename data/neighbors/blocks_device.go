package neighbors

import (
	"math"
	"math/bits"

	"cne/data"
	"cne/internal/device"
	"cne/internal/parallel"
)

// The search on an accelerator.
//
// It is the blocked search: products of blocks of points in float32 (no TF32)
// tell the k+slack candidates of each point, a warp for each, and the proof and
// the ranking in float64 are the CPU's, so that the result is the same to the last
// bit. In few dimensions, where the products have lost the distances of dense
// points, differences take their place: n² of them take an accelerator no longer
// than searching a tree takes the CPU. The points for which the proof fails are
// searched in the CPU's tree in any case.
//
// A block of products is that of queryBlock queries and pointBlock base points: 32
// MiB, which remain in the cache between the product and the kernel that reads it.
// While a block's candidates are ranked on the CPU, the next ones are found.
const (
	queryBlock = 4096
	pointBlock = 2048
	// columnStep is how many columns of a block a warp reads at a time: what the
	// number of columns is rounded up to.
	columnStep = 512
	// mostShared is how many bytes of shared memory warps have for their
	// candidates, and mostRoom for how many there is room then.
	mostShared = 64 << 10
	mostRoom   = mostShared / 8
	mostWarps  = 8  // of a block of threads
	warp       = 32 // threads
	// nearTile is how many floats of points for each of their coordinates the
	// kernel of differences keeps in shared memory.
	nearTile = 1024
)

// roomFor returns for how many candidates a warp has room that keeps so many: the
// next power of two that leaves room for one of each of its threads.
func roomFor(keep int) int { return max(2*warp, 1<<bits.Len(uint(keep+warp-1))) }

// remotely tells whether a search for k neighbours among n points is one for the
// accelerator. If the candidates are no few of the points, it is not, as in KNN.
func remotely(d *device.Device, n, k int) bool {
	return !d.OnHost() && n/4 >= k+slack && roomFor(k+slack) <= mostRoom
}

// KNNOn is KNN on a device, with the same result. An accelerator needs memory for a
// copy of m and 64 MiB; errors are also the device's.
func KNNOn(d *device.Device, m *data.Matrix, k int) (*Neighbors, error) {
	if err := check(m, k); err != nil {
		return nil, err
	}
	if !remotely(d, m.N, k) {
		return KNN(m, k)
	}
	nb, _, err := knnRemote(d, m, k)
	return nb, err
}

// knnRemote is KNN on an accelerator for checked arguments. It also returns the
// number of points that were searched in the tree.
func knnRemote(d *device.Device, m *data.Matrix, k int) (nb *Neighbors, searched int, err error) {
	base, err := newRemoteBase(d, m)
	if err != nil {
		return nil, 0, err
	}
	defer base.free()
	nb = newNeighbors(m.N, k)
	open := make([][]int32, parallel.Pieces(m.N, blockSize))
	err = base.search(m.N, k, func(lo, _ int) (queries, error) {
		return queries{z: base.z.Pointer().At(lo*base.width, 4), h: base.h.Pointer().At(lo, 4), self: lo}, nil
	}, func(lo, hi int, c *found) {
		parallel.For(hi-lo, blockSize, func(piece, from, to int) {
			best := newTopK(k)
			for r := from; r < to; r++ {
				i := lo + r
				keys, threshold := c.of(r)
				if !base.rank(best, m.Row(i), m, keys, threshold, base.norm[i], base.bound) {
					open[lo/blockSize+piece] = append(open[lo/blockSize+piece], int32(i))
				}
				best.store(nb, i)
			}
		})
	})
	if err != nil {
		return nil, 0, err
	}
	return nb, improveAll(nb, func() *tree { return newTree(m) }, m, open, true), nil
}

// A remoteBase is the moved and scaled points on an accelerator.
type remoteBase struct {
	frame
	device *device.Device
	bound  errorBound
	near   bool           // differences take the place of products
	width  int            // of a row of z: d, and zeros up to a multiple of 4
	z      *device.Memory // [n, width]
	h      *device.Memory // [n], and infinite up to a multiple of columnStep
}

func newRemoteBase(d *device.Device, m *data.Matrix) (*remoteBase, error) {
	b := &remoteBase{frame: newFrame(m), device: d, near: m.D <= treeMaxD, width: (m.D + 3) / 4 * 4}
	if b.near {
		b.bound = newDifferenceBound(m.D)
	} else {
		b.bound = newErrorBound(m.D)
	}
	h := make([]float32, b.columns(0, m.N))
	for i := m.N; i < len(h); i++ {
		h[i] = float32(math.Inf(1))
	}
	memory, err := d.AllocPieces(m.N*b.width*4, len(h)*4)
	if err != nil {
		return nil, err
	}
	b.z, b.h = memory[0], memory[1]
	const chunk = 16 << 20 / 4
	rows := min(m.N, max(blockSize, chunk/b.width))
	z := make([]float32, rows*b.width)
	for lo := 0; lo < m.N; lo += rows {
		hi := min(m.N, lo+rows)
		b.place(z, h[lo:], b.width, m.Rows(lo, hi), b.norm[lo:])
		if err := device.Upload(d, b.z.Pointer().At(lo*b.width, 4), z[:(hi-lo)*b.width]); err != nil {
			b.free()
			return nil, err
		}
	}
	b.setMaxNorm()
	if err := device.Upload(d, b.h.Pointer(), h); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

func (b *remoteBase) free() {
	b.z.Free()
	b.h.Free()
}

// columns returns how many columns the products of base points first to last−1
// have.
func (b *remoteBase) columns(first, last int) int {
	return (last - first + columnStep - 1) / columnStep * columnStep
}

// place moves and scales points into rows of z, and sets their h and norms.
func (f *frame) place(z, h []float32, width int, m *data.Matrix, norm []float64) {
	parallel.For(m.N, blockSize, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			sum := 0.0
			row := z[i*width:]
			for l, v := range m.Row(i) {
				zl := f.move(v, l)
				row[l] = zl
				sum += float64(zl) * float64(zl)
			}
			h[i] = float32(sum / 2)
			norm[i] = math.Sqrt(sum)
		}
	})
}

// queries are up to queryBlock queries on the accelerator: z [·, width] and h. The
// first is base point self, the others follow; −1 says that they are none.
type queries struct {
	z, h device.Pointer
	self int
}

// found are the candidates of a block of queries.
type found struct {
	keep   int
	keys   []uint64 // [queryBlock, keep]
	filled []int32
	limits []float32
}

// of returns the candidates of query r, and its threshold.
func (f *found) of(r int) (keys []uint64, threshold float32) {
	return f.keys[r*f.keep : r*f.keep+int(f.filled[r])], f.limits[r]
}

// search finds the k+slack candidates of n queries. It calls prepare for those lo to
// hi−1, a block of queries, which must be valid until the next call, and then rank,
// possibly while the next block is searched, but with one block at a time.
func (b *remoteBase) search(n, k int, prepare func(lo, hi int) (queries, error), rank func(lo, hi int, c *found)) error {
	d, keep := b.device, k+slack
	rows, columns := min(n, queryBlock), min(b.columns(0, b.n), pointBlock)
	if b.near {
		columns = 0
	}
	memory, err := d.AllocPieces(rows*columns*4, rows*keep*8, rows*4, rows*4)
	if err != nil {
		return err
	}
	defer memory.Free()
	products, lists, filled, limits := memory.At(0), memory.At(1), memory.At(2), memory.At(3)
	room := roomFor(keep)
	warps := min(mostWarps, mostShared/(8*room))
	shared := warps * room * 8
	var results [2]found
	for i := range results {
		results[i] = found{keep, make([]uint64, rows*keep), make([]int32, rows), make([]float32, rows)}
	}
	ranked := make(chan struct{}, 1)
	ranked <- struct{}{}
	defer func() { <-ranked }()
	for lo := 0; lo < n; lo += queryBlock {
		hi := min(n, lo+queryBlock)
		q, err := prepare(lo, hi)
		if err != nil {
			return err
		}
		l := device.Launch{Grid: (hi - lo + warps - 1) / warps, Block: warps * warp, Shared: shared}
		state := []device.Arg{device.Arg(lists), device.Arg(filled), device.Arg(limits)}
		if b.near {
			l.Shared += nearTile * b.width * 4
			err = d.Launch("neighbours_near", l, append(state, device.Arg(b.z.Pointer()), device.Arg(q.z), device.Int(b.n), device.Int(b.width),
				device.Int(hi-lo), device.Int(q.self), device.Int(keep), device.Int(room))...)
		} else {
			err = b.multiply(q, hi-lo, products, columns, func(_, first, wanted int) error {
				begin := 0
				if first == 0 {
					begin = 1
				}
				return d.Launch("neighbours_select", l, append(state[:3:3], device.Arg(products),
					device.Arg(b.h.Pointer().At(first, 4)), device.Arg(q.h), device.Int(hi-lo), device.Int(q.self),
					device.Int(first), device.Int(wanted), device.Int(columns), device.Int(keep), device.Int(room), device.Int(begin))...)
			})
		}
		if err != nil {
			return err
		}
		c := &results[lo/queryBlock%2]
		for _, err := range []error{
			device.Download(d, c.keys[:(hi-lo)*keep], lists),
			device.Download(d, c.filled[:hi-lo], filled),
			device.Download(d, c.limits[:hi-lo], limits),
		} {
			if err != nil {
				return err
			}
		}
		<-ranked
		go func() {
			rank(lo, hi, c)
			ranked <- struct{}{}
		}()
	}
	return nil
}

// multiply computes the products z·z' of rows queries and all base points in
// products [rows, stride], so many points at a time, and calls use with the number
// of the block, its first point, and how many columns it has.
func (b *remoteBase) multiply(q queries, rows int, products device.Pointer, stride int, use func(block, first, columns int) error) error {
	for first := 0; first < b.n; first += stride {
		points := min(stride, b.n-first)
		err := b.device.Multiply(device.Product{
			TransB: true, M: rows, N: points, K: b.width, Alpha: 1,
			A: q.z, LDA: b.width, B: b.z.Pointer().At(first*b.width, 4), LDB: b.width, C: products, LDC: stride, Exact: true,
		})
		if err != nil {
			return err
		}
		if err := use(first/stride, first, b.columns(first, first+points)); err != nil {
			return err
		}
	}
	return nil
}

// NewIndexOn is NewIndex on a device. An accelerator keeps a copy of the base until
// Free, and a search needs 64 MiB beside it; errors are also the device's.
func NewIndexOn(d *device.Device, base *data.Matrix) (*Index, error) {
	if d.OnHost() {
		return NewIndex(base)
	}
	x, err := newIndex(base)
	if err != nil {
		return nil, err
	}
	if x.remote, err = newRemoteBase(d, base); err != nil {
		return nil, err
	}
	x.frame, x.bound = &x.remote.frame, x.remote.bound
	return x, nil
}

// Free gives an accelerator's memory back, if the index has some; it must not be
// used any more.
func (x *Index) Free() {
	if x.remote != nil {
		x.remote.free()
	}
}

// SearchOn is Search on a device, with the same result.
func SearchOn(d *device.Device, base, points *data.Matrix, k int) (*Neighbors, error) {
	x, err := NewIndexOn(d, base)
	if err != nil {
		return nil, err
	}
	defer x.Free()
	return x.Search(points, k)
}

// searchRemote is Search on an accelerator for checked arguments. It returns the
// number of queries that were searched in the tree.
func (x *Index) searchRemote(nb *Neighbors, points *data.Matrix) (searched int, err error) {
	b := x.remote
	rows := min(points.N, queryBlock)
	memory, err := b.device.AllocPieces(rows*b.width*4, rows*4)
	if err != nil {
		return 0, err
	}
	defer memory.Free()
	z, h, norm := make([]float32, rows*b.width), make([]float32, rows), make([]float64, points.N)
	open := make([][]int32, parallel.Pieces(points.N, blockSize))
	err = b.search(points.N, nb.K, func(lo, hi int) (queries, error) {
		b.place(z, h, b.width, points.Rows(lo, hi), norm[lo:])
		for r, a := range norm[lo:hi] {
			if far(a) {
				h[r] = 2 * beyond
				clear(z[r*b.width : (r+1)*b.width])
			}
		}
		q := queries{z: memory[0].Pointer(), h: memory[1].Pointer(), self: nobody}
		if err := device.Upload(b.device, q.z, z[:(hi-lo)*b.width]); err != nil {
			return q, err
		}
		return q, device.Upload(b.device, q.h, h[:hi-lo])
	}, func(lo, hi int, c *found) {
		parallel.For(hi-lo, blockSize, func(piece, from, to int) {
			best := newTopK(nb.K)
			for r := from; r < to; r++ {
				i := lo + r
				keys, threshold := c.of(r)
				if !x.settle(best, nb, i, points.Row(i), keys, threshold, norm[i]) {
					open[lo/blockSize+piece] = append(open[lo/blockSize+piece], int32(i))
				}
			}
		})
	})
	if err != nil {
		return 0, err
	}
	return improveAll(nb, x.tree, points, open, false), nil
}
