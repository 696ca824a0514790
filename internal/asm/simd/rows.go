package main

import (
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Predicates of comparisons: less, and not less, which holds for a NaN.
const (
	ltOQ  = 0x11
	nltUS = 0x05
)

// compare returns the mask of the lanes where the predicate holds for a and b.
func (s *isa) compare(predicate uint64, a VecVirtual, b Op) Register {
	if s.wide() {
		k := s.K()
		s.VCMPPS(Imm(predicate), b, a, k)
		return k
	}
	m := s.vec()
	s.VCMPPS(Imm(predicate), b, a, m)
	return m
}

// loaded is number in a register, for instructions that cannot read it from memory.
func (s *isa) loaded(x float64) VecVirtual {
	v := s.vec()
	s.VMOVUPS(s.number(x), v)
	return v
}

// reciprocal returns 1/v.
func (s *isa) reciprocal(v, one VecVirtual) VecVirtual {
	y := s.vec()
	s.VDIVPS(v, one, y)
	return y
}

// most bounds v from above and keeps NaNs, least from below.
func (s *isa) most(v VecVirtual, x float64)  { s.VMINPS(v, s.loaded(x), v) }
func (s *isa) least(v VecVirtual, x float64) { s.VMAXPS(v, s.loaded(x), v) }

// far is a squared distance that only excluded pairs exceed.
const far = 1e18

// A logSum adds up the logarithms of numbers from 1 to 8e37, by multiplying
// their mantissas and adding up their exponents. It takes 127 vectors at most.
type logSum struct {
	s                  *isa
	product, exponents []VecVirtual // parts of 16 lanes
}

func (s *isa) logSum() logSum {
	l := logSum{s: s, exponents: s.parted()}
	for range s.parts() {
		l.product = append(l.product, s.constant(1))
	}
	return l
}

func (l *logSum) add(part int, v VecVirtual) {
	s, product, exponents := l.s, l.product[part], l.exponents[part]
	if s.wide() {
		e, m := s.vec(), s.vec()
		s.VGETEXPPS(v, e)
		s.VGETMANTPS(Imm(0), v, m)
		s.VADDPS(e, exponents, exponents)
		s.VMULPS(m, product, product)
		return
	}
	// The scale 2^(127−e) leaves a NaN one.
	e, scale := s.vec(), s.vec()
	s.VPAND(s.table(0x7f800000), v, e)
	s.VMOVUPS(s.table(0x7f000000), scale)
	s.VPSUBD(e, scale, scale)
	s.VMULPS(v, scale, scale)
	s.VMULPS(scale, product, product)
	s.VPSRLD(Imm(23), e, e)
	s.VPSUBD(s.table(127), e, e)
	s.VPADDD(e, exponents, exponents)
}

// total returns the sums of the lanes.
func (l *logSum) total(log logarithm) (sums []VecVirtual) {
	s := l.s
	for part, exponents := range l.exponents {
		if !s.wide() {
			s.VCVTDQ2PS(exponents, exponents)
		}
		y := log.of(l.product[part])
		s.VFMADD231PS(s.number(0.6931471805599453), exponents, y)
		sums = append(sums, y)
	}
	return sums
}

// storeMask stores a mask of the lanes from i on as the bits from i on at found.
func (s *isa) storeMask(mask, found, i Register) {
	byteOf := s.GP64()
	s.MOVQ(i, byteOf)
	s.SHRQ(Imm(3), byteOf)
	to := Mem{Base: found, Index: byteOf, Scale: 1}
	if s.wide() {
		s.KMOVW(mask, to)
		return
	}
	bits := s.GP64()
	s.VMOVMSKPS(mask, bits.As32())
	if s.neon() { // two vectors to a byte
		before, odd := s.GP64(), s.GP64()
		s.MOVQ(i, odd)
		s.ANDQ(Imm(4), odd)
		s.JE(s.to("even"))
		s.MOVBQZX(to, before)
		s.SHLQ(Imm(4), bits)
		s.ORQ(before, bits)
		s.label("even")
	}
	s.MOVB(bits.As8(), to)
}

func (s *isa) rowDistances() {
	s.begin("rowDistances", "(x, norms []float32, norm, slack, near float32, found []uint64)", "is the vector form of rowDistances.")
	x, norms, found := s.pointer("x"), s.pointer("norms"), s.pointer("found")
	norm, slack, near, zero := s.broadcast("norm"), s.broadcast("slack"), s.broadcast("near"), s.zero()
	s.loop("x", "loop", func(i Register) {
		sum, d2, bound := s.vec(), s.vec(), s.vec()
		s.VADDPS(at(norms, i), norm, sum)
		s.VADDPS(at(x, i), sum, d2)
		s.VMAXPS(d2, zero, d2) // the second source, d2, if one is a NaN
		s.VMOVUPS(d2, at(x, i))
		s.VADDPS(slack, d2, d2)
		s.VMULPS(near, sum, bound)
		mask := s.compare(ltOQ, d2, bound)
		s.storeMask(mask, found, i)
	})
	s.end()
}

// markBelow compares bits as floats, which has the same result for all but NaNs.
func (s *isa) markBelow() {
	s.begin("markBelow", "(x []float32, limits []uint32, limit uint32, found []uint64)", "is the vector form of markBelow.")
	x, limits, found := s.pointer("x"), s.pointer("limits"), s.pointer("found")
	limit, magnitude := s.broadcast("limit"), s.bits(0x7fffffff)
	s.loop("x", "loop", func(i Register) {
		v, m := s.load(x, i), s.vec()
		if s.wide() {
			s.VPANDD(magnitude, v, v)
		} else {
			s.VANDPS(magnitude, v, v)
		}
		s.VMAXPS(at(limits, i), limit, m)
		s.storeMask(s.compare(ltOQ, v, m), found, i)
	})
	s.end()
}

func (s *isa) rowSimilarities() {
	s.begin("rowSimilarities", "(x []float32, clamp float32) (sum float32)", "is the vector form of rowSimilarities.")
	x := s.pointer("x")
	clamp, one, zero, sum := s.broadcast("clamp"), s.constant(1), s.zero(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		d2, u := s.load(x, i), s.vec()
		pairs := s.compare(nltUS, d2, zero)
		s.VADDPS(one, d2, u)
		s.most(u, 5e37)
		q := s.reciprocal(u, one)
		s.VMAXPS(q, clamp, q)
		s.keep(pairs, q)
		s.VMOVUPS(q, at(x, i))
		s.VADDPS(q, sum[part], sum[part])
	})
	s.sum(sum, "sum")
	s.end()
}

