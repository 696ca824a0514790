package op

import (
	"math"
	"math/bits"
	"slices"

	"cne/internal/blas"
	"cne/internal/elementary"
	"cne/internal/parallel"
	"cne/internal/simd"
)

const (
	// gemmBlock bounds the elements of a block of pairs. A block has at least GroupHeads
	// heads.
	gemmBlock = 1 << 21
	// gemmGrain is the number of pairs whose losses are worth another core.
	gemmGrain = 1 << 13
	// finishGrain is the number of elements of the gradient finished at a time.
	finishGrain = 1 << 14
)

// A gemmLoop computes a pairLoop's result by matrix products. This pays off if the
// negatives of a head are many consecutive rows. The inner products of heads with rows
// are a block X = H·Yᵀ. Its elements are turned into squared distances, or cosines over
// τ, and then into the derivatives W of the loss with respect to these. The gradient of
// the cosine metric is W·Y and Wᵀ·H. The gradient of the Euclidean metric is 2·(yᵢ·Σⱼ wᵢⱼ
// − Σⱼ wᵢⱼ·yⱼ) and the same with Wᵀ. A column of ones in Y and H gives the first sum.
//
// A squared distance |a|²+|b|²−2·a·b cancels where a and b are near each other, and so
// does the gradient. The rows are centred first, and pairs that are still close together,
// like the positive pairs, are removed from the products and computed one by one.
type gemmLoop[T Float] struct {
	pairLoss[T]
	gemmCall[T]
	gemmTile[T]

	// slack and near define which pairs are near each other: see simd.RowDistances.
	slack, near T
	// factor is that of the inner products, and gradFactor that of the products with the
	// derivatives.
	factor, gradFactor T

	mean []T
	// y [rows, ldy] is the matrix that is multiplied: the features, or the centred features
	// and a column of ones. sums is its product with the derivatives, of the same shape.
	y, centered, sums []T
	ldy               int
	norms             []T // [ld] of the rows of y, 0 beyond
	whole             [1]segment
	positive          []T // [b, tails] of positive pairs: distances or cosines, then derivatives
	pieces            []gemmPiece[T]
	used              int // number of pieces
	total             simd.Sum

	centerLoop, rowLoop, groupLoop, finishLoop parallel.Loop
}

// A gemmCall has the arguments of run. They are not passed on, because the bodies of
// parallel loops that captured them would be allocated for every batch.
type gemmCall[T Float] struct {
	features   []T
	d, rows, b int
	m          int
	runs       []int32 // first row of each group's run; empty if all rows are negatives
	images     int     // the distance of rows of one image: see NegativeLayout
	tails      int     // of a head: one, or all other views of its image
	withGrad   bool
	grad       []T
}

// A gemmTile is the pairs of some heads with all rows.
type gemmTile[T Float] struct {
	block       []T // [tile, ld]
	ld, tile    int // also for groups: the stride of their blocks
	head, count int // the heads
}

// A gemmPiece has the result and the scratch memory for some of the heads.
type gemmPiece[T Float] struct {
	sum simd.Sum
	// grad is the gradient of pairs near each other, [rows, d]; hasGrad reports whether
	// there are any.
	grad    []T
	hasGrad bool
	found   []uint64
	nearby  []pair
	// These are for a group of heads with its own negatives.
	segments []segment
	block    []T // [GroupHeads, ld]
	norms    []T // [ld]
	sums     []T // of the shape of gemmLoop.y
	_        [64]byte
}

// A segment says that columns [column, column+n) of a block are the rows
// [row, row+n).
type segment struct{ row, n, column int }

// A pair is a column of a block and the row that it stands for.
type pair struct{ column, row int }

func (s *gemmLoop[T]) init(options ContrastiveOptions) {
	s.pairLoss = newPairLoss[T](options)
	s.factor, s.gradFactor = T(1/options.Temperature), T(1/options.Temperature)
	if options.Metric == Euclidean {
		s.factor, s.gradFactor = -2, 1
	}
	// The products' squared distances are good to some ε/near.
	s.near = 1e-4
	if _, single := any(s.near).(float32); single {
		s.near = 1e-2
	}
	s.slack = s.kernels.slack
	if s.perHead {
		s.slack = 1
	}
	s.centerLoop.Body = s.center
	s.rowLoop.Body = s.headRows
	s.groupLoop.Body = s.groups
	s.finishLoop.Body = s.finish
}

