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
