// Command asm generates the vector forms of the loops of package simd. Each
// kernel is written once, against the type isa, which hides what differs
// between AVX-512 (masks in registers of their own, 16 lanes) and AVX2 with
// FMA (masks in vectors, 8 lanes), and becomes one function with both forms, which
// chooses by simd.current. All of them but columnSums expect a number of
// elements that is a multiple of 16; the Go callers see to the rest.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, kernel := range []func(s *isa){
		(*isa).pairs2, (*isa).scatterGradient2, (*isa).negPositive, (*isa).negNegative, (*isa).umapPositive,
		(*isa).umapNegative, (*isa).similarities, (*isa).logTotals, (*isa).infoncPositive, (*isa).infoncNegative,
		(*isa).add, (*isa).scale, (*isa).addPlane, (*isa).gatherRows2, (*isa).scatterRows2, (*isa).descend,
		(*isa).descendRows2, (*isa).momentumStep, (*isa).adamStep, (*isa).maskPositive, (*isa).columnSums,
		(*isa).maxUint32, (*isa).inverseSum2, (*isa).inverseSum2Near, (*isa).addSquares, (*isa).inverseSum,
		(*isa).inverseLogSum, (*isa).countBelow, (*isa).drawOthers, (*isa).rowDistances, (*isa).rowSimilarities,
		(*isa).rowInfoNC, (*isa).rowNeg, (*isa).rowUMAP, (*isa).rowMax, (*isa).rowExp, (*isa).rowLogistic,
		(*isa).nearRows, (*isa).nearTiles, (*isa).projectRows, (*isa).columnMoments, (*isa).columnApply,
		(*isa).columnProducts, (*isa).columnGradient, (*isa).addReLU, (*isa).field, (*isa).attract,
	} {
		both(kernel)
	}
	denseKernels()
	winograd()
	pairs()
	placeWords()
	holdsWord()
	fetch()
	Generate()
}

var avx512, avx2 = &isa{name: "AVX512", lanes: 16}, &isa{name: "AVX2", lanes: 8}

// both emits a kernel, first its form for AVX-512.
func both(kernel func(s *isa)) {
	kernel(avx512)
	kernel(avx2)
}

// An isa is one of the two instruction sets.
type isa struct {
	name  string
	lanes int
}

func (s *isa) wide() bool { return s.lanes == 16 }

func (s *isa) bytes() int { return 4 * s.lanes }

func (s *isa) vec() VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
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
	if s.wide() {
		name += "Vector"
		TEXT(name, NOSPLIT, "func"+signature)
		Doc(name + " " + doc)
	}
	s.choose()
}

// choose emits what the two forms of a kernel begin with.
func (s *isa) choose() {
	const widest = 2 // isa.AVX512
	if s.wide() {
		CMPQ(Mem{Symbol: Symbol{Name: "·current"}, Base: StaticBase}, Imm(widest))
		JNE(avx2.to("form"))
	} else {
		s.label("form")
	}
}

// end ends a form.
func (s *isa) end() {
	VZEROUPPER()
	RET()
}

// label and to are a label of the form.
func (s *isa) label(name string)       { Label(name + s.name) }
func (s *isa) to(name string) LabelRef { return LabelRef(name + s.name) }

// constant returns a register with x in every lane.
func (s *isa) constant(x float64) VecVirtual { return s.bits(math.Float32bits(float32(x))) }

