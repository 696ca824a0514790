package train

import (
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

const (
	// projectionSteps is the number of steps of a new point. projectionNegatives is the
	// number of training points that repel it in each step, a multiple of the vector length.
	projectionSteps     = 5
	projectionNegatives = 64
	// projectionRows is the number of points placed in one piece.
	projectionRows = 64
	// approximateFrom is the smallest number of training points that the CPU searches
	// approximately. Building the search graph then pays off for tens of thousands of new
	// points.
	approximateFrom = 30_000
)

// A Projector places new points in a non-parametric embedding (model.Embedding). Each
// starts at one of its k nearest training points: the one most similar to the others in
// the embedding. A few steps then reduce the loss on its edges to these points. Negatives
// come from all training points, and all new points share the negatives of a step.
// Training points do not move. A point that equals a training point gets its position.
//
// A step moves the point to the mean of the neighbours and of the negatives' mirror
// images. Each is weighted by the derivative of the loss with respect to its squared
// distance. Without negatives this is iteratively reweighted least squares. No learning
// rate is needed.
//
// It is a model.Mapper: the position of a point does not depend on other new points. A
// Projector may be used by several goroutines at once.
type Projector struct {
	steps     int
	training  model.FitInfo
	table     []float32
	rows      []float32 // the table; with the cosine metric its rows have unit length
	negatives []float32 // [steps, d, projectionNegatives]
	d         int
	points    *data.Matrix
	index     *neighbors.Index
	works     parallel.Pool[placer]
}

// NewProjector returns a projector into an embedding.
//   - on, if not nil, is a device that holds the training points and searches them. Its
//     search is exact up to 100 000 points. The CPU searches approximately from 30 000.
//   - points [n, p] are the training points, preprocessed. They are not copied.
//   - table [n, d] has their positions. It is not copied.
//   - training has the options of the training. The loss of a point is the sum over its
//     edges, even if training took the mean over a batch.
//
// If ctx is done while the search is prepared, the error is ctx's.
func NewProjector(ctx context.Context, on *model.Device, points *data.Matrix, table []float32, d int,
	training model.FitInfo) (_ *Projector, err error) {
	defer kind.Catch(&err)
	kind.Need(points != nil, ErrInput, "train: training points: got nil")
	kind.Need(d >= 1 && len(table) == points.N*d && points.N != 0, ErrInput,
		"train: positions: got %d coordinates for %d points in %d dimensions", len(table), points.N, d)
	kind.Need(training.Neighbors >= 1 && training.Negatives >= 1, ErrInput,
		"train: got %d neighbours and %d negatives, want at least 1 of each", training.Neighbors, training.Negatives)
	kind.Need(math.Abs(training.LogConst) <= maxLogConst*2, ErrInput,
		"train: got a constant of exp(%g), want an exponent within ±%d", training.LogConst, 2*maxLogConst)
	if i := simd.FirstNotFinite(table); i >= 0 {
		return nil, kind.Errorf(ErrInput, "train: coordinate %d of position %d (both counted from 0): got %v", i%d, i/d, table[i])
	}
	if _, err := op.NewSlopes(training.Objective, training.Negatives, training.LogConst); err != nil {
		return nil, err
	}
	training.Neighbors = min(training.Neighbors, points.N)
	search := selection.If(on.OnHost() && points.N >= approximateFrom, neighbors.Approximate, neighbors.Auto)
	index := kind.Got(neighbors.NewIndex(ctx, points, neighbors.Options{Search: search, Rough: true, Seed: training.Seed, Device: on}))
	p := &Projector{steps: projectionSteps, training: training, table: table, rows: table, d: d, points: points, index: index}
	if training.Objective.Metric == op.Cosine {
		p.rows = slices.Clone(table)
		for i := range points.N {
			normalize(p.rows[i*d : (i+1)*d])
		}
	}
	stream := rng.New(training.Seed, rng.Projection)
	p.negatives = make([]float32, p.steps*d*projectionNegatives)
	for step := range p.steps {
		for j := range projectionNegatives {
			i := stream.IntN(points.N)
			for c, v := range p.rows[i*d : (i+1)*d] {
				p.negatives[(step*d+c)*projectionNegatives+j] = v
			}
		}
	}
	p.works.New = p.newPlacer
	return p, nil
}

// Size implements model.Mapper.
func (p *Projector) Size() (in, out int) { return p.points.D, p.d }

// ProjectTo implements model.Mapper.
func (p *Projector) ProjectTo(dst, x []float32) (err error) {
	defer kind.Catch(&err)
	width := p.points.D
	rows := len(x) / width
	kind.Need(len(x) == rows*width && len(dst) == rows*p.d, ErrInput,
		"train: got %d values for %d results, want points of %d and %d for each", len(x), len(dst), width, p.d)
	if rows == 0 {
		return nil
	}
	near := kind.Got(p.index.Search(context.Background(), &data.Matrix{N: rows, D: width, X: x, Offset: p.points.Offset}, p.training.Neighbors))
	parallel.For(rows, projectionRows, func(_, lo, hi int) {
		w := p.works.Get()
		defer p.works.Put(w)
		for i := lo; i < hi; i++ {
			at := dst[i*p.d : (i+1)*p.d]
			if near.Dist2[i*near.K] > 0 {
				p.place(at, w, near.Of(i))
				continue
			}
			twin := int(near.Index[i*near.K])
			copy(at, p.table[twin*p.d:(twin+1)*p.d])
		}
	})
	return nil
}

// A placer holds one goroutine's buffers for placing points.
type placer struct {
	slopes *op.Slopes
	// tails [d, padded k] has the coordinates of a point's neighbours.
	tails  []float32
	padded int
	// x has the squared distances from the tails and from the negatives. They are overwritten
	// by derivatives.
	x []float32
}

func (p *Projector) newPlacer() *placer {
	slopes, err := op.NewSlopes(p.training.Objective, p.training.Negatives, p.training.LogConst)
	if err != nil {
		panic(err) // NewProjector has checked the options
	}
	k := (p.training.Neighbors + simd.Lanes - 1) &^ (simd.Lanes - 1)
	return &placer{slopes, slices.Repeat([]float32{float32(math.Inf(1))}, p.d*k), k, make([]float32, k+projectionNegatives)}
}

// place finds the position of a point with these neighbours.
func (p *Projector) place(at []float32, w *placer, near []int32) {
	d, k := p.d, len(near)
	for e, i := range near {
		for c, v := range p.rows[int(i)*d : (int(i)+1)*d] {
			w.tails[c*w.padded+e] = v
		}
	}
	start, most := 0, -1.0
	x := w.x[:w.padded]
	for e := range near {
		clear(x)
		for c := range d {
			tails := w.tails[c*w.padded : (c+1)*w.padded]
			simd.AddSquares(x, tails, tails[e])
		}
		if similar := simd.InverseSum(x); similar > most {
			start, most = int(near[e]), similar
		}
	}
	copy(at, p.rows[start*d:(start+1)*d])
	for step := range p.steps {
		p.step(at, w, k, p.negatives[step*d*projectionNegatives:])
	}
	if p.training.Objective.Metric == op.Cosine { // which leaves the length open
		length := float32(op.Norm(p.table[start*d : (start+1)*d]))
		for c := range at {
			at[c] *= length
		}
	}
}

// step moves a point with k neighbours.
func (p *Projector) step(at []float32, w *placer, k int, negatives []float32) {
	tails, others := w.x[:w.padded], w.x[w.padded:]
	clear(w.x)
	for c, v := range at {
		simd.AddSquares(tails, w.tails[c*w.padded:(c+1)*w.padded], v)
		simd.AddSquares(others, negatives[c*projectionNegatives:(c+1)*projectionNegatives], v)
	}
	w.slopes.Of(tails, k, others)
	var total float32
	for _, s := range w.x {
		total += max(s, -s)
	}
	if !(total > 0) {
		return
	}
	for c, v := range at {
		pull := pullOf(tails[:k], w.tails[c*w.padded:], v) + pullOf(others, negatives[c*projectionNegatives:], v)
		at[c] += pull / total
	}
	if p.training.Objective.Metric == op.Cosine {
		normalize(at)
	}
}

// pullOf returns the sum of weights·(x − v).
func pullOf(weights, x []float32, v float32) float32 {
	var sum [4]float32
	x = x[:len(weights)]
	for ; len(weights) >= 4 && len(x) >= 4; weights, x = weights[4:], x[4:] {
		sum[0] += float32(weights[0] * (x[0] - v))
		sum[1] += float32(weights[1] * (x[1] - v))
		sum[2] += float32(weights[2] * (x[2] - v))
		sum[3] += float32(weights[3] * (x[3] - v))
	}
	for j, w := range weights {
		sum[0] += float32(w * (x[j] - v))
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3])
}

// normalize gives a row unit length, unless it is zero.
func normalize(row []float32) {
	if length := op.Norm(row); length > 0 {
		for c, v := range row {
			row[c] = float32(float64(v) / length)
		}
	}
}
