package neighbors

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"cne/data"
	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// This file searches on a device.
//
// As on the CPU (blocks.go), products of blocks of points give each query's k+slack
// candidates; a warp selects them for one query. If the device may use TF32, products are
// first computed from coordinates rounded to TF32. Tensor cores multiply these several
// times as fast as float32. The wider bound of their error (newRoundedBound) still proves
// nearly all candidates of most data. Other queries get new candidates from products in
// float32. In few dimensions products would lose the distances of close points to
// rounding, so coordinates are subtracted instead. A device computes n² differences at
// least as fast as the CPU searches a tree.
//
// A block has the products of queryBlock queries and pointBlock base points. Its 32 MiB
// stay in the cache between the product and the selection. While the CPU ranks a block's
// candidates, the device finds the next ones. Both are variables for tests; pointBlock is
// a multiple of columnStep.
var queryBlock, pointBlock = 4096, 2048

const (
	// columnStep is the number of columns that a warp reads at a time. Numbers of columns are
	// rounded up to a multiple of it.
	columnStep = 512
	// maxShared is the shared memory of a block's warps for their candidates, in bytes,
	// and maxRoom the number of candidates that fit.
	maxShared = 64 << 10
	maxRoom   = maxShared / 8
	maxWarps  = 8  // of a block of threads
	warp      = 32 // threads
	// nearTile is the number of points that the kernel of differences keeps in shared memory.
	nearTile = 1024
	// uploadBytes is the number of bytes of coordinates prepared for the device at a time.
	uploadBytes = 16 << 20
)

// deviceMaxK is the largest k with warpCapacity(k+slack) ≤ maxRoom.
const deviceMaxK = maxRoom - warp - slack

// warpCapacity returns the capacity of a warp that keeps keep candidates: a power of two,
// with spare places for one from each thread.
func warpCapacity(keep int) int { return max(2*warp, 1<<bits.Len(uint(keep+warp-1))) }

// A multiplication is the precision of products of coordinates.
type multiplication int

const (
	single  multiplication = iota // float32
	rounded                       // float32 that were rounded to TF32
)

// deviceBlocks finds candidates among base points on a device. The points are on the
// device, centred and scaled.
type deviceBlocks struct {
	normalization
	device      *device.Device
	base        *data.Matrix
	differences bool             // instead of products
	forms       []multiplication // precisions of the products, the coarsest last
	width       int              // of a row of z: d, and zeros up to a multiple of 4
	change      float64          // the largest relative change of a point's norm by rounding
	all         *segment         // all points
}

// newDeviceBlocks uploads the points to a device.
func newDeviceBlocks(ctx context.Context, d *device.Device, m *data.Matrix) (_ *deviceBlocks, err error) {
	b := normalizeOnDevice(d, m)
	defer func() {
		if err != nil {
			b.free()
		}
	}()
	defer kind.Catch(&err)
	if d.TF32 && !b.differences {
		b.forms = []multiplication{single, rounded}
	}
	b.all = kind.Got(b.newSegment(m.N, true, b.forms...))
	b.loadAll(ctx)
	return b, nil
}

// hasRoom returns an error if a device has no room for the points of a search among them.
func hasRoom(d *device.Device, m *data.Matrix) error {
	rows, each, products := int64(min(m.N, queryBlock)), 4*int64((m.D+3)/4*4+1), int64(0)
	if m.D > treeMaxD {
		products = 4 * rows * int64(min(columns(m.N), pointBlock))
		each *= selection.If[int64](d.TF32, 2, 1)
	}
	need := int64(m.N) * (each + 4*int64(m.D))
	free, err := d.FreeMemory()
	_, kept := d.Usage()
	// Allocations may be an eighth larger, and a search needs its products and candidates.
	if free += kept; err != nil || need*9/8+2*products+rows<<10 <= free {
		return nil // the search returns the error
	}
	return fmt.Errorf("%d points take %s of the device's memory, and %s are free", m.N, memory.Bytes(need), memory.Bytes(free))
}

// normalizeOnDevice returns deviceBlocks for products in float32, without points.
func normalizeOnDevice(d *device.Device, m *data.Matrix) *deviceBlocks {
	b := &deviceBlocks{device: d, base: m, differences: m.D <= treeMaxD, forms: []multiplication{single}, width: (m.D + 3) / 4 * 4}
	b.normalization = newNormalization(m, selection.If(b.differences, newDifferenceBound, newErrorBound)(m.D))
	return b
}

