package data

import (
	"fmt"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"cne/internal/finite"
)

// A Matrix holds N points of D values each, row after row: point i is
// X[i*D : (i+1)*D]. It is a mat.Matrix of gonum.
type Matrix struct {
	N, D int
	X    []float32
}

// NewMatrix returns a matrix of n×d zeros.
func NewMatrix(n, d int) *Matrix { return &Matrix{N: n, D: d, X: make([]float32, n*d)} }

// Row returns point i. The slice shares the matrix's memory.
func (m *Matrix) Row(i int) []float32 { return m.X[i*m.D : (i+1)*m.D : (i+1)*m.D] }

// Rows returns points lo to hi−1 as a matrix that shares m's memory.
func (m *Matrix) Rows(lo, hi int) *Matrix {
	return &Matrix{N: hi - lo, D: m.D, X: m.X[lo*m.D : hi*m.D : hi*m.D]}
}

// Dims returns N and D.
func (m *Matrix) Dims() (n, d int) { return m.N, m.D }

// At returns value j of point i. As gonum's matrices do, it panics if there is
// none.
func (m *Matrix) At(i, j int) float64 {
	if uint(i) >= uint(m.N) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(m.D) {
		panic(mat.ErrColAccess)
	}
	return float64(m.X[i*m.D+j])
}

// T returns the transpose, which shares the matrix's memory.
func (m *Matrix) T() mat.Matrix { return mat.Transpose{Matrix: m} }

// FromRows returns points as a matrix, one for each row. Their values become
// float32. No row, or one without values, gives ErrEmpty, rows of different
// lengths ErrShape, a value that is NaN or infinite as a float32 ErrNotFinite.
func FromRows(rows [][]float64) (*Matrix, error) {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil, errorf(ErrEmpty, "data: there are no rows, or rows without values; give at least one point of one value")
	}
	m := NewMatrix(len(rows), len(rows[0]))
	for i, row := range rows {
		if len(row) != m.D {
			return nil, errorf(ErrShape, "data: row %d (counted from 1) has %d values, the first has %d; give rows of one width", i+1, len(row), m.D)
		}
		narrow(m.Row(i), row)
	}
	return m.finite()
}

// FromMat returns a copy of a gonum matrix, a point for each row. Values and
// errors are as FromRows has them.
func FromMat(from mat.Matrix) (*Matrix, error) {
	if v := reflect.ValueOf(from); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errorf(ErrEmpty, "data: there is no matrix; give one of at least one row and one column")
	}
	n, d := from.Dims()
	if n < 1 || d < 1 {
		return nil, errorf(ErrEmpty, "data: the matrix has %d rows and %d columns; give at least one of each", n, d)
	}
	m := NewMatrix(n, d)
	switch from := from.(type) {
	case *Matrix:
		if err := from.check(); err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		copy(m.X, from.X)
	case mat.RawRowViewer:
		for i := range n {
			narrow(m.Row(i), from.RawRowView(i))
		}
	default:
		for i := range n {
			row := m.Row(i)
			for j := range row {
				row[j] = float32(from.At(i, j))
			}
		}
	}
	return m.finite()
}

// narrow converts values.
func narrow(dst []float32, src []float64) {
	for j, v := range src {
		dst[j] = float32(v)
	}
}

// finite returns the matrix, or an error for a value that is NaN or infinite.
func (m *Matrix) finite() (*Matrix, error) {
	if at := finite.First(m.X); at >= 0 {
		return nil, fmt.Errorf("data: %w", notFinite(fmt.Sprintf("row %d", at/m.D+1), at%m.D, m.X[at]))
	}
	return m, nil
}

// checkWidth is check for rows that are to follow others of d values.
func (m *Matrix) checkWidth(d int) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.D != d {
		return errorf(ErrShape, "data: the rows have %d values, those before them %d; write rows of one width", m.D, d)
	}
	return nil
}

// check reports a matrix without values, or one whose fields contradict each
// other.
func (m *Matrix) check() error {
	if m == nil {
		return errorf(ErrEmpty, "data: there is no matrix of points; give one with at least one point")
	}
	if m.N <= 0 || m.D <= 0 {
		return errorf(ErrEmpty, "data: the matrix is %d×%d; it needs at least one point and one value per point", m.N, m.D)
	}
	if len(m.X)/m.D != m.N || len(m.X)%m.D != 0 {
		return errorf(ErrShape, "data: a matrix of %d×%d has %d values; N·D and len(X) must be equal", m.N, m.D, len(m.X))
	}
	return nil
}
