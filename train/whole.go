package train

import (
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
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
// approximated (Barnes and Hut, 1986). An epoch is one step of gradient descent with
// momentum 0.9. Each point's gradient is divided by the weight of its edges. Learning
// rates are about 1 to 30, larger if neighbours are farther apart. A phase begins by
// multiplying all positions by the power of two that minimises the loss. The loss of an
// epoch is the Kullback–Leibler divergence of the embedding from the graph, for every ρ;
// with Weights w, whose shares are p, it lacks the constant Σ p log w.
//
// The model must be a *model.Embedding[float32] in the plane, and the Optimizer plain SGD.
// The whole run then uses the CPU.
const All = -2

// wholeMomentum is the momentum of steps with All negatives.
const wholeMomentum = 0.9

// A wholeBatch takes steps with All negatives.
type wholeBatch struct {
	*settings
	edges     []edge // by their heads
	weights   []float32
	starts    []int // point i has the edges starts[i] to starts[i+1]−1
	velocity  *op.Array
	divided   *op.Array // the positions that field was divided for
	field     *field
	attracted []float32 // [n, 2]: Σ w·q·(x−x′) over a point's edges
	repelled  []float32 // [n, 2]
	losses    []float64 // Σ w·log(1+‖x−x′‖²), by piece
	own       []float32 // by point: Σ w over its edges
	total     float64   // Σ w
}

// pointsPerPiece is the number of points that are worth another core.
const pointsPerPiece = 1024

// wantsAll reports whether a phase has All negatives.
func (o *Options) wantsAll() bool {
	return slices.ContainsFunc(o.Phases, func(p Phase) bool { return p.Negatives == All })
}

// newWholeBatch returns a wholeBatch, or nil if no phase has All negatives.
func newWholeBatch(s *settings, edges []edge) (*wholeBatch, error) {
	if !s.wantsAll() {
		return nil, nil
	}
	table, ok := s.model.(*model.Embedding[float32])
	if _, d := s.model.Points(); !ok || d != 2 {
		return nil, kind.Errorf(ErrInput,
			"train: a phase with all negatives: got %T of %d dimensions, want float32, 2 dimensions and no network", s.model, d)
	}
	w := &wholeBatch{settings: s, edges: edges, weights: s.Weights, attracted: make([]float32, 2*s.n), repelled: make([]float32, 2*s.n)}
	if !w.isSymmetric() {
		w.symmetrize()
	}
	w.sort()
	var err error
	value := table.Parameters()[0].Value
	if w.velocity, err = zerosLike(value); err == nil {
		w.divided, err = zerosLike(value)
	}
	return w, err
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
	if !slices.IsSortedFunc(w.edges, func(a, b edge) int { return head(a) - head(b) }) {
		order := make([]int, len(w.edges))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return head(w.edges[a]) - head(w.edges[b]) })
		edges, weights := make([]edge, len(order)), make([]float32, 0, len(w.weights))
		for k, o := range order {
			edges[k] = w.edges[o]
			if w.weights != nil {
				weights = append(weights, w.weights[o])
			}
		}
		w.edges = edges
		if w.weights != nil {
			w.weights = weights
		}
	}
	w.starts, w.own = make([]int, w.n+1), make([]float32, w.n)
	for k, e := range w.edges {
		weight := w.weightsOf(k, k+1)[0]
		w.starts[head(e)+1]++
		w.own[head(e)] += weight
		w.total += float64(weight)
	}
	for i := range w.n {
		w.starts[i+1] += w.starts[i]
	}
}

// weightsOf returns the weights of the edges lo to hi−1, at most edgesPerCall.
func (w *wholeBatch) weightsOf(lo, hi int) []float32 {
	if w.weights == nil {
		return ones[:hi-lo]
	}
	return w.weights[lo:hi]
}

var ones = slices.Repeat([]float32{1}, edgesPerCall)

// step takes a step and returns the mean loss of an edge.
func (w *wholeBatch) step(e *epochState) float64 {
	points, velocity, divided := op.Data[float32](w.model.Parameters()[0].Value), op.Data[float32](w.velocity), op.Data[float32](w.divided)
	if w.field == nil {
		w.field = newField(w.n)
		w.losses = make([]float64, parallel.Pieces(w.n, pointsPerPiece))
	}
	rho := elementary.Exp(w.logConst(e.spectrum, 1, 0))
	if e.phaseEpoch == 0 {
		clear(velocity)
		w.field.divide(points)
		w.rescale(points, rho)
		copy(divided, points)
		w.field.divide(points)
	}
	w.field.follow(points, divided)
	attraction, z := w.evaluate(points)
	repulsion := float32(w.total / z / rho)
	lr, clip := float32(e.lr), float32(bound(w.Clip))
	parallel.For(w.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if w.own[i] == 0 {
				continue // a point without edges takes no step
			}
			for c := 2 * i; c < 2*i+2; c++ {
				g := (w.attracted[c] - float32(repulsion*w.repelled[c])) / w.own[i]
				velocity[c] = float32(wholeMomentum*velocity[c]) - float32(lr*max(-clip, min(clip, g)))
				points[c] += velocity[c]
			}
		}
	})
	return attraction + elementary.Log(z) - elementary.Log(w.total)
}

// evaluate sets the forces and returns the mean of −log q of the edges, by their weights,
// and Σ q over all ordered pairs.
func (w *wholeBatch) evaluate(points []float32) (attraction, z float64) {
	z = w.field.repel(w.repelled)
	parallel.For(w.n, pointsPerPiece, func(piece, lo, hi int) { w.losses[piece] = w.attract(points, lo, hi) })
	for _, l := range w.losses {
		attraction += l
	}
	return attraction / w.total, z
}

// rescale multiplies the positions by the power of two that makes the loss least: steps would
// take long to change the size of an embedding of many points. Groups without edges between
// them lower the loss at any distance, so a gain below worthwhile counts for nothing.
func (w *wholeBatch) rescale(points []float32, rho float64) {
	loss := func() float64 {
		w.field.summarize(points, 1)
		attraction, z := w.evaluate(points)
		return attraction + elementary.Log(z)/rho
	}
	by := func(factor float32) {
		for i := range points {
			points[i] *= factor
		}
	}
	const worthwhile = 1e-3
	least := loss()
	for _, factor := range []float32{2, 0.5} {
		for range 10 {
			by(factor)
			if l := loss(); l < least-worthwhile {
				least = l
				continue
			}
			by(1 / factor)
			break
		}
	}
}

// edgesPerCall is the number of edges that simd.Attract takes at once.
const edgesPerCall = 512

// attract sets the attraction of the points lo to hi−1 and returns Σ w·log(1+‖x−x′‖²) over their
// edges.
func (w *wholeBatch) attract(points []float32, lo, hi int) (loss float64) {
	var fx, fy [edgesPerCall]float32
	clear(w.attracted[2*lo : 2*hi])
	i, last := lo, w.starts[hi]
	for first := w.starts[lo]; first < last; first += edgesPerCall {
		end := min(first+edgesPerCall, last)
		loss += simd.Attract(fx[:], fy[:], points, w.edges[first:end], w.weightsOf(first, end))
		for k := first; k < end; {
			for w.starts[i+1] <= k {
				i++
			}
			sum := w.attracted[2*i : 2*i+2]
			x, y := sum[0], sum[1]
			for stop := min(w.starts[i+1], end); k < stop; k++ {
				x += fx[k-first]
				y += fy[k-first]
			}
			sum[0], sum[1] = x, y
		}
	}
	return loss
}
