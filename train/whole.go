package train

import (
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// All, as a number of negatives, means all pairs of points as the negatives of each edge,
// and makes the whole graph one batch. InfoNC-t-SNE's loss of an edge ij is then
//
//	−log q(ij) + (1/ρ)·log Σ q over all ordered pairs.
//
// For ρ = 1 it is t-SNE's loss (Section 3 of the paper: m → ∞). Pairs of far points are
// approximated (Barnes and Hut, 1986). An epoch is one step of gradient descent, with
// Nesterov's momentum of 0.95 for ρ = 1, and with momentum 0.9 otherwise. Each point's gradient
// is divided by the weight of its edges. Learning rates are about 1 to 7, larger if neighbours
// are farther apart. A phase begins by multiplying all positions by the power of two that
// minimises the loss. The loss of an epoch is the Kullback–Leibler divergence of the embedding
// from the graph, for every ρ; with Weights w, whose shares are p, it lacks the constant
// Σ p log w.
//
// The model must be a *model.Embedding[float32] in the plane, and the Optimizer plain SGD.
const All = -2

// A stride is how a step moves points along their gradients.
type stride struct {
	lr, clip float32
	momentum float32
	nesterov bool // points are ahead by a move of the velocity, as Nesterov's method wants
}

// strideOf returns the stride of an epoch with All negatives. Nesterov's method converges to
// t-SNE's optimum in half as many steps. Momentum 0.9 is stable at higher rates, which bring
// clusters together while ρ > 1 and neighbours are near, and for ρ < 1, where points keep
// spreading.
func (s *settings) strideOf(e *epochState) stride {
	x := stride{lr: float32(e.lr), clip: float32(bound(s.Clip)), momentum: 0.95, nesterov: true}
	if s.logConst(e.spectrum, 1, 0) != 0 {
		x.momentum, x.nesterov = 0.9, false
	}
	return x
}

// A wholeBatch takes steps with All negatives.
type wholeBatch struct {
	*settings
	*wholeGraph
	points, velocity *op.Array // [n, 2]
	ordered          *op.Array // the positions at the start of the phase
	divided          *op.Array // the positions that the cells were made for
	extent           float64   // of the cells then; negative before
	forces           forces
}

// A wholeGraph has the edges of steps with All negatives. Each has its reverse, of the same weight.
type wholeGraph struct {
	starts  []int     // point i has the edges starts[i] to starts[i+1]−1
	tails   []int32   // by edge
	weights []float32 // by edge; nil if all are 1
	own     []float32 // by point: Σ w over its edges
	total   float64   // Σ w
}

// forces computes what a wholeBatch's points do to each other, on the CPU or on a device. The
// points are in cells (see field). Its methods fail as kind.Need does: advance returns
// the error.
type forces interface {
	// arrange prepares for a phase that begins at the given positions.
	arrange(at *op.Array)
	// divide makes the cells anew for positions at, and returns the sum of the leaves' radii.
	divide(at *op.Array) (extent float64)
	// summarize updates the cells for the points' positions, and returns the same sum.
	summarize() (extent float64)
	// evaluate computes the forces between the points as they were summarized. It returns
	// Σ w·log(1+‖x−x′‖²) over the edges, and Σ q over all ordered pairs.
	evaluate() (attraction, z float64)
	// scale multiplies the positions.
	scale(factor float32)
	// move takes a step against the evaluated forces.
	move(s stride, repulsion float32)
	close()
}

// pointsPerPiece is the number of points that are worth another core.
const pointsPerPiece = 1024

// wants reports whether a phase has All negatives, or whether one has others.
func (o *Options) wants(all bool) bool {
	return slices.ContainsFunc(o.Phases, func(p Phase) bool { return (p.Negatives == All) == all })
}

// newWholeBatch returns a wholeBatch for points on any device, or nil if no phase has All
// negatives.
func newWholeBatch(s *settings, points *op.Array) (_ *wholeBatch, err error) {
	defer kind.Catch(&err)
	if s.graph == nil {
		return nil, nil
	}
	_, ok := s.model.(*model.Embedding[float32])
	_, d := s.model.Points()
	kind.Need(ok && points.Cols() == 2, ErrInput,
		"train: a phase with all negatives: got %T of %d dimensions, want float32, 2 dimensions and no network", s.model, d)
	w := &wholeBatch{settings: s, wholeGraph: s.graph, points: points, extent: -1}
	defer kind.Undo(&err, w.close)
	w.velocity, w.ordered, w.divided = kind.Got(zerosLike(points)), kind.Got(zerosLike(points)), kind.Got(zerosLike(points))
	if points.Device().OnHost() {
		w.forces = newHostForces(w)
		return w, nil
	}
	w.forces = kind.Got(newDeviceForces(w))
	return w, nil
}

// arrays returns the arrays of the state.
func (w *wholeBatch) arrays() []NamedArray {
	if w == nil {
		return nil
	}
	return prefixed(optimizerPrefix, []NamedArray{{"velocity", w.velocity}, {"ordered", w.ordered}, {"divided", w.divided}})
}

// close frees memory on a device.
func (w *wholeBatch) close() {
	if w != nil {
		free(w.velocity, w.ordered, w.divided)
		if w.forces != nil {
			w.forces.close()
		}
	}
}

// newWholeGraph returns the graph of some edges between n points.
func newWholeGraph(n int, heads, tails []int32, weights []float32) *wholeGraph {
	if !isSymmetric(heads, tails, weights) {
		heads, tails, weights = bothWays(heads, tails, weights)
	}
	g := &wholeGraph{starts: make([]int, n+1), tails: tails, weights: weights, own: make([]float32, n)}
	for k, i := range heads {
		weight := weightsOf(weights, k, k+1)[0]
		g.starts[i+1]++
		g.own[i] += weight
		g.total += float64(weight)
	}
	selection.Accumulate(g.starts)
	if slices.IsSorted(heads) {
		return g
	}
	next := slices.Clone(g.starts)
	g.tails, g.weights = make([]int32, len(tails)), slices.Clone(weights)
	for k, i := range heads {
		at := next[i]
		next[i]++
		g.tails[at] = tails[k]
		if weights != nil {
			g.weights[at] = weights[k]
		}
	}
	return g
}

// isSymmetric reports whether each edge has its reverse, of the same weight.
func isSymmetric(heads, tails []int32, weights []float32) bool {
	balance := uint64(0) // 0 for a symmetric graph, and by chance for another
	for k, i := range heads {
		j := tails[k]
		h := rng.Mix(rng.Mix(uint64(min(i, j))<<32|uint64(max(i, j))) ^ uint64(math.Float32bits(weightsOf(weights, k, k+1)[0])))
		if i < j {
			balance += h
		} else {
			balance -= h
		}
	}
	return balance == 0
}

// bothWays replaces each edge by two, in both directions, of half its weight. The loss stays
// the same.
func bothWays(heads, tails []int32, weights []float32) (_, _ []int32, _ []float32) {
	ends, starts, halves := make([]int32, 0, 2*len(heads)), make([]int32, 0, 2*len(heads)), make([]float32, 0, 2*len(heads))
	for k, i := range heads {
		half := weightsOf(weights, k, k+1)[0] / 2
		starts, ends, halves = append(starts, i, tails[k]), append(ends, tails[k], i), append(halves, half, half)
	}
	return starts, ends, halves
}

// weightsOf returns the weights of the edges lo to hi−1, at most edgesPerCall, from those of all
// edges, or from nil.
func weightsOf(all []float32, lo, hi int) []float32 {
	if all == nil {
		return ones[:hi-lo]
	}
	return all[lo:hi]
}

var ones = slices.Repeat([]float32{1}, edgesPerCall)

// advance takes the step of an epoch.
func (w *wholeBatch) advance(e *epochState) (err error) {
	defer kind.Catch(&err) // of the device's errors
	e.lr = w.learningRate(e, 0)
	e.sum, e.batch = w.step(e)*float64(w.edgesPerEpoch), w.batches
	return nil
}

// step takes a step and returns the mean loss of an edge.
func (w *wholeBatch) step(e *epochState) (loss float64) {
	rho := elementary.Exp(w.logConst(e.spectrum, 1, 0))
	if e.phaseEpoch == 0 {
		w.begin(rho)
	}
	w.follow()
	attraction, z := w.forces.evaluate()
	loss = attraction/w.total + elementary.Log(z) - elementary.Log(w.total)
	if !simd.IsFinite(loss) {
		kind.Check(w.diverged(e, 0, errNotFinite)) // before any position changes
	}
	w.forces.move(w.strideOf(e), float32(w.total/z/rho))
	return loss
}

// begin prepares the first step of a phase.
func (w *wholeBatch) begin(rho float64) {
	kind.Check(w.velocity.Zero())
	kind.Check(op.Copy(w.ordered, w.points))
	w.forces.arrange(w.ordered)
	w.rescale(rho)
	w.divide()
}

// divide makes the cells anew for the points' positions.
func (w *wholeBatch) divide() {
	kind.Check(op.Copy(w.divided, w.points))
	w.extent = w.forces.divide(w.points)
}

// follow updates the cells for new positions of the points. If they have grown too much since
// they were made, it makes them anew.
func (w *wholeBatch) follow() {
	const growth = 1.25
	if w.extent < 0 { // the run was resumed
		w.forces.arrange(w.ordered)
		w.extent = w.forces.divide(w.divided)
	}
	if !(w.forces.summarize() <= growth*w.extent) { // also for NaN
		w.divide()
	}
}

// rescale multiplies the positions by the power of two that makes the loss least: steps would
// take long to change the size of an embedding of many points. Groups without edges between
// them lower the loss at any distance, so a gain below worthwhile counts for nothing.
func (w *wholeBatch) rescale(rho float64) {
	loss := func(factor float32) float64 {
		w.forces.scale(factor)
		w.forces.summarize()
		attraction, z := w.forces.evaluate()
		return attraction/w.total + elementary.Log(z)/rho
	}
	const worthwhile = 1e-3
	least := loss(1)
	for _, factor := range []float32{2, 0.5} {
		for range 10 {
			l := loss(factor)
			if !(l < least-worthwhile) {
				w.forces.scale(1 / factor)
				break
			}
			least = l
		}
	}
}

// hostForces are the forces on the CPU. They are computed in the order of the cells at the
// start of the phase, where points that are near in the plane are near in memory. A point's
// place is its number in this order.
type hostForces struct {
	*wholeBatch
	field     *field    // of the points at their places
	place     []uint32  // of each point
	starts    []int     // the edges of the point at place p are starts[p] to starts[p+1]−1
	tails     []int32   // by edge: places
	weights   []float32 // by edge; nil if all are 1
	at        []float32 // [n, 2]: the positions, by place
	attracted []float32 // [n, 2]: Σ w·q·(x−x′) over a point's edges, by place
	repelled  []float32 // [n, 2], by place
	losses    []float64 // Σ w·log(1+‖x−x′‖²), by piece
	spaces    parallel.Pool[edgeSpace]
}

// edgesPerCall is the number of edges that simd.Attract takes at once.
const edgesPerCall = 512

// An edgeSpace holds some edges between places, and their forces.
type edgeSpace struct {
	edges  [edgesPerCall]edge
	fx, fy [edgesPerCall]float32
}

func newHostForces(w *wholeBatch) *hostForces {
	n := w.n
	results := make([]float32, 4*n)
	return &hostForces{wholeBatch: w, field: newField(n, results), place: selection.UpTo[uint32](n), starts: make([]int, n+1),
		tails: make([]int32, len(w.tails)), weights: slices.Clone(w.weights), at: make([]float32, 2*n),
		attracted: results[:2*n], repelled: results[2*n:], losses: make([]float64, parallel.Pieces(n, pointsPerPiece))}
}

func (h *hostForces) close() {}

func (h *hostForces) arrange(at *op.Array) {
	h.field.divide(op.Data[float32](at))
	order := h.field.order
	for p, i := range order {
		h.place[i] = uint32(p)
		h.starts[p+1] = h.starts[p] + h.wholeBatch.starts[i+1] - h.wholeBatch.starts[i]
	}
	parallel.For(h.n, pointsPerPiece, func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			first, end := h.wholeBatch.starts[order[p]], h.wholeBatch.starts[order[p]+1]
			for k, j := range h.wholeBatch.tails[first:end] {
				h.tails[h.starts[p]+k] = int32(h.place[j])
			}
			if h.weights != nil {
				copy(h.weights[h.starts[p]:], h.wholeBatch.weights[first:end])
			}
		}
	})
	h.divide(at)
}

