package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"cne/data"
	"cne/internal/device"
	"cne/internal/memory"
	"cne/internal/parallel"
)

// Points on a device.
//
// As on the CPU (blocks.go), products of blocks of points give each query's k+slack
// candidates; a warp selects them for one query (find_device.go). Products are first of
// coordinates that were rounded to TF32, where the device may use that: tensor cores
// multiply those several times as fast as float32, and the wider bound of their error
// (newRoundedBound) still proves nearly all candidates of most data. The others' are found
// again with products in float32. In few dimensions, where products lose the distances of
// close points to rounding, coordinates are subtracted instead: n² differences take a
// device no longer than a tree search takes the CPU.
//
// A block has the products of queryBlock queries and pointBlock base points: 32 MiB,
// which stay in the cache between the product and the selection. While the CPU ranks a
// block's candidates, the device finds the next ones. Both are variables for tests;
// pointBlock is a multiple of columnStep.
var queryBlock, pointBlock = 4096, 2048

const (
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
	// uploadBytes is how many bytes of coordinates are made for the device at a time.
	uploadBytes = 16 << 20
)

// deviceMaxK is the largest k with roomFor(k+slack) ≤ maxRoom.
const deviceMaxK = maxRoom - warp - slack

// roomFor returns the room of a warp that keeps so many candidates: a power of two,
// with room to spare for one from each thread.
func roomFor(keep int) int { return max(2*warp, 1<<bits.Len(uint(keep+warp-1))) }

// A form is what coordinates are multiplied as.
type form int

const (
	single  form = iota // float32
	rounded             // float32 that were rounded to TF32
)

// deviceBlocks finds candidates among base points by a device. These are there, centred and
// scaled, if there is room for all of them, and otherwise a segment at a time.
type deviceBlocks struct {
	frame
	device      *device.Device
	base        *data.Matrix
	differences bool     // instead of products
	forms       []form   // those in which points are multiplied, the coarsest last
	width       int      // of a row of z: d, and zeros up to a multiple of 4
	change      float64  // by what share of their norm rounding moves the points at most
	all         *segment // all points; nil if they are not there
}

// newDeviceBlocks takes the points to a device if there is room.
func newDeviceBlocks(ctx context.Context, d *device.Device, m *data.Matrix) (*deviceBlocks, error) {
	b := frameOnDevice(d, m)
	if d.TF32 && !b.differences {
		b.forms = []form{single, rounded}
	}
	free, err := b.freeMemory()
	if err != nil {
		return nil, err
	}
	// Allocations may be an eighth larger, and a search needs its products and candidates.
	need := int64(m.N) * int64(b.bytesOf(len(b.forms))+4*m.D)
	if need*9/8+2*b.bytesOfProducts(m.N, m.N)+int64(min(m.N, queryBlock))<<10 <= free {
		b.all, err = b.newSegment(m.N, true, b.forms...)
		if err == nil {
			return b, b.loadAll(ctx)
		}
		if !errors.As(err, new(*device.MemoryError)) {
			return nil, err
		}
	}
	d.Say(fmt.Sprintf("%d base points take %s of the device's memory, of which %s are free: they are copied in parts",
		m.N, memory.Bytes(need), memory.Bytes(free)))
	return b, b.measure(ctx)
}

// freeMemory returns how many bytes of the device's memory can be allocated.
func (b *deviceBlocks) freeMemory() (int64, error) {
	left, err := b.device.FreeMemory()
	_, kept := b.device.Usage()
	return left + kept, err
}

// bytesOfProducts returns how large the products of a block are, of so many queries and base
// points.
func (b *deviceBlocks) bytesOfProducts(queries, points int) int64 {
	if b.differences {
		return 0
	}
	return 4 * int64(min(queries, queryBlock)) * int64(min(columns(points), pointBlock))
}

