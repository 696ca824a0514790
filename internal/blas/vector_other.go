//go:build !amd64 || noasm

package blas

// product and operand stand in for what is never made where vectors is false.
type product struct {
	m, n, k     int
	alpha, beta float32
	a, b, c     operand
	transB      bool
}

type operand struct{}

func newOperand([]float32, int, int, int, bool) operand { return operand{} }

func (p *product) run() { panic("blas: no vector form") }
