package op

import (
	"runtime"
	"slices"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// maxParts is the largest number of ranges of a group's negatives. All rows without the
	// group's edges are five ranges. A run is four ranges, and two of these may contain the
	// group's heads.
	maxParts = 8
	// maxMasks is the largest number of masks that a group needs: for the ends of its ranges
	// (at most 10), for its own edges in each block of heads (twice), and for all ranges in a
	// block with fewer than four heads.
	maxMasks = 10 + 2*GroupHeads/simd.BlockHeads + 22
)

// A planarLoop computes a loss on Euclidean distances in at most simd.MaxDenseWidth
// dimensions if the negatives of a head are ranges of rows. The coordinates are in a
// structure of arrays, one plane per dimension. Four heads at a time are paired with a
// range, so no row is looked up, and hardly anything is stored per pair.
//
// If every row is a negative and the weight of a pair is symmetric (all losses except
// InfoNC), a pair of heads is computed once and counted twice.
type planarLoop[T Float] struct {
	pairLoss[T]
	loop    parallel.Loop
	pieces  []planarPiece[T]
	used    int                 // how many pieces
	scratch []*planarScratch[T] // one for each worker of the loop

	// finishing adds up the pieces, columns by columns.
	finishing      parallel.Loop
	features, grad []T

	// d is the number of planes, and width the width of the features: 1, or d.
	d, width, rows, b, m int
	wide                 []T     // points of one coordinate in the plane
	runs                 []int32 // first row of each group's run; empty if all rows are negatives

	// planes [d, stride] are the coordinates. The heads start at column 0, the tails at
	// column tails, and the other rows at column others. Each part is padded with zeros to
	// whole vectors. InfoNC's sums of products are about the center.
	planes                []T
	stride, tails, others int
	center                [simd.MaxDenseWidth]T
	boxes                 [2]box[T] // of all rows and of the others

	// These are for the positive pairs. x has the squared distances, later overwritten by the
	// derivatives. own has the rows of the tails. dx and dy are scratch memory.
	x, dx, dy []T
	own       []int32
	share     []T // InfoNC: the sums of similarities, then the shares
	headGrad  []T // planes [d, tails]
	grain     int
}

// A box is a bounding box of points. The first d numbers of its corners, and of the sum
// of the points, are coordinates; the others are scratch memory.
type box[T Float] struct{ least, most, sum []T }

// A planarPiece has the result of one share of the groups: its loss, and planes of the
// gradient of pairs that count once and twice. For InfoNC, once holds the planes of
// simd.DenseScatter.
type planarPiece[T Float] struct {
	sum         simd.Sum
	once, twice []T
	_           [64]byte // keeps two pieces out of one cache line
}

// A planarScratch is the scratch memory for a piece. It is large, so the pieces share a
// few: the next piece on the same core uses it from the core's cache.
type planarScratch[T Float] struct {
	*planarPiece[T]
	block simd.HeadBlock[T]
	// onceSums and twiceSums are the kernels' sums over the pairs that count once and
	// twice.
	onceSums, twiceSums sums[T]

	heads   []T // [GroupHeads, d]
	squares []T // InfoNC: [GroupHeads, width]
	width   int
	factors []T // InfoNC: the coefficients of simd.DenseScatter
	folded  []T
	// ranges are the column ranges of the current group: first the pairs that count once,
	// then the pairs that count twice. own lists the ranges with the group's own heads or
	// tails. masks are the masks of ranges that need some.
	ranges []simd.ColumnRange
	own    []ownRange
	masks  []simd.Masks
}

// An ownRange says that the range with number at has the group's own heads or tails, from
// number lo to hi.
type ownRange struct{ at, lo, hi int }

// sums are the kernels' sums in addition to the planes of the gradient.
type sums[T Float] struct{ heads, state []T }

func (u *sums[T]) resize(heads int) {
	u.heads = grow(u.heads, heads)
	u.state = grow(u.state, 3*simd.Lanes)
}

