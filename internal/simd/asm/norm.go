package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// norm emits the kernels of layers that work on channels of images: a channel is
// a number of planes, stride apart, of which the kernels take the first size
// elements, a multiple of 16.
func (s *isa) norm() {
	s.channelMoments()
	s.channelProducts()
	s.channelScale()
	s.channelBlend()
	s.rectify()
	s.addRectify()
}

// overPlanes emits a loop over the planes, and in it one over their elements,
// step at a time. The pointers are to those of the plane.
func (s *isa) overPlanes(step int, pointers []Register, body func(i Register)) {
	images, size, stride := Load(Param("images"), GP64()), Load(Param("size"), GP64()), Load(Param("stride"), GP64())
	SHLQ(Imm(2), stride)
	i := GP64()
	Label("planes")
	TESTQ(images, images)
	JZ(LabelRef("done"))
	XORQ(i, i)
	Label("elements")
	CMPQ(i, size)
	JGE(LabelRef("next"))
	body(i)
	ADDQ(Imm(uint64(step)), i)
	JMP(LabelRef("elements"))
	Label("next")
	for _, p := range pointers {
		ADDQ(stride, p)
	}
	DECQ(images)
	JMP(LabelRef("planes"))
	Label("done")
}

// halves is how many vectors of float64 16 elements make.
func (s *isa) halves() int { return 32 / s.lanes }

// widened loads the elements of half h of the 16 at i, as float64.
func (s *isa) widened(p, i Register, h int) VecVirtual {
	v := s.vec()
	VCVTPS2PD(at(p, i).Offset(2*s.lanes*h), v)
	return v
}

// pivot64 returns a register with the float32 parameter pivot in every lane, as
// float64.
func (s *isa) pivot64() VecVirtual {
	v, half := s.vec(), s.halfVec()
	VBROADCASTSS(memory(Param("pivot")), half)
	VCVTPS2PD(half, v)
	return v
}

// halfVec returns a register of half the width.
func (s *isa) halfVec() VecVirtual {
	if s.wide() {
		return YMM()
	}
	return XMM()
}

func (s *isa) zeros(n int) (out []VecVirtual) {
	for range n {
		out = append(out, s.zero())
	}
	return out
}

// sum64 adds up the float64 lanes of some vectors and stores the result.
func (s *isa) sum64(parts []VecVirtual, result int) {
	v := parts[0]
	for _, p := range parts[1:] {
		VADDPD(p, v, v)
	}
	t := YMM()
	if s.wide() {
		VEXTRACTF64X4(Imm(1), v, t)
		VADDPD(t, v.AsY(), v.AsY())
	}
	VEXTRACTF128(Imm(1), v.AsY(), t.AsX())
	VADDPD(t.AsX(), v.AsX(), v.AsX())
	VUNPCKHPD(v.AsX(), v.AsX(), t.AsX())
	VADDSD(t.AsX(), v.AsX(), v.AsX())
	VMOVSD(v.AsX(), memory(ReturnIndex(result)))
}

func (s *isa) channelMoments() {
	s.begin("channelMoments", "(x []float32, images, size, stride int, pivot float32) (sum, squares float64)", "is the vector form of channelMoments.")
	x, pivot := s.pointer("x"), s.pivot64()
	sums, squares := s.zeros(s.halves()), s.zeros(s.halves())
	s.overPlanes(16, []Register{x}, func(i Register) {
		for h := range sums {
			v := s.widened(x, i, h)
			VSUBPD(pivot, v, v)
			VADDPD(v, sums[h], sums[h])
			VFMADD231PD(v, v, squares[h])
		}
	})
	s.sum64(sums, 0)
	s.sum64(squares, 1)
	VZEROUPPER()
	RET()
}

func (s *isa) channelProducts() {
	s.begin("channelProducts", "(g, x []float32, images, size, stride int, pivot float32) (sum, products float64)", "is the vector form of channelProducts.")
	g, x, pivot := s.pointer("g"), s.pointer("x"), s.pivot64()
	sums, products := s.zeros(s.halves()), s.zeros(s.halves())
	s.overPlanes(16, []Register{g, x}, func(i Register) {
		for h := range sums {
			v, w := s.widened(x, i, h), s.widened(g, i, h)
			VSUBPD(pivot, v, v)
			VADDPD(w, sums[h], sums[h])
			VFMADD231PD(v, w, products[h])
		}
	})
	s.sum64(sums, 0)
	s.sum64(products, 1)
	VZEROUPPER()
	RET()
}

func (s *isa) channelScale() {
	s.begin("channelScale", "(dst, x []float32, images, size, stride int, pivot, a, b float32)", "is the vector form of channelScale.")
	dst, x, pivot, a, b := s.pointer("dst"), s.pointer("x"), s.broadcast("pivot"), s.broadcast("a"), s.broadcast("b")
	s.overPlanes(s.lanes, []Register{dst, x}, func(i Register) {
		v := s.load(x, i)
		VSUBPS(pivot, v, v)
		VFMADD213PS(b, a, v)
		VMOVUPS(v, at(dst, i))
	})
	VZEROUPPER()
	RET()
}

func (s *isa) channelBlend() {
	s.begin("channelBlend", "(dst, g, x []float32, images, size, stride int, pivot, a, b, c float32)", "is the vector form of channelBlend.")
	dst, g, x := s.pointer("dst"), s.pointer("g"), s.pointer("x")
	pivot, a, b, c := s.broadcast("pivot"), s.broadcast("a"), s.broadcast("b"), s.broadcast("c")
	s.overPlanes(s.lanes, []Register{dst, g, x}, func(i Register) {
		v := s.load(x, i)
		VSUBPS(pivot, v, v)
		VFMADD213PS(c, b, v)
		VFMADD231PS(at(g, i), a, v)
		VMOVUPS(v, at(dst, i))
	})
	VZEROUPPER()
	RET()
}

func (s *isa) rectify() {
	s.begin("rectify", "(dst, x []float32)", "is the vector form of rectify.")
	dst, x, zero := s.pointer("dst"), s.pointer("x"), s.zero()
	s.loop("dst", "loop", func(i Register) {
		v := s.vec()
		VMAXPS(at(x, i), zero, v) // the second source, x, if one is a NaN
		VMOVUPS(v, at(dst, i))
	})
	VZEROUPPER()
	RET()
}

func (s *isa) addRectify() {
	s.begin("addRectify", "(dst, a, b []float32)", "is the vector form of addRectify.")
	dst, a, b, zero := s.pointer("dst"), s.pointer("a"), s.pointer("b"), s.zero()
	s.loop("dst", "loop", func(i Register) {
		v := s.load(a, i)
		VADDPS(at(b, i), v, v)
		VMAXPS(v, zero, v) // the second source, v, if one is a NaN
		VMOVUPS(v, at(dst, i))
	})
	VZEROUPPER()
	RET()
}
