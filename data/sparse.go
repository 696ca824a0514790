package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// errCentering is the error of scalings that subtract something from every value.
var errCentering = errorf(ErrSparse, "scaling: got standard or an offset for sparse points, want unit or none")

// FromCSR returns n sparse points of d values, one per row of a matrix in the form of
// scipy's csr_matrix. The slices are copied. The columns of a row may be in any order,
// values for the same column are added up, and zeros are left out. Values become float32.
//
// The error wraps ErrEmpty if n or d is below 1, ErrShape if the arrays contradict each
// other or the shape, and ErrNotFinite if a value is NaN, or infinite as a float32.
func FromCSR[I int | int32 | int64, F float32 | float64](n, d int, indptr, indices []I, values []F) (_ *Matrix, err error) {
	defer kind.Catch(&err)
	kind.Need(n > 0 && d > 0, ErrEmpty, "data: sparse matrix: got %d×%d, want at least one row and one column", n, d)
	kind.Need(len(indptr)-1 == n && len(indices) == len(values) && indptr[0] == 0 && uint64(indptr[n]) == uint64(len(values)), ErrShape,
		"data: sparse matrix of %d rows: got %d entries in indptr, %d indices and %d values, want an entry more than rows, from 0 to the number of values",
		n, len(indptr), len(indices), len(values))
	c := &CSR{Start: make([]int, n+1), Column: make([]int32, len(values)), Value: make([]float32, len(values))}
	for i, p := range indptr {
		if i > 0 && p < indptr[i-1] {
			return nil, errorf(ErrShape, "data: entry %d of indptr (counted from 0): got %d, want %d, the entry before, or more", i, p, indptr[i-1])
		}
		c.Start[i] = int(p)
	}
	for k, j := range indices {
		if j < 0 || uint64(j) >= uint64(d) {
			return nil, errorf(ErrShape, "data: entry %d of indices (counted from 0): got %d, want 0 to %d", k, j, d-1)
		}
		c.Column[k], c.Value[k] = int32(j), float32(values[k])
	}
	c.Tidy()
	m := &Matrix{N: n, D: d, CSR: c}
	kind.Check(m.Check())
	return m.finite()
}

// Sparse returns the points as sparse points: m itself if they are, otherwise a copy without
// Offset.
func (m *Matrix) Sparse() *Matrix {
	if m.CSR != nil {
		return m
	}
	c := &CSR{Start: make([]int, 1, m.N+1)}
	from := m.Relative(nil)
	for i := range m.N {
		c.AppendRow(from.Row(i))
	}
	return from.like(m.N, nil, c)
}

// Used returns sparse points without the columns that no point has, except the first.
func (m *Matrix) Used() *Matrix {
	held := make([]bool, m.D)
	held[0] = true
	for _, j := range m.CSR.Column {
		held[j] = true
	}
	used := selection.Where(m.D, func(j int) bool { return held[j] })
	return &Matrix{N: m.N, D: len(used), CSR: m.CSR.SelectColumns(used, m.D), Metric: m.Metric}
}

// EqualRows reports whether points i and j have the same values.
func (m *Matrix) EqualRows(i, j int) bool { return equalRows(m, i, m, j) }

// equalRows is EqualRows for points i of m and j of other.
func equalRows(m *Matrix, i int, other *Matrix, j int) bool {
	columns, values := m.stored(i)
	others, with := other.stored(j)
	return slices.Equal(columns, others) && slices.Equal(values, with)
}

// Take returns copies of some points.
func (m *Matrix) Take(rows []int) *Matrix {
	if m.CSR != nil {
		return m.like(len(rows), nil, m.CSR.take(rows))
	}
	t := m.like(len(rows), make([]float32, len(rows)*m.D), nil)
	for to, from := range rows {
		copy(t.Row(to), m.Row(from))
	}
	return t
}

// held returns the values in memory: all, or the nonzero values of sparse points.
func (m *Matrix) held() []float32 {
	if m.CSR != nil {
		return m.CSR.Value
	}
	return m.X
}