func (s *isa) bits(x uint32) VecVirtual {
	v, r := s.vec(), GP32()
	MOVL(U32(x), r)
	VMOVD(r, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// broadcast returns a register with the float32 parameter in every lane.
func (s *isa) broadcast(param string) VecVirtual {
	v := s.vec()
	VBROADCASTSS(memory(Param(param)), v)
	return v
}

// memory returns where a parameter or result lies, for what avo's Load and
// Store would use an instruction of SSE: among those of AVX it takes some
// processors (Sapphire Rapids is one) 30 ns.
func memory(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func (s *isa) zero() VecVirtual {
	v := s.vec()
	VXORPS(v.AsX(), v.AsX(), v.AsX())
	return v
}

func (s *isa) pointer(slice string) Register { return Load(Param(slice).Base(), GP64()) }

// loop emits body for each vector of the elements that slice has. i counts
// elements; the address of element i of a float32 slice at p is at(p, i).
func (s *isa) loop(slice, label string, body func(i Register)) {
	n, i := Load(Param(slice).Len(), GP64()), GP64()
	XORQ(i, i)
	s.label(label)
	CMPQ(i, n)
	JGE(s.to(label + "_done"))
	body(i)
	ADDQ(Imm(uint64(s.lanes)), i)
	JMP(s.to(label))
	s.label(label + "_done")
}

func at(p, i Register) Mem { return Mem{Base: p, Index: i, Scale: 4} }

func (s *isa) load(p, i Register) VecVirtual {
	v := s.vec()
	VMOVUPS(at(p, i), v)
	return v
}

// notGreater compares a with b: the mask is set where a > b does not hold,
// which it does not for a NaN, so that NaNs are kept and found.
func (s *isa) notGreater(a, b VecVirtual) Register {
	const ngtUS = 0x0a
	if s.wide() {
		k := K()
		VCMPPS(Imm(ngtUS), b, a, k)
		return k
	}
	m := YMM()
	VCMPPS(Imm(ngtUS), b, a, m)
	return m
}

// keep sets v to zero where the mask is not set.
func (s *isa) keep(mask Register, v VecVirtual) {
	if s.wide() {
		VMOVAPS_Z(v, mask, v)
		return
	}
	VANDPS(mask, v, v)
}

// blend sets v to other where the mask is not set.
func (s *isa) blend(mask Register, v, other VecVirtual) {
	if s.wide() {
		VBLENDMPS(v, other, mask, v)
		return
	}
	VBLENDVPS(mask, v, other, v)
}

// sum adds up the lanes of v and stores the result.
func (s *isa) sum(v VecVirtual, result string) {
	t := YMM()
	if s.wide() {
		VEXTRACTF64X4(Imm(1), v, t)
		VADDPS(t, v.AsY(), v.AsY())
	}
	VEXTRACTF128(Imm(1), v.AsY(), t.AsX())
	VADDPS(t.AsX(), v.AsX(), v.AsX())
	VMOVHLPS(v.AsX(), v.AsX(), t.AsX())
	VADDPS(t.AsX(), v.AsX(), v.AsX())
	VMOVSHDUP(v.AsX(), t.AsX())
	VADDSS(t.AsX(), v.AsX(), v.AsX())
	VMOVSS(v.AsX(), memory(ReturnIndex(resultIndex[result])))
}

var resultIndex = map[string]int{"loss": 0, "sum": 0, "dTheta": 1}

// A logarithm computes the natural logarithm of a vector: the argument is
// split into 2^e·(1+f) with f in [√½−1, √2−1), and log(1+f) is a polynomial
// (the coefficients are those of Cephes' logf; the error is below 2 units in
// the last place). Its constants are read from memory, since AVX2 has too few
// registers for them; one is of use to its callers as well.
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
	offset, mantissa := table(math.Float32bits(math.Sqrt2/2)), table(0x7fffff)
	e, f, y, f2 := s.vec(), s.vec(), s.vec(), s.vec()
	VPSUBD(offset, v, f)
	VPSRAD(Imm(23), f, e)
	VCVTDQ2PS(e, e)
	if s.wide() {
		VPANDD(mantissa, f, f)
	} else {
		VPAND(mantissa, f, f)
	}
	VPADDD(offset, f, f)
	VSUBPS(l.one, f, f)
	VMULPS(f, f, f2)
	VMOVUPS(number(logCoefficients[0]), y)
	for _, c := range logCoefficients[1:] {
		VFMADD213PS(number(c), f, y)
	}
	VMULPS(f, y, y)
	VMULPS(f2, y, y)
	VFMADD231PS(number(-2.12194440e-4), e, y)
	VFNMADD231PS(number(0.5), f2, y)
	VADDPS(f, y, y)
	VFMADD231PS(number(0.693359375), e, y)
	VFMADD231PS(number(0), v, y) // adds 0, or NaN
	return y
}

var tables = map[string]Mem{}

// table returns a vector of 16 equal 32-bit words in read-only memory.
func table(bits uint32) Mem {
	name := "c" + hex(bits)
	if m, ok := tables[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(bits))
	}
	tables[name] = m
	return m
}

// number is the table of a float32.
func number(x float64) Mem { return table(math.Float32bits(float32(x))) }

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
	head := Load(Param("head"), GP64())
	heads := GP64()
	LEAQ(Mem{Base: f, Index: head, Scale: 8}, heads)
	even, odd := s.deinterleaver()
	s.loop("d2", "loop", func(i Register) {
		a, b := s.gather2(f, tails, i, 0), s.gather2(f, tails, i, s.lanes/2)
		h := Mem{Base: heads, Index: i, Scale: 8}
		ha, hb := s.vec(), s.vec()
		VMOVUPS(h, ha)
		VMOVUPS(h.Offset(s.bytes()), hb)
		VSUBPS(a, ha, ha)
		VSUBPS(b, hb, hb)
		x, y := s.deinterleave(ha, hb, even, odd)
		VMOVUPS(x, at(dx, i))
		VMOVUPS(y, at(dy, i))
		VMULPS(x, x, x)
		VFMADD231PS(y, y, x)
		VMOVUPS(x, at(d2, i))
	})
	s.end()
}

// gather2 returns the rows (x, y) that lanes/2 indices name, from the first'th
// after i on.
func (s *isa) gather2(f, index, i Register, first int) VecVirtual {
	return s.gatherPairs(f, at(index, i).Offset(4*first), 4)
}

