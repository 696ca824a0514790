package op

import (
	"cne/internal/elementary"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// tailsOf returns b, b+1, …: the rows of the tails of b edges. It uses the memory of
// rows if that is enough.
func tailsOf(rows []int32, b int) []int32 {
	if len(rows) == b {
		return rows
	}
	rows = grow(rows, b)
	for i := range rows {
		rows[i] = int32(b + i)
	}
	return rows
}

const (
	// tileHeads is the number of heads per tile. At m = 5 the values of their pairs stay in
	// the first-level cache, and they amortise the calls. In two dimensions calls are short.
	// There a tile has planeHeads heads, and gradients are computed for tileHeads at a time.
	tileHeads  = 128
	planeHeads = 2 * tileHeads
	// tilePairs bounds the pairs of a tile if m is large.
	tilePairs = 16384
	// pieceWork is the least number of pairs times dimensions that is worth another core.
	// maxPieces bounds the number of gradients to add up.
	pieceWork = 1 << 17
	maxPieces = 8
)

// A pairLoop computes the loss and its gradient in one pass over the listed pairs of a
// batch. The pieces of heads depend only on the size of the batch; each piece has its own
// gradient, and these are added in order, so the result does not depend on the number of
// cores.
type pairLoop[T Float] struct {
	pairLoss[T]
	loop     parallel.Loop
	pieces   []piece[T]
	own      []int32 // own[i] = b+i: the positive of head i
	features []T
	d, b, m  int
	negative []int32
	grain    int
	withGrad bool
}

// A piece has the result and the scratch memory for some of the heads.
type piece[T Float] struct {
	grad []T // of the shape of the features
	sum  simd.Sum
	// x, dx and dy are tiles [1+m, heads]. x has the squared distances (or cosines), later
	// overwritten by the derivatives. dx and dy have the differences in two dimensions.
	x, dx, dy []T
	// total, hx and hy are per head of a tile: the sum of similarities and
	// the gradient.
	total, hx, hy []T
	_             [64]byte // keeps the sums of two pieces out of one cache line
}

// pairLoss describes the loss to a loop over pairs.
type pairLoss[T Float] struct {
	options ContrastiveOptions
	perHead bool
	kernels pairKernels[T] // unless perHead
	bound   simd.Bound[T]
	clamp   T // the least similarity, from bound
	c       T // of a sum over pairs
	weight  T // 1/ρ of InfoNC
}

func newPairLoss[T Float](options ContrastiveOptions) pairLoss[T] {
	bound := simd.BoundOf[T](options.Clamp)
	return pairLoss[T]{options: options, perHead: options.Loss.Info().PerHead, kernels: kernelsFor[T](options), bound: bound,
		clamp: bound.Clamp()}
}

// setTheta sets the constants for a logarithm theta and m negatives of a head.
func (s *pairLoss[T]) setTheta(theta float64, m int) {
	s.c, s.weight = constant[T](s.options, theta, m), T(elementary.Exp(-theta))
}

func (s *pairLoop[T]) init(options ContrastiveOptions) {
	s.pairLoss = newPairLoss[T](options)
	s.loop.BodyWithWorker = s.piece
}

// run computes the loss, without the factors Scale and 1/b. If withGrad, the sum of the
// pieces' gradients is its gradient.
func (s *pairLoop[T]) run(features []T, d int, negative []int32, b int, theta float64, withGrad bool) simd.Sum {
	s.features, s.d, s.negative, s.b, s.m = features, d, negative, b, len(negative)/b
	s.setTheta(theta, s.m)
	s.withGrad = withGrad
	s.own = tailsOf(s.own, b)
	count := min(maxPieces, 1+b*(1+s.m)*d/pieceWork)
	// A multiple of 16 heads per piece keeps the vector kernels on full vectors.
	s.grain = (parallel.Pieces(b, count) + 15) &^ 15
	count = parallel.Pieces(b, s.grain)
	s.pieces = atLeast(s.pieces, count)
	s.loop.Workers = count
	s.loop.Run(b, s.grain)

	var sum simd.Sum
	for i := range count {
		sum.Add(s.pieces[i].sum)
	}
	return sum
}

// piece works on the heads [lo, hi).
func (s *pairLoop[T]) piece(_, number, lo, hi int) {
	p := &s.pieces[number]
	tile := s.tileOf()
	p.x = grow(p.x, (1+s.m)*tile)
	p.total = grow(p.total, tile)
	if s.inPlane() {
		p.dx, p.dy = grow(p.dx, (1+s.m)*tile), grow(p.dy, (1+s.m)*tile)
		p.hx, p.hy = grow(p.hx, tile), grow(p.hy, tile)
	}
	if s.withGrad {
		p.grad = grow(p.grad, len(s.features))
		clear(p.grad)
	}
	p.sum = simd.Sum{}
	for head := lo; head < hi; head += tile {
		count := min(tile, hi-head)
		s.tile(p, head, count, tile)
	}
}

// tileOf returns the number of heads in a tile: the number whose gradients are computed
// at a time, or twice that, so no call is for the rest of a tile. It is smaller if m is
// large.
func (s *pairLoop[T]) tileOf() int {
	if s.inPlane() && planeHeads*(1+s.m) <= tilePairs {
		return planeHeads
	}
	return min(tileHeads, max(16, tilePairs/(1+s.m)&^15))
}

// tails returns the other ends of the pairs in column j of the tile at head.
func (s *pairLoop[T]) tails(j, head, count int) []int32 {
	if j == 0 {
		return s.own[head : head+count]
	}
	at := (j-1)*s.b + head
	return s.negative[at : at+count]
}

// tile computes count heads from head. The columns of p are stride elements apart.
func (s *pairLoop[T]) tile(p *piece[T], head, count, stride int) {
	column := func(x []T, j int) []T { return x[j*stride : j*stride+count] }
	inPlane := s.inPlane()
	for j := range 1 + s.m {
		tails := s.tails(j, head, count)
		switch {
		case inPlane:
			simd.Pairs2(column(p.x, j), column(p.dx, j), column(p.dy, j), s.features, head, tails)
		case s.options.Metric == Euclidean:
			simd.Pairs(column(p.x, j), s.features, s.d, head, tails)
		default:
			simd.Products(column(p.x, j), s.features, s.d, head, tails, T(1/s.options.Temperature))
		}
	}
	s.derivatives(p, count, stride)
	if !s.withGrad {
		return
	}
	if inPlane {
		clear(p.hx[:count])
		clear(p.hy[:count])
	}
	for lo := 0; lo < count; lo += tileHeads {
		hi := min(count, lo+tileHeads)
		for j := range 1 + s.m {
			tails := s.tails(j, head+lo, hi-lo)
			part := func(x []T) []T { return x[j*stride+lo : j*stride+hi] }
			switch {
			case inPlane:
				simd.ScatterGradient2(p.grad, p.hx[lo:hi], p.hy[lo:hi], part(p.x), part(p.dx), part(p.dy), tails)
			case s.options.Metric == Euclidean:
				simd.ScatterGradient(p.grad, s.features, part(p.x), s.d, head+lo, tails)
			default:
				simd.ScatterProductGradient(p.grad, s.features, part(p.x), s.d, head+lo, tails, T(1/s.options.Temperature))
			}
		}
		if inPlane {
			simd.AddPlane(p.grad[2*(head+lo):2*(head+hi)], p.hx[lo:hi], p.hy[lo:hi])
		}
	}
}

// inPlane reports whether pairs are kept as differences in the plane.
func (s *pairLoop[T]) inPlane() bool { return s.d == 2 && s.options.Metric == Euclidean }

// derivatives turns a tile's squared distances, or cosines over τ, into derivatives.
func (s *pairLoop[T]) derivatives(p *piece[T], count, stride int) {
	switch {
	case !s.perHead:
		p.sum.Add(s.kernels.positive(p.x[:count], s.c, s.bound))
		if s.kernels.joined && count == stride { // the columns are one after the other
			p.sum.Add(s.kernels.negative(p.x[stride:(1+s.m)*stride], s.c, s.bound))
			return
		}
		for j := 1; j <= s.m; j++ {
			p.sum.Add(s.kernels.negative(p.x[j*stride:j*stride+count], s.c, s.bound))
		}
	case s.options.Metric == Euclidean:
		s.totals(p, count, stride)
	default:
		s.softmax(p, count, stride)
	}
}

// totals is derivatives for InfoNC on squared distances.
func (s *pairLoop[T]) totals(p *piece[T], count, stride int) {
	positive := p.x[:count]
	negative := func(j int) []T { return p.x[j*stride : j*stride+count] }
	total := p.total[:count]
	clear(total)
	simd.Similarities(positive, total, s.clamp)
	for j := 1; j <= s.m; j++ {
		simd.Similarities(negative(j), total, s.clamp)
	}
	logs := simd.LogTotals(total, s.weight)
	p.sum.Loss += logs
	p.sum.DTheta -= logs
	p.sum.Loss += simd.InfoNCPositive(positive, total, s.clamp)
	for j := 1; j <= s.m; j++ {
		simd.InfoNCNegative(negative(j), total, s.clamp)
	}
}

// softmax is derivatives for InfoNC on cosines over τ.
func (s *pairLoop[T]) softmax(p *piece[T], count, stride int) {
	positive := p.x[:count]
	for _, v := range positive {
		p.sum.Loss -= float64(v)
	}
	logs := simd.Softmax(p.x, count, 1+s.m, stride, s.weight)
	p.sum.Loss += logs
	p.sum.DTheta -= logs
	for i := range positive {
		positive[i]--
	}
}
