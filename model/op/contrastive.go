package op

import (
	"errors"
	"math"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/enum"
	"cne/internal/errkind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// A Loss is one of the four contrastive losses of the paper (Damrich et al., ICLR
// 2023), to whose sections and equations the numbers below refer.
type Loss int

// The losses. q is the similarity of a pair, c and Z stand for exp θ.
const (
	// Neg is Neg-t-SNE's negative-sampling loss (Sec. 5):
	// −log(q/(q+c)) for the positive and −log(1 − q/(q+c)) for each negative
	// pair, with c = Z̄·m/|X|.
	Neg Loss = iota
	// NC is NC-t-SNE's noise-contrastive estimation (Eq. 6): Neg with
	// c = m·Z, where Z is learnt.
	NC
	// InfoNC is InfoNC-t-SNE's (Eq. 4): −log q + (1/ρ)·log Σ q over the
	// positive and the negatives of a head.
	InfoNC
	// UMAP is UMAP's: −log q for the positive and −log(1−q) for each negative
	// pair. It is Neg with c = 1 and the similarity 1/‖a−b‖² (Sec. 6).
	UMAP
)

var lossNames = enum.Names[Loss]{
	Package: "op", Type: "Loss", What: "loss", Err: ErrInput,
	Words:   []string{"neg", "nc", "infonce", "umap"},
	Aliases: map[string]Loss{"neg-tsne": Neg, "nc-tsne": NC, "infonc-tsne": InfoNC},
}

func (l Loss) String() string { return lossNames.String(l) }

// MarshalText implements encoding.TextMarshaler by the loss's name.
func (l Loss) MarshalText() ([]byte, error) { return lossNames.Text(l) }

// UnmarshalText implements encoding.TextUnmarshaler. It takes the paper's names
// too: neg-tsne, nc-tsne and infonc-tsne.
func (l *Loss) UnmarshalText(text []byte) error { return lossNames.Parse(l, text) }

// Words returns the names of all losses.
func (Loss) Words() []string { return slices.Clone(lossNames.Words) }

// A Metric says how the similarity of two rows is computed.
type Metric int

const (
	// Euclidean is the Cauchy kernel q = 1/(1+‖a−b‖²).
	Euclidean Metric = iota
	// Cosine is q = exp(a·b/τ) of rows of unit length, which Normalize makes.
	Cosine
)

var metricNames = enum.Names[Metric]{Package: "op", Type: "Metric", What: "metric", Err: ErrInput, Words: []string{"euclidean", "cosine"}}

func (m Metric) String() string { return metricNames.String(m) }

// MarshalText implements encoding.TextMarshaler by the metric's name.
func (m Metric) MarshalText() ([]byte, error) { return metricNames.Text(m) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Metric) UnmarshalText(text []byte) error { return metricNames.Parse(m, text) }

// Words returns the names of all metrics.
func (Metric) Words() []string { return slices.Clone(metricNames.Words) }

// ContrastiveOptions say which loss Contrastive computes. The zero value is
// Neg-t-SNE on Euclidean distances, unclamped, summed over the batch.
type ContrastiveOptions struct {
	Loss   Loss   `json:"loss"`
	Metric Metric `json:"metric"`
	// Temperature is τ of the cosine metric; 0 means 0.5.
	Temperature float64 `json:"temperature,omitempty"`
	// Clamp bounds the arguments of logarithms from below, 0 ≤ Clamp < 1; InfoNC's
	// bounds every similarity rather than their sum. Where it binds the gradient is
	// zero. Only the Euclidean metric has it. Even 0 leaves a tiny bound, which keeps
	// the arithmetic finite.
	Clamp float64 `json:"clamp"`
	// Scale is a factor of the loss; 0 means 1.
	Scale float64 `json:"scale,omitempty"`
	// Mean divides the loss by the number of edges in the batch. (The mean of the paper's
	// program is over all terms of Neg, NC and UMAP, 1 + m for each edge.)
	Mean bool `json:"mean,omitempty"`
	// ExcludePositive leaves InfoNC's positive pair out of the sum of
	// similarities.
	ExcludePositive bool `json:"exclude_positive,omitempty"`
}

// Check returns an error if the options have no meaning; Contrastive calls it.
func (o ContrastiveOptions) Check() error {
	switch {
	case o.Loss < Neg || o.Loss > UMAP:
		return errkind.Errorf(ErrInput, "op: no loss %d", int(o.Loss))
	case o.Metric != Euclidean && o.Metric != Cosine:
		return errkind.Errorf(ErrInput, "op: no metric %d", int(o.Metric))
	case o.Loss == UMAP && o.Metric == Cosine:
		return errkind.Errorf(ErrInput, "op: UMAP's loss needs similarities below 1, which the cosine metric does not give")
	case !(o.Clamp >= 0 && o.Clamp < 1):
		return errkind.Errorf(ErrInput, "op: clamp %g is not in [0, 1)", o.Clamp)
	case o.Temperature != 0 && !(o.Temperature >= 0.01 && o.Temperature <= 1e6):
		return errkind.Errorf(ErrInput, "op: temperature %g is not between 0.01 and 1e6, where exp(1/temperature) is a number", o.Temperature)
	case o.Scale != 0 && !(math.Abs(o.Scale) >= 1e-30 && math.Abs(o.Scale) <= 1e30):
		return errkind.Errorf(ErrInput, "op: the size of scale %g is not between 1e-30 and 1e30", o.Scale)
	}
	return nil
}

// Contrastive returns the contrastive loss of a batch of b edges, a scalar.
//
// features [r, d] holds the embedding of the heads, then that of the tails: row
// i and row b+i are the ends of edge i. Rows from 2b on, if there are any,
// serve as negatives alone. theta is a scalar: log c for Neg, log Z for NC,
// log ρ for InfoNC; UMAP ignores it. runs (int32), a vector, says what a head is
// contrasted with:
//
//   - 0: the rows that negatives [m, b] (int32) names one by one: negatives[j, i]
//     for j = 0 … m−1 are those of head i. (This is the paper's matrix of tails,
//     transposed and without the column of the positives, which is known. It
//     has no rows for a batch of one edge, which has no negatives.)
//   - −1: every row but the head and its tail, once; m = r−2.
//   - m, first₀, first₁, …: every 16 consecutive heads share m negatives. Of the
//     rows without the ends of these 16 edges, counted from 0 in their order and
//     in a circle, group k takes the m that begin with firstₖ; there must be as
//     many.
//
// In the last two, only the width b of negatives is used, and the pairs are dense
// blocks, which are several times as fast as pairs whose rows have to be looked up.
//
// The loss is differentiable with respect to features and theta. Its gradient
// is computed in the same sweep over the pairs as the loss itself, once
// Gorgonia has differentiated the node. The gradient nodes read what the last sweep
// left: do not run one graph on two machines at once.
func Contrastive(features, negatives, runs, theta *gorgonia.Node, options ContrastiveOptions) (*gorgonia.Node, error) {
	o, err := newContrastive(options)
	if err != nil {
		return nil, err
	}
	return gorgonia.ApplyOp(o, features, negatives, runs, theta)
}

// Meanwhile has a loss that Contrastive made call work while it computes pairs that are
// listed, on the CPU: between other steps, on the goroutine that runs the loss, for one
// range [from, to) of the batch's edges after the other, and for all of them where that
// goroutine computes all pairs. It is for asking memory for what is needed afterwards, as
// the pairs are computed while it answers.
func Meanwhile(loss *gorgonia.Node, work func(from, to int)) {
	o := loss.Op().(*contrastive)
	o.single.listed.meanwhile, o.double.listed.meanwhile = work, work
}

// GroupHeads is the number of consecutive heads that share the negatives of one run:
// see Contrastive.
const GroupHeads = groupHeads

type contrastive struct {
	base
	options ContrastiveOptions

	// differentiated is set once a gradient node exists.
	differentiated bool

	single   sweeps[float32]
	double   sweeps[float64]
	onDevice deviceSweep
}

func newContrastive(options ContrastiveOptions) (*contrastive, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.Temperature == 0 {
		options.Temperature = 0.5
	}
	if options.Scale == 0 {
		options.Scale = 1
	}
	o := &contrastive{
		base:    base{name: "contrastive_" + options.Loss.String(), arity: 4, typ: hm.NewFnType(matrix, table, indices, real, real), id: newID()},
		options: options,
	}
	o.single.init(options)
	o.double.init(options)
	return o, nil
}

func (o *contrastive) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *contrastive) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *contrastive) ResultShape(dst []int, in []*Array) ([]int, error) {
	f, n, runs, theta := in[0], in[1], in[2], in[3]
	if f.dims != 2 || n.dims != 2 || runs.dims != 1 || runs.shape[0] == 0 || theta.Len() != 1 || f.shape[0] < 2*n.shape[1] || n.shape[1] == 0 || f.shape[1] == 0 {
		return nil, errkind.Errorf(ErrInput, "op: contrastive takes features [r,d] with r ≥ 2b, negatives [m,b], a vector of runs and a scalar, not shapes %v, %v, %v and %v",
			f.Shape(), n.Shape(), runs.Shape(), theta.Shape())
	}
	return dst, nil
}

