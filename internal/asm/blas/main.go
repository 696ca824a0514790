// Command blas generates the inner loops of package blas's matrix products, in single and
// double precision, for AVX-512, for AVX2 with FMA and for NEON.
package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"cne/internal/asm/target"
)

func main() { target.Main(amd64, arm64, false) }

func amd64(f *target.File) {
	for _, s := range []*isa{{File: f, name: "AVX512", lanes: 16, rows: 12}, {File: f, name: "AVX2", lanes: 8, rows: 6}} {
		for columns := 2 * s.lanes; columns >= 8; columns /= 2 {
			for rows := 1; rows <= s.rows; rows++ {
				s.tile(rows, columns, false)
			}
			s.copyRows(columns)
		}
		s.tile(s.rows, 2*s.lanes, true)
		s.sparse()
		s.strips()
		s.doubles()
		if s.lanes == 8 {
			s.wholeTiles()
		}
	}
	s := &isa{File: f}
	s.pairTiles()
	s.amxTiles()
	s.transpose()
}

func arm64(f *target.File) {
	s := &isa{File: f, name: "NEON", lanes: 4, rows: 12}
	for rows := 1; rows <= s.rows; rows++ {
		s.tile(rows, 8, false)
	}
	s.sparse()
	s.strips()
	s.doubles()
	s.transpose4()
}

// An isa is one of the instruction sets. A tile of the product has up to
// rows rows. It has two vectors of columns, one, or, with 16 lanes, half a vector.
type isa struct {
	*target.File
	name        string
	lanes, rows int
}

// masks reports whether masks are registers of their own kind.
func (s *isa) masks() bool { return s.lanes == 16 }

// neon reports whether there are no masks: all columns are loaded and stored.
func (s *isa) neon() bool { return s.lanes == 4 }

// A shape is a run of columns in vectors of the given number of lanes.
type shape struct {
	*isa
	lanes, vectors int
}

func (s *isa) shape(columns int) shape {
	lanes := min(columns, s.lanes)
	return shape{s, lanes, columns / lanes}
}

func (s shape) vec() VecVirtual {
	switch s.lanes {
	case 16:
		return s.ZMM()
	case 4:
		return s.XMM()
	}
	return s.YMM()
}

func (s shape) vecs() []VecVirtual {
	v := make([]VecVirtual, s.vectors)
	for j := range v {
		v[j] = s.vec()
	}
	return v
}

// zeros emits code that sets the vectors of rows to 0, and returns the vectors.
func (s shape) zeros(rows int) [][]VecVirtual {
	acc := make([][]VecVirtual, rows)
	for i := range acc {
		acc[i] = s.vecs()
		for _, v := range acc[i] {
			if s.masks() {
				s.VPXORD(v, v, v)
			} else {
				s.VXORPS(v, v, v)
			}
		}
	}
	return acc
}

// at returns the address of vector j of the columns at base.
func (s shape) at(base Register, j int) Mem { return Mem{Base: base}.Offset(4 * s.lanes * j) }

