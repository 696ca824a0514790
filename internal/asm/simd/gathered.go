package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// leOQ is the predicate less or equal, which does not hold for a NaN.
const leOQ = 0x12

// overColumns emits a loop over vectors of the rows of x that cols names. term
// adds what a vector of a row's elements contributes to acc; done gets the sums of
// a vector of rows, from column i on. fetch and term get no mask for whole vectors
// of elements, and a mask for the last.
func (s *isa) overColumns(row string, fetch func(l, mask Register), term func(from Mem, mask Register, acc VecVirtual), done func(sums VecVirtual, i Register)) {
	x, cols := s.pointer("x"), s.pointer("cols")
	width, whole := s.Load(s.Param(row).Len(), s.GP64()), s.GP64()
	mask := s.firstLanes(width)
	s.SHLQ(Imm(2), width)
	s.MOVQ(width, whole)
	s.ANDQ(I32(-64), whole)
	s.loop("cols", "columns", func(i Register) {
		// Rows may lie anywhere in memory: the first lines of the next rows are
		// prefetched.
		const fetched = 4 * 64
		ahead := s.GP64()
		s.LEAQ(Mem{Base: i, Disp: s.lanes}, ahead)
		s.CMPQ(ahead, s.Load(s.Param("cols").Len(), s.GP64()))
		s.JGE(s.to("here"))
		s.CMPQ(width, U32(fetched-64))
		s.JLE(s.to("here"))
		for c := range s.lanes {
			next := s.GP64()
			s.MOVLQSX(Mem{Base: cols, Index: ahead, Scale: 4, Disp: 4 * c}, next)
			s.IMULQ(width, next)
			for line := 0; line < fetched; line += 64 {
				s.PREFETCHT0(Mem{Base: next, Index: x, Scale: 1, Disp: line})
			}
		}
		s.label("here")
		quads := make([][]VecVirtual, s.parts())
		for first := 0; first < s.lanes; first += 4 {
			var from [4]Register
			acc := s.squareOfSums()
			for c := range from {
				from[c] = s.GP64()
				s.MOVLQSX(Mem{Base: cols, Index: i, Scale: 4, Disp: 4 * (first + c)}, from[c].(GPVirtual))
				s.IMULQ(width, from[c])
				s.ADDQ(x, from[c])
			}
			l, label := s.GP64(), "elements"+hex(uint32(first))
			terms := func(part int, mask Register) {
				fetch(l, mask)
				for c := range from {
					term(Mem{Base: from[c], Index: l, Scale: 1}, mask, acc[part][c])
				}
			}
			s.columns(label, l, whole, width, mask, terms)
			for part := range acc {
				quads[part] = append(quads[part], s.quad(acc[part], s.VADDPS))
			}
		}
		done(s.foldParts(quads), i)
	})
}

// squareOfSums returns four sums for each part of the 16 lanes.
func (s *isa) squareOfSums() (acc [][4]VecVirtual) {
	for range s.parts() {
		acc = append(acc, [4]VecVirtual(s.zeros(4)))
	}
	return acc
}

// columns emits a loop over the vectors of a row; l counts bytes. terms gets the part of
// the 16 lanes, and the mask of the last lanes or, for whole vectors, none.
func (s *isa) columns(label string, l, whole, width, mask Register, terms func(part int, mask Register)) {
	s.XORQ(l, l)
	s.label(label)
	s.CMPQ(l, whole)
	s.JGE(s.to(label + "_rest"))
	for part := range s.parts() {
		terms(part, nil)
		s.ADDQ(Imm(uint64(s.bytes())), l)
	}
	s.JMP(s.to(label))
	s.label(label + "_rest")
	last := s.parts() - 1
	for part := range last {
		masked, next := fmt.Sprintf("%s_masked%d", label, part), fmt.Sprintf("%s_next%d", label, part)
		bytes := Imm(uint64(s.bytes()))
		s.ADDQ(bytes, l)
		s.CMPQ(l, width)
		s.JG(s.to(masked))
		s.SUBQ(bytes, l)
		terms(part, nil)
		s.ADDQ(bytes, l)
		s.JMP(s.to(next))
		s.label(masked)
		s.SUBQ(bytes, l)
		s.CMPQ(l, width)
		s.JGE(s.to(label + "_done"))
		terms(part, mask)
		s.JMP(s.to(label + "_done"))
		s.label(next)
	}
	s.CMPQ(l, width)
	s.JGE(s.to(label + "_done"))
	terms(last, mask)
	s.label(label + "_done")
}