// frameOnDevice returns what newDeviceBlocks does for products in float32, without points.
func frameOnDevice(d *device.Device, m *data.Matrix) *deviceBlocks {
	b := &deviceBlocks{device: d, base: m, differences: m.D <= treeMaxD, forms: []form{single}, width: (m.D + 3) / 4 * 4}
	if b.differences {
		b.frame = newFrame(m, newDifferenceBound(m.D))
	} else {
		b.frame = newFrame(m, newErrorBound(m.D))
	}
	return b
}

// loadAll uploads all points and sets what is known of them all. If that fails, it frees
// them.
func (b *deviceBlocks) loadAll(ctx context.Context) error {
	change, err := b.load(ctx, b.all, queries{points: b.base}, 0, b.n, b.norm)
	if err != nil {
		b.free()
		return err
	}
	b.change = change
	b.setMaxNorm()
	return nil
}

// measure sets what is known of all points where they are not uploaded.
func (b *deviceBlocks) measure(ctx context.Context) error {
	rows := b.rowsAtOnce(b.n)
	p := b.newPlaced(rows)
	for lo := 0; lo < b.n; lo += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(b.n, lo+rows)
		b.change = max(b.change, b.place(p, b.base.Rows(lo, hi), b.norm[lo:hi]))
	}
	b.setMaxNorm()
	return nil
}

// free implements candidates.
func (b *deviceBlocks) free() {
	if b.all != nil {
		b.all.memory.Free()
	}
}

// boundOf returns the bound of the error of s for points in a form, of which rounding moves
// none by more than a share change of its norm.
func (b *deviceBlocks) boundOf(f form, change float64) errorBound {
	if f == rounded {
		return newRoundedBound(b.d, change)
	}
	return b.bound
}

// columns returns the number of columns of the products with so many base points.
func columns(points int) int { return (points + columnStep - 1) / columnStep * columnStep }

// A segment is memory of a device for points in one or both forms.
type segment struct {
	memory device.Pieces
	room   int               // for how many points
	z, h   [2]device.Pointer // by form: [room, width], and [columns(room)]; 0 if it is not there
	x      device.Pointer    // [room, d], the points as they are; 0 if they are not there
	// first is the number of the first point of those that are there, and n their number.
	first, n int
}

// newSegment allocates memory for so many points, in these forms and, if asked for, as they
// are.
func (b *deviceBlocks) newSegment(points int, asIs bool, forms ...form) (*segment, error) {
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
	s := &segment{memory: memory, room: points}
	for i, f := range forms {
		s.z[f], s.h[f] = memory.At(2*i), memory.At(2*i+1)
	}
	if asIs {
		s.x = memory.At(2 * len(forms))
	}
	return s, nil
}

// as has a segment of one form hold another.
func (s *segment) as(f form) {
	s.z, s.h = [2]device.Pointer{}, [2]device.Pointer{}
	s.z[f], s.h[f] = s.memory.At(0), s.memory.At(1)
}

// bytesOf returns how many bytes of memory a point of a segment takes in so many forms.
func (b *deviceBlocks) bytesOf(forms int) int { return forms * 4 * (b.width + 1) }

// queries are points whose neighbours are wanted: those with the given rows, or all if rows
// is nil.
type queries struct {
	points *data.Matrix
	rows   []int32
	own    bool // whether they are base points
}

func (q *queries) count() int {
	if q.rows != nil {
		return len(q.rows)
	}
	return q.points.N
}

// block returns queries lo to hi−1.
func (q *queries) block(lo, hi int) *data.Matrix {
	if q.rows == nil {
		return q.points.Rows(lo, hi)
	}
	some := data.NewMatrix(hi-lo, q.points.D)
	for r, i := range q.rows[lo:hi] {
		copy(some.Row(r), q.points.Row(int(i)))
	}
	return some
}

// numbers returns which base points queries lo to hi−1 are.
func (q *queries) numbers(lo, hi int) []int32 {
	if q.rows != nil {
		return q.rows[lo:hi]
	}
	numbers := make([]int32, hi-lo)
	for r := range numbers {
		numbers[r] = int32(lo + r)
	}
	return numbers
}

