package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quadHeads is the number of heads that the dense kernels take at once: their
// pairs share each load of a column and each update of its gradient.
const quadHeads = 4

// dense is what the dense kernels of one instruction set and width share: four
// heads against stretches of columns. The columns lie in planes, one for each
// coordinate.
type dense struct {
	*isa
	d             int
	heads         Register
	columns, grad []Register // planes
	masks         []Register // of the stretch: AVX-512, one for each head
	// Without AVX-512: the address of the stretch's masks. They have 16 lanes; a pass over
	// the columns takes as many of them as a register has, from lane on.
	maskMemory Register
	lane       int
	// headVectors has the heads' coordinates where the registers suffice.
	headVectors map[int]VecVirtual
}

func denseKernels(both func(kernel func(s *isa))) {
	for d := 2; d <= 3; d++ {
		for _, careful := range []bool{false, true} {
			both(func(s *isa) { s.denseNeg(d, careful) })
			both(func(s *isa) { s.denseUMAP(d, careful) })
			both(func(s *isa) { s.denseTotals(d, careful) })
		}
		both(func(s *isa) { s.denseScatter(d) })
		both(func(s *isa) { s.extents(d) })
	}
	both((*isa).lessProduct)
	both((*isa).pull)
	both((*isa).foldSlots)
}

// variant returns the name of a kernel. The careful one handles clamps, and
// distances whose products would leave float32's range: it computes inverses one
// by one.
func variant(name string, d int, careful bool) string {
	if careful {
		name += "Careful"
	}
	return fmt.Sprintf("%s%d", name, d)
}

func (s *isa) newDense(d int, withGradient bool) *dense {
	k := &dense{isa: s, d: d}
	stride := s.Load(s.Param("stride"), s.GP64())
	planes := func(name string) (out []Register) {
		p := s.pointer(name)
		for i := range d {
			out = append(out, p)
			if i+1 < d {
				next := s.GP64()
				s.LEAQ(Mem{Base: p, Index: stride, Scale: 4}, next)
				p = next
			}
		}
		return out
	}
	k.columns = planes("columns")
	if withGradient {
		k.grad = planes("gradient")
	}
	k.heads = s.pointer("heads")
	if s.neon() && d < 3 {
		k.headVectors = map[int]VecVirtual{}
		for j := range quadHeads * d {
			v := s.vec()
			s.VBROADCASTSS(Mem{Base: k.heads}.Offset(4*j), v)
			k.headVectors[j] = v
		}
	}
	if !s.wide() {
		k.maskMemory = s.GP64()
		return k
	}
	for range quadHeads {
		k.masks = append(k.masks, s.K())
	}
	return k
}

// The fields of a ColumnRange, of 8 bytes each, and its size.
const (
	stretchFirst = 0
	stretchN     = 8
	stretchAt    = 16
	stretchMasks = 24
	stretchSize  = 32
)

// passes emits body for each pass over the columns.
func (k *dense) passes(body func(label string)) {
	for k.lane = 0; k.lane < 16; k.lane += k.lanes {
		body(fmt.Sprintf("pass%d", k.lane))
	}
}

// overStretches emits a loop over the vectors of columns of all stretches that belong to a
// pass. begin is emitted where a stretch begins, with the number of its first column in i.
func (k *dense) overStretches(label string, begin func(stretch, i Register), body func(i Register)) {
	stretch, end, n, i := k.Load(k.Param("stretches"), k.GP64()), k.Load(k.Param("count"), k.GP64()), k.GP64(), k.GP64()
	k.SHLQ(Imm(uint64(bits.TrailingZeros(stretchSize))), end)
	k.ADDQ(stretch, end)
	k.label(label)
	k.CMPQ(stretch, end)
	k.JGE(k.to(label + "_done"))
	field := func(offset int) Mem { return Mem{Base: stretch}.Offset(offset) }
	k.MOVQ(field(stretchFirst), i)
	k.MOVQ(field(stretchN), n)
	k.ADDQ(i, n)
	if k.wide() {
		m := k.GP64()
		k.MOVQ(field(stretchMasks), m)
		for h, mask := range k.masks {
			v := k.vec()
			k.VMOVUPS(Mem{Base: m}.Offset(64*h), v)
			k.VPMOVD2M(v, mask)
		}
	} else {
		k.MOVQ(field(stretchMasks), k.maskMemory)
	}
	if begin != nil {
		begin(stretch, i)
	}
	if k.lane > 0 {
		k.ADDQ(Imm(uint64(k.lane)), i)
	}
	k.label(label + "_columns")
	k.CMPQ(i, n)
	k.JGE(k.to(label + "_next"))
	body(i)
	k.ADDQ(Imm(16), i)
	k.JMP(k.to(label + "_columns"))
	k.label(label + "_next")
	k.ADDQ(Imm(stretchSize), stretch)
	k.JMP(k.to(label))
	k.label(label + "_done")
}