// run computes the loss of the batch and, if withGrad, overwrites grad
// [rows, d] with its gradient; neither has the factor Scale or 1/b.
//
// features is [rows, d], rows ≥ 2b, and negatives are not listed.
func (s *gemmLoop[T]) run(features []T, d, rows, b int, layout NegativeLayout, theta float64, withGrad bool, grad []T) simd.Sum {
	s.gemmCall = gemmCall[T]{features: features[:rows*d], d: d, rows: rows, b: b, images: layout.images(b), withGrad: withGrad, grad: grad}
	s.tails = max(1, b/s.images-1)
	s.m, s.runs = layout.decode(b, rows)
	s.setTheta(theta, s.m)
	s.setMatrix()
	s.positive = grow(s.positive, b*s.tails)
	s.used, s.total = 0, simd.Sum{}
	if len(s.runs) > 0 {
		s.byGroups()
	} else {
		s.byTiles()
	}
	if withGrad {
		s.finishLoop.Run(rows, max(1, finishGrain/d))
	}
	return s.total
}

// setMatrix sets y.
func (s *gemmLoop[T]) setMatrix() {
	if s.options.Metric == Cosine {
		s.y, s.ldy = s.features, s.d
		return
	}
	s.ldy = s.d + 1
	s.centered = grow(s.centered, s.rows*s.ldy)
	s.y = s.centered
	s.mean = grow(s.mean, s.d)
	clear(s.mean)
	of := s.features
	if s.rows > 2*s.b {
		// Extra rows are negatives from outside the batch. Only these define the centre, so the
		// bits of an edge do not depend on the other edges.
		of = of[2*s.b*s.d:]
	}
	simd.ColumnSums(s.mean, of, s.d)
	simd.Scale(s.mean, T(s.d)/T(len(of)))
	padded := stride(s.rows)
	s.norms = grow(s.norms, padded)
	clear(s.norms[s.rows:])
	s.centerLoop.Run(s.rows, max(1, finishGrain/s.d))
}

// stride returns the stride of rows of n pairs, in elements. It is a multiple of 16, so
// vectors fill the rows. It is not a multiple of 256, because rows would then compete for
// the same sets of the first-level cache.
func stride(n int) int {
	ld := (n + 15) &^ 15
	if ld%256 == 0 {
		ld += 16
	}
	return ld
}

// center fills rows [lo, hi) of the centred features, and their norms.
func (s *gemmLoop[T]) center(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		from, to := s.features[i*s.d:(i+1)*s.d], s.centered[i*s.ldy:(i+1)*s.ldy]
		var norm T
		for k, m := range s.mean {
			v := from[k] - m
			to[k] = v
			norm += T(v * v)
		}
		to[s.d] = 1
		s.norms[i] = norm
	}
}

// setPieces divides n items of work pairs each into pieces, clears their sums, and
// returns the grain.
func (s *gemmLoop[T]) setPieces(n, work int) (grain int) {
	grain = parallel.Pieces(n, min(maxPieces, 1+n*work/gemmGrain))
	count := parallel.Pieces(n, grain)
	s.pieces = atLeast(s.pieces, count)
	for ; s.used < count; s.used++ {
		s.pieces[s.used].hasGrad = false
	}
	for i := range count {
		s.pieces[i].sum = simd.Sum{}
	}
	return grain
}

// addSums adds the sums of the first pieces to the total.
func (s *gemmLoop[T]) addSums(pieces int) {
	for i := range pieces {
		s.total.Add(s.pieces[i].sum)
	}
}