func (o *contrastive) Run(dst *Array, in []*Array) error {
	f, n, runs := in[0], in[1], in[2].i32
	b := n.shape[1]
	if err := checkRuns(runs, b, f.Rows()); err != nil {
		return err
	}
	if runs[0] == 0 {
		if bad := outOfRange(n.i32, f.Rows()); bad >= 0 {
			return errkind.Errorf(ErrInput, "op: contrastive: negative %d of head %d is row %d, but there are %d rows", bad/b, bad%b, n.i32[bad], f.Rows())
		}
	}
	if f.dtype == tensor.Float64 {
		dst.f64[0] = o.double.run(f.f64, f.shape[1], n.i32, runs, b, in[3].f64[0], o.differentiated)
		return nil
	}
	dst.f32[0] = float32(o.single.run(f.f32, f.shape[1], n.i32, runs, b, float64(in[3].f32[0]), o.differentiated))
	return nil
}

// What runs may begin with in place of the number of shared negatives.
const (
	oneByOne = 0
	allRows  = -1
)

// checkRuns says what is wrong with the runs of a batch of b edges.
func checkRuns(runs []int32, b, rows int) error {
	m := int(runs[0])
	groups := parallel.Pieces(b, groupHeads)
	switch {
	case m == oneByOne || m == allRows:
		groups = 0
	case m < 0:
		return errkind.Errorf(ErrInput, "op: contrastive: runs begin with %d; take 0, −1 or a number of negatives", m)
	}
	if len(runs) != 1+groups {
		return errkind.Errorf(ErrInput, "op: contrastive: %d numbers for runs of %d edges that begin with %d; there must be %d", len(runs), b, m, 1+groups)
	}
	for k, first := range runs[1:] {
		if outside := rows - 2*min(groupHeads, b-k*groupHeads); first < 0 || int(first) >= outside || m > outside {
			return errkind.Errorf(ErrInput, "op: contrastive: group %d takes %d rows from row %d on, but there are %d to take from", k, m, first, outside)
		}
	}
	return nil
}

