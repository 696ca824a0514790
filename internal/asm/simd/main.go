// Command simd generates the kernels of package simd. Each is written once against isa,
// which hides the differences of AVX-512 (16 lanes, mask registers), AVX2 with FMA (8
// lanes, masks in vectors) and NEON (4 lanes). On amd64 a kernel has both forms and chooses
// by simd.current. All of them but columnSums expect a number of
// elements that is a multiple of 16; the Go callers handle the rest.
package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"cne/internal/asm/target"
)

func main() { target.Main(amd64, arm64, true) }

func amd64(f *target.File) {
	avx512, avx2 := &isa{File: f, name: "AVX512", lanes: 16}, &isa{File: f, name: "AVX2", lanes: 8}
	kernels(func(kernel func(s *isa)) { // first the form for AVX-512
		kernel(avx512)
		kernel(avx2)
	})
	avx512.winogradHalves()
	avx512.pairs()
	avx512.planes()
	avx2.planes()
	avx2.scatterWords()
	avx2.holdsWord()
	avx2.insertWord()
	avx512.insertWordWide()
	avx2.squaredDistances()
	avx2.fetch()
}

func arm64(f *target.File) {
	neon := &isa{File: f, name: "NEON", lanes: 4}
	kernels(func(kernel func(s *isa)) { kernel(neon) })
	neon.scatterWords()
	neon.fetch()
}

// kernels emits the kernels that all instruction sets have.
func kernels(emit func(kernel func(s *isa))) {
	for _, kernel := range []func(s *isa){
		(*isa).pairs2, (*isa).scatterGradient2, (*isa).negPositive, (*isa).negNegative, (*isa).umapPositive,
		(*isa).umapNegative, (*isa).similarities, (*isa).logTotals, (*isa).infoncPositive, (*isa).infoncNegative,
		(*isa).add, (*isa).scale, (*isa).divide, (*isa).addPlane, (*isa).gatherRows2, (*isa).scatterRows2, (*isa).descend,
		(*isa).descendRows2, (*isa).momentumStep, (*isa).adamStep, (*isa).maskPositive, (*isa).columnSums,
		(*isa).maxUint32, (*isa).maxMagnitude, (*isa).inverseSum2, (*isa).inverseSum2Near, (*isa).addSquares, (*isa).addDistances, (*isa).inverseSum,
		(*isa).countBelow, (*isa).markBelow, (*isa).drawOthers, (*isa).rowDistances, (*isa).rowSimilarities,
		(*isa).rowInfoNC, (*isa).rowNeg, (*isa).rowUMAP, (*isa).rowMax, (*isa).rowExp, (*isa).softmaxGrad, (*isa).rowLogistic,
		(*isa).nearRows, (*isa).nearBytes, (*isa).nearTiles, (*isa).projectRows, (*isa).columnMoments, (*isa).columnApply,
		(*isa).columnProducts, (*isa).columnGradient, (*isa).addReLU, (*isa).field, (*isa).attract,
	} {
		emit(kernel)
	}
	denseKernels(emit)
	winograd(emit)
}

// An isa is one of the instruction sets.
type isa struct {
	*target.File
	name  string
	lanes int
}

func (s *isa) wide() bool { return s.lanes == 16 }

func (s *isa) bytes() int { return 4 * s.lanes }

func (s *isa) neon() bool { return s.lanes == 4 }

// few reports whether there are only 16 vector registers (AVX2).
func (s *isa) few() bool { return s.lanes == 8 }

// parts is the number of registers for a vector of 16 numbers. All instruction sets add up
// in such vectors.
func (s *isa) parts() int { return 16 / s.lanes }

func (s *isa) vec() VecVirtual {
	switch {
	case s.wide():
		return s.ZMM()
	case s.neon():
		return s.XMM()
	}
	return s.YMM()
}

// half returns the register that is the lower half of v.
func (s *isa) half(v VecVirtual) Register {
	if s.wide() {
		return v.AsY()
	}
	return v.AsX()
}

// begin begins a kernel, or in it the form for AVX2.
func (s *isa) begin(name, signature, doc string) {
	if !s.few() {
		name += "Vector"
		s.TEXT(name, attr.NOSPLIT, "func"+signature)
		s.Doc(name + " " + doc)
	}
	s.choose()
}

// choose emits the start of each of the two forms of a kernel for amd64.
func (s *isa) choose() {
	const widest = 2 // isa.AVX512
	switch {
	case s.wide():
		s.CMPQ(Mem{Symbol: Symbol{Name: "·current"}, Base: StaticBase}, Imm(widest))
		s.JNE(LabelRef("formAVX2"))
	case s.few():
		s.label("form")
	}
}

// end ends a form.
func (s *isa) end() {
	s.VZEROUPPER()
	s.RET()
}

// label emits a label of the form, and to refers to it.
func (s *isa) label(name string)       { s.Label(name + s.name) }
func (s *isa) to(name string) LabelRef { return LabelRef(name + s.name) }

// constant returns a register with x in every lane.
func (s *isa) constant(x float64) VecVirtual { return s.bits(math.Float32bits(float32(x))) }

func (s *isa) bits(x uint32) VecVirtual {
	v, r := s.vec(), s.GP32()
	s.MOVL(U32(x), r)
	s.VMOVD(r, v.AsX())
	s.VPBROADCASTD(v.AsX(), v)
	return v
}

// broadcast returns a register with the float32 parameter in every lane.
func (s *isa) broadcast(param string) VecVirtual {
	v := s.vec()
	s.VBROADCASTSS(s.memory(s.Param(param)), v)
	return v
}

