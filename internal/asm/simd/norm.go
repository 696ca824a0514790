package main

import (
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// overRows emits a loop over the rows of a matrix, whose columns are the channels of
// images. The pointers are to a vector of columns of the row.
func (s *isa) overRows(pointers []Register, body func()) {
	rows, stride := s.Load(s.Param("rows"), s.GP64()), s.Load(s.Param("c"), s.GP64())
	s.SHLQ(Imm(2), stride)
	s.label("rows")
	s.TESTQ(rows, rows)
	s.JZ(s.to("done"))
	body()
	for _, p := range pointers {
		s.ADDQ(stride, p)
	}
	s.DECQ(rows)
	s.JMP(s.to("rows"))
	s.label("done")
}

// column loads a vector from where the parameter points to.
func (s *isa) column(param string) VecVirtual {
	v := s.vec()
	s.VMOVUPS(Mem{Base: s.pointer(param)}, v)
	return v
}

// doubles returns the lanes of v as float64, in two registers.
func (s *isa) doubles(v VecVirtual) (low, high VecVirtual) {
	low, high = s.vec(), s.vec()
	s.VCVTPS2PD(s.half(v), low)
	switch {
	case s.wide():
		s.VEXTRACTF64X4(Imm(1), v, high.AsY())
	case s.neon():
		s.VMOVHLPS(v, v, high)
	default:
		s.VEXTRACTF128(Imm(1), v, high.AsX())
	}
	s.VCVTPS2PD(s.half(high), high)
	return low, high
}

// addTo adds two registers of float64 to the memory at the parameter.
func (s *isa) addTo(param string, sums []VecVirtual) {
	p := s.pointer(param)
	for i, v := range sums {
		m := Mem{Base: p}.Offset(s.bytes() * i)
		s.VADDPD(m, v, v)
		s.VMOVUPD(v, m)
	}
}

func (s *isa) columnMoments() {
	s.begin("columnMoments", "(x []float32, rows, c int, pivot []float32, sums, squares []float64)", "adds up the moments of a vector of columns.")
	x := s.pointer("x")
	low, high := s.doubles(s.column("pivot"))
	sums, squares := s.zeros(2), s.zeros(2)
	s.overRows([]Register{x}, func() {
		for h, pivot := range []VecVirtual{low, high} {
			v := s.vec()
			s.VCVTPS2PD(Mem{Base: x}.Offset(s.bytes()/2*h), v)
			s.VSUBPD(pivot, v, v)
			s.VADDPD(v, sums[h], sums[h])
			s.VFMADD231PD(v, v, squares[h])
		}
	})
	s.addTo("sums", sums)
	s.addTo("squares", squares)
	s.end()
}

func (s *isa) columnApply() {
	s.begin("columnApply", "(dst, x []float32, rows, c int, pivot, scale, shift []float32, floor float32)", "maps a vector of columns.")
	dst, x := s.pointer("dst"), s.pointer("x")
	pivot, scale, shift, floor := s.column("pivot"), s.column("scale"), s.column("shift"), s.broadcast("floor")
	s.overRows([]Register{dst, x}, func() {
		v := s.vec()
		s.VMOVUPS(Mem{Base: x}, v)
		s.VSUBPS(pivot, v, v)
		s.VFMADD213PS(shift, scale, v)
		s.VMAXPS(v, floor, v) // the second source, v, if one is a NaN
		s.VMOVUPS(v, Mem{Base: dst})
	})
	s.end()
}

// passing returns x−pivot, and the gradient at g where the value of x is not
// the floor, else 0.
func (s *isa) passing(g, x Register, pivot, scale, shift, floor VecVirtual) (v, gradient VecVirtual) {
	v, y := s.vec(), s.vec()
	s.VMOVUPS(Mem{Base: x}, v)
	s.VSUBPS(pivot, v, v)
	s.VMOVAPS(v, y)
	s.VFMADD213PS(shift, scale, y)
	gradient = s.vec()
	const nleUS = 0x06 // not less or equal, or a NaN
	if s.wide() {
		k := s.K()
		s.VCMPPS(Imm(nleUS), floor, y, k)
		s.VMOVUPS_Z(Mem{Base: g}, k, gradient)
		return v, gradient
	}
	s.VCMPPS(Imm(nleUS), floor, y, y)
	s.VANDPS(Mem{Base: g}, y, gradient)
	return v, gradient
}

func (s *isa) columnProducts() {
	s.begin("columnProducts", "(grad, x []float32, rows, c int, pivot, scale, shift []float32, floor float32, sums, products []float64)", "adds up the products of a vector of columns.")
	g, x := s.pointer("grad"), s.pointer("x")
	pivot, scale, shift, floor := s.column("pivot"), s.column("scale"), s.column("shift"), s.broadcast("floor")
	sums, products := s.zeros(2), s.zeros(2)
	s.overRows([]Register{g, x}, func() {
		v, gradient := s.passing(g, x, pivot, scale, shift, floor)
		low, high := s.doubles(gradient)
		lowX, highX := s.doubles(v)
		s.VADDPD(low, sums[0], sums[0])
		s.VADDPD(high, sums[1], sums[1])
		s.VFMADD231PD(lowX, low, products[0])
		s.VFMADD231PD(highX, high, products[1])
	})
	s.addTo("sums", sums)
	s.addTo("products", products)
	s.end()
}

func (s *isa) columnGradient() {
	s.begin("columnGradient", "(dst, grad, x []float32, rows, c int, pivot, scale, shift []float32, floor float32, a, b, o []float32)", "writes the gradient of a vector of columns.")
	dst, g, x := s.pointer("dst"), s.pointer("grad"), s.pointer("x")
	pivot, scale, shift, floor := s.column("pivot"), s.column("scale"), s.column("shift"), s.broadcast("floor")
	a, b, o := s.column("a"), s.column("b"), s.column("o")
	s.overRows([]Register{dst, g, x}, func() {
		v, gradient := s.passing(g, x, pivot, scale, shift, floor)
		s.VFMADD213PS(o, b, v)
		s.VFMADD231PS(gradient, a, v)
		s.VMOVUPS(v, Mem{Base: dst})
	})
	s.end()
}

func (s *isa) addReLU() {
	s.begin("addReLU", "(dst, a, b []float32)", "is the vector form of addReLU.")
	dst, a, b, zero := s.pointer("dst"), s.pointer("a"), s.pointer("b"), s.zero()
	s.loop("dst", "loop", func(i Register) {
		v := s.load(a, i)
		s.VADDPS(at(b, i), v, v)
		s.VMAXPS(v, zero, v) // the second source, v, if one is a NaN
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}