// gatherPairs returns the rows (x, y) that lanes/2 indices name, which begin at index and
// are apart bytes apart. Loads of 8 bytes are faster than the gather instructions on the
// processors this was measured on.
func (s *isa) gatherPairs(f Register, index Mem, apart int) VecVirtual {
	quarter := func(k int) VecVirtual {
		r0, r1, x := GP64(), GP64(), XMM()
		MOVLQSX(index.Offset(apart*k), r0)
		MOVLQSX(index.Offset(apart*(k+1)), r1)
		VMOVSD(Mem{Base: f, Index: r0, Scale: 8}, x)
		VMOVHPS(Mem{Base: f, Index: r1, Scale: 8}, x, x)
		return x
	}
	double := func(k int) VecVirtual {
		lo, hi := quarter(k), quarter(k+2)
		v := YMM()
		VINSERTF128(Imm(1), hi, lo.AsY(), v)
		return v
	}
	if !s.wide() {
		return double(0)
	}
	lo, hi := double(0), double(4)
	v := ZMM()
	VINSERTF64X4(Imm(1), hi, lo.AsZ(), v)
	return v
}

// deinterleaver returns the permutations that deinterleave needs.
func (s *isa) deinterleaver() (even, odd VecVirtual) {
	if !s.wide() {
		return nil, nil
	}
	even, odd = ZMM(), ZMM()
	VMOVDQU32(s.words("even", func(i int) uint32 { return uint32(2 * i) }), even)
	VMOVDQU32(s.words("odd", func(i int) uint32 { return uint32(2*i + 1) }), odd)
	return even, odd
}

// deinterleave turns x0 y0 x1 y1 … in two registers into x0 x1 … and y0 y1 ….
func (s *isa) deinterleave(a, b, even, odd VecVirtual) (x, y VecVirtual) {
	x, y = s.vec(), s.vec()
	if s.wide() {
		VMOVAPS(a, x)
		VMOVAPS(a, y)
		VPERMT2PS(b, even, x)
		VPERMT2PS(b, odd, y)
		return x, y
	}
	VSHUFPS(Imm(0x88), b, a, x)
	VSHUFPS(Imm(0xdd), b, a, y)
	VPERMPD(Imm(0xd8), x, x)
	VPERMPD(Imm(0xd8), y, y)
	return x, y
}

func (s *isa) scatterGradient2() {
	s.begin("scatterGradient2", "(grad, hx, hy, g, dx, dy []float32, tails []int32)", "is the vector form of scatterGradient2.")
	grad, hx, hy, g, dx, dy, tails := s.pointer("grad"), s.pointer("hx"), s.pointer("hy"), s.pointer("g"), s.pointer("dx"), s.pointer("dy"), s.pointer("tails")
	s.loop("g", "loop", func(i Register) {
		w := s.load(g, i)
		VADDPS(w, w, w)
		x, y := s.vec(), s.vec()
		VMULPS(at(dx, i), w, x)
		VMULPS(at(dy, i), w, y)
		sum := s.vec()
		VADDPS(at(hx, i), x, sum)
		VMOVUPS(sum, at(hx, i))
		VADDPS(at(hy, i), y, sum)
		VMOVUPS(sum, at(hy, i))
		// Within each 128-bit quarter: x0 y0 x1 y1 and x2 y2 x3 y3.
		lo, hi := s.vec(), s.vec()
		VUNPCKLPS(y, x, lo)
		VUNPCKHPS(y, x, hi)
		for q := range s.lanes / 4 {
			for j, v := range []VecVirtual{lo, hi} {
				part := s.quarter(v, q)
				s.update2(grad, tails, i, 4*q+2*j, part, VSUBPS)
			}
		}
	})
	s.end()
}

// update2 combines the two pairs of numbers in part with the rows of table,
// [n, 2], that the first'th index after i and the next one name: row = row op
// part, one after the other, since the rows may be the same.
func (s *isa) update2(table, index, i Register, first int, part Register, op func(ops ...Op)) {
	for e := range 2 {
		r, t := GP64(), XMM()
		MOVLQSX(at(index, i).Offset(4*(first+e)), r)
		row := Mem{Base: table, Index: r, Scale: 8}
		if e == 0 {
			VMOVSD(row, t)
			op(part, t, t)
			VMOVSD(t, row)
		} else {
			VXORPS(t, t, t)
			VMOVHPS(row, t, t)
			op(part, t, t)
			VMOVHPS(t, row)
		}
	}
}

func (s *isa) gatherRows2() {
	s.begin("gatherRows2", "(dst, src []float32, index []int32)", "is the vector form of gatherRows for rows of two.")
	dst, src, index := s.pointer("dst"), s.pointer("src"), s.pointer("index")
	s.loop("index", "loop", func(i Register) {
		for e := range s.lanes {
			r := GP64()
			MOVLQSX(at(index, i).Offset(4*e), r)
			MOVQ(Mem{Base: src, Index: r, Scale: 8}, r)
			MOVQ(r, Mem{Base: dst, Index: i, Scale: 8}.Offset(8*e))
		}
	})
	s.end()
}

