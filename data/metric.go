package data

import (
	"context"
	"fmt"
	"math"
	"slices"

	"cne/internal/parallel"
	"cne/internal/text"
)

// A Metric measures the distance of two input points. Distances in the embedding are
// measured by an op.Metric.
//
// Cosine and Correlation bring every point to length 1. The square of the Euclidean
// distance of two such points is 2 − 2·cosine, so the nearest points are the same, and
// methods for Euclidean distances, such as principal components, apply.
type Metric string

const (
	// Euclidean does not change the points. An empty Metric means Euclidean.
	Euclidean Metric = "euclidean"
	// Cosine divides every point by its length.
	Cosine Metric = "cosine"
	// Correlation subtracts from every point the mean of its values, and then divides it by
	// its length. The cosine is then Pearson's correlation.
	Correlation Metric = "correlation"
)

// Words returns the names of all metrics.
func (Metric) Words() []string {
	return []string{string(Euclidean), string(Cosine), string(Correlation)}
}

// UnmarshalText implements encoding.TextUnmarshaler. For an unknown word the error wraps
// ErrOption.
func (m *Metric) UnmarshalText(word []byte) error {
	if !slices.Contains(m.Words(), string(word)) {
		return errorf(ErrOption, "metric: got %q, want euclidean, cosine or correlation", word)
	}
	*m = Metric(word)
	return nil
}

func (m Metric) isEuclidean() bool { return m == "" || m == Euclidean }

// A DirectionError reports zero vectors (Cosine) or constant vectors (Correlation). It
// wraps ErrDirection.
type DirectionError struct {
	Metric Metric
	Rows   []int // in order, counted from 0
	Of     int   // points in all
	names  []string
}

// namedRows is the largest number of rows that an error names.
const namedRows = 3

func (e *DirectionError) Error() string {
	var names []string
	for i, row := range e.Rows[:min(namedRows, len(e.Rows))] {
		name := RowName(nil, false, row)
		if i < len(e.names) {
			name = e.names[i]
		}
		names = append(names, name)
	}
	if more := len(e.Rows) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s of %d points: %s; remove these points, or use the euclidean metric", text.Join(names, "and"), e.Of, e.Metric.NoDirection())
}

// NoDirection returns the part of a message that says what is wrong with zero vectors
// (Cosine) or constant vectors (Correlation).
func (m Metric) NoDirection() string {
	if m == Correlation {
		return "got values that are all equal, want some that differ"
	}
	return "got values that are all 0, want at least one other"
}

// Unwrap returns ErrDirection.
func (e *DirectionError) Unwrap() error { return ErrDirection }

// Normalize centres (Correlation) and normalises the points in place, as the metric needs.
// scaler is the scaler that was applied to them, or nil. It returns a *DirectionError with
// the rows in the input (see Origin) of zero vectors (Cosine) or constant vectors
// (Correlation), an error wrapping ErrOption for an unknown metric, and one wrapping
// ErrSparse for the Correlation of sparse points, because it would make them dense. If ctx
// is done while Stored points are read, Normalize returns ctx's error and the points stay
// unchanged.
func (ds *Dataset) Normalize(ctx context.Context, metric Metric, scaler *Scaler) error {
	if err := CheckPoints(ds.Source()); err != nil {
		return err
	}
	if err := metric.checkFor(ds.Points); err != nil || metric.isEuclidean() {
		return err
	}
	n, _ := ds.Dims()
	skipped := make([]bool, n)
	err := ds.Source().Each(ctx, 0, func(lo int, block *Matrix) error {
		metric.normalize(block, scaler, skipped[lo:]) // in place if it is in memory
		return nil
	})
	if err != nil {
		return err
	}
	ds.Bytes = false
	if ds.Stored != nil {
		ds.Stored = &transformed{of: ds.Stored, offset: ds.Offset(), change: func(block *Matrix) error {
			metric.normalize(block, scaler, make([]bool, block.N))
			return nil
		}}
	}
	e := directionError(metric, skipped)
	if e == nil {
		return nil
	}
	for i, row := range e.Rows {
		if i < namedRows {
			e.names = append(e.names, ds.RowName(row))
		}
		e.Rows[i] = ds.Origin(row)
	}
	return e
}