// loadAll sets the norms of all points, and uploads the points. It fails as load does.
func (b *deviceBlocks) loadAll(ctx context.Context) {
	b.change = b.load(ctx, b.all, queries{points: b.base}, 0, b.n, b.norm)
	b.maxNorm = slices.Max(b.norm)
}

// free implements candidates.
func (b *deviceBlocks) free() {
	if b.all != nil {
		b.all.memory.Free()
	}
}

// columns returns the number of columns of the products with points base points.
func columns(points int) int { return (points + columnStep - 1) / columnStep * columnStep }

// A segment is memory of a device for points in one or both forms.
type segment struct {
	memory device.Pieces
	z, h   [2]device.Pointer // by form: [points, width], and [columns(points)]; 0 if it is not there
	x      device.Pointer    // [points, d], the points as they are; 0 if they are not there
}

// newSegment allocates memory for points in the given forms and, with asIs, for their
// original coordinates.
func (b *deviceBlocks) newSegment(points int, asIs bool, forms ...multiplication) (*segment, error) {
	var sizes []int
	for range forms {
		sizes = append(sizes, points*b.width*4, columns(points)*4)
	}
	if asIs {
		sizes = append(sizes, points*b.d*4)
	}
	memory, err := b.device.AllocPieces(sizes...)
	if err != nil {
		return nil, err
	}
	s := &segment{memory: memory}
	for i, f := range forms {
		s.z[f], s.h[f] = memory.At(2*i), memory.At(2*i+1)
	}
	if asIs {
		s.x = memory.At(2 * len(forms))
	}
	return s, nil
}

// as makes a segment of one form hold another form.
func (s *segment) as(f multiplication) {
	s.z, s.h = [2]device.Pointer{}, [2]device.Pointer{}
	s.z[f], s.h[f] = s.memory.At(0), s.memory.At(1)
}

// load sets the norms of queries, or base points, lo to hi−1, and uploads them to a segment.
// It returns the largest relative change of a point's norm by rounding,
// or fails as kind.Need does.
func (b *deviceBlocks) load(ctx context.Context, s *segment, from queries, lo, hi int, norm []float64) (change float64) {
	n := hi - lo
	rows := min(n, max(blockSize, uploadBytes/4/b.width))
	p := b.newNormalizedPoints(rows)
	for first := 0; first < n; first += rows {
		kind.Check(ctx.Err())
		last := min(n, first+rows)
		m := from.block(lo+first, lo+last)
		change = max(change, b.normalize(p, m, norm[first:last]))
		b.upload(s, p, first, last)
		if s.x != 0 {
			kind.Check(device.Upload(b.device, s.x.At(first*b.d, 4), m.X))
		}
	}
	// Columns of products without a point are infinitely far.
	infinite := math.Float32bits(float32(math.Inf(1)))
	for _, h := range s.h {
		if padding := columns(n) - n; h != 0 && padding > 0 {
			kind.Check(b.device.Fill(h.At(n, 4), infinite, padding))
		}
	}
	return change
}

// upload copies points to positions first to last−1 of a segment. It fails as kind.Need does.
func (b *deviceBlocks) upload(s *segment, p *normalizedPoints, first, last int) {
	values := (last - first) * b.width
	z := s.z[single]
	if z == 0 {
		z = s.z[rounded]
	}
	kind.Check(device.Upload(b.device, z.At(first*b.width, 4), p.z[:values]))
	if to := s.z[rounded]; to != 0 {
		kind.Check(b.device.Each("neighbors_round", values, device.Arg(to.At(first*b.width, 4)), device.Arg(z.At(first*b.width, 4)),
			device.Int(values)))
	}
	for f, h := range s.h {
		if h != 0 {
			kind.Check(device.Upload(b.device, h.At(first, 4), p.h[f][:last-first]))
		}
	}
}

// normalizedPoints are points that are ready to be uploaded.
type normalizedPoints struct {
	z []float32    // [rows, width]
	h [2][]float32 // by form
}

func (b *deviceBlocks) newNormalizedPoints(rows int) *normalizedPoints {
	return &normalizedPoints{make([]float32, rows*b.width), [2][]float32{make([]float32, rows), make([]float32, rows)}}
}

