package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// leOQ is the predicate less or equal, which does not hold for a NaN.
const leOQ = 0x12

// overColumns emits a loop over vectors of the rows of x that cols names. term
// adds what a vector of a row's elements contributes to acc; done gets the sums of
// a vector of rows, the first of which is column i. fetch and term are for whole
// vectors of elements and, with a mask, for the last.
func (s *isa) overColumns(row string, fetch func(l, mask Register), term func(from Mem, mask Register, acc VecVirtual), done func(sums VecVirtual, i Register)) {
	x, cols := s.pointer("x"), s.pointer("cols")
	width, whole := Load(Param(row).Len(), GP64()), GP64()
	mask := s.firstLanes(width)
	SHLQ(Imm(2), width)
	MOVQ(width, whole)
	ANDQ(I32(-s.bytes()), whole)
	s.loop("cols", "columns", func(i Register) {
		// Rows may come from anywhere in memory: while these are computed, the
		// first lines of the next are fetched.
		const fetched = 4 * 64
		ahead := GP64()
		LEAQ(Mem{Base: i, Disp: s.lanes}, ahead)
		CMPQ(ahead, Load(Param("cols").Len(), GP64()))
		JGE(s.to("here"))
		CMPQ(width, U32(fetched-64))
		JLE(s.to("here"))
		for c := range s.lanes {
			next := GP64()
			MOVLQSX(Mem{Base: cols, Index: ahead, Scale: 4, Disp: 4 * c}, next)
			IMULQ(width, next)
			for line := 0; line < fetched; line += 64 {
				PREFETCHT0(Mem{Base: next, Index: x, Scale: 1, Disp: line})
			}
		}
		s.label("here")
		var quads []VecVirtual
		for first := 0; first < s.lanes; first += 4 {
			var from [4]Register
			var acc [4]VecVirtual
			for c := range from {
				from[c], acc[c] = GP64(), s.zero()
				MOVLQSX(Mem{Base: cols, Index: i, Scale: 4, Disp: 4 * (first + c)}, from[c].(GPVirtual))
				IMULQ(width, from[c])
				ADDQ(x, from[c])
			}
			l, label := GP64(), "elements"+hex(uint32(first))
			terms := func(mask Register) {
				fetch(l, mask)
				for c := range from {
					term(Mem{Base: from[c], Index: l, Scale: 1}, mask, acc[c])
				}
			}
			s.columns(label, l, whole, width, mask, terms)
			quads = append(quads, s.quad(acc))
		}
		done(s.foldQuads(quads), i)
	})
}

// columns goes over the bytes of a row by vectors, counted by l: terms gets no mask for the
// whole vectors, and the mask of the last lanes for what follows them.
func (s *isa) columns(label string, l, whole, width, mask Register, terms func(mask Register)) {
	XORQ(l, l)
	s.label(label)
	CMPQ(l, whole)
	JGE(s.to(label + "_last"))
	terms(nil)
	ADDQ(Imm(uint64(s.bytes())), l)
	JMP(s.to(label))
	s.label(label + "_last")
	CMPQ(l, width)
	JGE(s.to(label + "_done"))
	terms(mask)
	s.label(label + "_done")
}

// loadLanes loads the lanes of v that the mask has, or all if it is nil.
func (s *isa) loadLanes(m Mem, mask Register, v VecVirtual) {
	if mask == nil {
		VMOVUPS(m, v)
		return
	}
	s.loadMasked(m, mask, v)
}

// quad returns the sums within each 128 bits of four vectors, side by side.
func (s *isa) quad(v [4]VecVirtual) VecVirtual {
	low, high, other := s.vec(), s.vec(), s.vec()
	VUNPCKLPS(v[1], v[0], low)
	VUNPCKHPS(v[1], v[0], high)
	VADDPS(high, low, low)
	VUNPCKLPS(v[3], v[2], other)
	VUNPCKHPS(v[3], v[2], high)
	VADDPS(high, other, other)
	VUNPCKLPD(other, low, high)
	VUNPCKHPD(other, low, low)
	VADDPS(low, high, high)
	return high
}

