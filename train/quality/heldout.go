package quality

import (
	"cmp"
	"context"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/selection"
)

// HeldOut are points that a model placed but was not trained on.
type HeldOut struct {
	Points    *data.Matrix // as the training points; nil leaves the recall out
	Embedding *data.Matrix // their positions
	Labels    *data.Labels // nil leaves the accuracy out
}

// HeldOutFigures say how well held-out points fit among the training points. A figure
// that cannot be measured or is undefined is nil.
type HeldOutFigures struct {
	N int `json:"n"` // held-out points
	// Accuracy is the accuracy of a kNN classifier (AccuracyK) that knows the training
	// points' positions.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// KNNRecall is the share of a point's K nearest training points that are
	// among the nearest in the embedding.
	KNNRecall *float64 `json:"knn_recall,omitempty"`
	// OtherLabels reports whether the accuracy is left out because no label of the held-out
	// points occurs among the training points.
	OtherLabels bool `json:"-"`
}

// MeasureHeldOut measures the quality of held-out points in an embedding [n, d] of
// training points [n, D]. points may be nil. It uses the options K, Labels (of the
// training points), Device and Skip. Errors are Measure's.
func MeasureHeldOut(ctx context.Context, points, embedding *data.Matrix, held HeldOut, o Options) (f *HeldOutFigures, err error) {
	defer kind.Catch(&err)
	m := newMeasurement(points, embedding, o)
	checkDense(held.Embedding, "held-out points' embedding")
	n := held.Embedding.N
	err = held.Labels.Check(n)
	kind.Expect(err == nil, ErrInput, "%w", err)
	if held.Points != nil {
		checkData(held.Points, "held-out points")
		kind.Expect(held.Points.N == n, ErrInput, "held-out points: got %d, want %d as in their embedding", held.Points.N, n)
		if points != nil && points.CSR == nil {
			held.Points = kind.Got(held.Points.Dense())
		}
	}
	f = &HeldOutFigures{N: n}
	if points != nil && held.Points != nil && o.Skip&MetricRecall == 0 {
		m.heldOutRecall(ctx, held, f)
	}
	if m.Labels != nil && held.Labels != nil && o.Skip&MetricAccuracy == 0 {
		m.heldOutAccuracy(ctx, held, f)
	}
	return f, ctx.Err()
}

// heldOutRecall measures the recall, or fails as kind.Need does.
func (m *measurement) heldOutRecall(ctx context.Context, held HeldOut, f *HeldOutFigures) {
	kind.Expect(held.Points.D == m.points.D && held.Embedding.D == m.embedding.D, ErrInput,
		"held-out points: got %d values at positions of %d, want %d at positions of %d as of the training points",
		held.Points.D, held.Embedding.D, m.points.D, m.embedding.D)
	kind.Expect(m.points.N >= m.K, ErrUndefined,
		"training points: got %d, want %d or more for the neighbours of held-out points", m.points.N, m.K)
	search := func(base, queries *data.Matrix) []int32 {
		found, err := neighbors.Search(ctx, base, queries, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
		kind.Check(cmp.Or(err, ctx.Err()))
		return found.Index
	}
	near, found := search(m.points, held.Points), search(m.embedding, held.Embedding)
	recall := kind.Got(fairRecall(near, found, m.K, m.embedding.N, held.Points.N,
		neighbors.Compare(held.Points, m.points), neighbors.Tie(m.points)))
	keep(recall, &f.KNNRecall, nil)
}

// heldOutAccuracy measures the accuracy, if it is defined, or fails as kind.Need does.
func (m *measurement) heldOutAccuracy(ctx context.Context, held HeldOut, f *HeldOutFigures) {
	if _, known := m.Labels.Known(); !known.Categorical() {
		return
	}
	rows, known := data.JoinLabels(m.Labels, held.Labels).Known()
	// The training points come first.
	n := len(m.Labels.Class)
	first, _ := slices.BinarySearch(rows, n)
	tests := selection.Map(rows[first:], func(row int) int { return row - n })
	train := classified{m.embedding.Take(rows[:first]), known.Class[:first]}
	test := classified{held.Embedding.Take(tests), known.Class[first:]}
	if train.N < AccuracyK || test.N == 0 {
		return
	}
	if !slices.ContainsFunc(test.class, func(c int32) bool { return slices.Contains(train.class, c) }) {
		f.OtherLabels = true
		return
	}
	share := kind.Got(HeldOutAccuracy(ctx, train.Matrix, train.class, test.Matrix, test.class, AccuracyK, m.Device))
	keep(Estimate{Mean: share, Exact: true}, &f.Accuracy, nil)
}
