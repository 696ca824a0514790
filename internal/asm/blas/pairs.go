package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pairTiles makes the inner loops of products of pairs of bfloat16, for AVX-512 with
// its instructions for bfloat16.
func (s *isa) pairTiles() {
	for _, columns := range []int{32, 16} {
		for rows := 1; rows <= 12; rows++ {
			s.pairTile(rows, columns)
		}
	}
}

// pairTile computes a block of C with the given numbers of rows and columns, each
// element with a sum of its own. The registers are chosen here, since the instruction
// that multiplies is written as bytes.
func (s *isa) pairTile(rows, columns int) {
	registers := []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
		Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26}
	vectors := columns / 16
	sum := func(i, j int) int { return vectors*i + j }
	column, row := 24, 26

	name := fmt.Sprintf("pairs%dx%dAVX512", rows, columns)
	s.TEXT(name, attr.NOSPLIT, "func(k int, a *uint32, rowStride, stepStride int, b *uint32, c *float32, ldc, add int)")
	s.Doc(fmt.Sprintf("%s computes a tile of %d rows and %d columns from k ≥ 1 pairs, and adds C to it unless add is 0; strides are in bytes.", name, rows, columns))
	s.Member("pairsAVX512", name)
	k := s.Load(s.Param("k"), s.GP64())
	rowStride := s.Load(s.Param("rowStride"), s.GP64())
	step := s.Load(s.Param("stepStride"), s.GP64())
	b := s.Load(s.Param("b"), s.GP64())
	bases, element := s.rowBases(rows, rowStride)
	for i := range rows * vectors {
		s.VPXORD(registers[i], registers[i], registers[i])
	}
	s.Label("loop")
	for j := range vectors {
		s.VMOVDQU32(Mem{Base: b}.Offset(64*j), registers[column+j])
	}
	for i := range rows {
		s.VPBROADCASTD(element(i), registers[row])
		for j := range vectors {
			s.addProducts(registers, row, column+j, sum(i, j))
		}
	}
	s.ADDQ(Imm(uint64(4*columns)), b)
	for _, p := range bases {
		s.ADDQ(step, p)
	}
	s.DECQ(k)
	s.JNE(LabelRef("loop"))

	adds := s.Load(s.Param("add"), s.GP64())
	ldc := s.Load(s.Param("ldc"), s.GP64())
	s.Comment("C is not read unless it is added, so that it may hold anything.")
	s.TESTQ(adds, adds)
	s.JE(LabelRef("store"))
	each := func(do func(v VecPhysical, c Mem)) {
		c := s.Load(s.Param("c"), s.GP64())
		for i := range rows {
			for j := range vectors {
				do(registers[sum(i, j)], Mem{Base: c}.Offset(64*j))
			}
			if i < rows-1 {
				s.ADDQ(ldc, c)
			}
		}
	}
	each(func(v VecPhysical, c Mem) { s.VADDPS(c, v, v) })
	s.Label("store")
	each(func(v VecPhysical, c Mem) { s.VMOVUPS(v, c) })
	s.VZEROUPPER()
	s.RET()
}

// addProducts emits VDPBF16PS for registers of 512 bits by their numbers. It adds to each
// sum the product of the upper halves of the words x and y, then the product of the lower
// halves. Neither Go's assembler nor avo knows the instruction.
func (s *isa) addProducts(registers []VecPhysical, x, y, sum int) {
	bit := func(n, i, to int) uint64 { return uint64(^n>>i&1) << to } // the prefix has them inverted
	code := []uint64{
		0x62,
		bit(sum, 3, 7) | bit(y, 4, 6) | bit(y, 3, 5) | bit(sum, 4, 4) | 2,    // map 0F38
		bit(x, 3, 6) | bit(x, 2, 5) | bit(x, 1, 4) | bit(x, 0, 3) | 1<<2 | 2, // W0, F3
		2<<5 | bit(x, 4, 3), // 512 bits
		0x52,
		0xc0 | uint64(sum&7)<<3 | uint64(y&7),
	}
	s.Comment(fmt.Sprintf("VDPBF16PS Z%d, Z%d, Z%d", y, x, sum))
	for i, c := range code {
		emitted := &ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(c)}}
		if i == len(code)-1 {
			emitted.Inputs = []Op{registers[x], registers[y], registers[sum]}
			emitted.Outputs = []Op{registers[sum]}
		}
		s.Instruction(emitted)
	}
}