// foldQuads adds up each quad over its 128-bit parts, and returns the sums in the
// order of the quads.
func (s *isa) foldQuads(q []VecVirtual) VecVirtual {
	if !s.wide() {
		a, b := s.vec(), s.vec()
		VPERM2F128(Imm(0x20), q[1], q[0], a)
		VPERM2F128(Imm(0x31), q[1], q[0], b)
		VADDPS(b, a, a)
		return a
	}
	fold := func(p, q VecVirtual) VecVirtual {
		even, odd := s.vec(), s.vec()
		VSHUFF32X4(Imm(0x88), q, p, even)
		VSHUFF32X4(Imm(0xdd), q, p, odd)
		VADDPS(odd, even, even)
		return even
	}
	return fold(fold(q[0], q[1]), fold(q[2], q[3]))
}

func (s *isa) nearRows() {
	s.begin("nearRows", "(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32)", "is the vector form of nearRows.")
	dst, found, row, limits := s.pointer("dst"), s.pointer("found"), s.pointer("row"), s.pointer("limits")
	limit, r, t := s.broadcast("limit"), s.vec(), s.vec()
	s.overColumns("row",
		func(l, mask Register) { s.loadLanes(Mem{Base: row, Index: l, Scale: 1}, mask, r) },
		func(from Mem, mask Register, acc VecVirtual) {
			s.loadLanes(from, mask, t)
			VSUBPS(t, r, t)
			VFMADD231PS(t, t, acc)
		},
		func(d2 VecVirtual, i Register) {
			VMOVUPS(d2, at(dst, i))
			VMAXPS(at(limits, i), limit, t)
			mask := s.compare(leOQ, d2, t)
			s.storeMask(mask, found, i)
		})
	s.end()
}

// nearTiles compares four rows with four at a time, as a matrix product does: what is
// loaded of a row serves four pairs. The sums are those of nearRows.
func (s *isa) nearTiles() {
	s.begin("nearTiles", "(dst []float32, found []uint16, x []float32, width int, rows *[4]int32, cols []int32, rowLimits *[4]float32, limits []float32, ahead []int32)", "is the vector form of nearTiles.")
	width, whole := Load(Param("width"), GP64()), GP64()
	mask := s.firstLanes(width)
	SHLQ(Imm(2), width)
	MOVQ(width, whole)
	ANDQ(I32(-s.bytes()), whole)
	x := func() Mem { return memory(Param("x").Base()) }
	rowOf := func(numbers, i Register, at int) Register {
		from := GP64()
		if i == nil {
			MOVLQSX(Mem{Base: numbers, Disp: 4 * at}, from)
		} else {
			MOVLQSX(Mem{Base: numbers, Index: i, Scale: 4, Disp: 4 * at}, from)
		}
		IMULQ(width, from)
		ADDQ(x(), from)
		return from
	}

	// The limits of the rows, each four times.
	order, ok := tables["quadruple"]
	if !ok {
		order = GLOBL("quadruple", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, I32(i/4))
		}
		tables["quadruple"] = order
	}
	perVector := s.lanes / 4 // rows whose sums are a vector
	rowLimits := make([]VecVirtual, 4/perVector)
	from := Load(Param("rowLimits"), GP64())
	for h := range rowLimits {
		rowLimits[h] = s.broadcastQuad(Mem{Base: from})
		VPERMILPS(order.Offset(16*perVector*h), rowLimits[h], rowLimits[h])
	}

	i := GP64()
	XORQ(i, i)
	s.label("columns")
	CMPQ(i, memory(Param("cols").Len()))
	JGE(s.to("done"))
	cols := Load(Param("cols").Base(), GP64())
	var column [4]Register
	for c := range column {
		column[c] = rowOf(cols, i, c)
	}
	// A row that will be needed is fetched meanwhile, if there is one.
	next, tile := GP64(), GP64()
	MOVQ(column[0], next)
	MOVQ(i, tile)
	SHRQ(Imm(2), tile)
	CMPQ(tile, memory(Param("ahead").Len()))
	JGE(s.to("here"))
	MOVQ(memory(Param("ahead").Base()), next)
	MOVLQSX(Mem{Base: next, Index: tile, Scale: 4}, next)
	IMULQ(width, next)
	ADDQ(x(), next)
	s.label("here")
	for h := range rowLimits {
		numbers := Load(Param("rows"), GP64())
		row := make([]Register, perVector)
		acc := make([][4]VecVirtual, perVector)
		for r := range row {
			row[r] = rowOf(numbers, nil, perVector*h+r)
			for c := range acc[r] {
				acc[r][c] = s.zero()
			}
		}
		l, label := GP64(), "elements"+hex(uint32(h))
		b, t := s.vec(), s.vec()
		terms := func(mask Register) {
			a := make([]VecVirtual, perVector)
			for r := range row {
				a[r] = s.vec()
				s.loadLanes(Mem{Base: row[r], Index: l, Scale: 1}, mask, a[r])
			}
			if h == 0 {
				PREFETCHT0(Mem{Base: next, Index: l, Scale: 1})
			}
			for c := range column {
				s.loadLanes(Mem{Base: column[c], Index: l, Scale: 1}, mask, b)
				for r := range row {
					VSUBPS(b, a[r], t)
					VFMADD231PS(t, t, acc[r][c])
				}
			}
		}
		s.columns(label, l, whole, width, mask, terms)

		quads := make([]VecVirtual, perVector)
		for r := range quads {
			quads[r] = s.quad(acc[r])
		}
		d2 := s.foldQuads(quads)
		to := GP64()
		MOVQ(i, to)
		SHLQ(Imm(4), to)
		ADDQ(memory(Param("dst").Base()), to)
		VMOVUPS(d2, Mem{Base: to, Disp: 4 * s.lanes * h})
		MOVQ(memory(Param("limits").Base()), to)
		limit := s.broadcastQuad(at(to, i))
		VMAXPS(limit, rowLimits[h], limit)
		near := s.compare(leOQ, d2, limit)
		MOVQ(i, to)
		SHRQ(Imm(1), to)
		ADDQ(memory(Param("found").Base()), to)
		if s.wide() {
			KMOVW(near, Mem{Base: to})
		} else {
			bits := GP32()
			VMOVMSKPS(near, bits)
			MOVB(bits.As8(), Mem{Base: to, Disp: h})
		}
	}
	ADDQ(Imm(4), i)
	JMP(s.to("columns"))
	s.label("done")
	s.end()
}

