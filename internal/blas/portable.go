package blas

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"cne/internal/parallel"
)

// The portable form multiplies blocks of these sizes with gonum, which handles
// so small ones of op(B) as stored on the calling goroutine, and adds up each
// element in the order of the depth: its bits do not depend on the blocks.
const (
	portableRows    = 64
	portableColumns = 192
	portableDepth   = 256
)

var serial gonum.Implementation

// A portable is a product computed with gonum. It is used again and again.
type portable[T Float] struct {
	product[T]
	loop parallel.Loop
}

// scratch holds copies of a block of A and of B.
type scratch[T Float] struct {
	a [portableRows * portableDepth]T
	b [portableDepth * portableColumns]T
}

// pools holds what is used again for one type of elements.
type pools[T Float] struct {
	products  parallel.Pool[portable[T]]
	scratches parallel.Pool[scratch[T]]
}

func newPools[T Float]() *pools[T] {
	return &pools[T]{products: parallel.Pool[portable[T]]{New: func() *portable[T] {
		p := new(portable[T])
		p.loop.Body = func(_, lo, hi int) { p.strip(lo, hi) }
		return p
	}}}
}

var (
	pools32 = newPools[float32]()
	pools64 = newPools[float64]()
)

func poolsOf[T Float]() *pools[T] {
	if p, ok := any(pools64).(*pools[T]); ok {
		return p
	}
	return any(pools32).(*pools[T])
}

func multiplyPortable[T Float](what *product[T]) {
	products := &poolsOf[T]().products
	p := products.Get()
	p.product = *what
	if p.alone {
		for i := 0; i < p.m; i += portableRows {
			p.strip(i, min(p.m, i+portableRows))
		}
	} else {
		p.loop.Run(p.m, portableRows)
	}
	p.product = product[T]{} // the matrices are not held
	products.Put(p)
}

// strip computes rows [i0, i1) of C, at most portableRows.
func (p *portable[T]) strip(i0, i1 int) {
	scratches := &poolsOf[T]().scratches
	s := scratches.Get()
	defer scratches.Put(s)
	for j0 := 0; j0 < p.n; j0 += portableColumns {
		j1 := min(p.n, j0+portableColumns)
		c := p.c.data[i0*p.c.ld+j0:]
		scale(i1-i0, j1-j0, p.beta, c, p.c.ld)
		for l0 := 0; l0 < p.k; l0 += portableDepth {
			l1 := min(p.k, l0+portableDepth)
			b, ldb := p.columnsOfB(s, l0, l1, j0, j1)
			a, lda, trans := p.rowsOfA(s, i0, i1, l0, l1)
			gonumGemm(trans, i1-i0, j1-j0, l1-l0, p.alpha, a, lda, b, ldb, c, p.c.ld)
		}
		p.finish(i0, i1, j0, j1)
	}
}

// rowsOfA returns a block of A as stored, with numbered rows one after the
// other.
func (p *portable[T]) rowsOfA(s *scratch[T], i0, i1, l0, l1 int) (a []T, lda int, trans blas.Transpose) {
	switch {
	case p.a.trans:
		return p.a.data[l0*p.a.ld+i0:], p.a.ld, blas.Trans
	case p.a.rows == nil:
		return p.a.data[i0*p.a.ld+l0:], p.a.ld, blas.NoTrans
	}
	for i := i0; i < i1; i++ {
		copy(s.a[(i-i0)*portableDepth:], p.a.data[p.a.row(i)+l0:p.a.row(i)+l1])
	}
	return s.a[:], portableDepth, blas.NoTrans
}

// columnsOfB returns a block of op(B), row by row.
func (p *portable[T]) columnsOfB(s *scratch[T], l0, l1, j0, j1 int) (b []T, ldb int) {
	switch {
	case p.b.trans:
		for j := j0; j < j1; j++ {
			for l, v := range p.b.data[j*p.b.ld+l0 : j*p.b.ld+l1] {
				s.b[l*portableColumns+j-j0] = v
			}
		}
	case p.b.rows != nil:
		for l := l0; l < l1; l++ {
			copy(s.b[(l-l0)*portableColumns:], p.b.data[p.b.row(l)+j0:p.b.row(l)+j1])
		}
	default:
		return p.b.data[l0*p.b.ld+j0:], p.b.ld
	}
	return s.b[:], portableColumns
}

// finish adds the bias to a block of C and raises it to the floor.
func (p *portable[T]) finish(i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		row := p.c.data[i*p.c.ld+j0 : i*p.c.ld+j1]
		if p.bias != nil {
			for j, b := range p.bias[j0:j1] {
				row[j] += b
			}
		}
		for j, v := range row {
			if v < p.floor {
				row[j] = p.floor
			}
		}
	}
}

// gonumGemm adds alpha·op(A)·B to C.
func gonumGemm[T Float](ta blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, c []T, ldc int) {
	switch a := any(a).(type) {
	case []float32:
		serial.Sgemm(ta, blas.NoTrans, m, n, k, float32(alpha), a, lda, any(b).([]float32), ldb, 1, any(c).([]float32), ldc)
	case []float64:
		serial.Dgemm(ta, blas.NoTrans, m, n, k, float64(alpha), a, lda, any(b).([]float64), ldb, 1, any(c).([]float64), ldc)
	}
}

// scale multiplies an m×n matrix by beta; if that is 0, it is not read.
func scale[T Float](m, n int, beta T, c []T, ldc int) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}