// takePlaces brings positions to the points' places.
func (h *hostForces) takePlaces(positions *op.Array) {
	x := op.Data[float32](positions)
	parallel.For(h.n, pointsPerPiece, func(_, lo, hi int) {
		for i, p := range h.place[lo:hi] {
			h.at[2*p], h.at[2*p+1] = x[2*(lo+i)], x[2*(lo+i)+1]
		}
	})
}

func (h *hostForces) divide(at *op.Array) (extent float64) {
	h.takePlaces(at)
	return h.field.divide(h.at)
}

func (h *hostForces) summarize() (extent float64) {
	h.takePlaces(h.points)
	return h.field.summarize(h.at)
}

func (h *hostForces) evaluate() (attraction, z float64) {
	if all := h.field.cells[1]; math.IsNaN(float64(all.radius)) { // no cell would count as one mass
		return math.NaN(), math.NaN()
	}
	z = h.field.repel(h.repelled)
	parallel.For(h.n, pointsPerPiece, func(piece, lo, hi int) { h.losses[piece] = h.attract(lo, hi) })
	for _, l := range h.losses {
		attraction += l
	}
	return attraction, z
}

func (h *hostForces) scale(factor float32) {
	points := op.Data[float32](h.points)
	for i := range points {
		points[i] *= factor
	}
}