// broadcastQuad loads four numbers into each 128 bits.
func (s *isa) broadcastQuad(m Mem) VecVirtual {
	v := s.vec()
	if s.wide() {
		VBROADCASTF32X4(m, v)
	} else {
		VBROADCASTF128(m, v)
	}
	return v
}

func (s *isa) projectRows() {
	s.begin("projectRows", "(dst, x, from, along []float32, cols []int32)", "is the vector form of projectRows.")
	dst, origin, along := s.pointer("dst"), s.pointer("from"), s.pointer("along")
	o, w, t := s.vec(), s.vec(), s.vec()
	s.overColumns("from",
		func(l, mask Register) {
			s.loadLanes(Mem{Base: origin, Index: l, Scale: 1}, mask, o)
			s.loadLanes(Mem{Base: along, Index: l, Scale: 1}, mask, w)
		},
		func(from Mem, mask Register, acc VecVirtual) {
			s.loadLanes(from, mask, t)
			VSUBPS(o, t, t)
			VFMADD231PS(w, t, acc)
		},
		func(sums VecVirtual, i Register) { VMOVUPS(sums, at(dst, i)) })
	s.end()
}

// fetch emits the hint to the processor that rows will be needed.
func fetch() {
	TEXT("fetchRows", NOSPLIT, "func(x *byte, stride, lines int, rows []int32)")
	Doc("fetchRows asks for the first lines, at least 1, of 64 bytes of rows that are stride bytes apart.")
	x, stride, lines := Load(Param("x"), GP64()), Load(Param("stride"), GP64()), Load(Param("lines"), GP64())
	rows, n, i, line := Load(Param("rows").Base(), GP64()), Load(Param("rows").Len(), GP64()), GP64(), GP64()
	XORQ(i, i)
	Label("rows")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	at := GP64()
	MOVLQSX(Mem{Base: rows, Index: i, Scale: 4}, at)
	IMULQ(stride, at)
	ADDQ(x, at)
	MOVQ(lines, line)
	Label("lines")
	PREFETCHT0(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(line)
	JNZ(LabelRef("lines"))
	INCQ(i)
	JMP(LabelRef("rows"))
	Label("done")
	RET()
}
