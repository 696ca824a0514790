package data

// A Matrix holds N points of D values each, row after row: point i is
// X[i*D : (i+1)*D].
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

// checkWidth is check for rows that are to follow others of d values.
func (m *Matrix) checkWidth(d int) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.D != d {
		return errorf(ErrShape, "the rows have %d values, those before them %d; write rows of one width", m.D, d)
	}
	return nil
}

// check reports a matrix without values, or one whose fields contradict each
// other.
func (m *Matrix) check() error {
	if m == nil {
		return errorf(ErrEmpty, "there is no matrix; pass one with a row for each point")
	}
	if m.N <= 0 || m.D <= 0 {
		return errorf(ErrEmpty, "the matrix is %d×%d; it needs at least one point and one value per point", m.N, m.D)
	}
	if len(m.X)/m.D != m.N || len(m.X)%m.D != 0 {
		return errorf(ErrShape, "a matrix of %d×%d has %d values; N·D and len(X) must be equal", m.N, m.D, len(m.X))
	}
	return nil
}