// loadLanes loads the lanes of v where the mask is set, or all if the mask is nil.
func (s *isa) loadLanes(m Mem, mask Register, v VecVirtual) {
	if mask == nil {
		s.VMOVUPS(m, v)
		return
	}
	s.loadMasked(m, mask, v)
}

// quad returns the sums within each 128 bits of four vectors, side by side.
func (s *isa) quad(v [4]VecVirtual, add func(ops ...Op)) VecVirtual {
	low, high, other := s.vec(), s.vec(), s.vec()
	s.VUNPCKLPS(v[1], v[0], low)
	s.VUNPCKHPS(v[1], v[0], high)
	add(high, low, low)
	s.VUNPCKLPS(v[3], v[2], other)
	s.VUNPCKHPS(v[3], v[2], high)
	add(high, other, other)
	s.VUNPCKLPD(other, low, high)
	s.VUNPCKHPD(other, low, low)
	add(low, high, high)
	return high
}

// foldParts adds up the quads q[part][row] over the 128-bit parts of the 16 lanes: the
// first and the second, the third and the last, and these two. There is a row for each 128
// bits of a register. The sums are in the order of the rows.
func (s *isa) foldParts(q [][]VecVirtual) VecVirtual {
	switch v := s.vec(); {
	case s.wide():
		return s.fold128(q[0], s.VADDPS)
	case s.neon():
		s.VADDPS(q[1][0], q[0][0], v)
		s.VADDPS(q[3][0], q[2][0], q[2][0])
		s.VADDPS(q[2][0], v, v)
		return v
	default:
		s.VADDPS(s.fold128(q[1], s.VADDPS), s.fold128(q[0], s.VADDPS), v)
		return v
	}
}

// fold128 adds up the 128-bit parts of quads, of which there are as many as parts.
func (s *isa) fold128(q []VecVirtual, add func(ops ...Op)) VecVirtual {
	switch a, b := s.vec(), s.vec(); {
	case s.wide():
		fold := func(p, q VecVirtual) VecVirtual {
			even, odd := s.vec(), s.vec()
			s.VSHUFF32X4(Imm(0x88), q, p, even)
			s.VSHUFF32X4(Imm(0xdd), q, p, odd)
			add(odd, even, even)
			return even
		}
		return fold(fold(q[0], q[1]), fold(q[2], q[3]))
	case s.neon():
		return q[0]
	default:
		s.VPERM2F128(Imm(0x20), q[1], q[0], a)
		s.VPERM2F128(Imm(0x31), q[1], q[0], b)
		add(b, a, a)
		return a
	}
}

func (s *isa) nearRows() {
	s.begin("nearRows", "(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32)", "is the vector form of nearRows.")
	dst, found, row, limits := s.pointer("dst"), s.pointer("found"), s.pointer("row"), s.pointer("limits")
	limit, r, t := s.broadcast("limit"), s.vec(), s.vec()
	s.overColumns("row",
		func(l, mask Register) { s.loadLanes(Mem{Base: row, Index: l, Scale: 1}, mask, r) },
		func(from Mem, mask Register, acc VecVirtual) {
			s.loadLanes(from, mask, t)
			s.VSUBPS(t, r, t)
			s.VFMADD231PS(t, t, acc)
		},
		func(d2 VecVirtual, i Register) {
			s.VMOVUPS(d2, at(dst, i))
			s.VMAXPS(at(limits, i), limit, t)
			mask := s.compare(leOQ, d2, t)
			s.storeMask(mask, found, i)
		})
	s.end()
}

