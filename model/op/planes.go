package op

import (
	"math"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// groupHeads is the number of consecutive heads that share what they are
// contrasted with. The last group of a batch may be smaller.
const groupHeads = 16

// maxStretches is into how many stretches the negatives of a group fall: a run
// that begins and ends within one of five parts.
const maxStretches = 6

// A planeSweep computes a loss of Euclidean distances in at most
// simd.MaxDenseWidth dimensions where whole stretches of rows are the negatives
// of a head. The rows' coordinates are laid out in planes, and four heads at a
// time pass along a stretch: nothing is gathered, and next to nothing is kept of
// a pair.
//
// Where every row is a negative and the weight of a pair does not depend on
// which of its two points is the head (all losses but InfoNC), two heads meet
// once and count twice.
type planeSweep[T Float] struct {
	options ContrastiveOptions
	bound   simd.Bound[T]
	loop    parallel.Loop
	pieces  []planePiece[T]

	d, rows, b, m int
	runs          []int32 // where those of the groups begin; empty: every row
	c             T       // of Neg and NC
	weight        T       // 1/ρ of InfoNC

	// planes [d, stride] are the coordinates less the centre of the box that
	// holds them (which keeps InfoNC's sums of products small): of the heads, of
	// the tails from column tails on, and of the other rows from column others
	// on, each part filled up with zeros to whole vectors.
	planes                []T
	stride, tails, others int
	centre                [simd.MaxDenseWidth]T
	least, most           []T // the corners of the box
	reach                 T   // 1 + the square of its diagonal

	// Of the positive pairs: squared distances, which become derivatives, if
	// d = 2 the coordinates' differences and the heads' gradient, and the tails'
	// rows.
	x, dx, dy []T
	hx, hy    []T
	own       []int32
	share     []T // InfoNC: the sums of similarities, which become shares
	headGrad  []T // [b, d]
	grain     int
}

// A stretch is a run of columns of the planes. InfoNC's squares of it begin at
// column at.
type stretch struct{ first, count, at int }

// A planePiece is what one share of the groups leaves behind, and its scratch.
type planePiece[T Float] struct {
	sum simd.Sum
	// once and twice hold planes of the gradient, of pairs that count once and
	// twice. Of InfoNC once holds the planes of simd.DenseSpread.
	once, twice tally[T]
	quad        simd.Quad[T]
	masks       []int32
	heads       []T // [groupHeads, d]
	squares     []T // InfoNC: [groupHeads, width]
	width       int
	factors     []T // InfoNC: the coefficients of simd.DenseSpread
	folded      []T
	stretches   []stretch
	_           [64]byte // keeps two pieces out of one cache line
}

// A tally is what the kernels add up of the pairs of a kind.
type tally[T Float] struct{ planes, sums, state []T }

func (t *tally[T]) resize(planes, sums int) {
	t.planes = grow(t.planes, planes)
	clear(t.planes)
	t.sums = grow(t.sums, sums)
	t.state = grow(t.state, 3*simd.Lanes)
}

func (s *planeSweep[T]) init(options ContrastiveOptions) {
	s.options = options
	s.bound = simd.BoundOf[T](options.Clamp)
	s.loop.Body = s.piece
}

// run computes the loss of the batch and, if withGrad, its gradient [rows, d];
// neither has the factor Scale or 1/b. runs are those of Contrastive, not 0.
func (s *planeSweep[T]) run(features []T, d, rows, b int, runs []int32, theta float64, withGrad bool, grad []T) simd.Sum {
	s.d, s.rows, s.b, s.runs, s.m = d, rows, b, runs[1:], int(runs[0])
	if s.m == allRows {
		s.m = rows - 2
	}
	s.c, s.weight = T(math.Exp(theta)), T(math.Exp(-theta))
	if s.options.Loss == NC {
		s.c *= T(s.m)
	}
	s.layOut(features)
	sum := s.positives(features)

	groups := parallel.Pieces(b, groupHeads)
	count := min(maxPieces, 1+b*(1+s.m)*d/pieceWork)
	s.grain = parallel.Pieces(groups, count)
	count = parallel.Pieces(groups, s.grain)
	for len(s.pieces) < count {
		s.pieces = append(s.pieces, planePiece[T]{})
	}
	s.loop.Run(groups, s.grain)
	for i := range count {
		sum.Add(s.pieces[i].sum)
	}
	if s.options.Loss == InfoNC {
		inTotal := T(1)
		if s.options.ExcludePositive {
			inTotal = 0
		}
		sum.Loss += simd.InfoNCPositive(s.x, s.share, s.bound.Clamp(), inTotal)
	}
	if withGrad {
		s.assemble(features, grad, s.pieces[:count])
	}
	return sum
}

// layOut fills the planes.
func (s *planeSweep[T]) layOut(features []T) {
	d := s.d
	s.least, s.most = grow(s.least, d*simd.Lanes), grow(s.most, d*simd.Lanes)
	simd.Extents(s.least, s.most, features, d)
	s.reach = 1
	for k := range d {
		least, most := s.least[k], s.most[k]
		s.centre[k] = (least + most) / 2
		s.reach += (most - least) * (most - least)
	}
	s.reach *= 1 + 1e-5 // for rounding

	s.tails = wholeVectors(s.b)
	s.others = 2 * s.tails
	// A stretch that does not end with a vector is read beyond its end.
	s.stride = s.others + wholeVectors(s.rows-2*s.b) + simd.Lanes
	s.planes = grow(s.planes, d*s.stride)
	clear(s.planes)
	for part, column := range [3]int{0, s.tails, s.others} {
		rows := features[min(part*s.b*d, len(features)):]
		if part < 2 {
			rows = rows[:s.b*d]
		}
		simd.Planes(s.planes[column:], s.stride, rows, d, s.centre[:])
	}
}

func wholeVectors(n int) int { return (n + simd.Lanes - 1) / simd.Lanes * simd.Lanes }

// positives computes the positive pairs as far as they do not depend on the
// negatives.
func (s *planeSweep[T]) positives(features []T) (sum simd.Sum) {
	s.x = grow(s.x, s.b)
	if len(s.own) != s.b {
		s.own = grow(s.own, s.b)
		for i := range s.own {
			s.own[i] = int32(s.b + i)
		}
	}
	if s.d == 2 {
		s.dx, s.dy = grow(s.dx, s.b), grow(s.dy, s.b)
		simd.Pairs2(s.x, s.dx, s.dy, features, 0, s.own)
	} else {
		simd.Pairs(s.x, features, s.d, 0, s.own)
	}
	s.headGrad = grow(s.headGrad, s.b*s.d)
	switch s.options.Loss {
	case Neg, NC:
		return simd.NegPositive(s.x, s.c, s.bound)
	case UMAP:
		sum.Loss = simd.UMAPPositive(s.x, s.bound)
	case InfoNC:
		s.share = grow(s.share, s.b)
		clear(s.share)
		simd.Similarities(s.x, s.share, s.bound.Clamp())
		if s.options.ExcludePositive {
			clear(s.share)
		}
	}
	return sum
}

// piece works on the groups [lo, hi).
func (s *planeSweep[T]) piece(number, lo, hi int) {
	p := &s.pieces[number]
	p.sum = simd.Sum{}
	p.masks = grow(p.masks, simd.QuadHeads*simd.Lanes)
	p.heads = grow(p.heads, groupHeads*s.d)
	p.quad = simd.Quad[T]{D: s.d, Stride: s.stride, Most: s.reach}
	if s.options.Loss == InfoNC {
		p.once.resize((1+s.d)*s.stride, simd.QuadHeads*(1+s.d)*simd.Lanes)
		p.width = s.stride + maxStretches*simd.Lanes
		p.squares = grow(p.squares, groupHeads*p.width)
		p.factors = grow(p.factors, groupHeads*(1+s.d))
		p.folded = grow(p.folded, simd.QuadHeads*(1+s.d))
		for g := lo; g < hi; g++ {
			s.totals(p, g)
		}
		return
	}
	p.once.resize(s.d*s.stride, simd.QuadHeads*s.d*simd.Lanes)
	p.twice.resize(s.d*s.stride, simd.QuadHeads*s.d*simd.Lanes)
	p.folded = grow(p.folded, simd.QuadHeads*s.d)
	for g := lo; g < hi; g++ {
		s.group(p, g)
	}
}

// place puts the coordinates of a group's heads side by side; what is missing in
// a smaller group is zero.
func (s *planeSweep[T]) place(p *planePiece[T], group int) (first, size int) {
	first = group * groupHeads
	size = min(groupHeads, s.b-first)
	clear(p.heads)
	for i := range size {
		for k := range s.d {
			p.heads[i*s.d+k] = s.planes[k*s.stride+first+i]
		}
	}
	return first, size
}

// group adds up the pairs of a group's heads, of all losses but InfoNC.
func (s *planeSweep[T]) group(p *planePiece[T], group int) {
	first, size := s.place(p, group)
	others, both := s.stretches(p, group)
	p.quad.State = p.once.state
	p.quad.Fresh(true)
	p.quad.State = p.twice.state
	p.quad.Fresh(true)
	for head := 0; head < size; head += simd.QuadHeads {
		heads := min(simd.QuadHeads, size-head)
		p.quad.Heads = p.heads[head*s.d : (head+simd.QuadHeads)*s.d]
		p.enter(&p.twice)
		for _, t := range both {
			s.along(p, t, heads, s.pairs)
		}
		simd.Fold(p.folded, p.twice.sums)
		to := s.headGrad[(first+head)*s.d:]
		for i := range heads * s.d {
			to[i] = 4 * p.folded[i]
		}
		p.enter(&p.once)
		for _, t := range others {
			s.along(p, t, heads, s.pairs)
		}
		if len(s.runs) == 0 {
			s.within(p, first, size, head, s.pairs)
		}
		simd.Fold(p.folded, p.once.sums)
		for i := range heads * s.d {
			to[i] += 2 * p.folded[i]
		}
	}
	p.sum.Add(p.once.sum(1))
	p.sum.Add(p.twice.sum(2))
	for _, v := range s.headGrad[first*s.d : (first+size)*s.d] {
		// The vector forms may lose a NaN from the loss, but not from the sums.
		p.sum.Loss += 0 * float64(v)
	}
}

// enter lets the quad add to a tally, whose sums it makes zero.
func (p *planePiece[T]) enter(t *tally[T]) {
	p.quad.Sums, p.quad.State = t.sums, t.state
	p.quad.Fresh(false)
}

// sum returns the loss of the pairs, times a factor.
func (t *tally[T]) sum(factor float64) simd.Sum {
	sum := (&simd.Quad[T]{State: t.state}).Sum()
	return simd.Sum{Loss: factor * sum.Loss, DTheta: factor * sum.DTheta}
}

// pairs lets a quad meet the columns from one on.
func (s *planeSweep[T]) pairs(p *planePiece[T], column, _ int) {
	q := &p.quad
	if &q.Sums[0] == &p.once.sums[0] {
		q.Gradient = p.once.planes[column:]
	} else {
		q.Gradient = p.twice.planes[column:]
	}
	if s.options.Loss == UMAP {
		simd.DenseUMAP(q, s.bound)
	} else {
		simd.DenseNeg(q, s.c, s.bound)
	}
}

// stretches returns what a group's heads are contrasted with but for its own
// edges: columns that count once and, if every row is a negative and the loss
// allows it, heads that count twice, for both.
func (s *planeSweep[T]) stretches(p *planePiece[T], group int) (once, twice []stretch) {
	out := p.stretches[:0]
	first := group * groupHeads
	next := min(s.b, first+groupHeads)
	add := func(lo, hi int) {
		if n := len(out); hi > lo && n > 0 && out[n-1].first+out[n-1].count == lo {
			out[n-1].count += hi - lo
		} else if hi > lo {
			out = append(out, stretch{first: lo, count: hi - lo, at: lo})
		}
	}
	switch {
	case len(s.runs) > 0:
		// The rows without the group's own are five parts, the first two of
		// heads, then two of tails.
		parts := [5]stretch{{0, first, 0}, {next, s.b - next, 0}, {s.tails, first, 0}, {s.tails + next, s.b - next, 0}, {s.others, s.rows - 2*s.b, 0}}
		at, count := int(s.runs[group]), s.m
		for count > 0 {
			for _, part := range parts {
				n := min(count, max(0, part.count-at))
				add(part.first+at, part.first+at+n)
				count -= n
				at = max(0, at-part.count)
			}
		}
		// Stretches may follow each other within a vector, squares must not.
		for i, end := 0, 0; i < len(out); i++ {
			out[i].at = end
			end += wholeVectors(out[i].count)
		}
	case s.options.Loss == InfoNC:
		add(0, first)
		add(next, s.b)
		add(s.tails, s.tails+first)
		add(s.tails+next, s.tails+s.b)
		add(s.others, s.others+s.rows-2*s.b)
	default:
		// Each of an odd number of groups meets the following half of the
		// others, in a circle. Of an even number, the first half of the groups
		// meets the one that lies opposite, too.
		groups := parallel.Pieces(s.b, groupHeads)
		half := (groups - 1) / 2
		if groups%2 == 0 && group < groups/2 {
			half++
		}
		last := group + 1 + half
		add(next, min(s.b, last*groupHeads))
		add(0, min(s.b, (last-groups)*groupHeads))
		pairs := len(out)
		if s.tails == s.b && pairs > 0 {
			// What follows must not be joined to heads that count twice.
			out = append(out, stretch{})
			pairs++
		}
		add(s.tails, s.tails+first)
		add(s.tails+next, s.tails+s.b)
		add(s.others, s.others+s.rows-2*s.b)
		p.stretches = out
		return out[pairs:], out[:pairs]
	}
	p.stretches = out
	return out, nil
}

// along lets the first so many heads of a quad meet the columns of a stretch.
func (s *planeSweep[T]) along(p *planePiece[T], t stretch, heads int, meet func(p *planePiece[T], column, at int)) {
	q := &p.quad
	whole := t.count / simd.Lanes * simd.Lanes
	if whole > 0 {
		q.Masks = p.mask(heads, simd.Lanes)
		q.Columns, q.N = s.planes[t.first:], whole
		meet(p, t.first, t.at)
	}
	if rest := t.count - whole; rest > 0 {
		q.Masks = p.mask(heads, rest)
		q.Columns, q.N = s.planes[t.first+whole:], simd.Lanes
		meet(p, t.first+whole, t.at+whole)
	}
}

// within lets four heads of a group meet the ends of the other edges of the
// group, of which there are size from the first on. head is the number of the
// first of the four in the group.
func (s *planeSweep[T]) within(p *planePiece[T], first, size, head int, meet func(p *planePiece[T], column, at int)) {
	q := &p.quad
	if size == groupHeads {
		q.Masks = ownMasks[head/simd.QuadHeads]
	} else {
		q.Masks = p.mask(min(simd.QuadHeads, size-head), size)
		for h := range simd.QuadHeads {
			q.Masks[h*simd.Lanes+head+h] = 0
		}
	}
	q.N = simd.Lanes
	for _, column := range [2]int{first, s.tails + first} {
		q.Columns = s.planes[column:]
		meet(p, column, column)
	}
}

// Masks that are used over and over: all ones, and those of the four quads of a
// whole group, in which each head is left out itself.
var (
	allMasks = ones()
	ownMasks = func() (out [groupHeads / simd.QuadHeads][]int32) {
		for quad := range out {
			out[quad] = ones()
			for h := range simd.QuadHeads {
				out[quad][h*simd.Lanes+quad*simd.QuadHeads+h] = 0
			}
		}
		return out
	}()
)

func ones() []int32 {
	m := make([]int32, simd.QuadHeads*simd.Lanes)
	for i := range m {
		m[i] = -1
	}
	return m
}

// mask returns masks that let the first so many heads meet so many columns.
func (p *planePiece[T]) mask(heads, columns int) []int32 {
	if heads == simd.QuadHeads && columns == simd.Lanes {
		return allMasks
	}
	clear(p.masks)
	for h := range heads {
		for j := range columns {
			p.masks[h*simd.Lanes+j] = -1
		}
	}
	return p.masks
}

// totals adds up the pairs of a group's heads for InfoNC.
func (s *planeSweep[T]) totals(p *planePiece[T], group int) {
	first, size := s.place(p, group)
	stretches, _ := s.stretches(p, group)
	slots := 1 + s.d
	for head := 0; head < size; head += simd.QuadHeads {
		heads := min(simd.QuadHeads, size-head)
		p.quad.Heads = p.heads[head*s.d : (head+simd.QuadHeads)*s.d]
		p.quad.Sums = p.once.sums
		p.quad.Fresh(false)
		squares := p.squares[head*p.width:]
		meet := func(p *planePiece[T], _, at int) {
			simd.DenseTotals(&p.quad, squares[at:], p.width, s.bound)
		}
		for _, t := range stretches {
			s.along(p, t, heads, meet)
		}
		if len(s.runs) == 0 {
			s.within(p, first, size, head, meet)
		}
		simd.Fold(p.folded, p.once.sums)
		for h := range heads {
			i := first + head + h
			copy(s.headGrad[i*s.d:(i+1)*s.d], p.folded[h*slots:])
			s.share[i] += p.folded[h*slots+s.d]
		}
	}
	share := s.share[first : first+size]
	if s.options.ExcludePositive && s.m == 0 {
		clear(s.headGrad[first*s.d : (first+size)*s.d])
		return // nothing to contrast with: the sum drops out
	}
	logs := simd.LogTotals(share, s.weight)
	p.sum.Loss += logs
	p.sum.DTheta -= logs
	for i, v := range share {
		for k := range s.d {
			s.headGrad[(first+i)*s.d+k] *= 2 * v
			p.factors[i*slots+1+k] = v * p.heads[i*s.d+k]
		}
		p.factors[i*slots] = v
	}
	if len(s.runs) == 0 {
		// The group's own edges lie between the stretches.
		stretches = append(stretches[:0], stretch{count: s.others + s.rows - 2*s.b})
	}
	for _, t := range stretches {
		simd.DenseSpread(p.once.planes[t.first:], s.d, wholeVectors(t.count), s.stride, p.squares[t.at:], p.width, p.factors[:size*slots])
	}
}

// assemble writes the gradient from what the pieces have left.
func (s *planeSweep[T]) assemble(features, grad []T, pieces []planePiece[T]) {
	d := s.d
	sum, twice := pieces[0].once.planes, pieces[0].twice.planes
	for i := 1; i < len(pieces); i++ {
		simd.Add(sum, pieces[i].once.planes)
	}
	if s.options.Loss != InfoNC {
		for i := 1; i < len(pieces); i++ {
			simd.Add(twice, pieces[i].twice.planes)
		}
	}
	for part, column := range [3]int{0, s.tails, s.others} {
		first, count := part*s.b, s.b
		if part == 2 {
			count = s.rows - 2*s.b
		}
		for k := range d {
			at := first*d + k
			at0 := k*s.stride + column
			if s.options.Loss == InfoNC {
				x, weights, weighted := s.planes[at0:][:count], sum[column:][:count], sum[at0+s.stride:][:count]
				for i, v := range x {
					grad[at] = 2 * (weighted[i] - v*weights[i])
					at += d
				}
				continue
			}
			once, twice := sum[at0:][:count], twice[at0:][:count]
			for i, v := range once {
				grad[at] = -2 * (v + 2*twice[i])
				at += d
			}
		}
	}
	simd.Add(grad, s.headGrad)
	if d == 2 {
		s.hx, s.hy = grow(s.hx, s.b), grow(s.hy, s.b)
		clear(s.hx)
		clear(s.hy)
		simd.Spread2(grad, s.hx, s.hy, s.x, s.dx, s.dy, s.own)
		simd.AddPlane(grad[:2*s.b], s.hx, s.hy)
		return
	}
	simd.Spread(grad, features, s.x, d, 0, s.own)
}
