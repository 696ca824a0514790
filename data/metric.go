package data

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
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
	// Manhattan is the sum of the absolute differences of all values.
	Manhattan Metric = "manhattan"
	// Hamming is the number of values that differ.
	Hamming Metric = "hamming"
	// Jaccard compares sets, the values of a point that are not 0: it is 1 less the share of
	// their union that both have, and 0 for two empty sets. Values other than 0 become 1.
	Jaccard Metric = "jaccard"
	// Haversine is the distance on a sphere. Points have two values, latitude and longitude
	// in degrees; a scaler divides them by HaversineUnit.
	Haversine Metric = "haversine"
	// Precomputed is for points that are a matrix of distances (see Dataset.CheckDistances):
	// value j of point i is its distance from point j. New points have a distance from each
	// of these points.
	Precomputed Metric = "precomputed"
)

// HaversineUnit is the divisor of degrees for Haversine. A power of two changes no bits.
const HaversineUnit = 128

// Words returns the names of all metrics.
func (Metric) Words() []string {
	return []string{string(Euclidean), string(Cosine), string(Correlation), string(Manhattan), string(Hamming), string(Jaccard),
		string(Haversine), string(Precomputed)}
}

// UnmarshalText implements encoding.TextUnmarshaler. For an unknown word the error wraps
// ErrOption.
func (m *Metric) UnmarshalText(word []byte) error {
	return kind.ParseWord(m, word, ErrOption, "metric")
}

func (m Metric) isEuclidean() bool { return m == "" || m == Euclidean }

// Angular reports whether the metric compares directions: Cosine or Correlation.
func (m Metric) Angular() bool { return m == Cosine || m == Correlation }

// Direct reports whether points are compared by the metric itself (Matrix.Metric), instead
// of by the Euclidean distances of changed points or of their components.
func (m Metric) Direct() bool { return !m.isEuclidean() && !m.Angular() }

// Squared reports whether neighbors.Compare gives squared distances, instead of distances.
func (m Metric) Squared() bool { return !m.Direct() || m == Haversine }

// Sparse reports whether the metric compares sparse points as they are.
func (m Metric) Sparse() bool { return m != Correlation && m != Haversine && m != Precomputed }

// Mark sets how points are compared that were scaled by scaler, or nil.
func (m Metric) Mark(points *Matrix, scaler *Scaler) {
	if m.Direct() {
		points.Metric = m
	}
	if m == Haversine {
		points.Offset = scaler.left() // it changes these distances
	}
}

// A DirectionError reports zero vectors (Cosine), constant vectors (Correlation) or
// latitudes beyond 90 degrees (Haversine). It wraps ErrDirection.
type DirectionError struct {
	Metric Metric
	Rows   []int    // in order, counted from 0
	Of     int      // points in all
	names  []string // of the first ones
}

// namedRows is the largest number of rows that an error names.
const namedRows = 3

func (e *DirectionError) Error() string {
	names := slices.Clone(e.names)
	if more := len(e.Rows) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s of %d points: %s; remove these points, or use the euclidean metric", text.Join(names, "and"), e.Of,
		e.Metric.NoDirection())
}

// NoDirection returns the part of a message that says what is wrong with the points of a
// DirectionError.
func (m Metric) NoDirection() string {
	switch m {
	case Correlation:
		return "got values that are all equal, want some that differ"
	case Haversine:
		return "got a latitude beyond 90 degrees, want latitude and longitude, in this order, in degrees"
	}
	return "got values that are all 0, want at least one other"
}

// Unwrap returns ErrDirection.
func (e *DirectionError) Unwrap() error { return ErrDirection }