// slots are sums of 16 numbers each; some sums are kept in registers. A pass changes some
// of the 16 numbers.
type slots struct {
	param string
	base  Register
	kept  []int
	vecs  map[int]VecVirtual
}

// slots loads the sums of a parameter that are kept in registers.
func (k *dense) slots(param string, kept []int) slots {
	t := slots{param, k.pointer(param), kept, map[int]VecVirtual{}}
	for _, j := range kept {
		t.vecs[j] = k.vec()
		k.VMOVUPS(k.slot(t, j), t.vecs[j])
	}
	return t
}

// upTo returns the numbers from 0 to n−1 if some is set, else none.
func upTo(n int, some bool) (numbers []int) {
	for j := 0; some && j < n; j++ {
		numbers = append(numbers, j)
	}
	return numbers
}

func (k *dense) slot(t slots, j int) Mem { return Mem{Base: t.base}.Offset(64*j + 4*k.lane) }

// update emits a change of sum j.
func (k *dense) update(t slots, j int, change func(v VecVirtual)) {
	if v := t.vecs[j]; v != nil {
		change(v)
		return
	}
	v := k.vec()
	k.VMOVUPS(k.slot(t, j), v)
	change(v)
	k.VMOVUPS(v, k.slot(t, j))
}

// store stores the sums that are in registers.
func (k *dense) store(t slots) {
	if t.kept != nil {
		t.base = k.pointer(t.param)
	}
	for _, j := range t.kept {
		k.VMOVUPS(t.vecs[j], k.slot(t, j))
	}
}

// differences returns the column's coordinates at i minus a head's.
func (k *dense) differences(columns []VecVirtual, i Register, head int) (out []VecVirtual) {
	for c := range k.d {
		at4 := Mem{Base: k.heads}.Offset(4 * (head*k.d + c))
		v := k.vec()
		switch h := k.headVectors[head*k.d+c]; {
		case h != nil:
			k.VSUBPS(h, columns[c], v)
		case k.wide() && columns != nil:
			k.VSUBPS_BCST(at4, columns[c], v)
		case k.wide():
			k.VMOVUPS(at(k.columns[c], i), v)
			k.VSUBPS_BCST(at4, v, v)
		default:
			t, column := k.vec(), v
			k.VBROADCASTSS(at4, t)
			if columns != nil {
				column = columns[c]
			} else {
				k.VMOVUPS(at(k.columns[c], i), v)
			}
			k.VSUBPS(t, column, v)
		}
		out = append(out, v)
	}
	return out
}

// squares adds the squares of the differences to v.
func (k *dense) squares(v VecVirtual, differences []VecVirtual) {
	for _, x := range differences {
		k.VFMADD231PS(x, x, v)
	}
}

// inverses returns 1/p for one or two heads from first on, and 0 where the stretch's mask
// of the head is not set. Neither p nor their product is near the limits of float32. Two
// inverses come from the inverse of the product, since a division takes as long as many
// multiplications.
func (k *dense) inverses(p []VecVirtual, first int) []VecVirtual {
	divisor, r := p[0], k.loaded(1)
	if len(p) == 2 {
		divisor = k.vec()
		k.VMULPS(p[0], p[1], divisor)
	}
	k.VDIVPS(divisor, r, r)
	if len(p) == 1 {
		k.keepMasked(r, first)
		return []VecVirtual{r}
	}
	for h, v := range []VecVirtual{p[1], p[0]} {
		if k.wide() {
			k.VMULPS_Z(v, r, k.masks[first+h], v)
		} else {
			k.VMULPS(v, r, v)
			k.keepMasked(v, first+h)
		}
	}
	return []VecVirtual{p[1], p[0]}
}

