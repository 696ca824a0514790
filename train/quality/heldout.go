package quality

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"cne/data"
	"cne/data/neighbors"
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
func MeasureHeldOut(ctx context.Context, points, embedding *data.Matrix, held HeldOut, o Options) (*HeldOutFigures, error) {
	m, err := newMeasurement(points, embedding, o)
	if err != nil {
		return nil, err
	}
	n, err := rows(held.Embedding, "held-out points' embedding")
	if err != nil {
		return nil, err
	}
	if err := held.Labels.Check(n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	if held.Points != nil {
		if of, err := inData(held.Points, "held-out points"); err != nil {
			return nil, err
		} else if of != n {
			return nil, fmt.Errorf("%w: held-out points: got %d, want %d as in their embedding", ErrInput, of, n)
		}
		if points != nil && points.CSR == nil {
			if held.Points, err = held.Points.Dense(); err != nil {
				return nil, err
			}
		}
	}
	f := &HeldOutFigures{N: n}
	if points != nil && held.Points != nil && o.Skip&MetricRecall == 0 {
		if err := m.heldOutRecall(ctx, held, f); err != nil {
			return f, err
		}
	}
	if m.Labels == nil || held.Labels == nil || o.Skip&MetricAccuracy != 0 {
		return f, ctx.Err()
	}
	return f, m.heldOutAccuracy(ctx, held, f)
}

func (m *measurement) heldOutRecall(ctx context.Context, held HeldOut, f *HeldOutFigures) error {
	switch {
	case held.Points.D != m.points.D || held.Embedding.D != m.embedding.D:
		return fmt.Errorf("%w: held-out points: got %d values at positions of %d, want %d at positions of %d as of the training points",
			ErrInput, held.Points.D, held.Embedding.D, m.points.D, m.embedding.D)
	case m.points.N < m.K:
		return fmt.Errorf("%w: training points: got %d, want %d or more for the neighbours of held-out points", ErrUndefined, m.points.N, m.K)
	}
	near, err := neighbors.Search(ctx, m.points, held.Points, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	found, err := neighbors.Search(ctx, m.embedding, held.Embedding, m.K, neighbors.Options{Search: neighbors.Exact, Device: m.Device})
	if err != nil {
		return err
	}
	recall, err := fairRecall(near.Index, found.Index, m.K, m.embedding.N, held.Points.N,
		neighbors.Compare(held.Points, m.points), neighbors.Tie(m.points))
	return keep(recall, err, &f.KNNRecall, nil)
}

func (m *measurement) heldOutAccuracy(ctx context.Context, held HeldOut, f *HeldOutFigures) error {
	if _, known := m.Labels.Known(); !known.Categorical() {
		return nil
	}
	rows, known := data.JoinLabels(m.Labels, held.Labels).Known()
	// The training points come first.
	n := len(m.Labels.Class)
	first, _ := slices.BinarySearch(rows, n)
	tests := selection.Map(rows[first:], func(row int) int { return row - n })
	train := classified{m.embedding.Take(rows[:first]), known.Class[:first]}
	test := classified{held.Embedding.Take(tests), known.Class[first:]}
	if train.N < AccuracyK || test.N == 0 {
		return nil
	}
	if !slices.ContainsFunc(test.class, func(c int32) bool { return slices.Contains(train.class, c) }) {
		f.OtherLabels = true
		return nil
	}
	share, err := HeldOutAccuracy(ctx, train.Matrix, train.class, test.Matrix, test.class, AccuracyK, m.Device)
	return keep(Estimate{Mean: share, Exact: true}, err, &f.Accuracy, nil)
}