// nearTiles compares four rows with four at a time, as a matrix product does: each load of
// a row serves four pairs. The sums are the same as in nearRows.
func (s *isa) nearTiles() {
	s.begin("nearTiles", "(dst []float32, found []uint16, x []float32, width int, rows *[4]int32, cols []int32, rowLimits *[4]float32, limits []float32, ahead []int32)", "is the vector form of nearTiles.")
	width, whole := s.Load(s.Param("width"), s.GP64()), s.GP64()
	mask := s.firstLanes(width)
	s.SHLQ(Imm(2), width)
	s.MOVQ(width, whole)
	s.ANDQ(I32(-64), whole)
	x := func() Mem { return s.memory(s.Param("x").Base()) }
	rowOf := func(numbers, i Register, at int) Register {
		from := s.GP64()
		if i == nil {
			s.MOVLQSX(Mem{Base: numbers, Disp: 4 * at}, from)
		} else {
			s.MOVLQSX(Mem{Base: numbers, Index: i, Scale: 4, Disp: 4 * at}, from)
		}
		s.IMULQ(width, from)
		s.ADDQ(x(), from)
		return from
	}

	// The limits of the rows, each four times.
	order := s.words("quadruple", func(i int) uint32 { return uint32(i / 4) })
	perVector := s.lanes / 4 // rows whose sums fill a vector
	atOnce := 1              // rows whose sums fit in the registers
	if s.wide() {
		atOnce = perVector
	}
	rowLimits := func(h int) VecVirtual {
		from, v := Mem{Base: s.Load(s.Param("rowLimits"), s.GP64())}, s.vec()
		if s.neon() {
			s.VBROADCASTSS(from.Offset(4*h), v)
			return v
		}
		s.VPERMILPS(order.Offset(16*perVector*h), s.broadcastQuad(from), v)
		return v
	}

	i := s.GP64()
	s.XORQ(i, i)
	s.label("columns")
	s.CMPQ(i, s.memory(s.Param("cols").Len()))
	s.JGE(s.to("done"))
	cols := s.Load(s.Param("cols").Base(), s.GP64())
	var column [4]Register
	for c := range column {
		column[c] = rowOf(cols, i, c)
	}
	// If ahead names a row for this tile, it is prefetched meanwhile.
	next, tile := s.GP64(), s.GP64()
	s.MOVQ(column[0], next)
	s.MOVQ(i, tile)
	s.SHRQ(Imm(2), tile)
	s.CMPQ(tile, s.memory(s.Param("ahead").Len()))
	s.JGE(s.to("here"))
	s.MOVQ(s.memory(s.Param("ahead").Base()), next)
	s.MOVLQSX(Mem{Base: next, Index: tile, Scale: 4}, next)
	s.IMULQ(width, next)
	s.ADDQ(x(), next)
	s.label("here")
	first := s.GP64() // NEON: the bits of the first half of a byte
	for h := range 4 / perVector {
		quads := make([][]VecVirtual, s.parts())
		for r0 := 0; r0 < perVector; r0 += atOnce {
			numbers := s.Load(s.Param("rows"), s.GP64())
			row, acc := make([]Register, atOnce), make([][][4]VecVirtual, atOnce)
			for r := range row {
				row[r], acc[r] = rowOf(numbers, nil, perVector*h+r0+r), s.squareOfSums()
			}
			l, label := s.GP64(), "elements"+hex(uint32(perVector*h+r0))
			b, t := s.vec(), s.vec()
			terms := func(part int, mask Register) {
				a := make([]VecVirtual, atOnce)
				for r := range row {
					a[r] = s.vec()
					s.loadLanes(Mem{Base: row[r], Index: l, Scale: 1}, mask, a[r])
				}
				if h == 0 && r0 == 0 && part == 0 {
					s.PREFETCHT0(Mem{Base: next, Index: l, Scale: 1})
				}
				for c := range column {
					s.loadLanes(Mem{Base: column[c], Index: l, Scale: 1}, mask, b)
					for r := range row {
						s.VSUBPS(b, a[r], t)
						s.VFMADD231PS(t, t, acc[r][part][c])
					}
				}
			}
			s.columns(label, l, whole, width, mask, terms)
			for r := range row {
				for part := range quads {
					quads[part] = append(quads[part], s.quad(acc[r][part], s.VADDPS))
				}
			}
		}
		d2 := s.foldParts(quads)
		to := s.GP64()
		s.MOVQ(i, to)
		s.SHLQ(Imm(4), to)
		s.ADDQ(s.memory(s.Param("dst").Base()), to)
		s.VMOVUPS(d2, Mem{Base: to, Disp: 4 * s.lanes * h})
		s.MOVQ(s.memory(s.Param("limits").Base()), to)
		limit := s.broadcastQuad(at(to, i))
		s.VMAXPS(limit, rowLimits(h), limit)
		near := s.compare(leOQ, d2, limit)
		s.MOVQ(i, to)
		s.SHRQ(Imm(1), to)
		s.ADDQ(s.memory(s.Param("found").Base()), to)
		if s.wide() {
			s.KMOVW(near, Mem{Base: to})
			continue
		}
		bits := s.GP64()
		s.VMOVMSKPS(near, bits.As32())
		if s.neon() && h%2 == 0 {
			s.MOVQ(bits, first)
			continue
		}
		if s.neon() {
			s.SHLQ(Imm(4), bits)
			s.ORQ(first, bits)
		}
		s.MOVB(bits.As8(), Mem{Base: to, Disp: h * s.lanes / 8})
	}
	s.ADDQ(Imm(4), i)
	s.JMP(s.to("columns"))
	s.label("done")
	s.end()
}

