package data

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"reflect"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mat"

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

// A Matrix holds N points of D values each, row after row: point i is X[i*D : (i+1)*D].
// Values are X plus Offset. It is a mat.Matrix of gonum.
type Matrix struct {
	N, D int
	X    []float32
	// CSR, if not nil, holds sparse points. X and Offset are then nil. Functions that need
	// dense points return an error wrapping ErrSparse.
	CSR *CSR
	// Offset has the number to add to each of the D columns of X; nil means none. Readers,
	// FromRows and FromMat set it if float32 would round away the differences between points.
	// Such values vary little compared with their distance from zero, for example 10⁸ ± 5.
	// Distances between points do not depend on Offset. At adds it, and writers add it before
	// they round to float32. A Scaler keeps it for new points.
	Offset []float64
	// Columns are the names of the D columns, or nil. Points are matched with a model's
	// columns by name.
	Columns []string
	// Metric is how package neighbors compares the points: by Manhattan, Hamming, Jaccard (of
	// values 0 and 1), Haversine (of values divided by HaversineUnit) or Precomputed, or, if
	// empty, by Euclidean distances. Metric.Apply sets it, and makes such values.
	Metric Metric
}

// NewMatrix returns a matrix of n×d zeros.
func NewMatrix(n, d int) *Matrix { return &Matrix{N: n, D: d, X: make([]float32, n*d)} }

// Row returns point i; the points must be dense. The slice shares the matrix's memory.
func (m *Matrix) Row(i int) []float32 { return m.X[i*m.D : (i+1)*m.D : (i+1)*m.D] }

// Rows returns points lo to hi−1 as a matrix that shares m's memory.
func (m *Matrix) Rows(lo, hi int) *Matrix {
	if m.CSR != nil {
		return m.like(hi-lo, nil, m.CSR.rows(lo, hi))
	}
	return m.like(hi-lo, m.X[lo*m.D:hi*m.D:hi*m.D], nil)
}

// like returns n points with the values x or c, and with the width, Offset, Columns and Metric
// of m.
func (m *Matrix) like(n int, x []float32, c *CSR) *Matrix {
	return &Matrix{N: n, D: m.D, X: x, CSR: c, Offset: m.Offset, Columns: m.Columns, Metric: m.Metric}
}

// Clone returns a copy that shares no values with m.
func (m *Matrix) Clone() *Matrix {
	if c := m.CSR; c != nil {
		return m.like(m.N, nil, &CSR{slices.Clone(c.Start), slices.Clone(c.Column), slices.Clone(c.Value)})
	}
	return m.like(m.N, slices.Clone(m.X), nil)
}

// Dims returns N and D.
func (m *Matrix) Dims() (n, d int) { return m.N, m.D }

// At returns value j of point i, with its Offset. It panics if an index is out of range, as
// gonum's matrices do.
func (m *Matrix) At(i, j int) float64 {
	if uint(i) >= uint(m.N) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(m.D) {
		panic(mat.ErrColAccess)
	}
	if m.CSR != nil {
		column, value := m.CSR.Row(i)
		if k, ok := slices.BinarySearch(column, int32(j)); ok {
			return float64(value[k])
		}
		return 0
	}
	v := float64(m.X[i*m.D+j])
	if m.Offset != nil {
		v += m.Offset[j]
	}
	return v
}

// T returns the transpose. It shares the matrix's memory.
func (m *Matrix) T() mat.Matrix { return mat.Transpose{Matrix: m} }

// FromRows returns points as a matrix, one for each row. Their values become float32,
// relative to an Offset where float32 would otherwise make them equal. FromRows returns an
// error wrapping ErrEmpty if there are no rows or no values, ErrShape if rows differ in
// length, and ErrNotFinite if a value is NaN, or infinite as a float32.
func FromRows(rows [][]float64) (*Matrix, error) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, errorf(ErrEmpty, "data: rows: got none, or rows without values, want at least one value")
	}
	m := NewMatrix(len(rows), len(rows[0]))
	if i := slices.IndexFunc(rows, func(row []float64) bool { return len(row) != m.D }); i >= 0 {
		return nil, errorf(ErrShape, "data: values of row %d (counted from 1): got %d, want %d as in the first", i+1, len(rows[i]), m.D)
	}
	return m.fill(func(i int, _ []float64) []float64 { return rows[i] })
}