// load uploads queries, or base points, lo to hi−1 to a segment, and sets their norms. It
// returns by what share of its norm rounding moves a point at most.
func (b *deviceBlocks) load(ctx context.Context, s *segment, from queries, lo, hi int, norm []float64) (change float64, err error) {
	s.first, s.n = lo, hi-lo
	rows := b.rowsAtOnce(s.n)
	p := b.newPlaced(rows)
	for first := 0; first < s.n; first += rows {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		last := min(s.n, first+rows)
		m := from.block(lo+first, lo+last)
		change = max(change, b.place(p, m, norm[first:last]))
		if err := b.upload(s, p, first, last); err != nil {
			return 0, err
		}
		if s.x != 0 {
			if err := device.Upload(b.device, s.x.At(first*b.d, 4), m.X); err != nil {
				return 0, err
			}
		}
	}
	// Columns of products that stand for no point are infinitely far.
	infinite := math.Float32bits(float32(math.Inf(1)))
	for _, h := range s.h {
		if padding := columns(s.n) - s.n; h != 0 && padding > 0 {
			if err := b.device.Fill(h.At(s.n, 4), infinite, padding); err != nil {
				return 0, err
			}
		}
	}
	return change, nil
}

// upload copies points to first … last−1 of a segment.
func (b *deviceBlocks) upload(s *segment, p *placed, first, last int) error {
	values := (last - first) * b.width
	z := s.z[single]
	if z == 0 {
		z = s.z[rounded]
	}
	if err := device.Upload(b.device, z.At(first*b.width, 4), p.z[:values]); err != nil {
		return err
	}
	if to := s.z[rounded]; to != 0 {
		if err := b.device.Each("neighbors_round", values, device.Arg(to.At(first*b.width, 4)), device.Arg(z.At(first*b.width, 4)), device.Int(values)); err != nil {
			return err
		}
	}
	for f, h := range s.h {
		if h != 0 {
			if err := device.Upload(b.device, h.At(first, 4), p.h[f][:last-first]); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowsAtOnce returns how many of n points are placed at a time.
func (b *deviceBlocks) rowsAtOnce(n int) int { return min(n, max(blockSize, uploadBytes/4/b.width)) }

// placed are points that are ready to be uploaded.
type placed struct {
	z []float32    // [rows, width]
	h [2][]float32 // by form
}

func (b *deviceBlocks) newPlaced(rows int) *placed {
	return &placed{make([]float32, rows*b.width), [2][]float32{make([]float32, rows), make([]float32, rows)}}
}

// place centres and scales points, and sets their norms. Those that are far have no
// candidates: they become zeros with an h that no other point comes near. It returns by what
// share of its norm rounding moves a point at most.
func (b *deviceBlocks) place(p *placed, m *data.Matrix, norm []float64) (change float64) {
	changes := make([]float64, parallel.Pieces(m.N, blockSize))
	parallel.For(m.N, blockSize, func(piece, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := p.z[i*b.width : (i+1)*b.width]
			var sum, after, moved float64
			for l, v := range m.Row(i) {
				zl := b.move(v, l)
				row[l] = zl
				sum += float64(zl) * float64(zl)
				short := float64(roundTF32(zl))
				after += short * short
				moved += (float64(zl) - short) * (float64(zl) - short)
			}
			norm[i] = math.Sqrt(sum)
			if far(norm[i]) {
				p.h[single][i], p.h[rounded][i] = 2*beyond, 2*beyond
				clear(row)
				continue
			}
			p.h[single][i], p.h[rounded][i] = float32(sum/2), float32(after/2)
			// What next to nothing loses is in the bound in any case.
			if d := math.Sqrt(moved); d > 0x1p-126*float64(b.d) {
				changes[piece] = max(changes[piece], d/norm[i])
			}
		}
	})
	for _, c := range changes {
		change = max(change, c)
	}
	return change
}