// memory returns the address of a parameter or result. avo's Load and Store would
// use an SSE instruction, which takes some processors (Sapphire Rapids is one)
// 30 ns among AVX instructions.
func (s *isa) memory(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func (s *isa) zero() VecVirtual {
	v := s.vec()
	if s.wide() {
		s.VPXORD(v, v, v)
	} else {
		s.VXORPS(v, v, v)
	}
	return v
}

func (s *isa) pointer(slice string) Register { return s.Load(s.Param(slice).Base(), s.GP64()) }

// loop emits body for each vector of a slice's elements. i counts elements; the
// address of element i of a float32 slice at p is at(p, i).
func (s *isa) loop(slice, label string, body func(i Register)) {
	n, i := s.Load(s.Param(slice).Len(), s.GP64()), s.GP64()
	s.XORQ(i, i)
	s.label(label)
	s.CMPQ(i, n)
	s.JGE(s.to(label + "_done"))
	body(i)
	s.ADDQ(Imm(uint64(s.lanes)), i)
	s.JMP(s.to(label))
	s.label(label + "_done")
}

// loopParts is loop for sums: body is emitted for each part of a group of 16 numbers. Each
// step advances by groups groups; i counts the elements of the first of them.
func (s *isa) loopParts(slice, label string, groups int, body func(i Register, part int)) {
	s.loop(slice, label, func(i Register) {
		for part := range s.parts() {
			if part > 0 {
				s.ADDQ(Imm(uint64(s.lanes)), i)
			}
			body(i, part)
		}
		if groups > 1 {
			s.ADDQ(Imm(uint64(16*(groups-1))), i)
		}
	})
}

func at(p, i Register) Mem { return Mem{Base: p, Index: i, Scale: 4} }

func (s *isa) load(p, i Register) VecVirtual {
	v := s.vec()
	s.VMOVUPS(at(p, i), v)
	return v
}

// notGreater returns a mask that is set where a > b does not hold. It does not
// hold for a NaN, so NaNs are kept and found.
func (s *isa) notGreater(a, b VecVirtual) Register {
	const ngtUS = 0x0a
	return s.compare(ngtUS, a, b)
}

// keep sets v to zero where the mask is not set.
func (s *isa) keep(mask Register, v VecVirtual) {
	if s.wide() {
		s.VMOVAPS_Z(v, mask, v)
		return
	}
	s.VANDPS(mask, v, v)
}

// blend sets v to other where the mask is not set.
func (s *isa) blend(mask Register, v, other VecVirtual) {
	if s.wide() {
		s.VBLENDMPS(v, other, mask, v)
		return
	}
	s.VBLENDVPS(mask, v, other, v)
}

// zeros returns n registers that are zero.
func (s *isa) zeros(n int) (out []VecVirtual) {
	for range n {
		out = append(out, s.zero())
	}
	return out
}

// parted returns registers for 16 sums, all of them zero.
func (s *isa) parted() []VecVirtual { return s.zeros(s.parts()) }

// fold combines the numbers of a vector of 16 lanes: lanes 8 apart, then those 4, 2 and 1
// apart. The result is the first lane of the register that it returns.
func (s *isa) fold(v []VecVirtual, wide, two func(ops ...Op)) VecVirtual {
	for n := len(v) / 2; n > 0; n /= 2 {
		for j := range n {
			wide(v[j+n], v[j], v[j])
		}
	}
	x, t := v[0], s.XMM()
	if s.lanes == 16 {
		high := s.YMM()
		s.VEXTRACTF64X4(Imm(1), x, high)
		wide(high, x.AsY(), x.AsY())
	}
	if s.lanes >= 8 {
		s.VEXTRACTF128(Imm(1), x.AsY(), t)
		wide(t, x.AsX(), x.AsX())
	}
	s.VMOVHLPS(x.AsX(), x.AsX(), t)
	wide(t, x.AsX(), x.AsX())
	s.VMOVSHDUP(x.AsX(), t)
	two(t, x.AsX(), x.AsX())
	return x
}

// sum adds up the lanes of v and stores the result.
func (s *isa) sum(v []VecVirtual, result string) {
	x := s.fold(v, s.VADDPS, s.VADDSS)
	s.VMOVSS(x.AsX(), s.memory(s.ReturnIndex(resultIndex[result])))
}

var resultIndex = map[string]int{"loss": 0, "sum": 0, "dTheta": 1}

// A logarithm computes the natural logarithm of a vector: the argument is
// split into 2^e·(1+f) with f in [√½−1, √2−1), and log(1+f) is a polynomial
// (with the coefficients of Cephes' logf; the error is below 2 units in the last
// place). Its constants are read from memory, since AVX2 has too few registers
// for them. Callers use one, too.
type logarithm struct {
	s   *isa
	one VecVirtual
}

func (s *isa) logarithm() logarithm { return logarithm{s, s.constant(1)} }

var logCoefficients = []float64{
	7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
	-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
}

// of returns log v for normal v > 0, and NaN for a NaN.
func (l logarithm) of(v VecVirtual) VecVirtual {
	s := l.s
	offset, mantissa := s.table(math.Float32bits(math.Sqrt2/2)), s.table(0x7fffff)
	e, f, y, f2 := s.vec(), s.vec(), s.vec(), s.vec()
	s.VPSUBD(offset, v, f)
	s.VPSRAD(Imm(23), f, e)
	s.VCVTDQ2PS(e, e)
	if s.wide() {
		s.VPANDD(mantissa, f, f)
	} else {
		s.VPAND(mantissa, f, f)
	}
	s.VPADDD(offset, f, f)
	s.VSUBPS(l.one, f, f)
	s.VMULPS(f, f, f2)
	s.VMOVUPS(s.number(logCoefficients[0]), y)
	for _, c := range logCoefficients[1:] {
		s.VFMADD213PS(s.number(c), f, y)
	}
	s.VMULPS(f, y, y)
	s.VMULPS(f2, y, y)
	s.VFMADD231PS(s.number(-2.12194440e-4), e, y)
	s.VFNMADD231PS(s.number(0.5), f2, y)
	s.VADDPS(f, y, y)
	s.VFMADD231PS(s.number(0.693359375), e, y)
	s.VFMADD231PS(s.number(0), v, y) // adds 0, or NaN
	return y
}

// table returns a vector of 16 equal 32-bit words in read-only memory.
func (s *isa) table(bits uint32) Mem {
	return s.words("c"+hex(bits), func(int) uint32 { return bits })
}

// words returns a vector of 16 words in read-only memory.
func (s *isa) words(name string, word func(i int) uint32) Mem {
	return s.Table(name, 16, func(i int) Constant { return U32(word(i)) })
}

// number is the table of a float32.
func (s *isa) number(x float64) Mem { return s.table(math.Float32bits(float32(x))) }

func hex(x uint32) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 8)
	for i := range b {
		b[7-i] = digits[x>>(4*i)&15]
	}
	return string(b)
}