func (o *contrastive) DiffWRT(int) []bool { return []bool{true, false, false, true} }

func (o *contrastive) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	o.differentiated = true
	df, err := gorgonia.ApplyOp(&contrastiveGrad{
		base: base{name: o.name + "_grad", arity: 3, typ: hm.NewFnType(matrix, real, real, matrix), id: o.id}, of: o}, in[0], out, grad)
	if err != nil {
		return nil, err
	}
	dTheta, err := gorgonia.ApplyOp(&contrastiveGradTheta{
		base: base{name: o.name + "_grad_theta", arity: 3, typ: hm.NewFnType(real, real, real, real), id: o.id}, of: o}, in[3], out, grad)
	if err != nil {
		return nil, err
	}
	return gorgonia.Nodes{df, nil, nil, dTheta}, nil
}

// contrastiveGrad is the gradient with respect to the features. Its inputs are
// the features (for their shape), the loss (so that it runs after it) and the
// gradient that comes in.
type contrastiveGrad struct {
	base
	of *contrastive
}

func (o *contrastiveGrad) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *contrastiveGrad) InferShape(s ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inferShape(o, s)
}

func (o *contrastiveGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *contrastiveGrad) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		return o.of.double.gradTo(dst.f64, in[2].f64[0])
	}
	return o.of.single.gradTo(dst.f32, float64(in[2].f32[0]))
}

// contrastiveGradTheta is the derivative with respect to theta; its inputs are
// theta, the loss and the gradient that comes in.
type contrastiveGradTheta struct {
	base
	of *contrastive
}