// keepMasked sets v to zero where the head's mask is not set.
func (k *dense) keepMasked(v VecVirtual, head int) {
	if k.wide() {
		k.VMOVAPS_Z(v, k.masks[head], v)
		return
	}
	k.VANDPS(Mem{Base: k.maskMemory}.Offset(64*head+4*k.lane), v, v)
}

// multiplyIn multiplies the running product, the first sum of state, by v. It moves the
// product's exponent to the sum of exponents, the second.
func (k *dense) multiplyIn(state slots, v VecVirtual) {
	e := k.vec()
	k.update(state, 0, func(product VecVirtual) {
		k.VMULPS(v, product, product)
		if k.wide() {
			k.VGETEXPPS(product, e)
			k.VGETMANTPS(Imm(0), product, product)
			return
		}
		k.VPSRLD(Imm(23), product, e)
		k.VPSUBD(k.table(127), e, e)
		k.VCVTDQ2PS(e, e)
		k.VFMADD231PS(k.number(0), product, e) // a NaN stays one
		k.VANDPS(k.table(0x7fffff), product, product)
		k.VORPS(k.number(1), product, product)
	})
	k.update(state, 1, func(exponents VecVirtual) { k.VADDPS(e, exponents, exponents) })
}

// loadColumns loads the column's coordinates and its gradient, as far as the
// registers suffice.
func (k *dense) loadColumns(i Register) (columns, grad []VecVirtual) {
	if k.few() && (k.grad != nil || k.d == 3) {
		return nil, nil
	}
	if k.d < 3 {
		for _, p := range k.columns {
			columns = append(columns, k.load(p, i))
		}
	}
	for _, p := range k.grad {
		grad = append(grad, k.load(p, i))
	}
	return columns, grad
}

// addTo adds the products of weights and differences of some heads to the column's gradient.
func (k *dense) addTo(grad []VecVirtual, i Register, weights []VecVirtual, x [][]VecVirtual) {
	for c, p := range k.grad {
		sum := VecVirtual(nil)
		if grad != nil {
			sum = grad[c]
		} else {
			sum = k.load(p, i)
		}
		for g, w := range weights {
			k.VFMADD231PS(w, x[g][c], sum)
		}
		if grad == nil {
			k.VMOVUPS(sum, at(p, i))
		}
	}
}

func (k *dense) storeGradient(grad []VecVirtual, i Register) {
	for c, v := range grad {
		k.VMOVUPS(v, at(k.grad[c], i))
	}
}

const denseParams = "(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state []float32, "

func (s *isa) denseNeg(d int, careful bool) {
	s.begin(variant("denseNeg", d, careful), denseParams+"constants []float32)", fmt.Sprintf("is a vector form of denseNeg for d = %d.", d))
	k := s.newDense(d, true)
	constants := s.pointer("constants")
	c, invC := k.scalar(Mem{Base: constants}), k.scalar(Mem{Base: constants}.Offset(4))
	var limit VecVirtual
	if careful {
		limit = s.vec()
		s.VBROADCASTSS(Mem{Base: constants}.Offset(8), limit)
	}
	k.passes(func(label string) {
		sums, state := k.slots("sums", upTo(quadHeads*d, s.wide())), k.slots("state", upTo(3, s.neon() || s.wide() && d < 3))
		k.overStretches(label, nil, func(i Register) {
			columns, grad := k.loadColumns(i)
			var factors VecVirtual
			together(0, quadHeads, careful, func(h, n int) {
				x, u, t, p := make([][]VecVirtual, n), make([]VecVirtual, n), make([]VecVirtual, n), make([]VecVirtual, n)
				for g := range n {
					x[g] = k.differences(columns, i, h+g)
					u[g], t[g], p[g] = s.loaded(1), s.loaded(1), s.vec()
					k.squares(u[g], x[g])
					c.timesPlus(u[g], t[g])
					s.VMULPS(u[g], t[g], p[g])
				}
				weights := k.inverses(p, h) // 1/(u(1+cu))
				for g, r := range weights {
					s.VMULPS(r, t[g], t[g])
					v := s.loaded(1)
					invC.timesPlus(t[g], v) // 1 + 1/(cu)
					if careful {
						s.keep(s.notGreater(v, limit), r)
						s.VMINPS(v, limit, v) // the second source, v, if one is a NaN
					}
					if factors == nil {
						factors = v
					} else {
						s.VMULPS(v, factors, factors)
					}
					for j, dx := range x[g] {
						k.update(sums, (h+g)*d+j, func(sum VecVirtual) { s.VFMADD231PS(r, dx, sum) })
					}
				}
				k.update(state, 2, func(shares VecVirtual) {
					for g, r := range weights {
						s.VFMADD231PS(u[g], r, shares)
					}
				})
				k.addTo(grad, i, weights, x)
			})
			k.multiplyIn(state, factors)
			k.storeGradient(grad, i)
		})
		k.store(sums)
		k.store(state)
	})
	s.end()
}