func (s *planarLoop[T]) init(options ContrastiveOptions) {
	s.pairLoss = newPairLoss[T](options)
	s.loop.BodyWithWorker, s.finishing.BodyWithWorker = s.piece, s.finish
}

// takes reports whether the loop has kernels for the loss of features of width d.
func (s *planarLoop[T]) takes(d int) bool {
	return s.options.Metric == Euclidean && d <= simd.MaxDenseWidth && (s.perHead || s.kernels.dense != nil)
}

// run computes the loss of the batch and, if withGrad, its gradient [rows, d];
// neither has the factor Scale or 1/b. negatives are not listed.
func (s *planarLoop[T]) run(features []T, d, rows, b int, layout NegativeLayout, theta float64, withGrad bool, grad []T) simd.Sum {
	s.width, s.d, s.rows, s.b = d, max(d, simd.MinDenseWidth), rows, b
	if s.width < s.d {
		features = s.inPlane(features)
	}
	s.m, s.runs = layout.decode(b, rows)
	s.setTheta(theta, s.m)
	s.transpose(features)
	sum := s.positives(features)

	groups := parallel.Pieces(b, GroupHeads)
	count := min(maxPieces, 1+b*(1+s.m)*d/pieceWork)
	s.grain = parallel.Pieces(groups, count)
	count = parallel.Pieces(groups, s.grain)
	s.pieces = atLeast(s.pieces, count)
	workers := min(count, runtime.GOMAXPROCS(0))
	for len(s.scratch) < workers {
		s.scratch = append(s.scratch, new(planarScratch[T]))
	}
	s.loop.Workers, s.finishing.Workers = workers, workers
	s.loop.Run(groups, s.grain)
	for i := range count {
		sum.Add(s.pieces[i].sum)
	}
	if s.perHead {
		sum.Loss += simd.InfoNCPositive(s.x, s.share, s.clamp)
	}
	if withGrad {
		s.features, s.grad, s.used = features, grad, count
		s.finishing.Run(s.stride, finishColumns)
	}
	return sum
}

// inPlane returns points of one coordinate as points of two. The second coordinate is 0,
// so no sum changes.
func (s *planarLoop[T]) inPlane(features []T) []T {
	s.wide = grow(s.wide, 2*len(features))
	for i, v := range features {
		s.wide[2*i], s.wide[2*i+1] = v, 0
	}
	return s.wide
}

// transpose fills the planes from rows.
func (s *planarLoop[T]) transpose(features []T) {
	d := s.d
	for i, rows := range [2][]T{features, features[2*s.b*d:]} {
		if x := &s.boxes[i]; len(rows) > 0 {
			x.least, x.most, x.sum = grow(x.least, d*simd.Lanes), grow(x.most, d*simd.Lanes), grow(x.sum, d*simd.Lanes)
			simd.Extents(x.least, x.most, x.sum, rows, d)
			// Extra rows are negatives from outside the batch. Only these define the centre, so the
			// bits of an edge do not depend on the other edges.
			for k := range d {
				s.center[k] = x.sum[k] * T(d) / T(len(rows))
			}
		}
	}
	s.tails = roundUpToLanes(s.b)
	s.others = 2 * s.tails
	// A range that does not end with a vector is read beyond its end.
	s.stride = s.others + roundUpToLanes(s.rows-2*s.b) + simd.Lanes
	s.planes = grow(s.planes, d*s.stride)
	for part, column := range [4]int{0, s.tails, s.others, s.stride} {
		if part > 0 {
			for k := range d { // from the end of the previous part
				end := [3]int{s.b, s.tails + s.b, s.others + s.rows - 2*s.b}[part-1]
				clear(s.planes[k*s.stride+end : k*s.stride+column])
			}
		}
		if part == 3 {
			break
		}
		rows := features[part*s.b*d:]
		if part < 2 {
			rows = rows[:s.b*d]
		}
		simd.Planes(s.planes[column:], s.stride, rows, d)
	}
}