// broadcastQuad loads four numbers into each 128 bits.
func (s *isa) broadcastQuad(m Mem) VecVirtual {
	v := s.vec()
	switch {
	case s.wide():
		s.VBROADCASTF32X4(m, v)
	case s.neon():
		s.VMOVUPS(m, v)
	default:
		s.VBROADCASTF128(m, v)
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
			s.VSUBPS(o, t, t)
			s.VFMADD231PS(w, t, acc)
		},
		func(sums VecVirtual, i Register) { s.VMOVUPS(sums, at(dst, i)) })
	s.end()
}

// fetch emits the hint to the processor that rows will be needed.
func (s *isa) fetch() {
	s.TEXT("fetchRows", attr.NOSPLIT, "func(x *byte, stride, lines int, rows []int32)")
	s.Doc("fetchRows asks for the first lines, at least 1, of 64 bytes of rows that are stride bytes apart.")
	x, stride, lines := s.Load(s.Param("x"), s.GP64()), s.Load(s.Param("stride"), s.GP64()), s.Load(s.Param("lines"), s.GP64())
	rows, n, i, line := s.Load(s.Param("rows").Base(), s.GP64()), s.Load(s.Param("rows").Len(), s.GP64()), s.GP64(), s.GP64()
	s.XORQ(i, i)
	s.Label("rows")
	s.CMPQ(i, n)
	s.JGE(LabelRef("done"))
	at := s.GP64()
	s.MOVLQSX(Mem{Base: rows, Index: i, Scale: 4}, at)
	s.IMULQ(stride, at)
	s.ADDQ(x, at)
	s.MOVQ(lines, line)
	s.Label("lines")
	s.PREFETCHT0(Mem{Base: at})
	s.ADDQ(Imm(64), at)
	s.DECQ(line)
	s.JNZ(LabelRef("lines"))
	s.INCQ(i)
	s.JMP(LabelRef("rows"))
	s.Label("done")
	s.RET()
}