func (s *isa) rowInfoNC() {
	s.begin("rowInfoNC", "(q []float32, share, clamp float32)", "is the vector form of rowInfoNC.")
	q := s.pointer("q")
	share, clamp := s.broadcast("share"), s.broadcast("clamp")
	s.VMULPS(s.number(-1), share, share)
	s.loop("q", "loop", func(i Register) {
		v, g := s.load(q, i), s.vec()
		s.VMULPS(share, v, g)
		s.VMULPS(v, g, g)
		s.keep(s.aboveClamp(v, clamp), g)
		s.VMOVUPS(g, at(q, i))
	})
	s.end()
}

// rowNeg computes with u = 1+x and w = 1+cu: the derivative −1/(uw), the pair's
// part in dTheta −1/w, and the loss log(1+1/(cu)).
func (s *isa) rowNeg() {
	s.begin("rowNeg", "(x []float32, c, invC, limit float32) (loss, dTheta float32)", "is the vector form of negNegative for at most 960 pairs.")
	x := s.pointer("x")
	c, invC, limit := s.broadcast("c"), s.broadcast("invC"), s.broadcast("limit")
	log := s.logarithm()
	one := log.one
	logs, dTheta := s.logSum(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		d2, u, w, v := s.load(x, i), s.vec(), s.vec(), s.vec()
		pairs := s.notGreater(d2, s.loaded(far))
		s.most(d2, far)
		s.VADDPS(one, d2, u)
		s.VMOVAPS(one, w)
		s.VFMADD231PS(c, u, w)
		s.VMULPS(u, w, v)
		s.most(v, 5e37)
		t := s.reciprocal(v, one)
		s.keep(pairs, t)
		s.VMULPS(t, w, v)
		s.VFMADD213PS(one, invC, v)
		s.keep(s.notGreater(v, limit), t)
		s.VMINPS(v, limit, v)
		logs.add(part, v)
		s.VFNMADD231PS(t, u, dTheta[part])
		s.VMULPS(s.number(-1), t, t)
		s.VMOVUPS(t, at(x, i))
	})
	s.sum(logs.total(log), "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}

// rowUMAP computes the derivative −1/(x(1+x)) and the loss log(1+1/x).
func (s *isa) rowUMAP() {
	s.begin("rowUMAP", "(x []float32, limit float32) (loss float32)", "is the vector form of umapNegative for at most 960 pairs.")
	x := s.pointer("x")
	limit := s.broadcast("limit")
	log := s.logarithm()
	one, logs := log.one, s.logSum()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		d2, u, v := s.load(x, i), s.vec(), s.vec()
		pairs := s.notGreater(d2, s.loaded(far))
		s.most(d2, far)
		s.VADDPS(one, d2, u)
		s.VMULPS(u, d2, v)
		s.least(v, 1.2e-38) // its inverse is beyond any limit
		t := s.reciprocal(v, one)
		s.keep(pairs, t)
		s.VMOVAPS(one, v)
		s.VFMADD231PS(u, t, v)
		s.keep(s.notGreater(v, limit), t)
		s.VMINPS(v, limit, v)
		logs.add(part, v)
		s.VMULPS(s.number(-1), t, t)
		s.VMOVUPS(t, at(x, i))
	})
	s.sum(logs.total(log), "loss")
	s.end()
}

func (s *isa) rowMax() {
	s.begin("rowMax", "(x []float32, least float32) float32", "is the vector form of rowMax, but for NaNs, which it may pass over.")
	x := s.pointer("x")
	var m []VecVirtual
	for range s.parts() {
		m = append(m, s.broadcast("least"))
	}
	s.loopParts("x", "loop", 1, func(i Register, part int) { s.VMAXPS(at(x, i), m[part], m[part]) })
	s.VMOVSS(s.fold(m, s.VMAXPS, s.VMAXSS).AsX(), s.memory(s.ReturnIndex(0)))
	s.end()
}