func (h *hostForces) move(s stride, repulsion float32) {
	points, velocity := op.Data[float32](h.points), op.Data[float32](h.velocity)
	parallel.For(2*h.n, pointsPerPiece, func(_, lo, hi int) {
		for c := lo; c < hi; c++ {
			h.attracted[c] -= float32(repulsion * h.repelled[c]) // the gradient
		}
	})
	parallel.For(h.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if h.own[i] == 0 {
				continue // a point without edges takes no step
			}
			for c, g := range h.attracted[2*h.place[i]:][:2] {
				g /= h.own[i]
				step := float32(s.lr * max(-s.clip, min(s.clip, g)))
				v := float32(s.momentum*velocity[2*i+c]) - step
				velocity[2*i+c] = v
				if s.nesterov {
					v = float32(s.momentum*v) - step
				}
				points[2*i+c] += v
			}
		}
	})
}

// attract sets the attraction of the points at the places lo to hi−1 and returns
// Σ w·log(1+‖x−x′‖²) over their edges.
func (h *hostForces) attract(lo, hi int) (loss float64) {
	s := h.spaces.Get()
	defer h.spaces.Put(s)
	clear(h.attracted[2*lo : 2*hi])
	at, from, last := lo, lo, h.starts[hi] // at and from are the places of edges
	for first := h.starts[lo]; first < last; first += edgesPerCall {
		end := min(first+edgesPerCall, last)
		for k := first; k < end; {
			for h.starts[at+1] <= k {
				at++
			}
			for stop := min(h.starts[at+1], end); k < stop; k++ {
				s.edges[k-first] = packEdge(int32(at), h.tails[k])
			}
		}
		loss += simd.Attract(s.fx[:], s.fy[:], h.at, s.edges[:end-first], weightsOf(h.weights, first, end))
		for k := first; k < end; {
			for h.starts[from+1] <= k {
				from++
			}
			sum := h.attracted[2*from : 2*from+2]
			x, y := sum[0], sum[1]
			for stop := min(h.starts[from+1], end); k < stop; k++ {
				x += s.fx[k-first]
				y += s.fy[k-first]
			}
			sum[0], sum[1] = x, y
		}
	}
	return loss
}