// Normalize centres (Correlation) and normalises the points in place, as the metric needs,
// and marks Points. scaler is the scaler that was applied to them, or nil. It returns a
// *DirectionError with the rows in the input (see Origin), an error wrapping ErrOption for
// an unknown metric, ErrShape for a width that Haversine does not have, and one wrapping
// ErrSparse for the Correlation of sparse points, because it would make them dense. If ctx
// is done while Stored points are read, Normalize returns ctx's error and the points stay
// unchanged.
func (ds *Dataset) Normalize(ctx context.Context, metric Metric, scaler *Scaler) (err error) {
	defer kind.Catch(&err)
	kind.Check(CheckPoints(ds.Source()))
	n, d := ds.Dims()
	if err := metric.checkFor(ds.Points, d); err != nil || metric.isEuclidean() {
		return err
	}
	if names := ds.Columns(); metric == Haversine && names != nil && strings.HasPrefix(strings.ToLower(names[0]), "lo") {
		return errorf(ErrShape, "metric: got haversine for the columns %[1]q and %[2]q, want the latitude first; data.columns=%[2]s,%[1]s takes them so", text.Shorten(names[0]), text.Shorten(names[1]))
	}
	skipped := make([]bool, n)
	kind.Check(ds.Source().Each(ctx, 0, func(lo int, block *Matrix) error {
		metric.normalize(block, scaler, skipped[lo:]) // in place if it is in memory
		return nil
	}))
	ds.Bytes = false
	if ds.Stored != nil {
		ds.Stored = &transformed{Source: ds.Stored, offset: ds.Offset(), change: func(block *Matrix) error {
			metric.normalize(block, scaler, make([]bool, block.N))
			return nil
		}}
	} else {
		metric.Mark(ds.Points, scaler)
	}
	e := directionError(metric, skipped, ds.RowName)
	if e == nil {
		return nil
	}
	e.Rows = selection.Map(e.Rows, ds.Origin)
	return e
}

// Check returns an error wrapping ErrOption for an unknown metric.
func (m Metric) Check() error {
	if m == "" {
		return nil
	}
	return new(Metric).UnmarshalText([]byte(m))
}

// checkFor is Check for points of d values. Nil points count as dense.
func (m Metric) checkFor(points *Matrix, d int) error {
	if m == Haversine && d != 2 {
		return errorf(ErrShape, "metric: got haversine for points of %d values, want 2, latitude and longitude; in tables, data.drop leaves out columns", d)
	}
	if points != nil && points.CSR != nil && m == Correlation {
		return errorf(ErrSparse, "metric: got correlation for sparse points, want euclidean or cosine")
	}
	return m.Check()
}

// Apply centres, normalises and marks points in place, as Normalize does. scaler is the
// scaler that was applied to them, or nil. The points of a *DirectionError become zeros and
// are marked in skipped, with one element per point. If skipped is nil, Apply returns the
// error. Other errors are as for Normalize.
func (m Metric) Apply(points *Matrix, scaler *Scaler, skipped []bool) error {
	if err := m.checkFor(points, points.D); err != nil || m.isEuclidean() {
		return err
	}
	marks := skipped
	if marks == nil {
		marks = make([]bool, points.N)
	}
	m.normalize(points, scaler, marks)
	m.Mark(points, scaler)
	if e := directionError(m, marks, func(row int) string { return RowName(nil, false, row) }); e != nil && skipped == nil {
		return e
	}
	return nil
}

// directionError returns the error about the marked points, or nil if no point is marked. name
// names a row.
func directionError(metric Metric, skipped []bool, name func(row int) string) *DirectionError {
	rows := selection.Where(len(skipped), func(i int) bool { return skipped[i] })
	if rows == nil {
		return nil
	}
	names := selection.Map(rows[:min(namedRows, len(rows))], name)
	return &DirectionError{Metric: metric, Rows: rows, Of: len(skipped), names: names}
}