// column returns the column of value i of held.
func (m *Matrix) column(i int) int {
	if m.CSR != nil {
		return int(m.CSR.Column[i])
	}
	return i % m.D
}

// Dense returns the points as dense points: m itself unless they are sparse. If they would
// not fit into memory, the error wraps ErrSparse.
func (m *Matrix) Dense() (_ *Matrix, err error) {
	defer kind.Catch(&err)
	if m.CSR == nil {
		return m, nil
	}
	kind.Check(m.Check())
	bytes := 4 * float64(m.N) * float64(m.D)
	kind.Need(bytes <= math.MaxInt64/2, ErrSparse, "%d sparse points of %d values are too many to be made dense", m.N, m.D)
	left, ok := memory.Available()
	kind.Need(!ok || bytes <= float64(left.Bytes), ErrSparse, "%d sparse points of %d values would take %s if they were dense, but %s leaves %s",
		m.N, m.D, memory.Bytes(int64(bytes)), left.Source, memory.Bytes(left.Bytes))
	dense := NewMatrix(m.N, m.D)
	dense.Columns, dense.Metric = m.Columns, m.Metric
	m.CopyRows(dense.X, 0)
	return dense, nil
}

// CopyRows writes the values of len(dst)/D points to dst, starting with point first.
// Sparse points become dense.
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