// byTiles contrasts each head with all rows.
func (s *gemmLoop[T]) byTiles() {
	s.ld = stride(s.rows)
	tiles := parallel.Pieces(s.b, max(GroupHeads, gemmBlock/s.ld))
	s.tile = parallel.Pieces(s.b, tiles) // tiles of a size
	s.whole[0] = segment{row: 0, n: s.rows}
	s.block = grow(s.block, s.tile*s.ld)
	sums := s.grad
	if s.options.Metric == Euclidean && s.withGrad {
		s.sums = grow(s.sums, s.rows*s.ldy)
		sums = s.sums
	}
	for s.head = 0; s.head < s.b; s.head += s.tile {
		s.count = min(s.tile, s.b-s.head)
		heads := s.y[s.head*s.ldy:]
		if s.m > 0 {
			blas.Gemm(false, true, s.count, s.rows, s.d, s.factor, heads, s.ldy, s.y, s.ldy, 0, s.block, s.ld)
		}
		grain := s.setPieces(s.count, s.ld)
		s.rowLoop.Run(s.count, grain)
		s.addSums(parallel.Pieces(s.count, grain))
		if !s.withGrad {
			continue
		}
		var beta T
		if s.head > 0 {
			beta = 1
		}
		if s.m == 0 {
			clear(sums)
			continue
		}
		alpha := s.gradFactor
		blas.Gemm(true, false, s.rows, s.ldy, s.count, alpha, s.block, s.ld, heads, s.ldy, beta, sums, s.ldy)
		blas.Gemm(false, false, s.count, s.ldy, s.rows, alpha, s.block, s.ld, s.y, s.ldy, 1, sums[s.head*s.ldy:], s.ldy)
	}
}

// headRows works on the tile's heads [lo, hi).
func (s *gemmLoop[T]) headRows(number, lo, hi int) {
	p := &s.pieces[number]
	s.positives(s.head+lo, s.head+hi)
	for r := lo; r < hi; r++ {
		x := s.block[r*s.ld : (r+1)*s.ld]
		if s.m == 0 {
			x = nil
		}
		s.row(p, s.head+r, x, s.rows, s.norms, s.whole[:])
	}
	s.finishPositives(p, s.head+lo, s.head+hi)
}

// byGroups contrasts each group of heads with a run of rows.
func (s *gemmLoop[T]) byGroups() {
	s.ld = stride(s.m)
	n := parallel.Pieces(s.b, GroupHeads)
	s.groupLoop.Run(n, s.setPieces(n, GroupHeads*s.ld*(1+s.d/16)))
	s.addSums(s.used)
}

// groups works on the groups [lo, hi).
func (s *gemmLoop[T]) groups(number, lo, hi int) {
	p := &s.pieces[number]
	p.block = grow(p.block, GroupHeads*s.ld)
	if s.withGrad {
		p.sums = grow(p.sums, s.rows*s.ldy)
		clear(p.sums)
	}
	s.positives(GroupHeads*lo, min(s.b, GroupHeads*hi))
	for g := lo; g < hi; g++ {
		s.group(p, g)
	}
	s.finishPositives(p, GroupHeads*lo, min(s.b, GroupHeads*hi))
}

// group works on group g.
func (s *gemmLoop[T]) group(p *gemmPiece[T], g int) {
	lo, hi := GroupHeads*g, min(s.b, GroupHeads*(g+1))
	p.segments = p.segments[:0]
	column := 0
	overRun(s.b, s.rows, int(s.runs[g]), s.m, func(from, to int) {
		p.segments = append(p.segments, segment{row: from, n: to - from, column: column})
		column += to - from
	})
	heads := s.y[lo*s.ldy:]
	for _, q := range p.segments {
		blas.GemmSerial(false, true, hi-lo, q.n, s.d, s.factor, heads, s.ldy, s.y[q.row*s.ldy:], s.ldy, 0, p.block[q.column:], s.ld)
	}
	if s.options.Metric == Euclidean {
		p.norms = grow(p.norms, s.ld)
		for _, q := range p.segments {
			copy(p.norms[q.column:], s.norms[q.row:q.row+q.n])
		}
		clear(p.norms[s.m:])
	}
	for i := lo; i < hi; i++ {
		s.row(p, i, p.block[(i-lo)*s.ld:(i-lo+1)*s.ld], s.m, p.norms, p.segments)
	}
	if !s.withGrad {
		return
	}
	alpha := s.gradFactor
	for _, q := range p.segments {
		w, y := p.block[q.column:], s.y[q.row*s.ldy:]
		blas.GemmSerial(true, false, q.n, s.ldy, hi-lo, alpha, w, s.ld, heads, s.ldy, 1, p.sums[q.row*s.ldy:], s.ldy)
		blas.GemmSerial(false, false, hi-lo, s.ldy, q.n, alpha, w, s.ld, y, s.ldy, 1, p.sums[lo*s.ldy:], s.ldy)
	}
}