func (s *isa) scatterRows2() {
	s.begin("scatterRows2", "(dst, src []float32, index []int32)", "is the vector form of scatterRows for rows of two.")
	dst, src, index := s.pointer("dst"), s.pointer("src"), s.pointer("index")
	s.loop("index", "loop", func(i Register) {
		for e := 0; e < s.lanes; e += 2 {
			part := XMM()
			VMOVUPS(Mem{Base: src, Index: i, Scale: 8}.Offset(8*e), part)
			s.update2(dst, index, i, e, part, VADDPS)
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
			VMOVUPS(Mem{Base: grad, Index: i, Scale: 8}.Offset(half*s.bytes()), g)
			clip.bound(g)
			VMULPS(step, g, g)
			for q := range s.lanes / 4 {
				s.update2(table, rows, i, half*s.lanes/2+2*q, s.quarter(g, q), VSUBPS)
			}
		}
	})
	s.end()
}

// A clip holds the bounds of gradients.
type clip struct{ plus, minus VecVirtual }

// clip returns the bounds that the parameter of that name sets.
func (s *isa) clip() clip {
	c := clip{s.broadcast("clip"), s.vec()}
	VMULPS(number(-1), c.plus, c.minus)
	return c
}

// bound clips g and keeps NaNs: the second source, g, is what the instructions
// return if one of their sources is a NaN.
func (c clip) bound(g VecVirtual) {
	VMINPS(g, c.plus, g)
	VMAXPS(g, c.minus, g)
}

func (s *isa) descend() {
	s.begin("descend", "(x, grad []float32, step, clip float32)", "is the vector form of descend.")
	x, grad := s.pointer("x"), s.pointer("grad")
	step, clip := s.broadcast("step"), s.clip()
	s.loop("x", "loop", func(i Register) {
		v, g := s.load(x, i), s.load(grad, i)
		clip.bound(g)
		VMULPS(step, g, g)
		VSUBPS(g, v, v)
		VMOVUPS(v, at(x, i))
	})
	s.end()
}

// momentumStep and adamStep multiply and add in separate instructions, so that
// they give the bits of the portable forms: fused ones would gain nothing,
// since memory is what the steps wait for.
func (s *isa) momentumStep() {
	s.begin("momentumStep", "(w, g, buf []float32, step, clip, decay, keep float32)", "is the vector form of momentumStep.")
	w, g, buf := s.pointer("w"), s.pointer("g"), s.pointer("buf")
	step, clip, decay, keep := s.broadcast("step"), s.clip(), s.broadcast("decay"), s.broadcast("keep")
	s.loop("w", "loop", func(i Register) {
		x, d, b, t := s.load(w, i), s.load(g, i), s.load(buf, i), s.vec()
		clip.bound(d)
		VMULPS(decay, x, t)
		VADDPS(t, d, d)
		VMULPS(keep, b, b)
		VADDPS(d, b, b)
		VMOVUPS(b, at(buf, i))
		VMULPS(step, b, b)
		VSUBPS(b, x, x)
		VMOVUPS(x, at(w, i))
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
		VMULPS(decay, x, t)
		VADDPS(t, d, d)
		VSUBPS(mean, d, t)
		VMULPS(ofG, t, t)
		VADDPS(t, mean, mean)
		VMOVUPS(mean, at(m, i))
		VMULPS(ofG2, d, t)
		VMULPS(d, t, t)
		VMULPS(at(v, i), keep, d)
		VADDPS(t, d, d)
		VMOVUPS(d, at(v, i))
		VSQRTPS(d, d)
		VMULPS(scale, d, d)
		VADDPS(epsilon, d, d)
		VMULPS(step, mean, mean)
		VDIVPS(d, mean, mean)
		VSUBPS(mean, x, x)
		VMOVUPS(x, at(w, i))
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
			positive := K()
			VCMPPS(Imm(gtOQ), zero, v, positive)
			s.loadMasked(at(g, i), positive, v)
		} else {
			VCMPPS(Imm(gtOQ), zero, v, v)
			VANDPS(at(g, i), v, v)
		}
		VMOVUPS(v, at(dst, i))
	})
	s.end()
}

// columnSums takes rows in groups of eight, vector after vector of columns, so
// that the sums are loaded and stored once per group. The last columns, too few
// for a vector, are masked.
func (s *isa) columnSums() {
	s.begin("columnSums", "(dst, x []float32, rows, d int)", "is the vector form of columnSums.")
	dst, row := s.pointer("dst"), s.pointer("x")
	rows, d := Load(Param("rows"), GP64()), Load(Param("d"), GP64())
	stride, stride3, stride5, stride7, whole := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(d, stride)
	SHLQ(Imm(2), stride)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 4}, stride5)
	LEAQ(Mem{Base: stride3, Index: stride, Scale: 4}, stride7)
	MOVQ(d, whole)
	ANDQ(I32(-s.lanes), whole)
	mask := s.firstLanes(d)
	x, j, sum := GP64(), GP64(), s.vec()
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
		CMPQ(rows, Imm(uint64(n)))
		JLT(s.to(label + "_done"))
		MOVQ(row, x)
		XORQ(j, j)
		s.label(label + "_columns")
		CMPQ(j, whole)
		JGE(s.to(label + "_last"))
		VMOVUPS(at(dst, j), sum)
		for _, m := range group.rows {
			VADDPS(m, sum, sum)
		}
		VMOVUPS(sum, at(dst, j))
		ADDQ(Imm(uint64(s.bytes())), x)
		ADDQ(Imm(uint64(s.lanes)), j)
		JMP(s.to(label + "_columns"))
		s.label(label + "_last")
		CMPQ(j, d)
		JGE(s.to(label + "_next"))
		s.loadMasked(at(dst, j), mask, sum)
		for _, m := range group.rows {
			v := s.vec()
			s.loadMasked(m, mask, v)
			VADDPS(v, sum, sum)
		}
		s.storeMasked(sum, mask, at(dst, j))
		s.label(label + "_next")
		LEAQ(Mem{Base: row, Index: stride, Scale: uint8(n)}, row)
		SUBQ(Imm(uint64(n)), rows)
		JMP(s.to(label))
		s.label(label + "_done")
	}
	s.end()
}