// normalize changes points as the metric needs. A scaler may have left them relative to its
// offset. The points of a DirectionError become zeros and are marked.
func (metric Metric) normalize(m *Matrix, scaler *Scaler, skipped []bool) {
	offset := scaler.left()
	whole := func(v float32, j int) float64 {
		if offset == nil {
			return float64(v)
		}
		return float64(v) + offset[j]
	}
	switch {
	case metric == Jaccard:
		x := m.held()
		for i, v := range x {
			x[i] = 0
			if whole(v, m.column(i)) != 0 {
				x[i] = 1
			}
		}
		return
	case metric == Haversine:
		for i := range m.N {
			row := m.Row(i)
			if skipped[i] = !(math.Abs(whole(row[0], 0)) <= 90./HaversineUnit); skipped[i] {
				clear(row)
			}
		}
		return
	case metric.Direct():
		return
	}
	grain := max(1, scaleGrain/m.D)
	if m.CSR != nil {
		grain = csrGrain
	}
	parallel.For(m.N, grain, func(_, lo, hi int) {
		var whole []float64
		for i := lo; i < hi; i++ {
			_, row := m.stored(i)
			whole = slices.Grow(whole[:0], len(row))[:len(row)]
			length := metric.direction(whole, row, offset)
			if length == 0 {
				clear(row)
				skipped[i] = true
				continue
			}
			for j, v := range whole {
				row[j] = float32(v / length)
			}
		}
	})
}

// direction writes a point's values plus the offset to dst, for Correlation less their mean, and
// returns their length: 0 for a zero vector (Cosine) or a constant vector (Correlation).
func (metric Metric) direction(dst []float64, point []float32, offset []float64) (length float64) {
	for j, v := range point {
		dst[j] = float64(v)
		if offset != nil {
			dst[j] += offset[j]
		}
	}
	if metric == Correlation {
		equal, sum := true, 0.
		for _, v := range dst {
			equal = equal && v == dst[0]
			sum += v
		}
		if equal {
			return 0
		}
		mean := sum / float64(len(dst))
		for j := range dst {
			dst[j] -= mean
		}
	}
	squares := 0.
	for _, v := range dst {
		squares += float64(v * v)
	}
	return math.Sqrt(squares)
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

// symmetryTolerance is by how much the two halves of a matrix of distances may differ, its
// diagonal from 0, and a distance be negative, as a share of the largest distance.
const symmetryTolerance = 1e-4

// CheckDistances returns an error unless the points are a matrix of distances between
// them (Precomputed): dense, square, finite, symmetric and 0 on the diagonal, to within 10⁻⁴
// of the largest distance. It wraps ErrShape or, for values, ErrNotFinite or ErrDirection.
// The points must be in memory.
func (ds *Dataset) CheckDistances() (err error) {
	defer kind.Catch(&err)
	m := ds.Points
	kind.Need(m.CSR == nil, ErrShape, "metric: got precomputed for a sparse matrix, want a dense one; sparse distances of neighbours are a graph.file")
	kind.Need(m.N == m.D, ErrShape,
		"metric: got precomputed for a matrix of %d×%d, want a square one, with the distances between all points that are trained on", m.N, m.D)
	kind.Check(ds.Check())
	m = m.Relative(nil)
	largest := float64(LargestMagnitude(m.X))
	tolerance := float64(symmetryTolerance * largest)
	for i := range m.N {
		for j, v := range m.Row(i)[:i+1] {
			there, back := float64(v), float64(m.Row(j)[i])
			switch {
			case i == j && math.Abs(there) > tolerance:
				remedy := selection.If(largest <= 1+tolerance, "1 − S for similarities S up to 1", "rows in the order of the columns")
				return errorf(ErrDirection, "%s: %s: got %.6g on the diagonal, want 0 (to within %.2g, 10⁻⁴ of the largest distance), %s",
					ds.RowName(i), columnName(m.Columns, j), there, tolerance, remedy)
			case math.Abs(there-back) > tolerance:
				return errorf(ErrDirection, "%s: %s: got the distance %.6g, and %.6g the other way, want a symmetric matrix (to within %.2g, 10⁻⁴ of the largest distance), such as (D + D.T)/2", ds.RowName(i), columnName(m.Columns, j), there, back, tolerance)
			case there < -tolerance:
				return errorf(ErrDirection, "%s: %s: got %.6g, want a distance of at least 0", ds.RowName(i), columnName(m.Columns, j), there)
			}
		}
	}
	return nil
}