// tile computes a block of C with the given number of rows. The elements of A
// are read by two strides, so that it may be transposed; B is packed; C's
// columns beyond the mask are not touched. With ahead it also prefetches what
// the next tile needs, a cache line in each step.
func (i *isa) tile(rows, columns int, ahead bool) {
	s := i.shape(columns)
	name := fmt.Sprintf("tile%dx%d%s", rows, columns, s.name)
	doc := fmt.Sprintf("adds up a tile of %d rows and %d columns; strides are in bytes.", rows, columns)
	next := ""
	if ahead {
		name = "ahead" + s.name
		doc += " In each step it prefetches a cache line: a run of lines from each of the addresses at next."
		next = ", next *uintptr, lines int"
	}
	s.TEXT(name, attr.NOSPLIT, "func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32, floor float32, mask *uint32"+next+")")
	s.Doc(name + " " + doc)
	if !ahead {
		s.Member("tile"+i.name, name)
	}
	k := s.Load(s.Param("k"), s.GP64())
	rowStride := s.Load(s.Param("rowStride"), s.GP64())
	step := s.Load(s.Param("stepStride"), s.GP64())
	b := s.Load(s.Param("b"), s.GP64())
	bases, row := s.rowBases(rows, rowStride)
	acc := s.zeros(rows)
	s.TESTQ(k, k)
	s.JE(LabelRef("finish"))
	var table, lines, left, line Register
	if ahead {
		table = s.Load(s.Param("next"), s.GP64())
		lines = s.Load(s.Param("lines"), s.GP64())
		left, line = s.GP64(), s.GP64()
		s.Label("run")
		s.MOVQ(Mem{Base: table}, line)
		s.ADDQ(Imm(8), table)
		s.MOVQ(lines, left)
	}
	s.Label("loop")
	{
		if ahead {
			s.PREFETCHT0(Mem{Base: line})
			s.ADDQ(Imm(64), line)
		}
		columns, x := s.vecs(), s.vec()
		for j, v := range columns {
			s.VMOVUPS(s.at(b, j), v)
		}
		for i := range rows {
			s.VBROADCASTSS(row(i), x)
			for j, v := range columns {
				s.VFMADD231PS(v, x, acc[i][j])
			}
		}
		s.ADDQ(Imm(uint64(4*s.lanes*s.vectors)), b)
		for _, p := range bases {
			s.ADDQ(step, p)
		}
		if ahead {
			s.DECQ(k)
			s.JE(LabelRef("finish"))
			s.DECQ(left)
			s.JNE(LabelRef("loop"))
			s.JMP(LabelRef("run"))
		} else {
			s.DECQ(k)
			s.JNE(LabelRef("loop"))
		}
	}
	s.Label("finish")
	each := func(do func(i, j int, v VecVirtual)) {
		for i := range acc {
			for j, v := range acc[i] {
				do(i, j, v)
			}
		}
	}
	masks := s.loadMasks()
	alpha := s.broadcast("alpha")
	each(func(_, _ int, v VecVirtual) { s.VMULPS(alpha, v, v) })

	s.Comment("C is not read where beta is 0, so that it may hold anything.")
	sign := s.GP32()
	s.MOVL(s.param("beta"), sign)
	s.ADDL(sign, sign)
	s.JE(LabelRef("bias"))
	beta, old := s.broadcast("beta"), s.vec()
	c := s.Load(s.Param("c"), s.GP64())
	ldc := s.Load(s.Param("ldc"), s.GP64())
	each(func(i, j int, v VecVirtual) {
		s.load(s.at(c, j), masks[j], old)
		s.VFMADD231PS(beta, old, v)
		if j == s.vectors-1 && i < rows-1 {
			s.ADDQ(ldc, c)
		}
	})

	s.Label("bias")
	bias := s.Load(s.Param("bias"), s.GP64())
	s.TESTQ(bias, bias)
	s.JE(LabelRef("store"))
	for j := range masks {
		x := s.vec()
		s.load(s.at(bias, j), masks[j], x)
		for i := range acc {
			s.VADDPS(x, acc[i][j], acc[i][j])
		}
	}

	s.Label("store")
	s.Comment("The maximum of anything and NaN, as the second source, is NaN.")
	floor := s.broadcast("floor")
	c = s.Load(s.Param("c"), s.GP64())
	ldc = s.Load(s.Param("ldc"), s.GP64())
	each(func(i, j int, v VecVirtual) {
		s.VMAXPS(v, floor, v)
		s.store(v, masks[j], s.at(c, j))
		if j == s.vectors-1 && i < rows-1 {
			s.ADDQ(ldc, c)
		}
	})
	s.VZEROUPPER()
	s.RET()
}

// rowBases returns registers that point to rows of A, and the addresses of all rows.
func (s *isa) rowBases(rows int, rowStride Register) (bases []Register, row func(i int) Mem) {
	// Rows 3q, 3q+1 and 3q+2 are at base q plus 0, 1 and 2 row strides.
	bases = make([]Register, (rows+2)/3)
	for q := range bases {
		bases[q] = s.GP64()
		if q == 0 {
			s.Load(s.Param("a"), bases[0])
			continue
		}
		s.LEAQ(Mem{Base: bases[q-1], Index: rowStride, Scale: 2}, bases[q])
		s.ADDQ(rowStride, bases[q])
	}
	var double Register
	if s.neon() && rows > 2 {
		// A load of 4 bytes cannot multiply its index by 2 there.
		double = s.GP64()
		s.LEAQ(Mem{Base: rowStride, Index: rowStride, Scale: 1}, double)
	}
	return bases, func(i int) Mem {
		switch {
		case i%3 == 0:
			return Mem{Base: bases[i/3]}
		case i%3 == 2 && s.neon():
			return Mem{Base: bases[i/3], Index: double, Scale: 1}
		}
		return Mem{Base: bases[i/3], Index: rowStride, Scale: uint8(i % 3)}
	}
}