// normalize centres and scales points, and sets their norms. Points that are far have no
// candidates. They become zeros with a huge h. It returns the largest relative change of
// a point's norm by rounding.
func (b *deviceBlocks) normalize(p *normalizedPoints, m *data.Matrix, norm []float64) float64 {
	changes := make([]float64, parallel.Pieces(m.N, blockSize))
	parallel.For(m.N, blockSize, func(piece, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := p.z[i*b.width : (i+1)*b.width]
			var sum, after, moved float64
			for l, v := range m.Row(i) {
				zl := b.transform(v, l)
				row[l] = zl
				sum += float64(float64(zl) * float64(zl))
				short := float64(roundTF32(zl))
				after += float64(short * short)
				moved += float64((float64(zl) - short) * (float64(zl) - short))
			}
			norm[i] = math.Sqrt(sum)
			if far(norm[i]) {
				p.h[single][i], p.h[rounded][i] = 2*aboveAll, 2*aboveAll
				clear(row)
				continue
			}
			p.h[single][i], p.h[rounded][i] = float32(sum/2), float32(after/2)
			// The bound covers the rounding of subnormal numbers in any case.
			if d := math.Sqrt(moved); d > 0x1p-126*float64(b.d) {
				changes[piece] = max(changes[piece], d/norm[i])
			}
		}
	})
	return slices.Max(changes)
}

// find implements candidates. It calls rank for one block of queries at a time, possibly
// while the device works on the next. It uses the coarsest form. If that does not suffice
// for half of the queries, now or before, it uses the first form.
func (b *deviceBlocks) find(ctx context.Context, q queries, k int, rank rerank) (err error) {
	defer kind.Catch(&err)
	s := kind.Got(b.newSearch(q, k+slack))
	defer s.free()
	s.rank = rank
	forms := b.forms
	if q.rows != nil {
		forms = forms[:1]
	}
	f := forms[len(forms)-1]
	for lo := 0; lo < q.count(); lo += queryBlock {
		kind.Check(ctx.Err())
		if s.coarse.retried > s.coarse.ranked/2 {
			f = forms[0]
		}
		s.group(ctx, f, len(forms) > 1, lo, min(q.count(), lo+queryBlock))
	}
	return nil
}

// A deviceSearch is a search for the candidates of queries.
type deviceSearch struct {
	*deviceBlocks
	of       queries
	keep     int
	products device.Pointer // [queryBlock, stride]
	stride   int
	// The candidates of a block of queries, in the layout of the kernels, and their distances.
	keys, count, threshold, dist2 device.Pointer
	queries                       *segment       // a block of queries
	which                         device.Pointer // [queries]: their numbers as base points; 0 if they are other points
	memory                        device.Pieces

	lists  [2]candidateLists // one is ranked while the other is made
	turn   int               // which of the two is next
	rank   rerank
	busy   chan rankCount // holds the result of the last ranking, unless that is running
	coarse rankCount      // the sum over all rankings of coarse candidates
}

// A rankCount has the number of ranked queries, and of queries that need better
// candidates.
type rankCount struct{ ranked, retried int }

// newSearch allocates the memory of a search.
func (b *deviceBlocks) newSearch(q queries, keep int) (s *deviceSearch, err error) {
	s = &deviceSearch{deviceBlocks: b, of: q, keep: keep, stride: min(columns(b.n), pointBlock), busy: make(chan rankCount, 1)}
	s.busy <- rankCount{}
	rows := min(q.count(), queryBlock)
	sizes := []int{selection.If(b.differences, 0, 4*rows*s.stride), rows * keep * 8, rows * 4, rows * 4, rows * keep * 8}
	if q.own {
		sizes = append(sizes, rows*4)
	}
	if s.memory, err = b.device.AllocPieces(sizes...); err != nil {
		return nil, err
	}
	for i, at := range []*device.Pointer{&s.products, &s.keys, &s.count, &s.threshold, &s.dist2, &s.which}[:len(sizes)] {
		*at = s.memory.At(i)
	}
	if s.queries, err = b.newSegment(rows, !q.own, single); err != nil {
		s.memory.Free()
		return nil, err
	}
	for i := range s.lists {
		s.lists[i] = candidateLists{stride: keep, keys: make([]uint64, rows*keep), count: make([]int32, rows),
			threshold: make([]uint32, rows), dist2: make([]float64, rows*keep)}
	}
	return s, nil
}

// free waits for the ranking and frees memory.
func (s *deviceSearch) free() {
	<-s.busy
	s.memory.Free()
	s.queries.memory.Free()
}

