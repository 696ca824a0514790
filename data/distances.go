package data

import "math"

// symmetryTolerance is by how much the two halves of a matrix of distances may differ, its
// diagonal from 0, and a distance be negative, as a share of the largest distance.
const symmetryTolerance = 1e-4

// CheckDistances returns an error unless the points are a matrix of distances between
// them (Precomputed): dense, square, finite, symmetric and 0 on the diagonal, to within 10⁻⁴
// of the largest distance. It wraps ErrShape or, for values, ErrNotFinite or ErrDirection.
// The points must be in memory.
func (ds *Dataset) CheckDistances() error {
	m := ds.Points
	if m.CSR != nil {
		return errorf(ErrShape, "metric: got precomputed for a sparse matrix, want a dense one; sparse distances of neighbours are a graph.file")
	}
	if m.N != m.D {
		return errorf(ErrShape, "metric: got precomputed for a matrix of %d×%d, want a square one, with the distances between all points that are trained on", m.N, m.D)
	}
	if err := ds.Check(); err != nil {
		return err
	}
	m = m.Relative(nil)
	largest := 0.
	for _, v := range m.X {
		largest = max(largest, math.Abs(float64(v)))
	}
	tolerance := symmetryTolerance * largest
	for i := range m.N {
		for j, v := range m.Row(i)[:i+1] {
			there, back := float64(v), float64(m.Row(j)[i])
			switch {
			case i == j && math.Abs(there) > tolerance:
				return errorf(ErrDirection, "%s: %s: got %.6g on the diagonal, want 0 (to within %.2g, 10⁻⁴ of the largest distance); for similarities up to 1, take 1 − S", ds.RowName(i), columnName(m.Columns, j), there, tolerance)
			case math.Abs(there-back) > tolerance:
				return errorf(ErrDirection, "%s: %s: got the distance %.6g, and %.6g the other way, want a symmetric matrix (to within %.2g, 10⁻⁴ of the largest distance), such as (D + D.T)/2", ds.RowName(i), columnName(m.Columns, j), there, back, tolerance)
			case there < -tolerance:
				return errorf(ErrDirection, "%s: %s: got %.6g, want a distance of at least 0", ds.RowName(i), columnName(m.Columns, j), there)
			}
		}
	}
	return nil
}