func (o *contrastiveGradTheta) Do(v ...gorgonia.Value) (gorgonia.Value, error) { return do(o, v) }

func (o *contrastiveGradTheta) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.ScalarShape(), nil
}

func (o *contrastiveGradTheta) ResultShape(dst []int, in []*Array) ([]int, error) { return dst, nil }

func (o *contrastiveGradTheta) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		dst.f64[0] = in[2].f64[0] * o.of.double.dTheta
		return nil
	}
	dst.f32[0] = in[2].f32[0] * float32(o.of.single.dTheta)
	return nil
}

// sweeps are the ways to go over the pairs of a batch, and what the last one
// left.
type sweeps[T Float] struct {
	options ContrastiveOptions
	listed  sweep[T]
	lowDim  soaSweep[T]
	gemm    gemmSweep[T]
	norm    float64 // scale, and 1/b for the mean
	dTheta  float64
	// parts, whose sum times norm is the gradient of the last batch.
	parts [][]T
	grad  []T // of the dense sweeps
}

func (s *sweeps[T]) init(options ContrastiveOptions) {
	s.options = options
	s.listed.init(options)
	s.lowDim.init(options)
	s.gemm.init(options)
}

// run computes the loss and, if asked, leaves its gradient for gradTo.
func (s *sweeps[T]) run(features []T, d int, negatives, runs []int32, b int, theta float64, withGrad bool) float64 {
	var sum simd.Sum
	s.parts = s.parts[:0]
	if runs[0] == oneByOne {
		sum = s.listed.run(features, d, negatives, b, theta, withGrad)
		for i := range parallel.Pieces(b, s.listed.grain) {
			s.parts = append(s.parts, s.listed.pieces[i].grad)
		}
	} else {
		s.grad = grow(s.grad, len(features))
		run := s.gemm.run
		if s.options.Metric == Euclidean && d <= simd.MaxDenseWidth {
			run = s.lowDim.run
		}
		sum = run(features, d, len(features)/d, b, runs, theta, withGrad, s.grad)
		s.parts = append(s.parts, s.grad)
	}
	if !withGrad {
		s.parts = s.parts[:0]
	}
	s.norm = s.options.Scale
	if s.options.Mean {
		s.norm /= float64(b)
	}
	s.dTheta = s.norm * sum.DTheta
	return s.norm * sum.Loss
}

// gradTo writes the gradient of the last run times a factor to dst.
func (s *sweeps[T]) gradTo(dst []T, factor float64) error {
	if len(s.parts) == 0 || len(dst) != len(s.parts[0]) {
		return errors.New("op: the gradient of a contrastive loss was asked for before the loss was computed")
	}
	copy(dst, s.parts[0])
	for _, part := range s.parts[1:] {
		simd.Add(dst, part)
	}
	if f := T(factor * s.norm); f != 1 {
		simd.Scale(dst, f)
	}
	return nil
}

// decode returns how many negatives a head of a dense batch has, and where the
// runs of the groups begin: nowhere if every row is a negative.
func decode(runs []int32, rows int) (m int, firsts []int32) {
	if runs[0] == allRows {
		return rows - 2, nil
	}
	return int(runs[0]), runs[1:]
}

// overRun calls body for the stretches [from, to) of rows that make up a run: m rows
// from the first-th on of those outside the group of heads [lo, hi), going on at the
// beginning. The rows of a call are all heads, all tails, or all others.
func overRun(lo, hi, b, rows, first, m int, body func(from, to int)) {
	parts := [5][2]int{{0, lo}, {hi, b}, {b, b + lo}, {b + hi, 2 * b}, {2 * b, rows}}
	for m > 0 { // at most twice: a run goes on at the beginning
		for _, p := range parts {
			size := p[1] - p[0]
			if n := min(m, size-first); n > 0 {
				body(p[0]+first, p[0]+first+n)
				m -= n
			}
			first = max(0, first-size)
		}
	}
}