// A scalar is a number to multiply by: in a register if there are enough, else in memory.
type scalar struct {
	*isa
	memory   Mem
	register VecVirtual
}

func (k *dense) scalar(m Mem) scalar {
	if k.neon() {
		v := k.vec()
		k.VBROADCASTSS(m, v)
		return scalar{isa: k.isa, register: v}
	}
	return scalar{isa: k.isa, memory: m}
}

// timesPlus adds the scalar times v to sum.
func (f scalar) timesPlus(v, sum VecVirtual) {
	switch {
	case f.wide():
		f.VFMADD231PS_BCST(f.memory, v, sum)
	case f.few():
		t := f.vec()
		f.VBROADCASTSS(f.memory, t)
		f.VFMADD231PS(t, v, sum)
	default:
		f.VFMADD231PS(f.register, v, sum)
	}
}

// together emits body for heads from first to end, two at a time, or in a careful kernel
// one by one.
func together(first, end int, careful bool, body func(head, n int)) {
	n := 2
	if careful {
		n = 1
	}
	for h := first; h < end; h += n {
		body(h, n)
	}
}

func (s *isa) denseUMAP(d int, careful bool) {
	s.begin(variant("denseUMAP", d, careful), denseParams+"least float32)", fmt.Sprintf("is a vector form of denseUMAP for d = %d.", d))
	k := s.newDense(d, true)
	least := s.broadcast("least")
	k.passes(func(label string) {
		sums, state := k.slots("sums", upTo(quadHeads*d, s.wide())), k.slots("state", upTo(2, !s.few()))
		k.overStretches(label, nil, func(i Register) {
			columns, grad := k.loadColumns(i)
			together(0, quadHeads, careful, func(h, n int) {
				x, u, p, apart := make([][]VecVirtual, n), make([]VecVirtual, n), make([]VecVirtual, n), make([]Register, n)
				for g := range n {
					x[g] = k.differences(columns, i, h+g)
					d2 := s.vec()
					u[g], p[g] = s.vec(), s.vec()
					s.VMULPS(x[g][0], x[g][0], d2)
					k.squares(d2, x[g][1:])
					apart[g] = s.aboveClamp(d2, least)
					s.VMAXPS(d2, least, d2) // the second source, d2, if one is a NaN
					s.VADDPS(s.number(1), d2, u[g])
					s.VMULPS(u[g], d2, p[g])
				}
				var factors VecVirtual
				weights := k.inverses(p, h) // 1/(x(1+x))
				for g, r := range weights {
					s.VFMADD213PS(s.number(1), r, u[g]) // 1 + 1/x
					s.keep(apart[g], r)
					for j, v := range x[g] {
						k.update(sums, (h+g)*d+j, func(sum VecVirtual) { s.VFMADD231PS(r, v, sum) })
					}
					if factors == nil {
						factors = u[g]
					} else {
						s.VMULPS(u[g], factors, factors)
					}
				}
				k.addTo(grad, i, weights, x)
				k.multiplyIn(state, factors)
			})
			k.storeGradient(grad, i)
		})
		k.store(sums)
		k.store(state)
	})
	s.end()
}