// FromMat returns a copy of a gonum matrix, with a point for each row. Values and errors
// are as for FromRows.
func FromMat(from mat.Matrix) (_ *Matrix, err error) {
	defer kind.Catch(&err)
	v := reflect.ValueOf(from)
	kind.Need(v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()), ErrEmpty, "data: matrix: got nil, want points")
	n, d := from.Dims()
	kind.Need(n > 0 && d > 0, ErrEmpty, "data: matrix: got %d×%d, want at least one row and one column", n, d)
	switch from := from.(type) {
	case *Matrix:
		kind.Check(from.Check())
		return from.Clone().finite()
	case mat.RawRowViewer:
		return NewMatrix(n, d).fill(func(i int, _ []float64) []float64 { return from.RawRowView(i) })
	}
	return NewMatrix(n, d).fill(func(i int, row []float64) []float64 {
		for j := range row {
			row[j] = from.At(i, j)
		}
		return row
	})
}

// fill sets the values of m, a new matrix, to the rows that row returns. row may use
// scratch for its result.
func (m *Matrix) fill(row func(i int, scratch []float64) []float64) (*Matrix, error) {
	sample, scratch := NewSample(m.D, nil), make([]float64, m.D)
	for i := range m.N {
		values := row(i, scratch)
		if dst := sample.Row(i); dst != nil {
			copy(dst, values)
		}
		for j, v := range values {
			m.X[i*m.D+j] = float32(v)
		}
	}
	if m.Offset = sample.Offset(); m.Offset != nil {
		for i := range m.N {
			for j, v := range row(i, scratch) {
				m.X[i*m.D+j] = float32(v - m.Offset[j])
			}
		}
	}
	return m.finite()
}

// finite returns the matrix, or an error for a value that is NaN or infinite.
func (m *Matrix) finite() (*Matrix, error) {
	if row, column, v, ok := m.FirstNotFinite(); ok {
		return nil, fmt.Errorf("data: %w", NotFinite(fmt.Sprintf("row %d", row+1), m.Columns, column, v))
	}
	return m, nil
}

// FirstNotFinite returns the first value that is NaN or infinite, and its row and column.
// ok is false if all values are finite.
func (m *Matrix) FirstNotFinite() (row, column int, v float32, ok bool) {
	values := m.held()
	at := simd.FirstNotFinite(values)
	switch {
	case at < 0:
		return 0, 0, 0, false
	case m.CSR != nil:
		return sort.SearchInts(m.CSR.Start, at+1) - 1, int(m.CSR.Column[at]), values[at], true
	}
	return at / m.D, at % m.D, values[at], true
}

// Check returns an error wrapping ErrEmpty for a matrix without values, ErrShape for
// inconsistent fields, and ErrNotFinite for an Offset that is not finite.
func (m *Matrix) Check() error {
	if m == nil {
		return errorf(ErrEmpty, "data: matrix: got nil, want points")
	}
	if m.N <= 0 || m.D <= 0 {
		return errorf(ErrEmpty, "data: matrix: got %d×%d, want at least one row and one column", m.N, m.D)
	}
	switch {
	case m.CSR == nil && (len(m.X)/m.D != m.N || len(m.X)%m.D != 0):
		return errorf(ErrShape, "data: matrix of %d×%d: got %d values, want N·D", m.N, m.D, len(m.X))
	case m.CSR != nil && (m.X != nil || m.Offset != nil):
		return errorf(ErrShape, "data: sparse matrix: got dense values or an Offset, want neither")
	case m.CSR != nil && m.D > math.MaxInt32:
		return errorf(ErrShape, "data: columns of the sparse matrix: got %d, want at most %d", m.D, math.MaxInt32)
	case m.CSR != nil:
		if fault := m.CSR.Fault(m.N, m.D); fault != "" {
			return errorf(ErrShape, "data: sparse matrix of %d×%d: %s", m.N, m.D, fault)
		}
	}
	if m.Columns != nil && len(m.Columns) != m.D || m.Offset != nil && len(m.Offset) != m.D {
		return errorf(ErrShape, "matrix of %d×%d: got %d names of columns and %d offsets, want one for each column, or none", m.N,
			m.D, len(m.Columns), len(m.Offset))
	}
	if j := simd.FirstNotFinite(m.Offset); j >= 0 {
		return errorf(ErrNotFinite, "offset of column %d (counted from 1): got %v, want a finite number", j+1, m.Offset[j])
	}
	return nil
}