// loadMasks loads the parameter mask, one word for each column.
func (s shape) loadMasks() []Register {
	masks := make([]Register, s.vectors)
	if s.neon() {
		return masks
	}
	mask := s.Load(s.Param("mask"), s.GP64())
	for j := range masks {
		v := s.vec()
		s.VMOVUPS(s.at(mask, j), v)
		masks[j] = v
		if s.masks() {
			masks[j] = s.K()
			s.VPMOVD2M(v, masks[j])
		}
	}
	return masks
}

// broadcast returns a register with the float32 parameter in every lane.
func (s shape) broadcast(name string) VecVirtual {
	v := s.vec()
	s.VBROADCASTSS(s.param(name), v)
	return v
}

// param returns the address of a parameter.
func (s *isa) param(name string) Mem {
	p, err := s.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// load reads the columns under the mask; the others become 0.
func (s shape) load(from Mem, mask Register, v VecVirtual) {
	switch {
	case s.neon():
		s.VMOVUPS(from, v)
	case s.masks():
		s.VMOVUPS_Z(from, mask, v)
	default:
		s.VMASKMOVPS(from, mask, v)
	}
}

func (s shape) store(v VecVirtual, mask Register, to Mem) {
	switch {
	case s.neon():
		s.VMOVUPS(v, to)
	case s.masks():
		s.VMOVUPS(v, mask, to)
	default:
		s.VMASKMOVPS(v, mask, to)
	}
}

// copyRows packs rows of up to the given number of columns: it writes all
// columns, zero beyond the mask.
func (i *isa) copyRows(columns int) {
	s := i.shape(columns)
	name := fmt.Sprintf("copyRows%d%s", columns, s.name)
	s.TEXT(name, attr.NOSPLIT, "func(dst *float32, dstStride int, src *float32, srcStride int, numbers *int32, k int, mask *uint32)")
	s.Doc(fmt.Sprintf("%s copies k ≥ 1 rows of at most %d columns, those with the given numbers if these are not nil; strides are in bytes.", name, columns))
	s.Member("copyRows"+i.name, name)
	dst, dstStride := s.Load(s.Param("dst"), s.GP64()), s.Load(s.Param("dstStride"), s.GP64())
	src, srcStride := s.Load(s.Param("src"), s.GP64()), s.Load(s.Param("srcStride"), s.GP64())
	numbers := s.Load(s.Param("numbers"), s.GP64())
	k := s.Load(s.Param("k"), s.GP64())
	masks := s.loadMasks()
	row := func(from Register) {
		for j := range masks {
			v := s.vec()
			s.load(s.at(from, j), masks[j], v)
			s.VMOVUPS(v, s.at(dst, j))
		}
		s.ADDQ(dstStride, dst)
	}
	s.TESTQ(numbers, numbers)
	s.JNE(LabelRef("numbered"))
	s.Label("loop")
	row(src)
	s.ADDQ(srcStride, src)
	s.DECQ(k)
	s.JNE(LabelRef("loop"))
	s.VZEROUPPER()
	s.RET()
	s.Label("numbered")
	at := s.GP64()
	s.MOVLQSX(Mem{Base: numbers}, at)
	s.IMULQ(srcStride, at)
	s.ADDQ(src, at)
	row(at)
	s.ADDQ(Imm(4), numbers)
	s.DECQ(k)
	s.JNE(LabelRef("numbered"))
	s.VZEROUPPER()
	s.RET()
}

// transpose writes 8 columns of a packed panel: it reads 8 rows of k floats,
// k a multiple of 8, and writes column p of them as 8 consecutive floats at
// p·stride bytes.
func (s *isa) transpose() {
	s.TEXT("transpose8", attr.NOSPLIT, "func(dst *float32, dstStride int, src *float32, srcStride, k int)")
	s.Doc("transpose8 writes the first k columns, a multiple of 8, of 8 rows as k rows of 8; strides are in bytes.")
	dst, dstStride := s.Load(s.Param("dst"), s.GP64()), s.Load(s.Param("dstStride"), s.GP64())
	src, srcStride := s.Load(s.Param("src"), s.GP64()), s.Load(s.Param("srcStride"), s.GP64())
	k := s.Load(s.Param("k"), s.GP64())
	three := s.GP64()
	s.LEAQ(Mem{Base: srcStride, Index: srcStride, Scale: 2}, three)
	half := s.GP64()
	s.LEAQ(Mem{Base: src, Index: srcStride, Scale: 4}, half)
	s.Label("loop")
	var r, t, u [8]VecVirtual
	at := func(i int) Mem {
		base := src
		if i >= 4 {
			base = half
		}
		switch i % 4 {
		case 1:
			return Mem{Base: base, Index: srcStride, Scale: 1}
		case 2:
			return Mem{Base: base, Index: srcStride, Scale: 2}
		case 3:
			return Mem{Base: base, Index: three, Scale: 1}
		}
		return Mem{Base: base}
	}
	for i := range r {
		r[i] = s.YMM()
		s.VMOVUPS(at(i), r[i])
	}
	for i := 0; i < 8; i += 2 {
		t[i], t[i+1] = s.YMM(), s.YMM()
		s.VUNPCKLPS(r[i+1], r[i], t[i])
		s.VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for h := 0; h < 8; h += 4 {
		for j := range 2 {
			u[h+2*j], u[h+2*j+1] = s.YMM(), s.YMM()
			s.VSHUFPS(Imm(0x44), t[h+2+j], t[h+j], u[h+2*j])
			s.VSHUFPS(Imm(0xee), t[h+2+j], t[h+j], u[h+2*j+1])
		}
	}
	row := s.GP64()
	s.MOVQ(dst, row)
	for p := range 8 {
		v := s.YMM()
		if p < 4 {
			s.VPERM2F128(Imm(0x20), u[4+p], u[p], v)
		} else {
			s.VPERM2F128(Imm(0x31), u[p], u[p-4], v)
		}
		s.VMOVUPS(v, Mem{Base: row})
		s.ADDQ(dstStride, row)
	}
	s.MOVQ(row, dst)
	s.ADDQ(Imm(32), src)
	s.ADDQ(Imm(32), half)
	s.SUBQ(Imm(8), k)
	s.JNE(LabelRef("loop"))
	s.VZEROUPPER()
	s.RET()
}

// transpose4 is transpose for vectors of 4: it writes each column in two halves.
func (s *isa) transpose4() {
	s.TEXT("transpose8", attr.NOSPLIT, "func(dst *float32, dstStride int, src *float32, srcStride, k int)")
	s.Doc("transpose8 writes the first k columns, a multiple of 4, of 8 rows as k rows of 8; strides are in bytes.")
	dst, dstStride := s.Load(s.Param("dst"), s.GP64()), s.Load(s.Param("dstStride"), s.GP64())
	src, srcStride := s.Load(s.Param("src"), s.GP64()), s.Load(s.Param("srcStride"), s.GP64())
	k := s.Load(s.Param("k"), s.GP64())
	from, to := s.GP64(), s.GP64()
	s.Label("loop")
	s.MOVQ(src, from)
	for half := range 2 {
		var r, t, u [4]VecVirtual
		for i := range r {
			r[i], t[i], u[i] = s.XMM(), s.XMM(), s.XMM()
			s.VMOVUPS(Mem{Base: from}, r[i])
			s.ADDQ(srcStride, from)
		}
		for j := range 2 {
			s.VUNPCKLPS(r[2*j+1], r[2*j], t[2*j])
			s.VUNPCKHPS(r[2*j+1], r[2*j], t[2*j+1])
		}
		s.MOVQ(dst, to)
		for p := range u {
			s.VSHUFPS(Imm([]uint64{0x44, 0xee}[p%2]), t[2+p/2], t[p/2], u[p])
			s.VMOVUPS(u[p], Mem{Base: to}.Offset(16*half))
			s.ADDQ(dstStride, to)
		}
	}
	s.MOVQ(to, dst)
	s.ADDQ(Imm(16), src)
	s.SUBQ(Imm(4), k)
	s.JNE(LabelRef("loop"))
	s.RET()
}
