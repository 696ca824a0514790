package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// maxVectors is the width of the widest sparse kernels.
const maxVectors = 8

// sparse makes the inner loops over the elements of a sparse row, for rows of
// up to maxVectors vectors.
func (i *isa) sparse() {
	for v := 1; v <= maxVectors; v++ {
		s := shape{i, i.lanes, v}
		if i.neon() {
			s.vectors = 2 * v // as many columns as with AVX2
		}
		s.sum(v)
		s.spread(v)
	}
}

// sum computes a row of a layer.
func (s shape) sum(number int) {
	name := fmt.Sprintf("sum%d%s", number, s.name)
	s.TEXT(name, attr.NOSPLIT, "func(n int, col *uint16, val *float32, w *float32, stride int, bias *float32, floor float32, y *float32, mask *uint32, nextCol *uint16, nextVal *float32)")
	s.Doc(fmt.Sprintf("%s adds the rows of w that col names, each times its val, to the bias, clips the sums below at floor and writes them to y, the last of %d vectors under the mask; stride is in bytes.", name, s.vectors))
	s.Member("sum"+s.name, name)
	n, col, val := s.Load(s.Param("n"), s.GP64()), s.Load(s.Param("col"), s.GP64()), s.Load(s.Param("val"), s.GP64())
	w, stride, bias := s.Load(s.Param("w"), s.GP64()), s.Load(s.Param("stride"), s.GP64()), s.Load(s.Param("bias"), s.GP64())
	s.prefetchNext()
	sums, x := s.vecs(), s.vec()
	for j, v := range sums {
		s.VMOVUPS(s.at(bias, j), v)
	}
	s.elements(n, col, val, w, stride, x, func(row Register) {
		for j, v := range sums {
			s.VFMADD231PS(s.at(row, j), x, v)
		}
	})
	y := s.Load(s.Param("y"), s.GP64())
	mask := s.lastMask()
	s.VBROADCASTSS(s.param("floor"), x)
	for j, v := range sums {
		s.VMAXPS(v, x, v) // a NaN in the second source, here the first operand, stays
		if j < s.vectors-1 {
			s.VMOVUPS(v, s.at(y, j))
		} else {
			s.store(v, mask, s.at(y, j))
		}
	}
	s.VZEROUPPER()
	s.RET()
}

// spread adds a row, times each element, to rows of dw.
func (s shape) spread(number int) {
	name := fmt.Sprintf("spread%d%s", number, s.name)
	s.TEXT(name, attr.NOSPLIT, "func(n int, col *uint16, val *float32, grad *float32, mask *uint32, dw *float32, stride int, nextCol *uint16, nextVal *float32)")
	s.Doc(fmt.Sprintf("%s adds the elements at grad, the last of %d vectors under the mask, times each val, to the row of dw that its col names; stride is in bytes.", name, s.vectors))
	s.Member("spread"+s.name, name)
	n, col, val := s.Load(s.Param("n"), s.GP64()), s.Load(s.Param("col"), s.GP64()), s.Load(s.Param("val"), s.GP64())
	from, dw, stride := s.Load(s.Param("grad"), s.GP64()), s.Load(s.Param("dw"), s.GP64()), s.Load(s.Param("stride"), s.GP64())
	s.prefetchNext()
	grad, x, y := s.vecs(), s.vec(), s.vec()
	mask := s.lastMask()
	for j, v := range grad {
		if j < s.vectors-1 {
			s.VMOVUPS(s.at(from, j), v)
		} else {
			s.load(s.at(from, j), mask, v)
		}
	}
	s.elements(n, col, val, dw, stride, x, func(row Register) {
		for j, v := range grad {
			s.VMOVUPS(s.at(row, j), y)
			s.VFMADD231PS(v, x, y)
			s.VMOVUPS(y, s.at(row, j))
		}
	})
	s.VZEROUPPER()
	s.RET()
}

// aheadElements is the number of elements of the next row to prefetch: rows of a
// batch lie anywhere in memory.
const aheadElements = 192

// prefetchNext fetches the beginning of the next row's elements.
func (s *isa) prefetchNext() {
	for _, x := range []struct {
		name string
		size int
	}{{"nextCol", 2}, {"nextVal", 4}} {
		p := s.Load(s.Param(x.name), s.GP64())
		for at := 0; at < x.size*aheadElements; at += 64 {
			s.PREFETCHT0(Mem{Base: p}.Offset(at))
		}
	}
}

// elements emits a loop over the n elements of a sparse row: body gets the address
// of the matrix's row for the element's column, and x holds the element's value.
func (s shape) elements(n, col, val, matrix, stride Register, x VecVirtual, body func(row Register)) {
	s.TESTQ(n, n)
	s.JE(LabelRef("done"))
	row := s.GP64()
	s.Label("loop")
	s.MOVWQZX(Mem{Base: col}, row)
	s.IMULQ(stride, row)
	s.ADDQ(matrix, row)
	s.VBROADCASTSS(Mem{Base: val}, x)
	body(row)
	s.ADDQ(Imm(2), col)
	s.ADDQ(Imm(4), val)
	s.DECQ(n)
	s.JNE(LabelRef("loop"))
	s.Label("done")
}

// lastMask loads the mask of a vector.
func (s shape) lastMask() Register {
	if s.neon() {
		return nil
	}
	from, v := s.Load(s.Param("mask"), s.GP64()), s.vec()
	s.VMOVUPS(Mem{Base: from}, v)
	if !s.masks() {
		return v
	}
	k := s.K()
	s.VPMOVD2M(v, k)
	return k
}
