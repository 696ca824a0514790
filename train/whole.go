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
	edges            []edge // by their heads
	weights          []float32
	starts           []int     // point i has the edges starts[i] to starts[i+1]−1
	own              []float32 // by point: Σ w over its edges
	total            float64   // Σ w
	points, velocity *op.Array // [n, 2]
	divided          *op.Array // the positions that the cells were made for
	extent           float64   // of the cells then; negative before
	forces           forces
}

// forces computes what a wholeBatch's points do to each other, on the CPU or on a device. The
// points are in cells (see field). Its methods fail as kind.Need does: advance returns
// the error.
type forces interface {
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

// wantsAll reports whether a phase has All negatives.
func (o *Options) wantsAll() bool {
	return slices.ContainsFunc(o.Phases, func(p Phase) bool { return p.Negatives == All })
}

// newWholeBatch returns a wholeBatch for points on any device, or nil if no phase has All
// negatives.
func newWholeBatch(s *settings, edges []edge, points *op.Array) (_ *wholeBatch, err error) {
	defer kind.Catch(&err)
	if !s.wantsAll() {
		return nil, nil
	}
	_, ok := s.model.(*model.Embedding[float32])
	_, d := s.model.Points()
	kind.Need(ok && points.Cols() == 2, ErrInput,
		"train: a phase with all negatives: got %T of %d dimensions, want float32, 2 dimensions and no network", s.model, d)
	w := &wholeBatch{settings: s, edges: edges, weights: s.Weights, points: points, extent: -1}
	if !w.isSymmetric() {
		w.symmetrize()
	}
	w.sort()
	defer kind.Undo(&err, w.close)
	w.velocity, w.divided = kind.Got(zerosLike(points)), kind.Got(zerosLike(points))
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
	return []NamedArray{{optimizerPrefix + "velocity", w.velocity}, {optimizerPrefix + "divided", w.divided}}
}

// close frees memory on a device.
func (w *wholeBatch) close() {
	if w != nil {
		free(w.velocity, w.divided)
		if w.forces != nil {
			w.forces.close()
		}
	}
}

func head(e edge) int { return int(uint32(e)) }
func tail(e edge) int { return int(uint32(e >> 32)) }

// isSymmetric reports whether each edge has its reverse, of the same weight.
func (w *wholeBatch) isSymmetric() bool {
	balance := uint64(0) // 0 for a symmetric graph, and by chance for another
	for k, e := range w.edges {
		i, j := head(e), tail(e)
		h := rng.Mix(rng.Mix(uint64(min(i, j))<<32|uint64(max(i, j))) ^ uint64(math.Float32bits(w.weightsOf(k, k+1)[0])))
		switch {
		case i < j:
			balance += h
		case i > j:
			balance -= h
		}
	}
	return balance == 0
}

// symmetrize replaces each edge by two, in both directions, of half its weight. The loss
// stays the same.
func (w *wholeBatch) symmetrize() {
	edges, weights := make([]edge, 0, 2*len(w.edges)), make([]float32, 0, 2*len(w.edges))
	for k, e := range w.edges {
		half := w.weightsOf(k, k+1)[0] / 2
		edges, weights = append(edges, e, e>>32|e<<32), append(weights, half, half)
	}
	w.edges, w.weights = edges, weights
}

// sort brings the edges into the order of their heads.
func (w *wholeBatch) sort() {
	w.starts, w.own = make([]int, w.n+1), make([]float32, w.n)
	for k, e := range w.edges {
		weight := w.weightsOf(k, k+1)[0]
		w.starts[head(e)+1]++
		w.own[head(e)] += weight
		w.total += float64(weight)
	}
	selection.Accumulate(w.starts)
	if slices.IsSortedFunc(w.edges, func(a, b edge) int { return head(a) - head(b) }) {
		return
	}
	edges, weights, next := make([]edge, len(w.edges)), slices.Clone(w.weights), slices.Clone(w.starts)
	for k, e := range w.edges {
		at := next[head(e)]
		next[head(e)]++
		edges[at] = e
		if w.weights != nil {
			weights[at] = w.weights[k]
		}
	}
	w.edges, w.weights = edges, weights
}

// weightsOf returns the weights of the edges lo to hi−1, at most edgesPerCall.
func (w *wholeBatch) weightsOf(lo, hi int) []float32 {
	if w.weights == nil {
		return ones[:hi-lo]
	}
	return w.weights[lo:hi]
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
	w.forces.divide(w.points)
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

// hostForces are the forces on the CPU.
type hostForces struct {
	*wholeBatch
	field     *field
	attracted []float32 // [n, 2]: Σ w·q·(x−x′) over a point's edges
	repelled  []float32 // [n, 2]
	losses    []float64 // Σ w·log(1+‖x−x′‖²), by piece
	spaces    parallel.Pool[[2][edgesPerCall]float32]
}

func newHostForces(w *wholeBatch) *hostForces {
	return &hostForces{wholeBatch: w, field: newField(w.n), losses: make([]float64, parallel.Pieces(w.n, pointsPerPiece)),
		attracted: make([]float32, 2*w.n), repelled: make([]float32, 2*w.n)}
}

func (h *hostForces) close() {}

func (h *hostForces) divide(at *op.Array) (extent float64) {
	return h.field.divide(op.Data[float32](at))
}

func (h *hostForces) summarize() (extent float64) {
	return h.field.summarize(op.Data[float32](h.points))
}

func (h *hostForces) evaluate() (attraction, z float64) {
	if all := h.field.cells[1]; math.IsNaN(float64(all.radius)) { // no cell would count as one mass
		return math.NaN(), math.NaN()
	}
	z = h.field.repel(h.repelled)
	points := op.Data[float32](h.points)
	parallel.For(h.n, pointsPerPiece, func(piece, lo, hi int) { h.losses[piece] = h.attract(points, lo, hi) })
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
	parallel.For(h.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if h.own[i] == 0 {
				continue // a point without edges takes no step
			}
			for c := 2 * i; c < 2*i+2; c++ {
				g := (h.attracted[c] - float32(repulsion*h.repelled[c])) / h.own[i]
				step := float32(s.lr * max(-s.clip, min(s.clip, g)))
				v := float32(s.momentum*velocity[c]) - step
				velocity[c] = v
				if s.nesterov {
					v = float32(s.momentum*v) - step
				}
				points[c] += v
			}
		}
	})
}

// edgesPerCall is the number of edges that simd.Attract takes at once.
const edgesPerCall = 512

// attract sets the attraction of the points lo to hi−1 and returns Σ w·log(1+‖x−x′‖²) over their
// edges.
func (h *hostForces) attract(points []float32, lo, hi int) (loss float64) {
	space := h.spaces.Get()
	defer h.spaces.Put(space)
	fx, fy := space[0][:], space[1][:]
	clear(h.attracted[2*lo : 2*hi])
	i, last := lo, h.starts[hi]
	for first := h.starts[lo]; first < last; first += edgesPerCall {
		end := min(first+edgesPerCall, last)
		loss += simd.Attract(fx, fy, points, h.edges[first:end], h.weightsOf(first, end))
		for k := first; k < end; {
			for h.starts[i+1] <= k {
				i++
			}
			sum := h.attracted[2*i : 2*i+2]
			x, y := sum[0], sum[1]
			for stop := min(h.starts[i+1], end); k < stop; k++ {
				x += fx[k-first]
				y += fy[k-first]
			}
			sum[0], sum[1] = x, y
		}
	}
	return loss
}
