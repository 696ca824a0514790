package neighbors

import (
	"context"
	"errors"
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
// device, centred and scaled. If it has no room for all of them, they are there a segment
// at a time.
type deviceBlocks struct {
	normalization
	device      *device.Device
	base        *data.Matrix
	differences bool             // instead of products
	forms       []multiplication // precisions of the products, the coarsest last
	width       int              // of a row of z: d, and zeros up to a multiple of 4
	change      float64          // the largest relative change of a point's norm by rounding
	all         *segment         // all points; nil if there is no room for them
}

// newDeviceBlocks uploads the points to a device if there is room.
func newDeviceBlocks(ctx context.Context, d *device.Device, m *data.Matrix) (_ *deviceBlocks, err error) {
	b := normalizeOnDevice(d, m)
	defer kind.Undo(&err, b.free)
	if d.TF32 && !b.differences {
		b.forms = []multiplication{single, rounded}
	}
	free := b.freeMemory()
	// Allocations may be an eighth larger, and a search needs its products and candidates.
	need := int64(m.N) * int64(b.bytesOf(len(b.forms))+4*m.D)
	if need*9/8+2*b.bytesOfProducts(m.N, m.N)+int64(min(m.N, queryBlock))<<10 <= free {
		if b.all, err = b.newSegment(m.N, true, b.forms...); !errors.As(err, new(*device.MemoryError)) {
			kind.Check(err)
		}
	}
	if b.all == nil {
		d.Note(fmt.Sprintf("%d base points take %s of the device's memory, and %s are free: they are copied in parts",
			m.N, memory.Bytes(need), memory.Bytes(free)))
	}
	b.loadAll(ctx)
	return b, nil
}

// freeMemory returns how many bytes of the device's memory can be allocated. It fails as
// kind.Need does.
func (b *deviceBlocks) freeMemory() int64 {
	_, kept := b.device.Usage()
	return kind.Got(b.device.FreeMemory()) + kept
}

// bytesOfProducts returns the size of the products of a block of queries and base points.
func (b *deviceBlocks) bytesOfProducts(queries, points int) int64 {
	if b.differences {
		return 0
	}
	return 4 * int64(min(queries, queryBlock)) * int64(min(columns(points), pointBlock))
}

// normalizeOnDevice returns deviceBlocks for products in float32, without points.
func normalizeOnDevice(d *device.Device, m *data.Matrix) *deviceBlocks {
	b := &deviceBlocks{device: d, base: m, differences: m.D <= treeMaxD, forms: []multiplication{single}, width: (m.D + 3) / 4 * 4}
	b.normalization = newNormalization(m, selection.If(b.differences, newDifferenceBound, newErrorBound)(m.D))
	return b
}

// loadAll sets the norms of all points, and uploads the points if there is room for them.
// It fails as load does.
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
	memory   device.Pieces
	capacity int               // for how many points
	z, h     [2]device.Pointer // by form: [capacity, width], and [columns(capacity)]; 0 if it is not there
	x        device.Pointer    // [capacity, d], the points as they are; 0 if they are not there
	// first is the number of the first point that is there, and n the number of points.
	first, n int
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
	s := &segment{memory: memory, capacity: points}
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

// bytesOf returns the number of bytes of a segment's point in the given number of forms.
func (b *deviceBlocks) bytesOf(forms int) int { return forms * 4 * (b.width + 1) }

// load sets the norms of queries, or base points, lo to hi−1, and uploads them to a segment
// unless that is nil. It returns the largest relative change of a point's norm by rounding,
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
		if s == nil {
			continue
		}
		b.upload(s, p, first, last)
		if s.x != 0 {
			kind.Check(device.Upload(b.device, s.x.At(first*b.d, 4), m.X))
		}
	}
	if s == nil {
		return change
	}
	s.first, s.n = lo, n
	// Columns of products without a point are infinitely far.
	infinite := math.Float32bits(float32(math.Inf(1)))
	for _, h := range s.h {
		if padding := columns(s.n) - s.n; h != 0 && padding > 0 {
			kind.Check(b.device.Fill(h.At(s.n, 4), infinite, padding))
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

// deviceQueries are n queries on a device, up to queryBlock: z [n, width] and h [n].
// which [n] has their numbers as base points; 0 if they are not base points.
type deviceQueries struct {
	z, h, which device.Pointer
	n           int
}

// A plan is the number of queries, with their candidates, and of base points that are on
// the device at a time.
type plan struct{ queries, points int }

// smaller returns a plan that needs half of the memory, as far as there is one.
func (p plan) smaller() plan {
	half := func(n, least int) int { return min(n, max(least, n/2/least*least)) }
	return plan{half(p.queries, queryBlock), half(p.points, pointBlock)}
}

// newPlan plans a search for n queries. If all base points are on the device, each block
// of queries is compared with all of them, and ranked during the next block's comparison.
// Otherwise as many queries as fit into half of the free memory are compared with one
// segment after the other, so segments are uploaded rarely. It fails as kind.Need does.
func (b *deviceBlocks) newPlan(n, keep int) plan {
	if b.all != nil {
		return plan{min(n, queryBlock), b.n}
	}
	free := b.freeMemory()*3/4 - b.bytesOfProducts(n, b.n) // allocations may be an eighth larger
	blocks := func(bytes int64, of, size int) int { return max(1, int(bytes/int64(of)/int64(size))) * size }
	p := plan{queries: min(n, blocks(free/2, b.bytesOf(1)+8*keep+12, queryBlock))}
	free -= int64(p.queries) * int64(b.bytesOf(1)+8*keep+12)
	p.points = min(b.n, blocks(free, b.bytesOf(1), pointBlock))
	return p
}

// find implements candidates. It calls rank for one block of queries at a time, possibly
// while the device works on the next. It uses the coarsest form. If that does not suffice
// for half of the queries, now or before, it uses the first form.
func (b *deviceBlocks) find(ctx context.Context, q queries, k int, rank rerank) (err error) {
	defer kind.Catch(&err)
	p := b.newPlan(q.count(), k+slack)
	s, err := b.newSearch(q, p, k+slack)
	for ; errors.As(err, new(*device.MemoryError)) && p.smaller() != p; s, err = b.newSearch(q, p, k+slack) {
		p = p.smaller() // others have taken memory meanwhile
	}
	kind.Check(err)
	defer s.free()
	s.rank = rank
	forms := b.forms
	if q.rows != nil {
		forms = forms[:1]
	}
	f := forms[len(forms)-1]
	for lo := 0; lo < q.count(); lo += p.queries {
		kind.Check(ctx.Err())
		if s.coarse.retried > s.coarse.ranked/2 {
			f = forms[0]
		}
		s.group(ctx, f, len(forms) > 1, lo, min(q.count(), lo+p.queries))
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
	// The candidates of a group of queries, in the layout of the kernels.
	keys, count, threshold device.Pointer
	// Memory for a group of queries, unless they are base points on the device, and for a
	// segment of base points, if these are not on the device.
	queries, points *segment
	which           device.Pointer // [queries]: their numbers as base points; 0 if they are other points
	dist2           device.Pointer // of the candidates; 0 if the CPU computes them
	memory          device.Pieces
	unused          []float64 // norms of reloaded base points; computed but not needed

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
func (b *deviceBlocks) newSearch(q queries, p plan, keep int) (_ *deviceSearch, err error) {
	s := &deviceSearch{deviceBlocks: b, of: q, keep: keep, stride: min(columns(p.points), pointBlock), busy: make(chan rankCount, 1)}
	s.busy <- rankCount{}
	defer kind.Undo(&err, s.free)
	rows := min(p.queries, queryBlock)
	sizes := []int{int(b.bytesOfProducts(p.queries, p.points)), p.queries * keep * 8, p.queries * 4, p.queries * 4}
	if q.own {
		sizes = append(sizes, p.queries*4)
	}
	if b.all != nil {
		sizes = append(sizes, p.queries*keep*8)
	}
	s.memory = kind.Got(b.device.AllocPieces(sizes...))
	s.products, s.keys, s.count, s.threshold = s.memory.At(0), s.memory.At(1), s.memory.At(2), s.memory.At(3)
	if q.own {
		s.which = s.memory.At(4)
	}
	if b.all != nil {
		s.dist2 = s.memory.At(len(s.memory) - 1)
	}
	s.queries = kind.Got(b.newSegment(p.queries, b.all != nil && !q.own, single))
	if b.all == nil {
		s.unused = make([]float64, p.points)
		s.points = kind.Got(b.newSegment(p.points, false, single))
	}
	for i := range s.lists {
		s.lists[i] = candidateLists{stride: keep, keys: make([]uint64, rows*keep), count: make([]int32, rows), threshold: make([]uint32, rows)}
		if s.dist2 != 0 {
			s.lists[i].dist2 = make([]float64, rows*keep)
		}
	}
	return s, nil
}

// free waits for the ranking and frees memory.
func (s *deviceSearch) free() {
	<-s.busy
	s.memory.Free()
	for _, x := range []*segment{s.queries, s.points} {
		if x != nil {
			x.memory.Free()
		}
	}
}

// group finds the candidates of queries lo to hi−1, and has them ranked. The queries must
// fit the search's memory. fine reports whether there is a better form than the coarse
// one. It fails as kind.Need does.
func (s *deviceSearch) group(ctx context.Context, f multiplication, fine bool, lo, hi int) {
	s.queries.as(f)
	norm := make([]float64, hi-lo)
	change := 0.
	if s.all == nil || !s.of.own || s.of.rows != nil {
		change = s.load(ctx, s.queries, s.of, lo, hi, norm)
	} else { // they are on the device, as base points
		norm = s.norm[lo:hi]
		kind.Check(s.device.Copy(s.queries.z[f], s.all.z[f].At(lo*s.width, 4), (hi-lo)*s.width*4))
		kind.Check(s.device.Copy(s.queries.h[f], s.all.h[f].At(lo, 4), (hi-lo)*4))
	}
	if s.of.own {
		kind.Check(device.Upload(s.device, s.which, s.of.numbers(lo, hi)))
	}
	if s.all != nil {
		s.compare(f, 0, s.block(f, 0, hi-lo), s.all)
		kind.Check(s.device.Each("neighbors_exact", (hi-lo)*s.keep, device.Arg(s.dist2), device.Arg(s.all.x), device.Arg(s.queries.x),
			device.Arg(s.which), device.Arg(s.keys), device.Arg(s.count), device.Int(hi-lo), device.Int(s.keep), device.Int(s.d)))
	} else {
		s.compareSegments(ctx, f, hi-lo)
	}
	bound := s.bound
	if f == rounded {
		bound = newRoundedBound(s.d, max(change, s.change))
	}
	for at := lo; at < hi; at += queryBlock {
		last := min(hi, at+queryBlock)
		l := &s.lists[s.turn]
		s.turn = 1 - s.turn
		l.norm, l.bound, l.lowPrecision = norm[at-lo:last-lo], bound, fine && f == rounded
		s.download(l, at-lo, last-at)
		before := <-s.busy
		s.coarse.ranked += before.ranked
		s.coarse.retried += before.retried
		go func() {
			t := rankCount{retried: s.rank(at, last, l)}
			if l.lowPrecision {
				t.ranked = last - at
			}
			s.busy <- t
		}()
	}
}

// block returns up to queryBlock of a group of n queries, starting with number at.
func (s *deviceSearch) block(f multiplication, at, n int) deviceQueries {
	q := deviceQueries{z: s.queries.z[f].At(at*s.width, 4), h: s.queries.h[f].At(at, 4), n: min(queryBlock, n-at)}
	if s.which != 0 {
		q.which = s.which.At(at, 4)
	}
	return q
}

// compareSegments offers all base points to a group of n queries, one segment after the other.
// It fails as kind.Need does.
func (s *deviceSearch) compareSegments(ctx context.Context, f multiplication, n int) {
	s.points.as(f)
	for first := 0; first < s.deviceBlocks.n; first += s.points.capacity {
		last := min(s.deviceBlocks.n, first+s.points.capacity)
		s.load(ctx, s.points, queries{points: s.base}, first, last, s.unused[:last-first])
		for at := 0; at < n; at += queryBlock {
			kind.Check(ctx.Err())
			s.compare(f, at, s.block(f, at, n), s.points)
		}
	}
}

// compare offers the points of a segment to a block of queries. The queries' candidates
// begin at position at. It fails as kind.Need does.
func (s *deviceSearch) compare(f multiplication, at int, q deviceQueries, points *segment) {
	capacity := warpCapacity(s.keep)
	warps := min(maxWarps, maxShared/(8*capacity))
	l := device.Launch{Grid: (q.n + warps - 1) / warps, Block: warps * warp, Shared: warps * capacity * 8}
	keys, count, threshold := s.keys.At(at*s.keep, 8), s.count.At(at, 4), s.threshold.At(at, 4)
	if s.differences {
		l.Shared += nearTile * s.width * 4
		kind.Check(s.device.Launch("neighbors_differences", l, device.Arg(keys), device.Arg(count), device.Arg(threshold),
			device.Arg(points.z[f]), device.Arg(q.z), device.Int(points.n), device.Int(s.width), device.Int(q.n),
			device.Arg(q.which), device.Int(points.first), device.Int(s.keep), device.Int(capacity)))
		return
	}
	s.multiply(f, q, points, s.products, s.stride, func(first, wanted int) {
		begin := selection.If(points.first+first == 0, 1, 0)
		kind.Check(s.device.Launch("neighbors_select", l, device.Arg(keys), device.Arg(count), device.Arg(threshold),
			device.Arg(s.products), device.Arg(points.h[f].At(first, 4)), device.Arg(q.h), device.Int(q.n),
			device.Arg(q.which), device.Int(points.first+first), device.Int(wanted), device.Int(s.stride),
			device.Int(s.keep), device.Int(capacity), device.Int(begin)))
	})
}

// multiply computes products [queries, stride] of z·z' for queries and all points of a
// segment, a block of stride points at a time, and calls use with the block's first point and
// its number of columns. It fails as kind.Need does.
func (b *deviceBlocks) multiply(f multiplication, q deviceQueries, points *segment, products device.Pointer, stride int,
	use func(first, columns int)) {
	for first := 0; first < points.n; first += stride {
		n := min(stride, points.n-first)
		kind.Check(b.device.Multiply(device.Product{
			TransB: true, M: q.n, N: n, K: b.width, Alpha: 1, A: q.z, LDA: b.width,
			B: points.z[f].At(first*b.width, 4), LDB: b.width, C: products, LDC: stride, Exact: f == single,
		}))
		use(first, columns(n))
	}
}

// download copies the candidates of n of a group's queries, starting with number at. It fails
// as kind.Need does.
func (s *deviceSearch) download(l *candidateLists, at, n int) {
	kind.Check(device.Download(s.device, l.keys[:n*s.keep], s.keys.At(at*s.keep, 8)))
	kind.Check(device.Download(s.device, l.count[:n], s.count.At(at, 4)))
	kind.Check(device.Download(s.device, l.threshold[:n], s.threshold.At(at, 4)))
	if s.dist2 != 0 {
		kind.Check(device.Download(s.device, l.dist2[:n*s.keep], s.dist2.At(at*s.keep, 8)))
	}
}