func roundUpToLanes(n int) int { return (n + simd.Lanes - 1) / simd.Lanes * simd.Lanes }

// positives computes the part of the positive pairs' loss that does not depend on the
// negatives.
func (s *planarLoop[T]) positives(features []T) simd.Sum {
	s.x = grow(s.x, s.b)
	s.own = tailsOf(s.own, s.b)
	if s.d == 2 {
		s.dx, s.dy = grow(s.dx, s.b), grow(s.dy, s.b)
		simd.Pairs2(s.x, s.dx, s.dy, features, 0, s.own)
	} else {
		simd.Pairs(s.x, features, s.d, 0, s.own)
	}
	s.headGrad = grow(s.headGrad, s.d*s.tails)
	clear(s.headGrad)
	if !s.perHead {
		return s.kernels.positive(s.x, s.c, s.bound)
	}
	s.share = grow(s.share, s.b)
	clear(s.share)
	simd.Similarities(s.x, s.share, s.clamp)
	return simd.Sum{}
}

// piece works on the groups [lo, hi).
func (s *planarLoop[T]) piece(worker, number, lo, hi int) {
	p := s.scratch[worker]
	p.planarPiece = &s.pieces[number]
	p.sum = simd.Sum{}
	// Masks must stay where they are while the ranges refer to them.
	p.masks = grow(p.masks, maxMasks)
	p.heads = grow(p.heads, GroupHeads*s.d)
	p.block = simd.HeadBlock[T]{D: s.d, Columns: s.planes, Stride: s.stride}
	slots, work := s.d, s.group
	if s.perHead {
		slots, work = 1+s.d, s.totals
		p.width = s.stride + maxParts*simd.Lanes
		p.squares = grow(p.squares, GroupHeads*p.width)
		p.factors = grow(p.factors, GroupHeads*slots)
	}
	if s.countsTwice() {
		p.twice = grow(p.twice, slots*s.stride)
		clear(p.twice)
	}
	p.once = grow(p.once, slots*s.stride)
	clear(p.once)
	p.onceSums.resize(simd.BlockHeads * slots * simd.Lanes)
	p.twiceSums.resize(simd.BlockHeads * slots * simd.Lanes)
	p.folded = grow(p.folded, simd.BlockHeads*slots)
	for g := lo; g < hi; g++ {
		work(p, g)
	}
	p.planarPiece = nil
}

// countsTwice reports whether a pair of heads is computed once and counted twice.
func (s *planarLoop[T]) countsTwice() bool { return len(s.runs) == 0 && !s.perHead }

// setGroup puts the coordinates of a group's heads side by side, with zeros for the heads
// that a smaller group lacks.
func (s *planarLoop[T]) setGroup(p *planarScratch[T], group int) (first, size int) {
	first = group * GroupHeads
	size = min(GroupHeads, s.b-first)
	clear(p.heads)
	for i := range size {
		for k := range s.d {
			p.heads[i*s.d+k] = s.planes[k*s.stride+first+i]
		}
	}
	return first, size
}

// group adds up the pairs of a group's heads, for all losses except InfoNC.
func (s *planarLoop[T]) group(p *planarScratch[T], group int) {
	first, size := s.setGroup(p, group)
	once := s.meet(p, group)
	for _, to := range [2]*sums[T]{&p.onceSums, &p.twiceSums} {
		p.block.Sums, p.block.State = to.heads, to.state
		p.block.Fresh(true)
	}
	for head := 0; head < size; head += simd.BlockHeads {
		heads := s.enter(p, head, size)
		if once < len(p.ranges) {
			s.along(p, &p.twiceSums, p.twice, p.ranges[once:])
			s.toHeads(p.folded, first+head, heads, s.d, 4)
		}
		s.along(p, &p.onceSums, p.once, p.ranges[:once])
		s.toHeads(p.folded, first+head, heads, s.d, 2)
		for _, v := range p.folded {
			// A sum that is NaN must make the loss NaN, too. Infinite distances, or a NaN in the AVX2
			// kernel, would not do so by themselves.
			p.sum.Loss += float64(0 * float64(v))
		}
	}
	p.sum.Add(p.onceSums.sum(1))
	p.sum.Add(p.twiceSums.sum(2))
}