// Check returns an error wrapping ErrOption for an unknown metric.
func (m Metric) Check() error {
	if m == "" {
		return nil
	}
	return new(Metric).UnmarshalText([]byte(m))
}

// checkFor is Check for points. Nil points count as dense.
func (m Metric) checkFor(points *Matrix) error {
	if points != nil && points.CSR != nil && m == Correlation {
		return errorf(ErrSparse, "metric: got correlation for sparse points, want euclidean or cosine")
	}
	return m.Check()
}

// Apply centres and normalises points in place, as Normalize does. scaler is the scaler
// that was applied to them, or nil. Zero vectors (Cosine) and constant vectors
// (Correlation) become zeros and are marked in skipped, with one element per point. If
// skipped is nil, Apply returns a *DirectionError for them. Other errors are as for
// Normalize.
func (m Metric) Apply(points *Matrix, scaler *Scaler, skipped []bool) error {
	if err := m.checkFor(points); err != nil || m.isEuclidean() {
		return err
	}
	marks := skipped
	if marks == nil {
		marks = make([]bool, points.N)
	}
	m.normalize(points, scaler, marks)
	if e := directionError(m, marks); e != nil && skipped == nil {
		return e
	}
	return nil
}

// directionError returns the error about the marked points, or nil if no point is marked.
func directionError(metric Metric, skipped []bool) *DirectionError {
	e := &DirectionError{Metric: metric, Of: len(skipped)}
	for i, skip := range skipped {
		if skip {
			e.Rows = append(e.Rows, i)
		}
	}
	if e.Rows == nil {
		return nil
	}
	return e
}

// normalize brings points to length 1. A scaler may have left them relative to its offset.
// Zero vectors (Cosine) and constant vectors (Correlation) become zeros and are marked.
func (metric Metric) normalize(m *Matrix, scaler *Scaler, skipped []bool) {
	if m.CSR != nil {
		m.CSR.normalize(skipped)
		return
	}
	offset := scaler.left()
	parallel.For(m.N, max(1, scaleGrain/m.D), func(_, lo, hi int) {
		whole := make([]float64, m.D)
		for i := lo; i < hi; i++ {
			row := m.Row(i)
			if !metric.direction(whole, row, offset) {
				clear(row)
				skipped[i] = true
				continue
			}
			for j, v := range whole {
				row[j] = float32(v)
			}
		}
	})
}

// direction writes a point's values plus the offset to dst, at length 1. It returns false
// for a zero vector (Cosine) or a constant vector (Correlation).
func (metric Metric) direction(dst []float64, point []float32, offset []float64) bool {
	equal, sum := true, 0.
	for j, v := range point {
		dst[j] = float64(v)
		if offset != nil {
			dst[j] += offset[j]
		}
		equal = equal && dst[j] == dst[0]
		sum += dst[j]
	}
	if equal && (metric == Correlation || dst[0] == 0) {
		return false
	}
	mean := 0.
	if metric == Correlation {
		mean = sum / float64(len(dst))
	}
	squares := 0.
	for j := range dst {
		dst[j] -= mean
		squares += float64(dst[j] * dst[j])
	}
	length := math.Sqrt(squares)
	if length == 0 {
		return false
	}
	for j := range dst {
		dst[j] /= length
	}
	return true
}

// left returns the offset that scaled points are still relative to, or nil if there is
// none or it does not matter.
func (s *Scaler) left() []float64 {
	if s == nil || s.Offset == nil || s.Kind == ScaleStandard {
		return nil
	}
	left := slices.Clone(s.Offset)
	if s.Kind == ScaleUnit {
		for j := range left {
			left[j] /= float64(s.Divisor)
		}
	}
	return left
}