// firstLanes returns a mask that is set in the first n modulo lanes lanes.
func (s *isa) firstLanes(n Register) Register {
	const name = "firstLanes"
	m, ok := tables[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range 32 {
			DATA(4*i, I32(i/16-1)) // 16 of −1, which has all bits set, and 16 of 0
		}
		tables[name] = m
	}
	zeros, r, v := GP64(), GP64(), s.vec()
	LEAQ(m.Offset(4*16), zeros)
	MOVQ(n, r)
	ANDQ(Imm(uint64(s.lanes-1)), r)
	NEGQ(r)
	VMOVUPS(at(zeros, r), v)
	if !s.wide() {
		return v
	}
	k := K()
	VPMOVD2M(v, k)
	return k
}

// loadMasked loads the lanes of v that the mask has and sets the others to 0;
// their memory is not touched.
func (s *isa) loadMasked(m Mem, mask Register, v VecVirtual) {
	if s.wide() {
		VMOVUPS_Z(m, mask, v)
		return
	}
	VMASKMOVPS(m, mask, v)
}

// storeMasked stores the lanes of v that the mask has.
func (s *isa) storeMasked(v VecVirtual, mask Register, m Mem) {
	if s.wide() {
		VMOVUPS(v, mask, m)
		return
	}
	VMASKMOVPS(v, mask, m)
}