// Distinct returns the number of different points.
func (m *Matrix) Distinct() int {
	seen := make(map[uint64]bool)
	for _, hash := range m.RowHashes() {
		seen[hash] = true
	}
	return len(seen)
}

// RowHashes yields the hash of each point, in order. Equal points have equal hashes, which
// differ between calls.
func (m *Matrix) RowHashes() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		seed, b := maphash.MakeSeed(), []byte(nil)
		for i := range m.N {
			b = b[:0]
			columns, values := m.stored(i)
			for _, c := range columns {
				b = binary.LittleEndian.AppendUint32(b, uint32(c))
			}
			for _, v := range values {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v+0)) // −0 is 0
			}
			if !yield(i, maphash.Bytes(seed, b)) {
				return
			}
		}
	}
}

// MissingColumns returns the wanted names that are not in names.
func MissingColumns(names, wanted []string) []string {
	have := selection.Set(names)
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return have[name] })
}

// MatchColumns finds columns by name: from[i] is the index in names of wanted[i], and left
// lists the names that are not wanted. Several of one name are taken in their order. The error
// wraps ErrShape if a wanted name is missing, or not there as often as in wanted.
func MatchColumns(wanted, names []string) (from []int, left []string, err error) {
	if none := MissingColumns(names, wanted); len(none) > 0 {
		return nil, nil, errorf(ErrShape, "columns: got %s, want the %d of training; missing: %s",
			text.Few(names, text.Quote), len(wanted), text.Few(none, text.Quote))
	}
	at := make(map[string][]int, len(names))
	for i, name := range names {
		at[name] = append(at[name], i)
	}
	again := make(map[string]int, len(wanted))
	for _, name := range wanted {
		again[name]++
	}
	for _, name := range wanted {
		if want := again[name]; len(at[name]) != want && want > 0 {
			return nil, nil, errorf(ErrShape, "columns: got %d called %s, want %d as in training", len(at[name]), text.Quote(name), want)
		}
		again[name] = 0 // is right
		from, at[name] = append(from, at[name][0]), at[name][1:]
	}
	return from, MissingColumns(wanted, names), nil
}

// Select returns the points with the columns of these names, in the order of columns, and
// the names of the columns that it leaves out. If m or columns has no names, or nothing
// changes, it returns m itself; otherwise it copies values. The error wraps ErrShape if a
// name is missing or ambiguous.
func (m *Matrix) Select(columns []string) (selected *Matrix, left []string, err error) {
	defer kind.Catch(&err)
	if len(columns) == 0 || m.Columns == nil || slices.Equal(m.Columns, columns) {
		return m, nil, nil
	}
	kind.Check(m.Check())
	from, left, err := MatchColumns(columns, m.Columns)
	kind.Check(err)
	if m.CSR != nil {
		return &Matrix{N: m.N, D: len(from), CSR: m.CSR.SelectColumns(from, m.D), Columns: slices.Clone(columns)}, left, nil
	}
	selected = NewMatrix(m.N, len(from))
	selected.Columns, selected.Offset = slices.Clone(columns), selection.Pick(m.Offset, from)
	for i := range m.N {
		row := m.Row(i)
		for k, j := range from {
			selected.X[i*selected.D+k] = row[j]
		}
	}
	return selected, left, nil
}

// Moments returns the mean of some rows of a dense matrix, without its Offset, and the sum of
// their squared distances from it.
func (m *Matrix) Moments(rows []int32) (mean []float64, square float64) {
	mean = make([]float64, m.D)
	for _, i := range rows {
		for j, v := range m.Row(int(i)) {
			mean[j] += float64(v) / float64(len(rows))
		}
	}
	for _, i := range rows {
		for j, v := range m.Row(int(i)) {
			square += float64((float64(v) - mean[j]) * (float64(v) - mean[j]))
		}
	}
	return mean, square
}