var expCoefficients = []float64{
	1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
}

// exp returns the exponential of t ≤ 0, and changes t: 2^n·exp(r) with r in
// [−½log 2, ½log 2] and exp(r) a polynomial (with the coefficients of Cephes'
// expf; the error is below 2 units in the last place). It is NaN for a NaN, and 0
// below −50, where it would change no sum of terms up to 1 in float32, and products
// with it can be too small for normal numbers, which processors are slow with.
func (s *isa) exp(t, one VecVirtual) VecVirtual {
	const (
		lowest = -50
		// Adding rounder to a number rounds it to an integer, which then is in
		// the last bits of the sum. Subtracting rounder gives the integer.
		rounder = 3 << 22
	)
	n, k, y, r2 := s.vec(), s.vec(), s.vec(), s.vec()
	low := s.loaded(lowest)
	inside := s.notGreater(low, t)
	s.VMAXPS(t, low, t) // the second source, t, if one is a NaN
	s.VMOVUPS(s.number(rounder), n)
	s.VFMADD231PS(s.number(1.4426950408889634), t, n)
	s.VSUBPS(s.number(rounder), n, k)
	s.VFNMADD231PS(s.number(0.693359375), k, t)
	s.VFNMADD231PS(s.number(-2.12194440e-4), k, t)
	s.VMOVUPS(s.number(expCoefficients[0]), y)
	for _, c := range expCoefficients[1:] {
		s.VFMADD213PS(s.number(c), t, y)
	}
	s.VMULPS(t, t, r2)
	s.VFMADD213PS(t, r2, y)
	s.VADDPS(one, y, y)
	s.VPSLLD(Imm(23), n, n)
	s.VPADDD(n, y, y)
	s.VFMADD231PS(s.number(0), t, y) // adds 0, or NaN
	s.keep(inside, y)
	return y
}

func (s *isa) rowExp() {
	s.begin("rowExp", "(x []float32, top float32) (sum float32)", "is the vector form of rowExp.")
	x := s.pointer("x")
	top, one, sum := s.broadcast("top"), s.constant(1), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		t := s.load(x, i)
		s.VSUBPS(top, t, t)
		e := s.exp(t, one)
		s.VMOVUPS(e, at(x, i))
		s.VADDPS(e, sum[part], sum[part])
	})
	s.sum(sum, "sum")
	s.end()
}

// softmaxGrad adds up y·g, and rest at last, then writes y·(g − sum).
func (s *isa) softmaxGrad() {
	s.begin("softmaxGrad", "(dst, y, g []float32, rest float32) (sum float32)", "is the vector form of softmaxGrad.")
	dst, y, g, sums := s.pointer("dst"), s.pointer("y"), s.pointer("g"), s.parted()
	s.loopParts("y", "sum", 1, func(i Register, part int) {
		v := s.load(y, i)
		s.VMULPS(at(g, i), v, v)
		s.VADDPS(v, sums[part], sums[part])
	})
	sum, all := s.fold(sums, s.VADDPS, s.VADDSS).AsX(), s.vec()
	s.VADDSS(s.memory(s.Param("rest")), sum, sum)
	s.VMOVSS(sum, s.memory(s.ReturnIndex(0)))
	s.VPBROADCASTD(sum, all)
	s.loop("y", "loop", func(i Register) {
		v := s.load(g, i)
		s.VSUBPS(all, v, v)
		s.VMULPS(at(y, i), v, v)
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}

// rowLogistic computes with e = exp(−|x−θ|): the slope 1/(1+e) or, where x is
// below θ, e/(1+e), and the loss max(x−θ, 0) + log(1+e).
func (s *isa) rowLogistic() {
	s.begin("rowLogistic", "(x []float32, theta float32) (loss, dTheta float32)", "is the vector form of LogisticNegative for at most 960 pairs.")
	x := s.pointer("x")
	log := s.logarithm()
	one := log.one
	logs, loss, dTheta := s.logSum(), s.parted(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		t, a, u, zero := s.load(x, i), s.vec(), s.vec(), s.zero()
		s.VSUBPS(s.broadcast("theta"), t, t)
		s.VORPS(s.table(1<<31), t, a)
		below := s.notGreater(t, zero)
		s.VMAXPS(t, zero, t) // the second source, t, if one is a NaN
		s.VADDPS(t, loss[part], loss[part])
		e := s.exp(a, one)
		s.VADDPS(one, e, u)
		r := s.reciprocal(u, one)
		s.blend(below, e, one)
		s.VMULPS(e, r, e)
		s.VSUBPS(e, dTheta[part], dTheta[part])
		s.VMOVUPS(e, at(x, i))
		logs.add(part, u)
	})
	for part, logs := range logs.total(log) {
		s.VADDPS(logs, loss[part], loss[part])
	}
	s.sum(loss, "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}