// nearBytes is nearRows for rows of bytes, whose squared distances are exact integers. The
// row to compare has words instead of bytes, and zeros up to a multiple of 32.
func (s *isa) nearBytes() {
	s.begin("nearBytes", "(dst []float32, found []uint64, x []uint8, row []int16, cols []int32, limit float32)", "is the vector form of nearBytes.")
	dst, found, x, row, cols := s.pointer("dst"), s.pointer("found"), s.pointer("x"), s.pointer("row"), s.pointer("cols")
	limit, width := s.broadcast("limit"), s.Load(s.Param("row").Len(), s.GP64())
	s.loop("cols", "columns", func(i Register) {
		var quads []VecVirtual
		for first := 0; first < s.lanes; first += 4 {
			var from [4]Register
			acc := [4]VecVirtual(s.zeros(4))
			for c := range from {
				from[c] = s.GP64()
				s.MOVLQSX(Mem{Base: cols, Index: i, Scale: 4, Disp: 4 * (first + c)}, from[c].(GPVirtual))
				s.IMULQ(width, from[c])
				s.ADDQ(x, from[c])
			}
			l, r, t, label := s.GP64(), s.vec(), s.vec(), "bytes"+hex(uint32(first))
			s.XORQ(l, l)
			s.label(label)
			s.VMOVUPS(Mem{Base: row, Index: l, Scale: 2}, r)
			for c := range from {
				s.VPMOVZXBW(Mem{Base: from[c], Index: l, Scale: 1}, t)
				s.VPSUBW(r, t, t)
				s.VPMADDWD(t, t, t)
				s.VPADDD(t, acc[c], acc[c])
			}
			s.ADDQ(Imm(uint64(s.bytes()/2)), l)
			s.CMPQ(l, width)
			s.JL(s.to(label))
			quads = append(quads, s.quad(acc, s.VPADDD))
		}
		d2 := s.fold128(quads, s.VPADDD)
		s.VCVTDQ2PS(d2, d2)
		s.VMOVUPS(d2, at(dst, i))
		s.storeMask(s.compare(leOQ, d2, limit), found, i)
	})
	s.end()
}

// squaredDistances adds up in four lanes, in float64.
func (s *isa) squaredDistances() {
	s.TEXT("squaredDistances", attr.NOSPLIT, "func(dst []float64, x, row []float32, rows []int32)")
	s.Doc("squaredDistances is SquaredDistances.")
	dst, x, row, rows := s.pointer("dst"), s.pointer("x"), s.pointer("row"), s.pointer("rows")
	width, whole, mask := s.Load(s.Param("row").Len(), s.GP64()), s.GP64(), s.XMM()
	s.MOVQ(width, whole)
	s.ANDQ(I32(-4), whole)
	zeros, rest := s.GP64(), s.GP64()
	s.LEAQ(s.Table("firstLanes", 32, func(i int) Constant { return I32(i/16 - 1) }).Offset(4*16), zeros)
	s.MOVQ(whole, rest)
	s.SUBQ(width, rest)
	s.VMOVUPS(at(zeros, rest), mask)
	s.forEach("rows", "rows", func(i Register) {
		from, l, sum, a, b := s.GP64(), s.GP64(), s.YMM(), s.YMM(), s.YMM()
		s.MOVLQSX(at(rows, i), from)
		s.IMULQ(width, from)
		s.LEAQ(at(x, from), from)
		add := func() {
			s.VSUBPD(b, a, a)
			s.VMULPD(a, a, a)
			s.VADDPD(a, sum, sum)
		}
		s.VXORPD(sum, sum, sum)
		s.XORQ(l, l)
		s.Label("columns")
		s.CMPQ(l, whole)
		s.JGE(LabelRef("rest"))
		s.VCVTPS2PD(at(from, l), a)
		s.VCVTPS2PD(at(row, l), b)
		add()
		s.ADDQ(Imm(4), l)
		s.JMP(LabelRef("columns"))
		s.Label("rest") // of 0 to 3 columns
		s.VMASKMOVPS(at(from, l), mask, a.AsX())
		s.VMASKMOVPS(at(row, l), mask, b.AsX())
		s.VCVTPS2PD(a.AsX(), a)
		s.VCVTPS2PD(b.AsX(), b)
		add()
		s.VEXTRACTF128(Imm(1), sum, a.AsX())
		s.VHADDPD(a.AsX(), sum.AsX(), a.AsX())
		s.VHADDPD(a.AsX(), a.AsX(), a.AsX())
		s.VMOVSD(a.AsX(), Mem{Base: dst, Index: i, Scale: 8})
	})
	s.VZEROUPPER()
	s.RET()
}