func (s *isa) negPositive() {
	s.begin("negPositive", "(x []float32, c, limit, logLimit float32) (loss, dTheta float32)", "is the vector form of negPositive.")
	x := s.pointer("x")
	c, limit, logLimit := s.broadcast("c"), s.broadcast("limit"), s.broadcast("logLimit")
	l, loss, dTheta := s.logarithm(), s.zero(), s.zero()
	s.loop("x", "loop", func(i Register) {
		cu, v, g := s.vec(), s.vec(), s.vec()
		VADDPS(at(x, i), l.one, cu)
		VMULPS(c, cu, cu)
		VADDPS(l.one, cu, v)
		mask := s.notGreater(v, limit)
		VDIVPS(v, l.one, g)
		VMULPS(g, cu, cu)
		VMULPS(c, g, g)
		s.keep(mask, g)
		VMOVUPS(g, at(x, i))
		s.keep(mask, cu)
		VADDPS(cu, dTheta, dTheta)
		log := l.of(v)
		s.blend(mask, log, logLimit)
		VADDPS(log, loss, loss)
	})
	s.sum(loss, "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}

func (s *isa) negNegative() {
	s.begin("negNegative", "(x []float32, invC, limit float32) (loss, dTheta float32)", "is the vector form of negNegative for at most 960 pairs.")
	x := s.pointer("x")
	invC, limit := s.broadcast("invC"), s.broadcast("limit")
	l, logs, dTheta := s.logarithm(), s.logSum(), s.zero()
	s.loop("x", "loop", func(i Register) {
		q, r, v, share := s.vec(), s.vec(), s.vec(), s.vec()
		VADDPS(at(x, i), l.one, q)
		VDIVPS(q, l.one, q)
		VMULPS(invC, q, r)
		VADDPS(l.one, r, v)
		mask := s.notGreater(v, limit)
		VDIVPS(v, r, share)
		s.keep(mask, share)
		VSUBPS(share, dTheta, dTheta)
		VFNMADD213PS(number(0), share, q)
		VMOVUPS(q, at(x, i))
		VMINPS(v, limit, v) // the second source, v, if one is a NaN
		logs.add(v)
	})
	s.sum(logs.total(l), "loss")
	s.sum(dTheta, "dTheta")
	s.end()
}

func (s *isa) umapPositive() {
	s.begin("umapPositive", "(x []float32, limit, logLimit float32) (loss float32)", "is the vector form of umapPositive.")
	x := s.pointer("x")
	limit, logLimit := s.broadcast("limit"), s.broadcast("logLimit")
	l, loss := s.logarithm(), s.zero()
	s.loop("x", "loop", func(i Register) {
		u, g := s.vec(), s.vec()
		VADDPS(at(x, i), l.one, u)
		mask := s.notGreater(u, limit)
		VDIVPS(u, l.one, g)
		s.keep(mask, g)
		VMOVUPS(g, at(x, i))
		log := l.of(u)
		s.blend(mask, log, logLimit)
		VADDPS(log, loss, loss)
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) umapNegative() {
	s.begin("umapNegative", "(x []float32, limit, logLimit float32) (loss float32)", "is the vector form of umapNegative.")
	x := s.pointer("x")
	limit, logLimit := s.broadcast("limit"), s.broadcast("logLimit")
	l, loss := s.logarithm(), s.zero()
	s.loop("x", "loop", func(i Register) {
		d2 := s.load(x, i)
		u, r, v := s.vec(), s.vec(), s.vec()
		VADDPS(l.one, d2, u)
		VDIVPS(d2, l.one, r)
		VADDPS(l.one, r, v)
		mask := s.notGreater(v, limit)
		VDIVPS(u, r, r)
		VMULPS(number(-1), r, r)
		s.keep(mask, r)
		VMOVUPS(r, at(x, i))
		log := l.of(v)
		s.blend(mask, log, logLimit)
		VADDPS(log, loss, loss)
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
		VADDPS(at(x, i), one, q)
		VDIVPS(q, one, q)
		VMAXPS(q, clamp, q) // the second source, q, if one is a NaN
		VMOVUPS(q, at(x, i))
		VADDPS(at(total, i), q, t)
		VMOVUPS(t, at(total, i))
	})
	s.end()
}

func (s *isa) logTotals() {
	s.begin("logTotals", "(total []float32, weight float32) (loss float32)", "is the vector form of logTotals, but for the factor weight of the loss.")
	total := s.pointer("total")
	weight := s.broadcast("weight")
	l, loss := s.logarithm(), s.zero()
	s.loop("total", "loop", func(i Register) {
		t, share := s.load(total, i), s.vec()
		VDIVPS(t, weight, share)
		VMOVUPS(share, at(total, i))
		VADDPS(l.of(t), loss, loss)
	})
	s.sum(loss, "loss")
	s.end()
}

func (s *isa) infoncPositive() {
	s.begin("infoncPositive", "(q, share []float32, clamp, inTotal float32) (loss float32)", "is the vector form of infoncPositive.")
	q, share := s.pointer("q"), s.pointer("share")
	clamp, inTotal := s.broadcast("clamp"), s.broadcast("inTotal")
	l, loss := s.logarithm(), s.zero()
	s.loop("q", "loop", func(i Register) {
		v, g := s.load(q, i), s.vec()
		VMULPS(at(share, i), v, g)
		VMULPS(inTotal, g, g)
		VFNMADD213PS(v, v, g)
		s.keep(s.aboveClamp(v, clamp), g)
		VMOVUPS(g, at(q, i))
		VSUBPS(l.of(v), loss, loss)
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
		VMULPS(at(share, i), v, g)
		VFNMADD213PS(zero, v, g)
		s.keep(s.aboveClamp(v, clamp), g)
		VMOVUPS(g, at(q, i))
	})
	s.end()
}

// aboveClamp is set where v ≤ clamp does not hold: a NaN is kept.
func (s *isa) aboveClamp(v, clamp VecVirtual) Register {
	const nleUS = 0x06
	if s.wide() {
		k := K()
		VCMPPS(Imm(nleUS), clamp, v, k)
		return k
	}
	m := YMM()
	VCMPPS(Imm(nleUS), clamp, v, m)
	return m
}

func (s *isa) add() {
	s.begin("add", "(dst, src []float32)", "is the vector form of add.")
	dst, src := s.pointer("dst"), s.pointer("src")
	s.loop("src", "loop", func(i Register) {
		v := s.load(src, i)
		VADDPS(at(dst, i), v, v)
		VMOVUPS(v, at(dst, i))
	})
	s.end()
}

func (s *isa) scale() {
	s.begin("scale", "(x []float32, f float32)", "is the vector form of scale.")
	x, f := s.pointer("x"), s.broadcast("f")
	s.loop("x", "loop", func(i Register) {
		v := s.vec()
		VMULPS(at(x, i), f, v)
		VMOVUPS(v, at(x, i))
	})
	s.end()
}

func (s *isa) addPlane() {
	s.begin("addPlane", "(dst, xs, ys []float32)", "is the vector form of addPlane.")
	dst, xs, ys := s.pointer("dst"), s.pointer("xs"), s.pointer("ys")
	s.loop("xs", "loop", func(i Register) {
		x, y, lo, hi := s.load(xs, i), s.load(ys, i), s.vec(), s.vec()
		// Within each 128-bit quarter: x0 y0 x1 y1 and x2 y2 x3 y3.
		VUNPCKLPS(y, x, lo)
		VUNPCKHPS(y, x, hi)
		for q := range s.lanes / 4 {
			for j, v := range []VecVirtual{lo, hi} {
				to, t := Mem{Base: dst, Index: i, Scale: 8}.Offset(32*q+16*j), XMM()
				VADDPS(to, s.quarter(v, q), t)
				VMOVUPS(t, to)
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
	p := XMM()
	if s.wide() {
		VEXTRACTF32X4(Imm(uint64(q)), v, p)
	} else {
		VEXTRACTF128(Imm(uint64(q)), v, p)
	}
	return p
}

func (s *isa) maxUint32() {
	s.begin("maxUint32", "(x []int32) uint32", "is the vector form of maxUint32.")
	x := s.pointer("x")
	m := s.zero()
	s.loop("x", "loop", func(i Register) { VPMAXUD(at(x, i), m, m) })
	t := YMM()
	if s.wide() {
		VEXTRACTI64X4(Imm(1), m, t)
		VPMAXUD(t, m.AsY(), m.AsY())
	}
	VEXTRACTI128(Imm(1), m.AsY(), t.AsX())
	VPMAXUD(t.AsX(), m.AsX(), m.AsX())
	VPSHUFD(Imm(0x4e), m.AsX(), t.AsX())
	VPMAXUD(t.AsX(), m.AsX(), m.AsX())
	VPSHUFD(Imm(0xb1), m.AsX(), t.AsX())
	VPMAXUD(t.AsX(), m.AsX(), m.AsX())
	r := GP32()
	VMOVD(m.AsX(), r)
	Store(r, ReturnIndex(0))
	s.end()
}

func (s *isa) inverseSum2() {
	s.begin("inverseSum2", "(xs, ys []float32, x, y float32) (sum float32)", "is the vector form of inverseSum2.")
	xs, ys := s.pointer("xs"), s.pointer("ys")
	x, y, one, sum := s.broadcast("x"), s.broadcast("y"), s.constant(1), s.zero()
	s.loop("xs", "loop", func(i Register) {
		dx, dy, u := s.vec(), s.vec(), s.vec()
		VSUBPS(at(xs, i), x, dx)
		VSUBPS(at(ys, i), y, dy)
		VMOVAPS(one, u)
		VFMADD231PS(dx, dx, u)
		VFMADD231PS(dy, dy, u)
		VDIVPS(u, one, u)
		VADDPS(u, sum, sum)
	})
	s.sum(sum, "sum")
	s.end()
}

// inverseSum2Near adds 1/u + 1/v as (u+v)/(u·v): a division takes longer than all else.
func (s *isa) inverseSum2Near() {
	s.begin("inverseSum2Near", "(xs, ys []float32, x, y float32) (sum float32)", "is the vector form of InverseSum2Near, for multiples of two vectors.")
	xs, ys := s.pointer("xs"), s.pointer("ys")
	x, y, one, sum := s.broadcast("x"), s.broadcast("y"), s.constant(1), s.zero()
	s.loop("xs", "loop", func(i Register) {
		term := func() VecVirtual {
			dx, dy, u := s.vec(), s.vec(), s.vec()
			VSUBPS(at(xs, i), x, dx)
			VSUBPS(at(ys, i), y, dy)
			VMOVAPS(one, u)
			VFMADD231PS(dx, dx, u)
			VFMADD231PS(dy, dy, u)
			return u
		}
		u := term()
		ADDQ(Imm(uint64(s.lanes)), i)
		v, product := term(), s.vec()
		VMULPS(u, v, product)
		VADDPS(u, v, u)
		VDIVPS(product, u, u)
		VADDPS(u, sum, sum)
	})
	s.sum(sum, "sum")
	s.end()
}

func (s *isa) addSquares() {
	s.begin("addSquares", "(dst, xs []float32, x float32)", "is the vector form of addSquares.")
	dst, xs, x := s.pointer("dst"), s.pointer("xs"), s.broadcast("x")
	s.loop("xs", "loop", func(i Register) {
		sum, dx := s.load(dst, i), s.vec()
		VSUBPS(at(xs, i), x, dx)
		VFMADD231PS(dx, dx, sum)
		VMOVUPS(sum, at(dst, i))
	})
	s.end()
}

func (s *isa) inverseSum() {
	s.begin("inverseSum", "(d2 []float32) (sum float32)", "is the vector form of inverseSum.")
	d2, one, sum := s.pointer("d2"), s.constant(1), s.zero()
	s.loop("d2", "loop", func(i Register) {
		u := s.vec()
		VADDPS(at(d2, i), one, u)
		VDIVPS(u, one, u)
		VADDPS(u, sum, sum)
	})
	s.sum(sum, "sum")
	s.end()
}

// inverseLogSum adds to log v, where v is 1+r rounded, what the rounding has
// taken: (r − (v−1))/v to first order. The division by v is left out: where
// v ≤ 2 what it would take off is below the rounding of the logarithm, and
// beyond so is the whole, which is not added there.
func (s *isa) inverseLogSum() {
	s.begin("inverseLogSum", "(x []float32, slope, offset, limit, logLimit float32) (sum float32)", "is the vector form of inverseLogSum.")
	x := s.pointer("x")
	slope, offset, limit, logLimit := s.broadcast("slope"), s.broadcast("offset"), s.broadcast("limit"), s.broadcast("logLimit")
	l, two, sum := s.logarithm(), s.constant(2), s.zero()
	s.loop("x", "loop", func(i Register) {
		r, v, lost := s.load(x, i), s.vec(), s.vec()
		VFMADD213PS(offset, slope, r)
		VDIVPS(r, l.one, r)
		VADDPS(l.one, r, v)
		VSUBPS(l.one, v, lost)
		VSUBPS(lost, r, r)
		s.keep(s.notGreater(v, two), r)
		mask := s.notGreater(v, limit)
		log := l.of(v)
		VADDPS(r, log, log)
		s.blend(mask, log, logLimit)
		VADDPS(log, sum, sum)
	})
	s.sum(sum, "sum")
	s.end()
}

// countBelow compares each vector with four limits at a time.
func (s *isa) countBelow() {
	const ltOQ = 0x11
	s.begin("countBelow", "(counts []int32, x, limits []float32)", "is the vector form of countBelow.")
	counts, x, limits := s.pointer("counts"), s.pointer("x"), s.pointer("limits")
	groups, l := Load(Param("limits").Len(), GP64()), GP64()
	XORQ(l, l)
	s.label("limits")
	CMPQ(l, groups)
	JGE(s.to("limits_done"))
	var limit [4]VecVirtual
	var count [4]Register
	for k := range limit {
		limit[k], count[k] = s.vec(), GP32()
		VBROADCASTSS(Mem{Base: limits, Index: l, Scale: 4, Disp: 4 * k}, limit[k])
		XORL(count[k], count[k])
	}
	s.loop("x", "loop", func(i Register) {
		v := s.load(x, i)
		for k := range limit {
			bits := GP32()
			if s.wide() {
				below := K()
				VCMPPS(Imm(ltOQ), limit[k], v, below)
				KMOVW(below, bits)
			} else {
				below := YMM()
				VCMPPS(Imm(ltOQ), limit[k], v, below)
				VMOVMSKPS(below, bits)
			}
			POPCNTL(bits, bits)
			ADDL(bits, count[k])
		}
	})
	for k := range count {
		ADDL(count[k], Mem{Base: counts, Index: l, Scale: 4, Disp: 4 * k})
	}
	ADDQ(Imm(4), l)
	JMP(s.to("limits"))
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
	VPADDQ(s.quads("gammas", func(i int) uint64 { return uint64(i+1) * gamma }), counter, counter)
	s.splat64(words*gamma, step)
	others := Load(Param("others"), GP32())
	VMOVD(others, bound.AsX())
	VPBROADCASTQ(bound.AsX(), bound)
	VMOVUPS(s.quads("before", func(i int) uint64 { return uint64(uint32(2*i-1)) | uint64(uint32(2*i))<<32 }), before)
	s.splat64(uint64(s.lanes)<<32|uint64(s.lanes), advance)
	m1, m2 := s.factor(mixer1), s.factor(mixer2)
	s.loop("column", "loop", func(i Register) {
		z, t := s.vec(), s.vec()
		VMOVUPS(counter, z)
		VPADDQ(step, counter, counter)
		s.xorShift(z, t, 30)
		s.multiply(z, m1)
		s.xorShift(z, t, 27)
		s.multiply(z, m2)
		s.xorShift(z, t, 31)
		VPSRLQ(Imm(32), z, t)
		VPMULUDQ(bound, z, z)
		VPMULUDQ(bound, t, t)
		VPSRLQ(Imm(32), z, z)
		if s.wide() {
			odd := K()
			r := GP32()
			MOVL(U32(0xaaaa), r)
			KMOVW(r, odd)
			VMOVDQU32(t, odd, z)
			up := K()
			VPCMPGTD(before, z, up)
			VPADDD(table(1), z, up, z)
		} else {
			VPBLENDD(Imm(0xaa), t, z, z)
			VPCMPGTD(before, z, t)
			VPSUBD(t, z, z)
		}
		VPADDD(advance, before, before)
		VMOVUPS(z, at(column, i))
	})
	s.end()
}

// broadcast64 sets every 64-bit lane of v to a parameter.
func (s *isa) broadcast64(param string, v VecVirtual) {
	r := Load(Param(param), GP64())
	VMOVQ(r, v.AsX())
	VPBROADCASTQ(v.AsX(), v)
}

func (s *isa) splat64(x uint64, v VecVirtual) {
	r := GP64()
	MOVQ(U64(x), r)
	VMOVQ(r, v.AsX())
	VPBROADCASTQ(v.AsX(), v)
}

// quads returns a vector of eight 64-bit words in read-only memory.
func (s *isa) quads(name string, word func(i int) uint64) Mem {
	if m, ok := tables[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(word(i)))
	}
	tables[name] = m
	return m
}

// xorShift computes z ^= z >> n.
func (s *isa) xorShift(z, t VecVirtual, n uint64) {
	VPSRLQ(Imm(n), z, t)
	if s.wide() {
		VPXORQ(t, z, z)
	} else {
		VPXOR(t, z, z)
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
		VPMULLQ(f.whole, z, z)
		return
	}
	high, cross := s.vec(), s.vec()
	VPSRLQ(Imm(32), z, high)
	VPMULUDQ(f.whole, high, high)
	VPMULUDQ(f.upper, z, cross)
	VPADDQ(cross, high, high)
	VPSLLQ(Imm(32), high, high)
	VPMULUDQ(f.whole, z, z)
	VPADDQ(high, z, z)
}
