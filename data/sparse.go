package data

import (
	"math"
	"slices"

	"cne/internal/memory"
	"cne/internal/parallel"
)

// errCentering is the error of scalings that subtract something from every value.
var errCentering = errorf(ErrSparse, "the scaling subtracts a number from all values of a column, which would make sparse points dense; scale by unit or none, or make them dense")

// FromCSR returns sparse points: n of d values, of which indptr, indices and values hold
// those that are not 0 as scipy's csr_matrix does, a point for each row. They are copied;
// the columns of a row may come in any order, values for the same are added up, and
// zeros left out. Values become float32.
//
// No rows or columns give ErrEmpty, arrays that contradict each other or the shape
// ErrShape, a value that is NaN or infinite as a float32 ErrNotFinite.
func FromCSR[I int | int32 | int64, F float32 | float64](n, d int, indptr, indices []I, values []F) (*Matrix, error) {
	if n < 1 || d < 1 {
		return nil, errorf(ErrEmpty, "data: the sparse matrix has %d rows and %d columns; give at least one of each", n, d)
	}
	if d > math.MaxInt32 {
		return nil, errorf(ErrShape, "data: the sparse matrix has %d columns, and at most %d can be numbered", d, math.MaxInt32)
	}
	if len(indptr)-1 != n || len(indices) != len(values) || indptr[0] != 0 || uint64(indptr[n]) != uint64(len(values)) {
		return nil, errorf(ErrShape, "data: a sparse matrix of %d rows has %d entries in indptr, %d indices and %d values; indptr has one entry more than there are rows, from 0 to the number of values", n, len(indptr), len(indices), len(values))
	}
	c := &CSR{Start: make([]int, n+1), Column: make([]int32, len(values)), Value: make([]float32, len(values))}
	for i, p := range indptr {
		if i > 0 && p < indptr[i-1] {
			return nil, errorf(ErrShape, "data: entry %d of indptr (counted from 0) is %d, and the one before it %d; they must ascend", i, p, indptr[i-1])
		}
		c.Start[i] = int(p)
	}
	for k, j := range indices {
		if j < 0 || uint64(j) >= uint64(d) {
			return nil, errorf(ErrShape, "data: entry %d of indices (counted from 0) is %d, and the columns are numbered from 0 to %d", k, j, d-1)
		}
		c.Column[k], c.Value[k] = int32(j), float32(values[k])
	}
	c.Tidy()
	m := &Matrix{N: n, D: d, CSR: c}
	return m.finite()
}

// likeSparse returns other points of the same kind.
func (m *Matrix) likeSparse(c *CSR) *Matrix {
	return &Matrix{N: len(c.Start) - 1, D: m.D, CSR: c, Columns: m.Columns}
}

// Take returns copies of some points.
func (m *Matrix) Take(rows []int) *Matrix {
	if m.CSR != nil {
		return m.likeSparse(m.CSR.take(rows))
	}
	t := m.like(len(rows), make([]float32, len(rows)*m.D))
	for to, from := range rows {
		copy(t.Row(to), m.Row(from))
	}
	return t
}

// held returns the values that are held: all, or those of sparse points that are not 0.
func (m *Matrix) held() []float32 {
	if m.CSR != nil {
		return m.CSR.Value
	}
	return m.X
}

// Dense returns the points as dense ones: m itself unless they are sparse. If they would
// take more memory than there is, it gives ErrSparse.
func (m *Matrix) Dense() (*Matrix, error) {
	if m.CSR == nil {
		return m, nil
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	bytes := 4 * float64(m.N) * float64(m.D)
	if bytes > math.MaxInt64/2 {
		return nil, errorf(ErrSparse, "%d sparse points of %d values are too many to be made dense; take their principal components", m.N, m.D)
	}
	if left, ok := memory.Available(); ok && bytes > float64(left.Bytes) {
		return nil, errorf(ErrSparse, "%d sparse points of %d values would take %s if they were dense, but %s leaves %s; take their principal components", m.N, m.D, memory.Bytes(int64(bytes)), left.Source, memory.Bytes(left.Bytes))
	}
	dense := NewMatrix(m.N, m.D)
	dense.Columns = m.Columns
	m.CopyRows(dense.X, 0)
	return dense, nil
}

// CopyRows writes the values of the points from first on to dst, as many as it has room
// for: len(dst)/D. Sparse points become dense.
func (m *Matrix) CopyRows(dst []float32, first int) {
	if m.CSR == nil {
		copy(dst, m.X[first*m.D:])
		return
	}
	rows := min(len(dst)/m.D, m.N-first)
	parallel.For(rows, max(1, scaleGrain/m.D), func(_, lo, hi int) {
		clear(dst[lo*m.D : hi*m.D])
		for i := lo; i < hi; i++ {
			row := dst[i*m.D : (i+1)*m.D]
			column, value := m.CSR.Row(first + i)
			for k, j := range column {
				row[j] = value[k]
			}
		}
	})
}

// at returns a value.
func (c *CSR) at(i, j int) float64 {
	column, value := c.Row(i)
	if k, ok := slices.BinarySearch(column, int32(j)); ok {
		return float64(value[k])
	}
	return 0
}

// SelectColumns returns a matrix whose columns are those that from names, of d.
func (c *CSR) SelectColumns(from []int, d int) *CSR {
	to := make([]int32, d)
	for j := range to {
		to[j] = -1
	}
	for k, j := range from {
		to[j] = int32(k)
	}
	s := &CSR{Start: make([]int, 1, len(c.Start))}
	for i := range len(c.Start) - 1 {
		column, value := c.Row(i)
		for k, j := range column {
			if to[j] >= 0 {
				s.Column, s.Value = append(s.Column, to[j]), append(s.Value, value[k])
			}
		}
		s.Start = append(s.Start, len(s.Value))
	}
	s.Tidy()
	return s
}

// normalize brings the rows to length 1, as Cosine does. Those without values are
// marked.
func (c *CSR) normalize(skipped []bool) {
	parallel.For(len(c.Start)-1, csrGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			_, value := c.Row(i)
			squares := 0.
			for _, v := range value {
				squares += float64(v) * float64(v)
			}
			length := math.Sqrt(squares)
			if length == 0 {
				skipped[i] = true
			}
			for k, v := range value {
				value[k] = float32(float64(v) / length)
			}
		}
	})
}

// allEqual tells whether all rows are equal.
func (c *CSR) allEqual() bool {
	firstColumn, firstValue := c.Row(0)
	for i := 1; i < len(c.Start)-1; i++ {
		if column, value := c.Row(i); !slices.Equal(column, firstColumn) || !slices.Equal(value, firstValue) {
			return false
		}
	}
	return true
}

// Nonzeros returns how many values sparse points hold; 0 for dense ones, or none.
func (m *Matrix) Nonzeros() int {
	if m == nil || m.CSR == nil {
		return 0
	}
	return len(m.CSR.Value)
}