func (s *isa) pairs2() {
	s.begin("pairs2", "(d2, dx, dy, features []float32, head int, tails []int32)", "is the vector form of pairs2.")
	d2, dx, dy, f, tails := s.pointer("d2"), s.pointer("dx"), s.pointer("dy"), s.pointer("features"), s.pointer("tails")
	head := s.Load(s.Param("head"), s.GP64())
	heads := s.GP64()
	s.LEAQ(Mem{Base: f, Index: head, Scale: 8}, heads)
	even, odd := s.deinterleaver()
	s.loop("d2", "loop", func(i Register) {
		a, b := s.gather2(f, tails, i, 0), s.gather2(f, tails, i, s.lanes/2)
		h := Mem{Base: heads, Index: i, Scale: 8}
		ha, hb := s.vec(), s.vec()
		s.VMOVUPS(h, ha)
		s.VMOVUPS(h.Offset(s.bytes()), hb)
		s.VSUBPS(a, ha, ha)
		s.VSUBPS(b, hb, hb)
		x, y := s.deinterleave(ha, hb, even, odd)
		s.VMOVUPS(x, at(dx, i))
		s.VMOVUPS(y, at(dy, i))
		s.VMULPS(x, x, x)
		s.VFMADD231PS(y, y, x)
		s.VMOVUPS(x, at(d2, i))
	})
	s.end()
}

// gather2 returns the rows (x, y) that lanes/2 indices name, from index i+first
// on.
func (s *isa) gather2(f, index, i Register, first int) VecVirtual {
	return s.gatherPairs(f, at(index, i).Offset(4*first), 4)
}

// gatherPairs returns the rows (x, y) that lanes/2 indices name. The indices begin at index
// and are apart bytes apart. Loads of 8 bytes are faster than the gather instructions on
// the processors this was measured on.
func (s *isa) gatherPairs(f Register, index Mem, apart int) VecVirtual {
	quarter := func(k int) VecVirtual {
		r0, r1, x := s.GP64(), s.GP64(), s.XMM()
		s.MOVLQSX(index.Offset(apart*k), r0)
		s.MOVLQSX(index.Offset(apart*(k+1)), r1)
		s.VMOVSD(Mem{Base: f, Index: r0, Scale: 8}, x)
		s.VMOVHPS(Mem{Base: f, Index: r1, Scale: 8}, x, x)
		return x
	}
	double := func(k int) VecVirtual {
		lo, hi := quarter(k), quarter(k+2)
		v := s.YMM()
		s.VINSERTF128(Imm(1), hi, lo.AsY(), v)
		return v
	}
	switch {
	case s.few():
		return double(0)
	case s.neon():
		return quarter(0)
	}
	lo, hi := double(0), double(4)
	v := s.ZMM()
	s.VINSERTF64X4(Imm(1), hi, lo.AsZ(), v)
	return v
}

// deinterleaver returns the permutations that deinterleave needs.
func (s *isa) deinterleaver() (even, odd VecVirtual) {
	if !s.wide() {
		return nil, nil
	}
	even, odd = s.ZMM(), s.ZMM()
	s.VMOVDQU32(s.words("even", func(i int) uint32 { return uint32(2 * i) }), even)
	s.VMOVDQU32(s.words("odd", func(i int) uint32 { return uint32(2*i + 1) }), odd)
	return even, odd
}

// deinterleave turns x0 y0 x1 y1 … in two registers into x0 x1 … and y0 y1 ….
func (s *isa) deinterleave(a, b, even, odd VecVirtual) (x, y VecVirtual) {
	x, y = s.vec(), s.vec()
	if s.wide() {
		s.VMOVAPS(a, x)
		s.VMOVAPS(a, y)
		s.VPERMT2PS(b, even, x)
		s.VPERMT2PS(b, odd, y)
		return x, y
	}
	s.VSHUFPS(Imm(0x88), b, a, x)
	s.VSHUFPS(Imm(0xdd), b, a, y)
	if s.neon() {
		return x, y
	}
	s.VPERMPD(Imm(0xd8), x, x)
	s.VPERMPD(Imm(0xd8), y, y)
	return x, y
}

func (s *isa) scatterGradient2() {
	s.begin("scatterGradient2", "(grad, hx, hy, g, dx, dy []float32, tails []int32)", "is the vector form of scatterGradient2.")
	grad, hx, hy, g, dx, dy, tails := s.pointer("grad"), s.pointer("hx"), s.pointer("hy"), s.pointer("g"), s.pointer("dx"), s.pointer("dy"), s.pointer("tails")
	s.loop("g", "loop", func(i Register) {
		w := s.load(g, i)
		s.VADDPS(w, w, w)
		x, y := s.vec(), s.vec()
		s.VMULPS(at(dx, i), w, x)
		s.VMULPS(at(dy, i), w, y)
		sum := s.vec()
		s.VADDPS(at(hx, i), x, sum)
		s.VMOVUPS(sum, at(hx, i))
		s.VADDPS(at(hy, i), y, sum)
		s.VMOVUPS(sum, at(hy, i))
		// Within each 128-bit quarter: x0 y0 x1 y1 and x2 y2 x3 y3.
		lo, hi := s.vec(), s.vec()
		s.VUNPCKLPS(y, x, lo)
		s.VUNPCKHPS(y, x, hi)
		for q := range s.lanes / 4 {
			for j, v := range []VecVirtual{lo, hi} {
				part := s.quarter(v, q)
				s.update2(grad, tails, i, 4*q+2*j, part, s.VSUBPS)
			}
		}
	})
	s.end()
}

// update2 combines the two pairs of numbers in part with the rows of table,
// [n, 2], that index i+first and the next one name: row = row op part, one after
// the other, since the rows may be the same.
func (s *isa) update2(table, index, i Register, first int, part Register, op func(ops ...Op)) {
	for e := range 2 {
		r, t := s.GP64(), s.XMM()
		s.MOVLQSX(at(index, i).Offset(4*(first+e)), r)
		row := Mem{Base: table, Index: r, Scale: 8}
		if e == 0 {
			s.VMOVSD(row, t)
			op(part, t, t)
			s.VMOVSD(t, row)
		} else {
			s.VXORPS(t, t, t)
			s.VMOVHPS(row, t, t)
			op(part, t, t)
			s.VMOVHPS(t, row)
		}
	}
}