// constant returns c of Neg-t-SNE's loss, and of NC-t-SNE's with m negatives.
func constant[T Float](loss Loss, theta float64, m int) T {
	c := T(math.Exp(theta))
	if loss == NC {
		c *= T(m)
	}
	return c
}

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
	// tileHeads is how many heads are worked on at a time: few enough for
	// what is kept of their pairs to stay in the first-level cache at m = 5,
	// many enough to amortise the calls. In the plane, where the calls are short,
	// there are planeHeads, of which tileHeads at a time give their gradients.
	tileHeads  = 128
	planeHeads = 2 * tileHeads
	// tilePairs bounds the pairs of a tile where m is large.
	tilePairs = 16384
	// pieceWork is the least number of pairs times dimensions for which
	// another core is worth waking, and maxPieces bounds the copies of the
	// gradient that are then added up.
	pieceWork = 1 << 17
	maxPieces = 8
)

// A sweep goes once over the listed pairs of a batch and computes the loss and its
// gradient. The heads are cut into pieces by the size of the batch alone; each piece
// adds up a gradient of its own, and these are added in order, so that the result does
// not depend on the number of cores.
type sweep[T Float] struct {
	options  ContrastiveOptions
	bound    simd.Bound[T]
	clamp    T // the least similarity, from bound
	loop     parallel.Loop
	pieces   []piece[T]
	own      []int32 // own[i] = b+i: the positive of head i
	features []T
	d, b, m  int
	negative []int32
	theta    float64
	grain    int
	withGrad bool
	// meanwhile, if there is one, is called between the columns of tiles: see Meanwhile.
	meanwhile func(from, to int)
}

// A piece is what one share of the heads leaves behind, and its scratch.
type piece[T Float] struct {
	grad []T // of the shape of the features
	sum  simd.Sum
	// x, dx and dy are tiles [1+m, heads]: the distances (or cosines), which
	// become derivatives, and in two dimensions the differences.
	x, dx, dy []T
	// total, hx and hy are per head of a tile: the sum of similarities and
	// the gradient.
	total, hx, hy []T
	_             [64]byte // keeps the sums of two pieces out of one cache line
}

func (s *sweep[T]) init(options ContrastiveOptions) {
	s.options = options
	s.bound = simd.BoundOf[T](options.Clamp)
	s.clamp = s.bound.Clamp()
	s.loop.Seated = s.piece
}

// run computes the loss, without the factor Scale or 1/b; if withGrad, the sum
// of the pieces' gradients is its gradient.
func (s *sweep[T]) run(features []T, d int, negative []int32, b int, theta float64, withGrad bool) simd.Sum {
	s.features, s.d, s.negative, s.b, s.m = features, d, negative, b, len(negative)/b
	s.theta, s.withGrad = theta, withGrad
	s.own = tailsOf(s.own, b)
	count := min(maxPieces, 1+b*(1+s.m)*d/pieceWork)
	// A multiple of 16 heads per piece keeps the vector kernels on full vectors.
	s.grain = (parallel.Pieces(b, count) + 15) &^ 15
	count = parallel.Pieces(b, s.grain)
	for len(s.pieces) < count {
		s.pieces = append(s.pieces, piece[T]{})
	}
	s.loop.Seats = count
	s.loop.Run(b, s.grain)

	var sum simd.Sum
	for i := range count {
		sum.Add(s.pieces[i].sum)
	}
	return sum
}

// piece works on the heads [lo, hi).
func (s *sweep[T]) piece(seat, number, lo, hi int) {
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
		s.tile(p, head, count, tile, seat == 0 && s.meanwhile != nil)
	}
}

// tileOf returns how many heads a tile has: as many as give their gradients at a time, or
// twice these, so that no call is for the rest of a tile; fewer where m is large.
func (s *sweep[T]) tileOf() int {
	if s.inPlane() && planeHeads*(1+s.m) <= tilePairs {
		return planeHeads
	}
	return min(tileHeads, max(16, tilePairs/(1+s.m)&^15))
}

// tails returns the other ends of the pairs in column j of the tile at head.
func (s *sweep[T]) tails(j, head, count int) []int32 {
	if j == 0 {
		return s.own[head : head+count]
	}
	at := (j-1)*s.b + head
	return s.negative[at : at+count]
}