func (s *isa) denseTotals(d int, careful bool) {
	s.begin(variant("denseTotals", d, careful), "(columns []float32, stride int, stretches *byte, count int, heads, sums, squares []float32, width int, clamp float32)",
		fmt.Sprintf("is a vector form of denseTotals for d = %d.", d))
	k := s.newDense(d, false)
	var clamp VecVirtual
	if careful {
		clamp = s.broadcast("clamp")
	}
	pass := quadHeads // heads that go over the columns together
	if !s.wide() {
		pass = 2
	}
	k.passes(func(label string) {
		for first := 0; first < quadHeads; first += pass {
			k.totals(fmt.Sprintf("%sfrom%d", label, first), first, first+pass, careful, clamp)
		}
	})
	s.end()
}

// totals is a pass of denseTotals over the columns with heads from first to end.
func (k *dense) totals(label string, first, end int, careful bool, clamp VecVirtual) {
	width := k.d + 1
	var kept []int
	for j := first * width; j < end*width; j++ {
		if !k.few() || k.d < 3 || j%width < k.d { // with few registers, the totals stay in memory
			kept = append(kept, j)
		}
	}
	sums := k.slots("sums", kept)
	rows := make([]Register, end-first)
	for h := range rows {
		rows[h] = k.GP64()
	}
	// rows point to the rows of squares: column i is i elements after the pointer.
	begin := func(stretch, i Register) {
		row, width := k.GP64(), k.Load(k.Param("width"), k.GP64())
		k.MOVQ(Mem{Base: stretch}.Offset(stretchAt), row)
		k.SUBQ(i, row)
		k.SHLQ(Imm(2), row)
		k.ADDQ(k.memory(k.Param("squares").Base()), row)
		k.SHLQ(Imm(2), width)
		for range first {
			k.ADDQ(width, row)
		}
		for h, r := range rows {
			if h > 0 {
				k.ADDQ(width, row)
			}
			k.MOVQ(row, r)
		}
	}
	k.overStretches(label, begin, func(i Register) {
		columns, _ := k.loadColumns(i)
		together(first, end, careful, func(h, n int) {
			x, u := make([][]VecVirtual, n), make([]VecVirtual, n)
			for g := range n {
				x[g] = k.differences(columns, i, h+g)
				u[g] = k.loaded(1)
				k.squares(u[g], x[g])
			}
			for g, q := range k.inverses(u, h) {
				similarity := q
				if careful {
					// Where the clamp binds, the similarity is the clamp and
					// the gradient 0. Where the mask is not set, both are 0.
					bound := k.aboveClamp(q, clamp)
					similarity = k.vec()
					k.VMAXPS(q, clamp, similarity) // the second source, q, if one is a NaN
					k.keepMasked(similarity, h+g)
					k.keep(bound, q)
				}
				k.update(sums, (h+g)*width+k.d, func(total VecVirtual) { k.VADDPS(similarity, total, total) })
				k.VMULPS(q, q, q)
				k.VMOVUPS(q, at(rows[h+g-first], i))
				for j, v := range x[g] {
					k.update(sums, (h+g)*width+j, func(sum VecVirtual) { k.VFMADD231PS(q, v, sum) })
				}
			}
		})
	})
	k.store(sums)
}