func (s *isa) gatherRows2() {
	s.begin("gatherRows2", "(dst, src []float32, index []int32)", "is the vector form of gatherRows for rows of two.")
	dst, src, index := s.pointer("dst"), s.pointer("src"), s.pointer("index")
	s.loop("index", "loop", func(i Register) {
		for e := range s.lanes {
			r := s.GP64()
			s.MOVLQSX(at(index, i).Offset(4*e), r)
			s.MOVQ(Mem{Base: src, Index: r, Scale: 8}, r)
			s.MOVQ(r, Mem{Base: dst, Index: i, Scale: 8}.Offset(8*e))
		}
	})
	s.end()
}

func (s *isa) scatterRows2() {
	s.begin("scatterRows2", "(dst, src []float32, index []int32)", "is the vector form of scatterRows for rows of two.")
	dst, src, index := s.pointer("dst"), s.pointer("src"), s.pointer("index")
	s.loop("index", "loop", func(i Register) {
		for e := 0; e < s.lanes; e += 2 {
			part := s.XMM()
			s.VMOVUPS(Mem{Base: src, Index: i, Scale: 8}.Offset(8*e), part)
			s.update2(dst, index, i, e, part, s.VADDPS)
		}
	})
	s.end()
}

func (s *isa) descendRows2() {
	s.begin("descendRows2", "(table, grad []float32, rows []int32, step, clip float32)", "is the vector form of DescendRows for rows of two.")
	table, grad, rows := s.pointer("table"), s.pointer("grad"), s.pointer("rows")
	step, clip := s.broadcast("step"), s.clip()
	s.loop("rows", "loop", func(i Register) {
		for half := range 2 {
			g := s.vec()
			s.VMOVUPS(Mem{Base: grad, Index: i, Scale: 8}.Offset(half*s.bytes()), g)
			clip.bound(g)
			s.VMULPS(step, g, g)
			for q := range s.lanes / 4 {
				s.update2(table, rows, i, half*s.lanes/2+2*q, s.quarter(g, q), s.VSUBPS)
			}
		}
	})
	s.end()
}

// A clip holds the bounds of gradients.
type clip struct {
	*isa
	plus, minus VecVirtual
}

// clip returns the bounds that the parameter of that name sets.
func (s *isa) clip() clip {
	c := clip{s, s.broadcast("clip"), s.vec()}
	s.VMULPS(s.number(-1), c.plus, c.minus)
	return c
}

// bound clips g and keeps NaNs: the instructions return their second source, g,
// if one of their sources is a NaN.
func (c clip) bound(g VecVirtual) {
	c.VMINPS(g, c.plus, g)
	c.VMAXPS(g, c.minus, g)
}

func (s *isa) descend() {
	s.begin("descend", "(x, grad []float32, step, clip float32)", "is the vector form of descend.")
	x, grad := s.pointer("x"), s.pointer("grad")
	step, clip := s.broadcast("step"), s.clip()
	s.loop("x", "loop", func(i Register) {
		v, g := s.load(x, i), s.load(grad, i)
		clip.bound(g)
		s.VMULPS(step, g, g)
		s.VSUBPS(g, v, v)
		s.VMOVUPS(v, at(x, i))
	})
	s.end()
}

// momentumStep and adamStep multiply and add in separate instructions, so that
// they give the bits of the portable forms. Fused instructions would gain nothing,
// since the steps wait for memory.
func (s *isa) momentumStep() {
	s.begin("momentumStep", "(w, g, buf []float32, step, clip, decay, keep float32)", "is the vector form of momentumStep.")
	w, g, buf := s.pointer("w"), s.pointer("g"), s.pointer("buf")
	step, clip, decay, keep := s.broadcast("step"), s.clip(), s.broadcast("decay"), s.broadcast("keep")
	s.loop("w", "loop", func(i Register) {
		x, d, b, t := s.load(w, i), s.load(g, i), s.load(buf, i), s.vec()
		clip.bound(d)
		s.VMULPS(decay, x, t)
		s.VADDPS(t, d, d)
		s.VMULPS(keep, b, b)
		s.VADDPS(d, b, b)
		s.VMOVUPS(b, at(buf, i))
		s.VMULPS(step, b, b)
		s.VSUBPS(b, x, x)
		s.VMOVUPS(x, at(w, i))
	})
	s.end()
}

func (s *isa) adamStep() {
	s.begin("adamStep", "(w, g, m, v []float32, step, clip, decay, ofG, keep, ofG2, scale, epsilon float32)", "is the vector form of adamStep.")
	w, g, m, v := s.pointer("w"), s.pointer("g"), s.pointer("m"), s.pointer("v")
	step, clip, decay := s.broadcast("step"), s.clip(), s.broadcast("decay")
	ofG, keep, ofG2 := s.broadcast("ofG"), s.broadcast("keep"), s.broadcast("ofG2")
	scale, epsilon := s.broadcast("scale"), s.broadcast("epsilon")
	s.loop("w", "loop", func(i Register) {
		x, d, mean, t := s.load(w, i), s.load(g, i), s.load(m, i), s.vec()
		clip.bound(d)
		s.VMULPS(decay, x, t)
		s.VADDPS(t, d, d)
		s.VSUBPS(mean, d, t)
		s.VMULPS(ofG, t, t)
		s.VADDPS(t, mean, mean)
		s.VMOVUPS(mean, at(m, i))
		s.VMULPS(ofG2, d, t)
		s.VMULPS(d, t, t)
		s.VMULPS(at(v, i), keep, d)
		s.VADDPS(t, d, d)
		s.VMOVUPS(d, at(v, i))
		s.VSQRTPS(d, d)
		s.VMULPS(scale, d, d)
		s.VADDPS(epsilon, d, d)
		s.VMULPS(step, mean, mean)
		s.VDIVPS(d, mean, mean)
		s.VSUBPS(mean, x, x)
		s.VMOVUPS(x, at(w, i))
	})
	s.end()
}

