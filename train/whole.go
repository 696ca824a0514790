package train

import (
	"math"
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// All, as a number of negatives, stands for all pairs of points as the negatives of each
// edge, and makes the whole graph one batch. InfoNC-t-SNE's loss of an edge ij is then
//
//	−log q(ij) + (1/ρ)·log Σ q over all ordered pairs,
//
// which for ρ = 1 is t-SNE's (Section 3 of the paper: m → ∞). Pairs of far points are
// approximated (Barnes and Hut, 1986). An epoch is one step of gradient descent with
// momentum 0.9, in which each point's gradient is divided by the weight of its edges:
// learning rates are of the order of 1, and Schedule is best Constant. The loss of an epoch
// is the Kullback–Leibler divergence of the embedding from the graph, for every ρ.
//
// The model must be a table of float32 in the plane, the graph symmetric, and the Optimizer
// plain SGD. The whole run then uses the CPU.
const All = -2

// wholeMomentum is the momentum of steps with All negatives.
const wholeMomentum = 0.9

// A wholeBatch takes steps with All negatives.
type wholeBatch struct {
	*settings
	edges     []edge // by their heads
	weights   []float32
	starts    []int32   // point i has the edges starts[i] to starts[i+1]−1
	own       []float32 // by point: Σ w over its edges
	velocity  *op.Array
	field     *field
	attracted []float32 // [n, 2]: Σ w·q·(x−x′) over a point's edges
	repelled  []float32 // [n, 2]
	losses    []float64 // Σ w·log(1+‖x−x′‖²), by piece
	total     float64   // Σ w
}

// pointsPerPiece is the number of points that are worth another core.
const pointsPerPiece = 1024

// wantsAll reports whether a phase has All negatives.
func (o *Options) wantsAll() bool {
	return slices.ContainsFunc(o.Phases, func(p Phase) bool { return p.Negatives == All })
}

// newWholeBatch returns nil if no phase has All negatives.
func newWholeBatch(s *settings, edges []edge) (*wholeBatch, error) {
	if !s.wantsAll() {
		return nil, nil
	}
	table, ok := s.model.(*model.Embedding[float32])
	if _, d := s.model.Points(); !ok || d != 2 {
		return nil, kind.Errorf(ErrInput, "train: a phase with all negatives: got %T of %d dimensions, want a table of float32 in 2", s.model, d)
	}
	w := &wholeBatch{settings: s, edges: edges, weights: s.Weights, attracted: make([]float32, 2*s.n), repelled: make([]float32, 2*s.n)}
	if err := w.sort(); err != nil {
		return nil, err
	}
	var err error
	w.velocity, err = zerosLike(table.Parameters()[0].Value)
	return w, err
}

// sort brings the edges into the order of their heads.
func (w *wholeBatch) sort() error {
	head := func(e edge) int { return int(uint32(e)) }
	tail := func(e edge) int { return int(uint32(e >> 32)) }
	if !slices.IsSortedFunc(w.edges, func(a, b edge) int { return head(a) - head(b) }) {
		order := make([]int32, len(w.edges))
		for k := range order {
			order[k] = int32(k)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return head(w.edges[a]) - head(w.edges[b]) })
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
	w.starts, w.own = make([]int32, w.n+1), make([]float32, w.n)
	balance := uint64(0) // 0 if each edge has its reverse, but for chance
	for k, e := range w.edges {
		i, j := head(e), tail(e)
		w.starts[i+1]++
		weight := w.weight(k)
		w.total += float64(weight)
		w.own[i] += weight
		h := rng.Mix(rng.Mix(uint64(min(i, j))<<32|uint64(max(i, j))) ^ uint64(math.Float32bits(weight)))
		switch {
		case i < j:
			balance += h
		case i > j:
			balance -= h
		}
	}
	if balance != 0 {
		return kind.Errorf(ErrInput, "train: a phase with all negatives: got a graph that is not symmetric, want each edge in both directions with one weight")
	}
	for i := range w.n {
		w.starts[i+1] += w.starts[i]
	}
	return nil
}

func (w *wholeBatch) weight(k int) float32 {
	if w.weights == nil {
		return 1
	}
	return w.weights[k]
}

// step takes a step and returns the loss of an edge.
func (w *wholeBatch) step(e *epochState) float64 {
	if w.field == nil {
		w.field = newField(w.n)
		w.losses = make([]float64, parallel.Pieces(w.n, pointsPerPiece))
	}
	points, velocity := op.Data[float32](w.model.Parameters()[0].Value), op.Data[float32](w.velocity)
	if e.phaseEpoch == 0 {
		clear(velocity)
	}
	z := w.field.repel(w.repelled, points)
	parallel.For(w.n, pointsPerPiece, func(piece, lo, hi int) { w.losses[piece] = w.attract(points, lo, hi) })
	repulsion := float32(w.total / z / math.Exp(w.logConst(e.spectrum, 1, 0)))
	lr, clip := float32(e.lr), float32(bound(w.Clip))
	parallel.For(w.n, pointsPerPiece, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			if w.own[i] == 0 {
				continue // a point without edges stays where it is
			}
			for c := 2 * i; c < 2*i+2; c++ {
				g := (w.attracted[c] - repulsion*w.repelled[c]) / w.own[i]
				velocity[c] = wholeMomentum*velocity[c] - lr*max(-clip, min(clip, g))
				points[c] += velocity[c]
			}
		}
	})
	var loss float64
	for _, l := range w.losses {
		loss += l
	}
	return loss/w.total + math.Log(z) - math.Log(w.total)
}

// attract sets the attraction of the points lo to hi−1 and returns Σ w·log(1+‖x−x′‖²) over
// their edges.
func (w *wholeBatch) attract(points []float32, lo, hi int) (loss float64) {
	product := 1. // whose logarithm is taken once for many edges of weight 1
	for i := lo; i < hi; i++ {
		x, y := points[2*i], points[2*i+1]
		var sumX, sumY float32
		for k := w.starts[i]; k < w.starts[i+1]; k++ {
			j := uint32(w.edges[k] >> 32)
			dx, dy := x-points[2*j], y-points[2*j+1]
			u := 1 + dx*dx + dy*dy
			f := 1 / u
			if w.weights == nil {
				if product *= float64(u); product > 1e250 {
					loss += math.Log(product)
					product = 1
				}
			} else {
				f *= w.weights[k]
				loss += float64(w.weights[k]) * math.Log(float64(u))
			}
			sumX += f * dx
			sumY += f * dy
		}
		w.attracted[2*i], w.attracted[2*i+1] = sumX, sumY
	}
	return loss + math.Log(product)
}