// denseScatter is the product of a [1+d, heads] matrix and the squares. Several
// vectors of columns are computed at once, so that each coefficient is loaded
// once for all of them.
func (s *isa) denseScatter(d int) {
	s.begin(fmt.Sprintf("denseScatter%d", d), "(out []float32, n, stride int, squares []float32, width int, coefficients []float32)",
		fmt.Sprintf("is the vector form of denseScatter for d = %d.", d))
	n, i := s.Load(s.Param("n"), s.GP64()), s.GP64()
	stride, out := s.Load(s.Param("stride"), s.GP64()), []Register{s.pointer("out")}
	for range d {
		next := s.GP64()
		s.LEAQ(Mem{Base: out[len(out)-1], Index: stride, Scale: 4}, next)
		out = append(out, next)
	}
	width, squares := s.Load(s.Param("width"), s.GP64()), s.pointer("squares")
	s.SHLQ(Imm(2), width)
	end := s.Load(s.Param("coefficients").Len(), s.GP64())
	first := s.pointer("coefficients")
	s.LEAQ(Mem{Base: first, Index: end, Scale: 4}, end)
	many := 2
	if s.wide() {
		many = []int{2: 8, 3: 6}[d]
	}
	s.XORQ(i, i)
	for _, vectors := range []int{many, 1} {
		label := fmt.Sprintf("columns%d", vectors)
		last := s.GP64()
		s.MOVQ(n, last)
		s.SUBQ(Imm(uint64(vectors*s.lanes)), last)
		s.label(label)
		s.CMPQ(i, last)
		s.JG(s.to(label + "_done"))
		var sums []VecVirtual
		for _, p := range out {
			for v := range vectors {
				sum := s.vec()
				s.VMOVUPS(at(p, i).Offset(v*s.bytes()), sum)
				sums = append(sums, sum)
			}
		}
		coefficient, row := s.GP64(), s.GP64()
		s.MOVQ(first, coefficient)
		s.LEAQ(at(squares, i), row)
		s.label(label + "_heads")
		var factors []VecVirtual
		for j := range out {
			f := s.vec()
			s.VBROADCASTSS(Mem{Base: coefficient}.Offset(4*j), f)
			factors = append(factors, f)
		}
		for v := range vectors {
			q := s.vec()
			s.VMOVUPS(Mem{Base: row}.Offset(v*s.bytes()), q)
			for j, f := range factors {
				s.VFMADD231PS(f, q, sums[j*vectors+v])
			}
		}
		s.ADDQ(width, row)
		s.ADDQ(Imm(uint64(4*len(out))), coefficient)
		s.CMPQ(coefficient, end)
		s.JL(s.to(label + "_heads"))
		for j, p := range out {
			for v := range vectors {
				s.VMOVUPS(sums[j*vectors+v], at(p, i).Offset(v*s.bytes()))
			}
		}
		s.ADDQ(Imm(uint64(vectors*s.lanes)), i)
		s.JMP(s.to(label))
		s.label(label + "_done")
	}
	s.end()
}

// planes gathers each coordinate of the rows into a plane.
func (s *isa) planes() {
	s.begin("planes", "(dst []float32, stride int, src []float32, d, n int)", "is the vector form of planes.")
	dst, src := s.pointer("dst"), s.pointer("src")
	stride, d, n := s.Load(s.Param("stride"), s.GP64()), s.Load(s.Param("d"), s.GP64()), s.Load(s.Param("n"), s.GP64())
	// index holds 0, d, 2d, …: where the same coordinate of the next rows is.
	index, width := s.vec(), s.vec()
	s.VMOVQ(d, width.AsX())
	s.VPBROADCASTD(width.AsX(), width)
	s.VPMULLD(s.words("countUp", func(i int) uint32 { return uint32(i) }), width, index)
	step := s.GP64()
	s.MOVQ(d, step)
	s.SHLQ(Imm(uint64(bits.TrailingZeros(uint(s.bytes())))), step)
	left := s.GP64()
	s.MOVQ(d, left)
	s.label("coordinate")
	s.CMPQ(left, Imm(0))
	s.JE(s.to("done"))
	at0, row, i := s.GP64(), s.GP64(), s.GP64()
	s.MOVQ(dst, at0)
	s.MOVQ(src, row)
	s.XORQ(i, i)
	s.label("rows")
	s.CMPQ(i, n)
	s.JGE(s.to("rows_done"))
	v := s.zero()
	from := Mem{Base: row, Index: index, Scale: 4}
	if s.wide() {
		k := s.K()
		s.KXNORW(k, k, k)
		s.VGATHERDPS(from, k, v)
	} else {
		all := s.YMM()
		s.VPCMPEQD(all, all, all)
		s.VGATHERDPS(all, from, v)
	}
	s.VMOVUPS(v, at(at0, i))
	s.ADDQ(step, row)
	s.ADDQ(Imm(uint64(s.lanes)), i)
	s.JMP(s.to("rows"))
	s.label("rows_done")
	s.LEAQ(Mem{Base: dst, Index: stride, Scale: 4}, dst)
	s.ADDQ(Imm(4), src)
	s.DECQ(left)
	s.JMP(s.to("coordinate"))
	s.label("done")
	s.end()
}