func (s *isa) maskPositive() {
	s.begin("maskPositive", "(dst, y, g []float32)", "is the vector form of maskPositive.")
	const gtOQ = 0x1e
	dst, y, g, zero := s.pointer("dst"), s.pointer("y"), s.pointer("g"), s.zero()
	s.loop("dst", "loop", func(i Register) {
		v := s.load(y, i)
		if s.wide() {
			positive := s.K()
			s.VCMPPS(Imm(gtOQ), zero, v, positive)
			s.loadMasked(at(g, i), positive, v)
		} else {
			s.VCMPPS(Imm(gtOQ), zero, v, v)
			s.VANDPS(at(g, i), v, v)
		}
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}

// columnSums takes rows in groups of eight, vector after vector of columns, so
// that the sums are loaded and stored once per group. The last columns, too few
// for a vector, are masked.
func (s *isa) columnSums() {
	s.begin("columnSums", "(dst, x []float32, rows, d int)", "is the vector form of columnSums.")
	dst, row := s.pointer("dst"), s.pointer("x")
	rows, d := s.Load(s.Param("rows"), s.GP64()), s.Load(s.Param("d"), s.GP64())
	stride, stride3, stride5, stride7, whole := s.GP64(), s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(d, stride)
	s.SHLQ(Imm(2), stride)
	s.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	s.LEAQ(Mem{Base: stride, Index: stride, Scale: 4}, stride5)
	s.LEAQ(Mem{Base: stride3, Index: stride, Scale: 4}, stride7)
	s.MOVQ(d, whole)
	s.ANDQ(I32(-s.lanes), whole)
	mask := s.firstLanes(d)
	x, j, sum := s.GP64(), s.GP64(), s.vec()
	eight := []Mem{
		{Base: x}, {Base: x, Index: stride, Scale: 1}, {Base: x, Index: stride, Scale: 2}, {Base: x, Index: stride3, Scale: 1},
		{Base: x, Index: stride, Scale: 4}, {Base: x, Index: stride5, Scale: 1}, {Base: x, Index: stride3, Scale: 2}, {Base: x, Index: stride7, Scale: 1},
	}
	for _, group := range []struct {
		label string
		rows  []Mem
	}{{"eight", eight}, {"one", eight[:1]}} {
		label, n := group.label, len(group.rows)
		s.label(label)
		s.CMPQ(rows, Imm(uint64(n)))
		s.JLT(s.to(label + "_done"))
		s.MOVQ(row, x)
		s.XORQ(j, j)
		s.label(label + "_columns")
		s.CMPQ(j, whole)
		s.JGE(s.to(label + "_last"))
		s.VMOVUPS(at(dst, j), sum)
		for _, m := range group.rows {
			s.VADDPS(m, sum, sum)
		}
		s.VMOVUPS(sum, at(dst, j))
		s.ADDQ(Imm(uint64(s.bytes())), x)
		s.ADDQ(Imm(uint64(s.lanes)), j)
		s.JMP(s.to(label + "_columns"))
		s.label(label + "_last")
		s.CMPQ(j, d)
		s.JGE(s.to(label + "_next"))
		s.loadMasked(at(dst, j), mask, sum)
		for _, m := range group.rows {
			v := s.vec()
			s.loadMasked(m, mask, v)
			s.VADDPS(v, sum, sum)
		}
		s.storeMasked(sum, mask, at(dst, j))
		s.label(label + "_next")
		s.LEAQ(Mem{Base: row, Index: stride, Scale: uint8(n)}, row)
		s.SUBQ(Imm(uint64(n)), rows)
		s.JMP(s.to(label))
		s.label(label + "_done")
	}
	s.end()
}

// firstLanes returns a mask that is set in the first n modulo lanes lanes.
func (s *isa) firstLanes(n Register) Register {
	// 16 of −1, which has all bits set, and 16 of 0
	m := s.Table("firstLanes", 32, func(i int) Constant { return I32(i/16 - 1) })
	zeros, r, v := s.GP64(), s.GP64(), s.vec()
	s.LEAQ(m.Offset(4*16), zeros)
	s.MOVQ(n, r)
	s.ANDQ(Imm(uint64(s.lanes-1)), r)
	s.NEGQ(r)
	s.VMOVUPS(at(zeros, r), v)
	if !s.wide() {
		return v
	}
	k := s.K()
	s.VPMOVD2M(v, k)
	return k
}

// loadMasked loads the lanes of v where the mask is set and sets the others to 0;
// their memory is not touched.
func (s *isa) loadMasked(m Mem, mask Register, v VecVirtual) {
	if s.wide() {
		s.VMOVUPS_Z(m, mask, v)
		return
	}
	s.VMASKMOVPS(m, mask, v)
}

// storeMasked stores the lanes of v where the mask is set.
func (s *isa) storeMasked(v VecVirtual, mask Register, m Mem) {
	if s.wide() {
		s.VMOVUPS(v, mask, m)
		return
	}
	s.VMASKMOVPS(v, mask, m)
}

func (s *isa) negPositive() {
	s.begin("negPositive", "(x []float32, c, limit, logLimit float32) (loss, dTheta float32)", "is the vector form of negPositive.")
	x := s.pointer("x")
	c, limit, logLimit := s.broadcast("c"), s.broadcast("limit"), s.broadcast("logLimit")
	l, loss, dTheta := s.logarithm(), s.parted(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		cu, v, g := s.vec(), s.vec(), s.vec()
		s.VADDPS(at(x, i), l.one, cu)
		s.VMULPS(c, cu, cu)
		s.VADDPS(l.one, cu, v)
		mask := s.notGreater(v, limit)
		s.VDIVPS(v, l.one, g)
		s.VMULPS(g, cu, cu)
		s.VMULPS(c, g, g)
		s.keep(mask, g)
		s.VMOVUPS(g, at(x, i))
		s.keep(mask, cu)
		s.VADDPS(cu, dTheta[part], dTheta[part])
		log := l.of(v)
		s.blend(mask, log, logLimit)
		s.VADDPS(log, loss[part], loss[part])
	})
	s.sum(loss, "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}

func (s *isa) negNegative() {
	s.begin("negNegative", "(x []float32, invC, limit float32) (loss, dTheta float32)", "is the vector form of negNegative for at most 960 pairs.")
	x := s.pointer("x")
	invC, limit := s.broadcast("invC"), s.broadcast("limit")
	l, logs, dTheta := s.logarithm(), s.logSum(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		q, r, v, share := s.vec(), s.vec(), s.vec(), s.vec()
		s.VADDPS(at(x, i), l.one, q)
		s.VDIVPS(q, l.one, q)
		s.VMULPS(invC, q, r)
		s.VADDPS(l.one, r, v)
		mask := s.notGreater(v, limit)
		s.VDIVPS(v, r, share)
		s.keep(mask, share)
		s.VSUBPS(share, dTheta[part], dTheta[part])
		s.VFNMADD213PS(s.number(0), share, q)
		s.VMOVUPS(q, at(x, i))
		s.VMINPS(v, limit, v) // the second source, v, if one is a NaN
		logs.add(part, v)
	})
	s.sum(logs.total(l), "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}

func (s *isa) umapPositive() {
	s.begin("umapPositive", "(x []float32, limit, logLimit float32) (loss float32)", "is the vector form of umapPositive.")
	x := s.pointer("x")
	limit, logLimit := s.broadcast("limit"), s.broadcast("logLimit")
	l, loss := s.logarithm(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		u, g := s.vec(), s.vec()
		s.VADDPS(at(x, i), l.one, u)
		mask := s.notGreater(u, limit)
		s.VDIVPS(u, l.one, g)
		s.keep(mask, g)
		s.VMOVUPS(g, at(x, i))
		log := l.of(u)
		s.blend(mask, log, logLimit)
		s.VADDPS(log, loss[part], loss[part])
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) umapNegative() {
	s.begin("umapNegative", "(x []float32, limit, logLimit float32) (loss float32)", "is the vector form of umapNegative.")
	x := s.pointer("x")
	limit, logLimit := s.broadcast("limit"), s.broadcast("logLimit")
	l, loss := s.logarithm(), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		d2 := s.load(x, i)
		u, r, v := s.vec(), s.vec(), s.vec()
		s.VADDPS(l.one, d2, u)
		s.VDIVPS(d2, l.one, r)
		s.VADDPS(l.one, r, v)
		mask := s.notGreater(v, limit)
		s.VDIVPS(u, r, r)
		s.VMULPS(s.number(-1), r, r)
		s.keep(mask, r)
		s.VMOVUPS(r, at(x, i))
		log := l.of(v)
		s.blend(mask, log, logLimit)
		s.VADDPS(log, loss[part], loss[part])
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) similarities() {
	s.begin("similarities", "(x, total []float32, clamp float32)", "is the vector form of similarities.")
	x, total := s.pointer("x"), s.pointer("total")
	clamp, one := s.broadcast("clamp"), s.constant(1)
	s.loop("x", "loop", func(i Register) {
		q, t := s.vec(), s.vec()
		s.VADDPS(at(x, i), one, q)
		s.VDIVPS(q, one, q)
		s.VMAXPS(q, clamp, q) // the second source, q, if one is a NaN
		s.VMOVUPS(q, at(x, i))
		s.VADDPS(at(total, i), q, t)
		s.VMOVUPS(t, at(total, i))
	})
	s.end()
}

func (s *isa) logTotals() {
	s.begin("logTotals", "(total []float32, weight float32) (loss float32)", "is the vector form of logTotals, but for the factor weight of the loss.")
	total := s.pointer("total")
	weight := s.broadcast("weight")
	l, loss := s.logarithm(), s.parted()
	s.loopParts("total", "loop", 1, func(i Register, part int) {
		t, share := s.load(total, i), s.vec()
		s.VDIVPS(t, weight, share)
		s.VMOVUPS(share, at(total, i))
		s.VADDPS(l.of(t), loss[part], loss[part])
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) infoncPositive() {
	s.begin("infoncPositive", "(q, share []float32, clamp float32) (loss float32)", "is the vector form of infoncPositive.")
	q, share := s.pointer("q"), s.pointer("share")
	clamp := s.broadcast("clamp")
	l, loss := s.logarithm(), s.parted()
	s.loopParts("q", "loop", 1, func(i Register, part int) {
		v, g := s.load(q, i), s.vec()
		s.VMULPS(at(share, i), v, g)
		s.VFNMADD213PS(v, v, g)
		s.keep(s.aboveClamp(v, clamp), g)
		s.VMOVUPS(g, at(q, i))
		s.VSUBPS(l.of(v), loss[part], loss[part])
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) infoncNegative() {
	s.begin("infoncNegative", "(q, share []float32, clamp float32)", "is the vector form of infoncNegative.")
	q, share := s.pointer("q"), s.pointer("share")
	clamp, zero := s.broadcast("clamp"), s.zero()
	s.loop("q", "loop", func(i Register) {
		v, g := s.load(q, i), s.vec()
		s.VMULPS(at(share, i), v, g)
		s.VFNMADD213PS(zero, v, g)
		s.keep(s.aboveClamp(v, clamp), g)
		s.VMOVUPS(g, at(q, i))
	})
	s.end()
}

// aboveClamp is set where v ≤ clamp does not hold: a NaN is kept.
func (s *isa) aboveClamp(v, clamp VecVirtual) Register {
	const nleUS = 0x06
	return s.compare(nleUS, v, clamp)
}

func (s *isa) add() {
	s.begin("add", "(dst, src []float32)", "is the vector form of add.")
	dst, src := s.pointer("dst"), s.pointer("src")
	s.loop("src", "loop", func(i Register) {
		v := s.load(src, i)
		s.VADDPS(at(dst, i), v, v)
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}

func (s *isa) scale() {
	s.begin("scale", "(x []float32, f float32)", "is the vector form of scale.")
	x, f := s.pointer("x"), s.broadcast("f")
	s.loop("x", "loop", func(i Register) {
		v := s.vec()
		s.VMULPS(at(x, i), f, v)
		s.VMOVUPS(v, at(x, i))
	})
	s.end()
}

func (s *isa) divide() {
	s.begin("divide", "(x []float32, by float32)", "is the vector form of divide.")
	x, by := s.pointer("x"), s.broadcast("by")
	s.loop("x", "loop", func(i Register) {
		v := s.load(x, i)
		s.VDIVPS(by, v, v)
		s.VMOVUPS(v, at(x, i))
	})
	s.end()
}

func (s *isa) addPlane() {
	s.begin("addPlane", "(dst, xs, ys []float32)", "is the vector form of addPlane.")
	dst, xs, ys := s.pointer("dst"), s.pointer("xs"), s.pointer("ys")
	s.loop("xs", "loop", func(i Register) {
		x, y, lo, hi := s.load(xs, i), s.load(ys, i), s.vec(), s.vec()
		// Within each 128-bit quarter: x0 y0 x1 y1 and x2 y2 x3 y3.
		s.VUNPCKLPS(y, x, lo)
		s.VUNPCKHPS(y, x, hi)
		for q := range s.lanes / 4 {
			for j, v := range []VecVirtual{lo, hi} {
				to, t := Mem{Base: dst, Index: i, Scale: 8}.Offset(32*q+16*j), s.XMM()
				s.VADDPS(to, s.quarter(v, q), t)
				s.VMOVUPS(t, to)
			}
		}
	})
	s.end()
}

// quarter returns the q-th 128 bits of v.
func (s *isa) quarter(v VecVirtual, q int) Register {
	if q == 0 {
		return v.AsX()
	}
	p := s.XMM()
	if s.wide() {
		s.VEXTRACTF32X4(Imm(uint64(q)), v, p)
	} else {
		s.VEXTRACTF128(Imm(uint64(q)), v, p)
	}
	return p
}

func (s *isa) maxUint32() {
	s.begin("maxUint32", "(x []int32) uint32", "is the vector form of maxUint32.")
	x := s.pointer("x")
	m := s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) { s.VPMAXUD(at(x, i), m[part], m[part]) })
	r := s.GP32()
	s.VMOVD(s.fold(m, s.VPMAXUD, s.VPMAXUD).AsX(), r)
	s.Store(r, s.ReturnIndex(0))
	s.end()
}

func (s *isa) maxMagnitude() {
	s.begin("maxMagnitude", "(x []float32) uint32", "is the vector form of maxMagnitude.")
	x, m := s.pointer("x"), s.parted()
	s.loopParts("x", "loop", 1, func(i Register, part int) {
		v := s.load(x, i)
		s.VPSLLD(Imm(1), v, v)
		s.VPMAXUD(v, m[part], m[part])
	})
	r := s.GP32()
	s.VMOVD(s.fold(m, s.VPMAXUD, s.VPMAXUD).AsX(), r)
	s.Store(r, s.ReturnIndex(0))
	s.end()
}

func (s *isa) inverseSum2() {
	s.begin("inverseSum2", "(xs, ys []float32, x, y float32) (sum float32)", "is the vector form of inverseSum2.")
	xs, ys := s.pointer("xs"), s.pointer("ys")
	x, y, one, sum := s.broadcast("x"), s.broadcast("y"), s.constant(1), s.parted()
	s.loopParts("xs", "loop", 1, func(i Register, part int) {
		dx, dy, u := s.vec(), s.vec(), s.vec()
		s.VSUBPS(at(xs, i), x, dx)
		s.VSUBPS(at(ys, i), y, dy)
		s.VMOVAPS(one, u)
		s.VFMADD231PS(dx, dx, u)
		s.VFMADD231PS(dy, dy, u)
		s.VDIVPS(u, one, u)
		s.VADDPS(u, sum[part], sum[part])
	})
	s.sum(sum, "sum")
	s.end()
}

// inverseSum2Near adds 1/u + 1/v as (u+v)/(u·v): a division takes longer than all else.
func (s *isa) inverseSum2Near() {
	s.begin("inverseSum2Near", "(xs, ys []float32, x, y float32) (sum float32)", "is the vector form of InverseSum2Near, for multiples of two vectors.")
	xs, ys := s.pointer("xs"), s.pointer("ys")
	x, y, one, sum := s.broadcast("x"), s.broadcast("y"), s.constant(1), s.parted()
	s.loopParts("xs", "loop", 2, func(i Register, part int) {
		term := func(group int) VecVirtual {
			dx, dy, u := s.vec(), s.vec(), s.vec()
			s.VSUBPS(at(xs, i).Offset(64*group), x, dx)
			s.VSUBPS(at(ys, i).Offset(64*group), y, dy)
			s.VMOVAPS(one, u)
			s.VFMADD231PS(dx, dx, u)
			s.VFMADD231PS(dy, dy, u)
			return u
		}
		u, v, product := term(0), term(1), s.vec()
		s.VMULPS(u, v, product)
		s.VADDPS(u, v, u)
		s.VDIVPS(product, u, u)
		s.VADDPS(u, sum[part], sum[part])
	})
	s.sum(sum, "sum")
	s.end()
}

func (s *isa) addSquares() {
	s.begin("addSquares", "(dst, xs []float32, x float32)", "is the vector form of addSquares.")
	dst, xs, x := s.pointer("dst"), s.pointer("xs"), s.broadcast("x")
	s.loop("xs", "loop", func(i Register) {
		sum, dx := s.load(dst, i), s.vec()
		s.VSUBPS(at(xs, i), x, dx)
		s.VFMADD231PS(dx, dx, sum)
		s.VMOVUPS(sum, at(dst, i))
	})
	s.end()
}

func (s *isa) addDistances() {
	s.begin("addDistances", "(dst, xs []float32, x, scale, most float32)", "is the vector form of addDistances.")
	dst, xs, x, scale, most := s.pointer("dst"), s.pointer("xs"), s.broadcast("x"), s.broadcast("scale"), s.broadcast("most")
	s.loop("xs", "loop", func(i Register) {
		other, d, e := s.load(xs, i), s.vec(), s.vec()
		s.VSUBPS(other, x, d)
		s.VSUBPS(x, other, e)
		s.VMAXPS(e, d, d)
		s.VMULPS(scale, d, d)
		s.VMINPS(most, d, d)
		s.VADDPS(at(dst, i), d, d)
		s.VMOVUPS(d, at(dst, i))
	})
	s.end()
}

func (s *isa) inverseSum() {
	s.begin("inverseSum", "(d2 []float32) (sum float32)", "is the vector form of inverseSum.")
	d2, one, sum := s.pointer("d2"), s.constant(1), s.parted()
	s.loopParts("d2", "loop", 1, func(i Register, part int) {
		u := s.vec()
		s.VADDPS(at(d2, i), one, u)
		s.VDIVPS(u, one, u)
		s.VADDPS(u, sum[part], sum[part])
	})
	s.sum(sum, "sum")
	s.end()
}

// countBelow compares each vector with four limits at a time.
func (s *isa) countBelow() {
	const ltOQ = 0x11
	s.begin("countBelow", "(counts []int32, x, limits []float32)", "is the vector form of countBelow.")
	counts, x, limits := s.pointer("counts"), s.pointer("x"), s.pointer("limits")
	groups, l := s.Load(s.Param("limits").Len(), s.GP64()), s.GP64()
	s.XORQ(l, l)
	s.label("limits")
	s.CMPQ(l, groups)
	s.JGE(s.to("limits_done"))
	var limit [4]VecVirtual
	var count [4]Register
	for k := range limit {
		limit[k], count[k] = s.vec(), s.GP32()
		s.VBROADCASTSS(Mem{Base: limits, Index: l, Scale: 4, Disp: 4 * k}, limit[k])
		s.XORL(count[k], count[k])
	}
	s.loop("x", "loop", func(i Register) {
		v := s.load(x, i)
		for k := range limit {
			bits := s.GP32()
			if s.wide() {
				below := s.K()
				s.VCMPPS(Imm(ltOQ), limit[k], v, below)
				s.KMOVW(below, bits)
			} else {
				below := s.vec()
				s.VCMPPS(Imm(ltOQ), limit[k], v, below)
				s.VMOVMSKPS(below, bits)
			}
			s.POPCNTL(bits, bits)
			s.ADDL(bits, count[k])
		}
	})
	for k := range count {
		s.ADDL(count[k], Mem{Base: counts, Index: l, Scale: 4, Disp: 4 * k})
	}
	s.ADDQ(Imm(4), l)
	s.JMP(s.to("limits"))
	s.label("limits_done")
	s.end()
}

// Constants of SplitMix64, as package rng has them.
const (
	gamma  uint64 = 0x9e3779b97f4a7c15
	mixer1 uint64 = 0xbf58476d1ce4e5b9
	mixer2 uint64 = 0x94d049bb133111eb
)

// drawOthers works on pairs of numbers: one 64-bit word of the stream gives
// two, each scaled to 0 … others−1 by a multiplication of its 32 bits.
func (s *isa) drawOthers() {
	s.begin("drawOthers", "(column []int32, state uint64, others uint32)", "is the vector form of drawOthers.")
	column := s.pointer("column")
	counter, step, bound, before, advance := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	words := uint64(s.lanes / 2)
	s.broadcast64("state", counter)
	s.VPADDQ(s.quads("gammas", func(i int) uint64 { return uint64(i+1) * gamma }), counter, counter)
	s.splat64(words*gamma, step)
	others := s.Load(s.Param("others"), s.GP32())
	s.VMOVD(others, bound.AsX())
	s.VPBROADCASTQ(bound.AsX(), bound)
	s.VMOVUPS(s.quads("before", func(i int) uint64 { return uint64(uint32(2*i-1)) | uint64(uint32(2*i))<<32 }), before)
	s.splat64(uint64(s.lanes)<<32|uint64(s.lanes), advance)
	m1, m2 := s.factor(mixer1), s.factor(mixer2)
	s.loop("column", "loop", func(i Register) {
		z, t := s.vec(), s.vec()
		s.VMOVUPS(counter, z)
		s.VPADDQ(step, counter, counter)
		s.xorShift(z, t, 30)
		s.multiply(z, m1)
		s.xorShift(z, t, 27)
		s.multiply(z, m2)
		s.xorShift(z, t, 31)
		s.VPSRLQ(Imm(32), z, t)
		s.VPMULUDQ(bound, z, z)
		s.VPMULUDQ(bound, t, t)
		s.VPSRLQ(Imm(32), z, z)
		if s.wide() {
			odd := s.K()
			r := s.GP32()
			s.MOVL(U32(0xaaaa), r)
			s.KMOVW(r, odd)
			s.VMOVDQU32(t, odd, z)
			up := s.K()
			s.VPCMPGTD(before, z, up)
			s.VPADDD(s.table(1), z, up, z)
		} else {
			s.VPBLENDD(Imm(0xaa), t, z, z)
			s.VPCMPGTD(before, z, t)
			s.VPSUBD(t, z, z)
		}
		s.VPADDD(advance, before, before)
		s.VMOVUPS(z, at(column, i))
	})
	s.end()
}

// broadcast64 sets every 64-bit lane of v to a parameter.
func (s *isa) broadcast64(param string, v VecVirtual) {
	r := s.Load(s.Param(param), s.GP64())
	s.VMOVQ(r, v.AsX())
	s.VPBROADCASTQ(v.AsX(), v)
}

func (s *isa) splat64(x uint64, v VecVirtual) {
	r := s.GP64()
	s.MOVQ(U64(x), r)
	s.VMOVQ(r, v.AsX())
	s.VPBROADCASTQ(v.AsX(), v)
}

// quads returns a vector of eight 64-bit words in read-only memory.
func (s *isa) quads(name string, word func(i int) uint64) Mem {
	return s.Table(name, 8, func(i int) Constant { return U64(word(i)) })
}

// xorShift computes z ^= z >> n.
func (s *isa) xorShift(z, t VecVirtual, n uint64) {
	s.VPSRLQ(Imm(n), z, t)
	if s.wide() {
		s.VPXORQ(t, z, z)
	} else {
		s.VPXOR(t, z, z)
	}
}

// A factor is a 64-bit constant to multiply by; AVX2 needs its upper half too.
type factor struct{ whole, upper VecVirtual }

func (s *isa) factor(x uint64) (f factor) {
	f.whole = s.vec()
	s.splat64(x, f.whole)
	if !s.wide() {
		f.upper = s.vec()
		s.splat64(x>>32, f.upper)
	}
	return f
}

// multiply computes z *= f modulo 2^64, from 32-bit products under AVX2.
func (s *isa) multiply(z VecVirtual, f factor) {
	if s.wide() {
		s.VPMULLQ(f.whole, z, z)
		return
	}
	high, cross := s.vec(), s.vec()
	s.VPSRLQ(Imm(32), z, high)
	s.VPMULUDQ(f.whole, high, high)
	s.VPMULUDQ(f.upper, z, cross)
	s.VPADDQ(cross, high, high)
	s.VPSLLQ(Imm(32), high, high)
	s.VPMULUDQ(f.whole, z, z)
	s.VPADDQ(high, z, z)
}