// positives computes the squared distances, or cosines over τ, of the
// positive pairs of heads [lo, hi).
func (s *gemmLoop[T]) positives(lo, hi int) {
	tau := T(1 / s.options.Temperature)
	for p := lo * s.tails; p < hi*s.tails; p++ {
		i := p / s.tails
		j := s.tail(i, p%s.tails)
		if s.options.Metric == Euclidean {
			s.positive[p] = s.squared(i, j)
			continue
		}
		var sum T
		tail := s.features[j*s.d:][:s.d]
		for k, v := range s.features[i*s.d:][:s.d] {
			sum += T(v * tail[k])
		}
		s.positive[p] = tau * sum
	}
}

// tail returns the row of tail t of head i. If heads have their own tails, i may also be a
// tail, and the row is its head.
func (s *gemmLoop[T]) tail(i, t int) int {
	if s.images == s.b {
		return (i + s.b) % (2 * s.b)
	}
	return (i + (t+1)*s.images) % s.b
}

// squared returns the squared distance of rows i and j.
func (s *gemmLoop[T]) squared(i, j int) (sum T) {
	o := s.features[j*s.d:][:s.d]
	for k, v := range s.features[i*s.d:][:s.d] {
		sum += T((v - o[k]) * (v - o[k]))
	}
	return sum
}

// finishPositives turns positive into derivatives, for losses whose derivatives do not
// depend on the negatives.
func (s *gemmLoop[T]) finishPositives(p *gemmPiece[T], lo, hi int) {
	if !s.perHead {
		sum, n := s.kernels.positive(s.positive[lo*s.tails:hi*s.tails], s.c, s.bound), float64(s.tails)
		p.sum.Add(simd.Sum{Loss: sum.Loss / n, DTheta: sum.DTheta / n})
	}
}

// row turns the inner products of a head with n rows into derivatives. Elements after the
// first n belong to no pair and become 0.
func (s *gemmLoop[T]) row(p *gemmPiece[T], head int, x []T, n int, norms []T, segments []segment) {
	if s.options.Metric == Cosine {
		s.exclude(x, head, n, segments, T(math.Inf(-1)))
		if s.perHead {
			s.softmax(p, head, x)
		} else {
			p.sum.Add(s.kernels.row(x, s.c, s.bound))
		}
		return
	}
	p.nearby = p.nearby[:0]
	if len(x) > 0 {
		s.distances(p, head, x, n, norms, segments)
	}
	if s.perHead {
		s.exclude(x, head, n, segments, -1)
		s.totals(p, head, x)
	} else {
		s.exclude(x, head, n, segments, T(math.Inf(1)))
		p.sum.Add(s.kernels.row(x, s.c, s.bound))
	}
	if s.withGrad && len(p.nearby) > 0 {
		s.spread(p, head, x)
	}
}

// exclude marks the elements of a row that are not negative pairs.
func (s *gemmLoop[T]) exclude(x []T, head, n int, segments []segment, mark T) {
	if len(x) == 0 {
		return
	}
	if len(s.runs) == 0 {
		for j := head % s.images; j < 2*s.b; j += s.images {
			x[j] = mark
		}
	} else {
		for _, q := range segments {
			if q.row <= head && head < q.row+q.n {
				x[q.column+head-q.row] = mark
			}
		}
	}
	for j := n; j < len(x); j++ {
		x[j] = mark
	}
}

// distances turns inner products into squared distances, and records the pairs that are
// near each other.
func (s *gemmLoop[T]) distances(p *gemmPiece[T], head int, x []T, n int, norms []T, segments []segment) {
	p.found = grow(p.found, (len(x)+63)/64)
	simd.RowDistances(x, norms, s.norms[head], s.slack, s.near, p.found)
	at := 0
	for w, word := range p.found {
		for ; word != 0; word &= word - 1 {
			j := 64*w + bits.TrailingZeros64(word)
			if j >= n {
				break
			}
			for j >= segments[at].column+segments[at].n {
				at++
			}
			r := segments[at].row + j - segments[at].column
			if r == head || len(s.runs) == 0 && r < 2*s.b && r%s.images == head%s.images {
				continue
			}
			x[j] = s.squared(head, r)
			p.nearby = append(p.nearby, pair{j, r})
		}
	}
}