// toHeads adds a factor times the first d columns of sums, [heads, slots], to the
// gradient of heads, starting with number first.
func (s *planarLoop[T]) toHeads(sums []T, first, heads, slots int, factor T) {
	for h := range heads {
		for k := range s.d {
			s.headGrad[k*s.tails+first+h] += T(factor * sums[h*slots+k])
		}
	}
}

// along computes the pairs of the block's heads with some ranges and folds the sums.
func (s *planarLoop[T]) along(p *planarScratch[T], to *sums[T], gradient []T, ranges []simd.ColumnRange) {
	q := &p.block
	q.Ranges, q.Gradient, q.Sums, q.State = ranges, gradient, to.heads, to.state
	q.Fresh(false)
	s.kernels.dense(q, s.c, s.bound)
	simd.Fold(p.folded, q.Sums)
}

// sum returns the loss of the pairs, times a factor.
func (u *sums[T]) sum(factor float64) simd.Sum {
	sum := (&simd.HeadBlock[T]{State: u.state}).Sum()
	return simd.Sum{Loss: factor * sum.Loss, DTheta: factor * sum.DTheta}
}

// meet sets the column ranges for a group's heads, and returns the number of ranges that
// count once.
func (s *planarLoop[T]) meet(p *planarScratch[T], group int) (once int) {
	p.ranges, p.masks, p.own = p.ranges[:0], p.masks[:0], p.own[:0]
	first := group * GroupHeads
	next := min(s.b, first+GroupHeads)
	rest := s.rows - 2*s.b
	if len(s.runs) > 0 {
		overRun(s.b, s.rows, int(s.runs[group]), s.m, func(from, to int) {
			switch {
			case from >= 2*s.b:
				p.add(from+s.others-2*s.b, to+s.others-2*s.b)
			case from >= s.b:
				p.add(from+s.tails-s.b, to+s.tails-s.b)
			default: // heads, which may be the group's
				p.add(from, min(to, first))
				p.addOwn(first, from-first, min(to, next)-first)
				p.add(max(from, next), to)
			}
		})
		// Stretches may follow each other within a vector, squares must not.
		end := 0
		for i := range p.ranges {
			p.ranges[i].At = end
			end += p.ranges[i].N
		}
		return len(p.ranges)
	}
	if s.perHead {
		p.add(0, first)
		p.add(next, s.b)
	}
	p.add(s.tails, s.tails+first)
	p.add(s.tails+next, s.tails+s.b)
	p.add(s.others, s.others+rest)
	p.addOwn(first, 0, next-first)
	p.addOwn(s.tails+first, 0, next-first)
	once = len(p.ranges)
	if s.countsTwice() {
		// The groups form a circle, and each is paired with the half that follows it. If their
		// number is even, groups of the first half are also paired with the opposite group.
		groups := parallel.Pieces(s.b, GroupHeads)
		half := (groups - 1) / 2
		if groups%2 == 0 && group < groups/2 {
			half++
		}
		last := group + 1 + half
		p.add(next, min(s.b, last*GroupHeads))
		p.add(0, min(s.b, (last-groups)*GroupHeads))
	}
	return once
}