// lessProduct and pull finish gradients that lie in planes.
func (s *isa) lessProduct() {
	s.begin("lessProduct", "(dst, a, b []float32, c float32)", "is the vector form of lessProduct.")
	c := s.broadcast("c")
	dst, a, b := s.pointer("dst"), s.pointer("a"), s.pointer("b")
	s.loop("dst", "loop", func(i Register) {
		v, x := s.load(dst, i), s.load(a, i)
		s.VSUBPS(c, x, x)
		s.VFNMADD231PS(at(b, i), x, v)
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}

func (s *isa) pull() {
	s.begin("pull", "(dst, w, a, b []float32, f float32)", "is the vector form of pull.")
	dst, w, a, b, f := s.pointer("dst"), s.pointer("w"), s.pointer("a"), s.pointer("b"), s.broadcast("f")
	s.loop("dst", "loop", func(i Register) {
		v, x, y := s.load(dst, i), s.load(a, i), s.vec()
		s.VSUBPS(at(b, i), x, x)
		s.VMULPS(at(w, i), f, y)
		s.VFMADD231PS(x, y, v)
		s.VMOVUPS(v, at(dst, i))
	})
	s.end()
}

// extents finds the least and the largest coordinates and the sums of 16 rows at
// a time, which are d vectors.
func (s *isa) extents(d int) {
	s.begin(fmt.Sprintf("extents%d", d), "(least, most, sum, src []float32)", fmt.Sprintf("is the vector form of extents for d = %d.", d))
	least, most, sum, src := s.pointer("least"), s.pointer("most"), s.pointer("sum"), s.pointer("src")
	n, i := s.Load(s.Param("src").Len(), s.GP64()), s.GP64()
	// With d = 3 the registers of AVX2 do not suffice for all.
	parts := d * 16 / s.lanes
	for first := 0; first < parts; first += 4 {
		count := min(4, parts-first)
		lo, hi, total := make([]VecVirtual, count), make([]VecVirtual, count), make([]VecVirtual, count)
		for v := range count {
			lo[v], hi[v], total[v] = s.vec(), s.vec(), s.vec()
			s.VMOVUPS(Mem{Base: src}.Offset((first+v)*s.bytes()), lo[v])
			s.VMOVAPS(lo[v], hi[v])
			s.VMOVAPS(lo[v], total[v])
		}
		label := fmt.Sprintf("loop%d", first)
		s.MOVQ(U32(uint32(16*d)), i)
		s.label(label)
		s.CMPQ(i, n)
		s.JGE(s.to(label + "_done"))
		for v := range count {
			x := s.vec()
			s.VMOVUPS(at(src, i).Offset((first+v)*s.bytes()), x)
			s.VMINPS(x, lo[v], lo[v])
			s.VMAXPS(x, hi[v], hi[v])
			s.VADDPS(x, total[v], total[v])
		}
		s.ADDQ(Imm(uint64(16*d)), i)
		s.JMP(s.to(label))
		s.label(label + "_done")
		for v := range count {
			s.VMOVUPS(lo[v], Mem{Base: least}.Offset((first+v)*s.bytes()))
			s.VMOVUPS(hi[v], Mem{Base: most}.Offset((first+v)*s.bytes()))
			s.VMOVUPS(total[v], Mem{Base: sum}.Offset((first+v)*s.bytes()))
		}
	}
	s.end()
}

// foldSlots adds up the 16 numbers of each vector.
func (s *isa) foldSlots() {
	s.begin("foldSlots", "(dst, src []float32)", "is the vector form of foldSlots.")
	dst, src := s.pointer("dst"), s.pointer("src")
	n, i := s.Load(s.Param("dst").Len(), s.GP64()), s.GP64()
	s.XORQ(i, i)
	s.label("loop")
	s.CMPQ(i, n)
	s.JGE(s.to("loop_done"))
	var v []VecVirtual
	for part := range s.parts() {
		v = append(v, s.vec())
		s.VMOVUPS(Mem{Base: src}.Offset(s.bytes()*part), v[part])
	}
	v0 := s.fold(v, s.VADDPS, s.VADDSS)
	s.VMOVSS(v0.AsX(), at(dst, i))
	s.ADDQ(Imm(64), src)
	s.INCQ(i)
	s.JMP(s.to("loop"))
	s.label("loop_done")
	s.end()
}