// spread adds the gradient of the pairs near each other, and removes them from the row.
func (s *gemmLoop[T]) spread(p *gemmPiece[T], head int, x []T) {
	d := s.d
	if !p.hasGrad {
		p.grad, p.hasGrad = grow(p.grad, s.rows*d), true
		clear(p.grad)
	}
	h, gh := s.features[head*d:][:d], p.grad[head*d:][:d]
	for _, q := range p.nearby {
		w := 2 * x[q.column]
		x[q.column] = 0
		o, gt := s.features[q.row*d:][:d], p.grad[q.row*d:][:d]
		for k, v := range h {
			f := T(w * (v - o[k]))
			gh[k] += f
			gt[k] -= f
		}
	}
}

// totals turns a head's squared distances into InfoNC's derivatives.
func (s *gemmLoop[T]) totals(p *gemmPiece[T], head int, x []T) {
	positive := s.positive[head*s.tails:][:s.tails]
	negatives, n := simd.RowSimilarities(x, s.clamp), float64(s.tails)
	var shares T
	for t, square := range positive {
		q := max(s.clamp, 1/(1+square))
		total := negatives + float64(q)
		logs := float64(float64(s.weight) * elementary.Log(total))
		p.sum.Loss += logs / n
		p.sum.DTheta -= logs / n
		share := T(float64(s.weight) / total)
		p.sum.Loss -= elementary.Log(float64(q)) / n
		if positive[t] = 0; q > s.clamp {
			positive[t] = q - T(q*(q*share))
		}
		shares += share
	}
	if s.withGrad {
		simd.RowInfoNC(x, shares/T(s.tails), s.clamp)
	}
}

// softmax turns a head's cosines over τ into InfoNC's derivatives.
func (s *gemmLoop[T]) softmax(p *gemmPiece[T], head int, x []T) {
	positive := s.positive[head*s.tails:][:s.tails]
	top := simd.RowMax(x, slices.Max(positive))
	negatives, n := simd.RowExp(x, top), float64(s.tails)
	var shares T
	for t, cosine := range positive {
		own := T(elementary.Exp(float64(cosine - top)))
		total := negatives + float64(own)
		logs := float64(float64(s.weight) * (float64(top) + elementary.Log(total)))
		p.sum.Loss -= float64(cosine) / n
		p.sum.Loss += logs / n
		p.sum.DTheta -= logs / n
		share := T(float64(s.weight) / total)
		positive[t] = T(share*own) - 1
		shares += share
	}
	if s.withGrad {
		simd.Scale(x, shares/T(s.tails))
	}
}

// finish writes rows [lo, hi) of the gradient from the sums, and adds the contributions
// of positive pairs and close pairs.
func (s *gemmLoop[T]) finish(_, lo, hi int) {
	d := s.d
	euclidean := s.options.Metric == Euclidean
	if len(s.runs) > 0 {
		sums := s.pieces[0].sums[lo*s.ldy : hi*s.ldy]
		for i := 1; i < s.used; i++ {
			simd.Add(sums, s.pieces[i].sums[lo*s.ldy:hi*s.ldy])
		}
		if !euclidean {
			copy(s.grad[lo*d:hi*d], sums)
		}
	}
	for i := lo; i < hi; i++ {
		g := s.grad[i*d : (i+1)*d]
		if euclidean {
			sums := s.sums
			if len(s.runs) > 0 {
				sums = s.pieces[0].sums
			}
			sums = sums[i*s.ldy : (i+1)*s.ldy]
			of := sums[d]
			for k, v := range s.y[i*s.ldy:][:d] {
				g[k] = 2 * (T(of*v) - sums[k])
			}
		}
		if i >= 2*s.b || i >= s.b && s.images < s.b {
			continue
		}
		for t := range s.tails {
			other := s.tail(i, t)
			o, w := s.features[other*d:][:d], s.positive[min(i, other)*s.tails]
			if s.images < s.b { // both are heads
				w = (s.positive[i*s.tails+t] + s.positive[other*s.tails+s.tails-1-t]) / T(s.tails)
			}
			if euclidean {
				for k, v := range s.features[i*d:][:d] {
					g[k] += T(2 * w * (v - o[k]))
				}
			} else {
				w *= T(1 / s.options.Temperature)
				for k, v := range o {
					g[k] += T(w * v)
				}
			}
		}
	}
	for i := range s.used {
		if p := &s.pieces[i]; p.hasGrad {
			simd.Add(s.grad[lo*d:hi*d], p.grad[lo*d:hi*d])
		}
	}
}