// add appends the columns [lo, hi) to the ranges, as one range of whole vectors and
// one with the rest.
func (p *planarScratch[T]) add(lo, hi int) {
	if hi <= lo {
		return
	}
	whole := (hi - lo) / simd.Lanes * simd.Lanes
	if last := len(p.ranges) - 1; whole > 0 {
		if last >= 0 && p.ranges[last].Masks == &allMasks && p.ranges[last].First+p.ranges[last].N == lo {
			p.ranges[last].N += whole
		} else {
			p.ranges = append(p.ranges, simd.ColumnRange{First: lo, N: whole, At: lo, Masks: &allMasks})
		}
	}
	if lo += whole; lo < hi {
		m := p.mask()
		for j := range m {
			m[j] = 0
			if j%simd.Lanes < hi-lo {
				m[j] = -1
			}
		}
		p.ranges = append(p.ranges, simd.ColumnRange{First: lo, N: simd.Lanes, At: lo, Masks: m})
	}
}

// addOwn appends a range for the group's own heads or tails, from number lo to hi, unless
// it is empty. Its masks leave out each head; they are set for each block of heads.
func (p *planarScratch[T]) addOwn(column, lo, hi int) {
	if lo = max(0, lo); lo >= hi {
		return
	}
	p.own = append(p.own, ownRange{len(p.ranges), lo, hi})
	p.ranges = append(p.ranges, simd.ColumnRange{First: column, N: simd.Lanes, At: column})
}

// mask returns unused masks for a range. A piece has enough of them.
func (p *planarScratch[T]) mask() *simd.Masks {
	p.masks = p.masks[:len(p.masks)+1]
	return &p.masks[len(p.masks)-1]
}

// reach returns at least 1 + the largest squared distance between a head of the
// block and a column of its ranges.
func (s *planarLoop[T]) reach(p *planarScratch[T]) T {
	of := &s.boxes[0]
	if len(s.runs) > 0 && !slices.ContainsFunc(p.ranges, func(r simd.ColumnRange) bool { return r.First < s.others }) {
		of = &s.boxes[1]
	}
	reach := T(1)
	for k := range s.d {
		least, most := p.block.Heads[k], p.block.Heads[k]
		for h := 1; h < simd.BlockHeads; h++ {
			v := p.block.Heads[h*s.d+k]
			least, most = min(least, v), max(most, v)
		}
		farthest := max(most-of.least[k], of.most[k]-least)
		reach += T(farthest * farthest)
	}
	return reach * (1 + 1e-5) // for rounding
}

// Masks that are used repeatedly: all ones, and the masks that exclude each head's own
// column, for the four blocks of a whole group.
var (
	allMasks simd.Masks
	ownMasks [GroupHeads / simd.BlockHeads]simd.Masks
)

func init() {
	selection.Fill(allMasks[:], -1)
	for block := range ownMasks {
		ownMasks[block] = allMasks
		for h := range simd.BlockHeads {
			ownMasks[block][h*simd.Lanes+block*simd.BlockHeads+h] = 0
		}
	}
}

// enter puts four heads of a group of size heads into the block, starting with number
// head. It returns the number of heads, which is less than four at the end of the group.
func (s *planarLoop[T]) enter(p *planarScratch[T], head, size int) (heads int) {
	p.block.Heads = p.heads[head*s.d : (head+simd.BlockHeads)*s.d]
	p.block.Most = s.reach(p)
	heads = min(simd.BlockHeads, size-head)
	for _, own := range p.own {
		masks := &ownMasks[head/simd.BlockHeads]
		if own.lo > 0 || own.hi < GroupHeads {
			masks = p.mask()
			*masks = ownMasks[head/simd.BlockHeads]
			for j := range masks {
				if lane := j % simd.Lanes; lane < own.lo || lane >= own.hi {
					masks[j] = 0
				}
			}
		}
		p.ranges[own.at].Masks = masks
	}
	if heads < simd.BlockHeads {
		for i := range p.ranges {
			m := p.mask()
			copy(m[:heads*simd.Lanes], p.ranges[i].Masks[:])
			clear(m[heads*simd.Lanes:])
			p.ranges[i].Masks = m
		}
	}
	return heads
}