// group finds the candidates of queries lo to hi−1, at most a block, and has them ranked.
// fine reports whether there is a better form than the coarse one. It fails as kind.Need
// does.
func (s *deviceSearch) group(ctx context.Context, f multiplication, fine bool, lo, hi int) {
	s.queries.as(f)
	n := hi - lo
	norm, change := make([]float64, n), 0.
	if !s.of.own || s.of.rows != nil {
		change = s.load(ctx, s.queries, s.of, lo, hi, norm)
	} else { // they are on the device, as base points
		norm = s.norm[lo:hi]
		kind.Check(s.device.Copy(s.queries.z[f], s.all.z[f].At(lo*s.width, 4), n*s.width*4))
		kind.Check(s.device.Copy(s.queries.h[f], s.all.h[f].At(lo, 4), n*4))
	}
	if s.of.own {
		kind.Check(device.Upload(s.device, s.which, s.of.numbers(lo, hi)))
	}
	kind.Check(s.compare(f, n))
	kind.Check(s.device.Each("neighbors_exact", n*s.keep, device.Arg(s.dist2), device.Arg(s.all.x), device.Arg(s.queries.x),
		device.Arg(s.which), device.Arg(s.keys), device.Arg(s.count), device.Int(n), device.Int(s.keep), device.Int(s.d)))
	l := &s.lists[s.turn]
	s.turn = 1 - s.turn
	if l.norm, l.bound, l.lowPrecision = norm, s.bound, fine && f == rounded; f == rounded {
		l.bound = newRoundedBound(s.d, max(change, s.change))
	}
	kind.Check(device.Download(s.device, l.keys[:n*s.keep], s.keys))
	kind.Check(device.Download(s.device, l.count[:n], s.count))
	kind.Check(device.Download(s.device, l.threshold[:n], s.threshold))
	kind.Check(device.Download(s.device, l.dist2[:n*s.keep], s.dist2))
	before := <-s.busy
	s.coarse.ranked += before.ranked
	s.coarse.retried += before.retried
	go func() {
		t := rankCount{retried: s.rank(lo, hi, l)}
		if l.lowPrecision {
			t.ranked = n
		}
		s.busy <- t
	}()
}

// compare offers all points to the block's first n queries.
func (s *deviceSearch) compare(f multiplication, n int) error {
	capacity := warpCapacity(s.keep)
	warps := min(maxWarps, maxShared/(8*capacity))
	l := device.Launch{Grid: (n + warps - 1) / warps, Block: warps * warp, Shared: warps * capacity * 8}
	if s.differences {
		l.Shared += nearTile * s.width * 4
		return s.device.Launch("neighbors_differences", l, device.Arg(s.keys), device.Arg(s.count), device.Arg(s.threshold),
			device.Arg(s.all.z[f]), device.Arg(s.queries.z[f]), device.Int(s.deviceBlocks.n), device.Int(s.width), device.Int(n),
			device.Arg(s.which), device.Int(0), device.Int(s.keep), device.Int(capacity))
	}
	return s.multiply(f, s.queries.z[f], n, s.products, s.stride, func(first, wanted int) error {
		return s.device.Launch("neighbors_select", l, device.Arg(s.keys), device.Arg(s.count), device.Arg(s.threshold),
			device.Arg(s.products), device.Arg(s.all.h[f].At(first, 4)), device.Arg(s.queries.h[f]), device.Int(n),
			device.Arg(s.which), device.Int(first), device.Int(wanted), device.Int(s.stride),
			device.Int(s.keep), device.Int(capacity), device.Int(selection.If(first == 0, 1, 0)))
	})
}

// multiply computes products [n, stride] of z·z' for n queries z and all points, a block of
// stride points at a time, and calls use with the block's first point and its number of
// columns.
func (b *deviceBlocks) multiply(f multiplication, z device.Pointer, n int, products device.Pointer, stride int,
	use func(first, columns int) error) (err error) {
	defer kind.Catch(&err)
	for first := 0; first < b.n; first += stride {
		points := min(stride, b.n-first)
		kind.Check(b.device.Multiply(device.Product{
			TransB: true, M: n, N: points, K: b.width, Alpha: 1, A: z, LDA: b.width,
			B: b.all.z[f].At(first*b.width, 4), LDB: b.width, C: products, LDC: stride, Exact: f == single,
		}))
		kind.Check(use(first, columns(points)))
	}
	return nil
}