// tile works on so many heads from head on. Of the columns of p there are stride elements
// each. between says whether to call meanwhile.
func (s *sweep[T]) tile(p *piece[T], head, count, stride int, between bool) {
	steps, step := 1+s.m, 0 // in all, and those done
	if s.withGrad {
		steps *= 1 + parallel.Pieces(count, tileHeads)
	}
	done := func() {
		if between {
			s.meanwhile(head+count*step/steps, head+count*(step+1)/steps)
			step++
		}
	}
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
		done()
	}
	if s.options.Metric == Euclidean {
		s.euclidean(p, count, stride)
	} else {
		s.cosine(p, count, stride)
	}
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
				simd.Spread2(p.grad, p.hx[lo:hi], p.hy[lo:hi], part(p.x), part(p.dx), part(p.dy), tails)
			case s.options.Metric == Euclidean:
				simd.Spread(p.grad, s.features, part(p.x), s.d, head+lo, tails)
			default:
				simd.SpreadProducts(p.grad, s.features, part(p.x), s.d, head+lo, tails, T(1/s.options.Temperature))
			}
			done()
		}
		if inPlane {
			simd.AddPlane(p.grad[2*(head+lo):2*(head+hi)], p.hx[lo:hi], p.hy[lo:hi])
		}
	}
}

// inPlane tells whether pairs are kept as differences in the plane.
func (s *sweep[T]) inPlane() bool { return s.d == 2 && s.options.Metric == Euclidean }

// euclidean turns a tile's squared distances into derivatives.
func (s *sweep[T]) euclidean(p *piece[T], count, stride int) {
	positive := p.x[:count]
	negative := func(j int) []T { return p.x[j*stride : j*stride+count] }
	switch s.options.Loss {
	case Neg, NC:
		c := constant[T](s.options.Loss, s.theta, s.m)
		p.sum.Add(simd.NegPositive(positive, c, s.bound))
		if count == stride { // the columns are one after the other
			p.sum.Add(simd.NegNegative(p.x[stride:(1+s.m)*stride], c, s.bound))
			return
		}
		for j := 1; j <= s.m; j++ {
			p.sum.Add(simd.NegNegative(negative(j), c, s.bound))
		}
	case UMAP:
		p.sum.Loss += simd.UMAPPositive(positive, s.bound)
		for j := 1; j <= s.m; j++ {
			p.sum.Loss += simd.UMAPNegative(negative(j), s.bound)
		}
	case InfoNC:
		total := p.total[:count]
		clear(total)
		simd.Similarities(positive, total, s.clamp)
		var inTotal T = 1
		if s.options.ExcludePositive {
			inTotal = 0
			clear(total)
		}
		for j := 1; j <= s.m; j++ {
			simd.Similarities(negative(j), total, s.clamp)
		}
		if inTotal == 0 && s.m == 0 {
			// Without negatives there is no sum, and its logarithm drops out.
			p.sum.Loss += simd.InfoNCPositive(positive, total, s.clamp, 0)
			return
		}
		logs := simd.LogTotals(total, T(math.Exp(-s.theta)))
		p.sum.Loss += logs
		p.sum.DTheta -= logs
		p.sum.Loss += simd.InfoNCPositive(positive, total, s.clamp, inTotal)
		for j := 1; j <= s.m; j++ {
			simd.InfoNCNegative(negative(j), total, s.clamp)
		}
	}
}

// cosine turns a tile's cosines over τ into derivatives.
func (s *sweep[T]) cosine(p *piece[T], count, stride int) {
	if s.options.Loss == InfoNC {
		positive := p.x[:count]
		for _, v := range positive {
			p.sum.Loss -= float64(v)
		}
		first, columns := 0, 1+s.m
		if s.options.ExcludePositive {
			first, columns = stride, s.m
		}
		if columns == 0 {
			for i := range positive {
				positive[i] = -1
			}
			return
		}
		if s.options.ExcludePositive {
			clear(positive)
		}
		logs := simd.Softmax(p.x[first:], count, columns, stride, T(math.Exp(-s.theta)))
		p.sum.Loss += logs
		p.sum.DTheta -= logs
		for i := range positive {
			positive[i]--
		}
		return
	}
	theta := s.theta
	if s.options.Loss == NC {
		theta += math.Log(float64(s.m))
	}
	p.sum.Add(simd.LogisticPositive(p.x[:count], T(theta)))
	for j := 1; j <= s.m; j++ {
		p.sum.Add(simd.LogisticNegative(p.x[j*stride:j*stride+count], T(theta)))
	}
}

// grow returns a slice of n elements, s's memory if that is enough.
func grow[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]E, n)
}
