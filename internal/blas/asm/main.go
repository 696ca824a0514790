// Command asm generates the inner loops of the single-precision matrix product
// of package blas, for AVX-512 and for AVX2 with FMA.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	wide := &isa{name: "AVX512", lanes: 16, rows: 12}
	narrow := &isa{name: "AVX2", lanes: 8, rows: 6}
	for _, s := range []*isa{wide, narrow} {
		for rows := 1; rows <= s.rows; rows++ {
			s.tile(rows, 2)
			s.tile(rows, 1)
		}
	}
	transpose()
	Generate()
}

// An isa is one of the two instruction sets. A tile of the product has up to
// rows rows and one or two vectors of columns.
type isa struct {
	name        string
	lanes, rows int
}

func (s *isa) wide() bool { return s.lanes == 16 }

func (s *isa) vec() VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

// tile computes a block of C with the given number of rows. The elements of A
// are read where they lie, by two strides, so that A can be transposed; B is
// packed; C's columns beyond the mask are not touched.
func (s *isa) tile(rows, vectors int) {
	name := fmt.Sprintf("tile%dx%d%s", rows, vectors, s.name)
	TEXT(name, NOSPLIT, "func(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, mask *uint32)")
	Doc(name + fmt.Sprintf(" adds up a tile of %d rows and %d columns; strides are in bytes.", rows, vectors*s.lanes))
	k := Load(Param("k"), GP64())
	rowStride := Load(Param("rowStride"), GP64())
	step := Load(Param("stepStride"), GP64())
	b := Load(Param("b"), GP64())
	// Rows 3q, 3q+1 and 3q+2 are at base q plus 0, 1 and 2 row strides.
	bases := make([]Register, (rows+2)/3)
	for q := range bases {
		bases[q] = GP64()
		if q == 0 {
			Load(Param("a"), bases[0])
			continue
		}
		LEAQ(Mem{Base: bases[q-1], Index: rowStride, Scale: 2}, bases[q])
		ADDQ(rowStride, bases[q])
	}
	row := func(i int) Mem {
		if i%3 == 0 {
			return Mem{Base: bases[i/3]}
		}
		return Mem{Base: bases[i/3], Index: rowStride, Scale: uint8(i % 3)}
	}
	acc := make([][]VecVirtual, rows)
	for i := range acc {
		acc[i] = make([]VecVirtual, vectors)
		for j := range acc[i] {
			acc[i][j] = s.vec()
			if s.wide() {
				VPXORD(acc[i][j], acc[i][j], acc[i][j])
			} else {
				VXORPS(acc[i][j], acc[i][j], acc[i][j])
			}
		}
	}
	TESTQ(k, k)
	JE(LabelRef("store"))
	Label("loop")
	{
		columns, x := make([]VecVirtual, vectors), s.vec()
		for j := range columns {
			columns[j] = s.vec()
			VMOVUPS(Mem{Base: b}.Offset(4*s.lanes*j), columns[j])
		}
		for i := range rows {
			VBROADCASTSS(row(i), x)
			for j, v := range columns {
				VFMADD231PS(v, x, acc[i][j])
			}
		}
		ADDQ(Imm(uint64(4*s.lanes*vectors)), b)
		for _, p := range bases {
			ADDQ(step, p)
		}
		DECQ(k)
		JNE(LabelRef("loop"))
	}
	Label("store")
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	mask := Load(Param("mask"), GP64())
	alpha := s.broadcast("alpha")
	for i := range rows {
		for j := range vectors {
			VMULPS(alpha, acc[i][j], acc[i][j])
		}
	}
	masks := make([]Register, vectors)
	for j := range masks {
		v := s.vec()
		VMOVUPS(Mem{Base: mask}.Offset(4*s.lanes*j), v)
		masks[j] = v
		if s.wide() {
			masks[j] = K()
			VPMOVD2M(v, masks[j])
		}
	}
	// C is not read where beta is 0, so that it may hold anything.
	sign := GP32()
	MOVL(param("beta"), sign)
	ADDL(sign, sign)
	JNE(LabelRef("add"))
	for i := range rows {
		for j := range vectors {
			s.store(acc[i][j], masks[j], Mem{Base: c}.Offset(4*s.lanes*j))
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
	Label("add")
	beta, old := s.broadcast("beta"), s.vec()
	for i := range rows {
		for j := range vectors {
			at := Mem{Base: c}.Offset(4 * s.lanes * j)
			if s.wide() {
				VMOVUPS_Z(at, masks[j], old)
			} else {
				VMASKMOVPS(at, masks[j], old)
			}
			VFMADD231PS(beta, old, acc[i][j])
			s.store(acc[i][j], masks[j], at)
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

// broadcast returns a register with the float32 parameter in every lane.
func (s *isa) broadcast(name string) VecVirtual {
	v := s.vec()
	VBROADCASTSS(param(name), v)
	return v
}

// param returns the address of a parameter.
func param(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

func (s *isa) store(v VecVirtual, mask Register, to Mem) {
	if s.wide() {
		VMOVUPS(v, mask, to)
	} else {
		VMASKMOVPS(v, mask, to)
	}
}

// transpose writes 8 columns of a packed panel: it reads 8 rows of k floats,
// k a multiple of 8, and writes column p of them as 8 consecutive floats at
// p·stride bytes.
func transpose() {
	TEXT("transpose8", NOSPLIT, "func(dst *float32, dstStride int, src *float32, srcStride, k int)")
	Doc("transpose8 writes the first k columns, a multiple of 8, of 8 rows as k rows of 8; strides are in bytes.")
	dst, dstStride := Load(Param("dst"), GP64()), Load(Param("dstStride"), GP64())
	src, srcStride := Load(Param("src"), GP64()), Load(Param("srcStride"), GP64())
	k := Load(Param("k"), GP64())
	three := GP64()
	LEAQ(Mem{Base: srcStride, Index: srcStride, Scale: 2}, three)
	half := GP64()
	LEAQ(Mem{Base: src, Index: srcStride, Scale: 4}, half)
	Label("loop")
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
		r[i] = YMM()
		VMOVUPS(at(i), r[i])
	}
	for i := 0; i < 8; i += 2 {
		t[i], t[i+1] = YMM(), YMM()
		VUNPCKLPS(r[i+1], r[i], t[i])
		VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for h := 0; h < 8; h += 4 {
		for j := range 2 {
			u[h+2*j], u[h+2*j+1] = YMM(), YMM()
			VSHUFPS(Imm(0x44), t[h+2+j], t[h+j], u[h+2*j])
			VSHUFPS(Imm(0xee), t[h+2+j], t[h+j], u[h+2*j+1])
		}
	}
	row := GP64()
	MOVQ(dst, row)
	for p := range 8 {
		v := YMM()
		if p < 4 {
			VPERM2F128(Imm(0x20), u[4+p], u[p], v)
		} else {
			VPERM2F128(Imm(0x31), u[p], u[p-4], v)
		}
		VMOVUPS(v, Mem{Base: row})
		ADDQ(dstStride, row)
	}
	MOVQ(row, dst)
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), half)
	SUBQ(Imm(8), k)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