// totals adds up the pairs of a group's heads for InfoNC.
func (s *planarLoop[T]) totals(p *planarScratch[T], group int) {
	first, size := s.setGroup(p, group)
	s.meet(p, group)
	slots := 1 + s.d
	for head := 0; head < size; head += simd.BlockHeads {
		heads := s.enter(p, head, size)
		p.block.Ranges, p.block.Sums = p.ranges, p.onceSums.heads
		p.block.Fresh(false)
		simd.DenseTotals(&p.block, p.squares[head*p.width:], p.width, s.bound)
		simd.Fold(p.folded, p.onceSums.heads)
		s.toHeads(p.folded, first+head, heads, slots, 2)
		for h := range heads {
			s.share[first+head+h] += p.folded[h*slots+s.d]
		}
	}
	share := s.share[first : first+size]
	// The totals may hide a NaN among the scattered values.
	p.sum.Loss += float64(0 * float64(p.block.Most))
	logs := simd.LogTotals(share, s.weight)
	p.sum.Loss += logs
	p.sum.DTheta -= logs
	for i, v := range share {
		for k := range s.d {
			s.headGrad[k*s.tails+first+i] *= v
			p.factors[i*slots+1+k] = v * (p.heads[i*s.d+k] - s.center[k])
		}
		p.factors[i*slots] = v
	}
	if len(s.runs) == 0 {
		// The ranges follow each other without a gap.
		p.ranges = append(p.ranges[:0], simd.ColumnRange{N: s.others + roundUpToLanes(s.rows-2*s.b)})
	}
	for _, t := range p.ranges {
		simd.DenseScatter(p.once[t.First:], s.d, t.N, s.stride, p.squares[t.At:], p.width, p.factors[:size*slots])
	}
}

// finishColumns is the number of columns of the planes finished at a time.
const finishColumns = 128

// finish writes the gradient of the rows that columns [lo, hi) hold, from the pieces'
// planes and the positive pairs.
func (s *planarLoop[T]) finish(_, _, lo, hi int) {
	factor, slots := T(-2), s.d
	if s.perHead {
		factor, slots = 2, 1+s.d
	}
	once := s.pieces[0].once
	for k := range slots {
		sum := once[k*s.stride+lo:][:hi-lo]
		for _, p := range s.pieces[1:s.used] {
			simd.Add(sum, p.once[k*s.stride+lo:][:hi-lo])
		}
		if !s.countsTwice() {
			continue
		}
		for _, p := range s.pieces[:s.used] {
			twice := p.twice[k*s.stride+lo:][:hi-lo]
			simd.Scale(twice, 2)
			simd.Add(sum, twice)
		}
	}
	for part, column := range [3]int{0, s.tails, s.others} {
		count := selection.If(part == 2, s.rows-2*s.b, s.b)
		from, to := max(lo, column), min(hi, column+count)
		if from >= to {
			continue
		}
		first := from - column // in its part
		for k := range s.width {
			at := k*s.stride + from
			x, g := s.planes[at:][:to-from], once[at:][:to-from]
			if s.perHead {
				g = once[at+s.stride:][:to-from]
				simd.LessProduct(g, x, once[from:], s.center[k])
			}
			simd.Scale(g, factor)
			// A head is pulled towards its tail, and the tail towards the head.
			switch part {
			case 0:
				simd.Add(g, s.headGrad[k*s.tails+first:][:to-from])
				simd.Pull(g, s.x[first:], x, s.planes[at+s.tails:], 2)
			case 1:
				simd.Pull(g, s.x[first:], x, s.planes[at-s.tails:], 2)
			}
			s.interleave(g, part*s.b+first, k)
		}
	}
}

// interleave writes coordinate k of the gradient of rows, starting with row first.
func (s *planarLoop[T]) interleave(g []T, first, k int) {
	grad := s.grad[first*s.width+k:]
	for i, v := range g {
		grad[i*s.width] = v
	}
}