// SelectColumns returns a matrix of some of the d columns; from lists their indices.
func (c *CSR) SelectColumns(from []int, d int) *CSR {
	to := slices.Repeat([]int32{-1}, d)
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

// Nonzeros returns the number of nonzero values of sparse points, and 0 for dense points
// or nil.
func (m *Matrix) Nonzeros() int {
	if m == nil || m.CSR == nil {
		return 0
	}
	return len(m.CSR.Value)
}

// A CSR holds the values of a matrix that are not 0, row after row (compressed sparse
// rows). It takes 8 bytes for each value.
type CSR struct {
	// Start has one entry more than there are rows. The values of row i are
	// Value[Start[i]:Start[i+1]], none of them 0. Column has their columns, counted from 0,
	// strictly ascending in each row.
	Start  []int
	Column []int32
	Value  []float32
}

// csrGrain is the number of rows of a sparse matrix in a piece of work.
const csrGrain = 256

// Row returns the columns and values of row i. They share memory with c.
func (c *CSR) Row(i int) (column []int32, value []float32) {
	lo, hi := c.Start[i], c.Start[i+1]
	return c.Column[lo:hi:hi], c.Value[lo:hi:hi]
}

// AppendRow adds a row. Only its nonzero values are stored.
func (c *CSR) AppendRow(row []float32) {
	for j, v := range row {
		if v != 0 {
			c.Column, c.Value = append(c.Column, int32(j)), append(c.Value, v)
		}
	}
	c.Start = append(c.Start, len(c.Value))
}

// rows returns rows lo to hi−1. They share memory with c, except Start.
func (c *CSR) rows(lo, hi int) *CSR {
	begin, end := c.Start[lo], c.Start[hi]
	start := slices.Clone(c.Start[lo : hi+1])
	for i := range start {
		start[i] -= begin
	}
	return &CSR{start, c.Column[begin:end:end], c.Value[begin:end:end]}
}

// take returns copies of some rows.
func (c *CSR) take(rows []int) *CSR {
	t := &CSR{Start: make([]int, len(rows)+1)}
	for k, i := range rows {
		t.Start[k+1] = t.Start[k] + c.Start[i+1] - c.Start[i]
	}
	t.Column, t.Value = make([]int32, t.Start[len(rows)]), make([]float32, t.Start[len(rows)])
	for k, i := range rows {
		column, value := c.Row(i)
		copy(t.Column[t.Start[k]:], column)
		copy(t.Value[t.Start[k]:], value)
	}
	return t
}

// Transpose returns a matrix of d columns with its columns as rows, and with the rows as
// columns in ascending order.
func (c *CSR) Transpose(d int) *CSR {
	t := &CSR{Start: make([]int, d+1), Column: make([]int32, len(c.Column)), Value: make([]float32, len(c.Value))}
	for _, j := range c.Column {
		t.Start[j+1]++
	}
	selection.Accumulate(t.Start)
	next := slices.Clone(t.Start)
	for i := range len(c.Start) - 1 {
		column, value := c.Row(i)
		for k, j := range column {
			t.Column[next[j]], t.Value[next[j]] = int32(i), value[k]
			next[j]++
		}
	}
	return t
}

// ConcatCSR concatenates the rows of several matrices. It sets their Column and Value to
// nil to release memory. A single matrix is returned itself.
func ConcatCSR(parts []*CSR) *CSR {
	if len(parts) == 1 {
		return parts[0]
	}
	c := &CSR{Start: []int{0}}
	columns, values := make([][]int32, len(parts)), make([][]float32, len(parts))
	for i, p := range parts {
		begin := c.Start[len(c.Start)-1]
		for _, s := range p.Start[1:] {
			c.Start = append(c.Start, begin+s)
		}
		columns[i], values[i] = p.Column, p.Value
		p.Column, p.Value = nil, nil
	}
	c.Column = slices.Concat(columns...)
	clear(columns)
	c.Value = slices.Concat(values...)
	return c
}

// Fault returns a clause that says what is inconsistent in a matrix of n rows and d
// columns, or "" if nothing is. It checks every column.
func (c *CSR) Fault(n, d int) string {
	switch {
	case len(c.Start) != n+1 || c.Start[0] != 0 || c.Start[n] != len(c.Value) || len(c.Column) != len(c.Value):
		return fmt.Sprintf("%d rows, %d columns of values, %d values and %d entries in Start contradict each other", n,
			len(c.Column), len(c.Value), len(c.Start))
	case !slices.IsSorted(c.Start):
		return "Start is not in ascending order"
	}
	faults := make([]string, parallel.Pieces(n, csrGrain))
	parallel.For(n, csrGrain, func(piece, lo, hi int) {
		for i := lo; i < hi && faults[piece] == ""; i++ {
			if column, _ := c.Row(i); len(column) > 0 && (column[0] < 0 || int(column[len(column)-1]) >= d || !Ascending(column)) {
				faults[piece] = fmt.Sprintf("the columns of row %d (counted from 0) are not in ascending order from 0 to %d", i, d-1)
			}
		}
	})
	return cmp.Or(faults...)
}

// Tidy puts the columns of each row in ascending order, adds up values of the same
// column, and removes values of 0.
func (c *CSR) Tidy() {
	n := len(c.Start) - 1
	untidy := make([]bool, parallel.Pieces(n, csrGrain))
	parallel.For(n, csrGrain, func(piece, lo, hi int) {
		var keys []uint64
		for i := lo; i < hi; i++ {
			column, value := c.Row(i)
			untidy[piece] = untidy[piece] || slices.Contains(value, 0)
			if Ascending(column) {
				continue
			}
			// Equal columns are in the order of their values' bits, so sums do
			// not depend on the order of the file.
			keys = keys[:0]
			for k, j := range column {
				keys = append(keys, uint64(j)<<32|uint64(math.Float32bits(value[k])))
			}
			slices.Sort(keys)
			for k, key := range keys {
				column[k], value[k] = int32(key>>32), math.Float32frombits(uint32(key))
				untidy[piece] = untidy[piece] || k > 0 && column[k] == column[k-1]
			}
		}
	})
	if !slices.Contains(untidy, true) {
		return
	}
	kept := 0
	for i := range n {
		column, value := c.Row(i)
		c.Start[i] = kept
		for k := 0; k < len(column); {
			j, sum := column[k], value[k]
			for k++; k < len(column) && column[k] == j; k++ {
				sum += value[k]
			}
			if sum != 0 {
				c.Column[kept], c.Value[kept] = j, sum
				kept++
			}
		}
	}
	c.Start[n] = kept
	c.Column, c.Value = c.Column[:kept], c.Value[:kept]
}

// Ascending reports whether each number is larger than the one before it.
func Ascending(x []int32) bool {
	for i := 1; i < len(x); i++ {
		if x[i] <= x[i-1] {
			return false
		}
	}
	return true
}
