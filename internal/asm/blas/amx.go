package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// amxTiles makes the inner loops of products of pairs of bfloat16 for AMX.
func (s *isa) amxTiles() {
	for rows := 1; rows <= 2; rows++ {
		for columns := 1; columns <= 2; columns++ {
			s.amxTile(rows, columns)
		}
	}
}

// The tile registers: up to four of C, two of A, and two of B.
const tilesOfA, tilesOfB = 4, 6

// amxTile computes strips of C of the given numbers of tiles, below each other. Neither Go's
// assembler nor avo knows the instructions, so they are written as bytes.
func (s *isa) amxTile(rows, columns int) {
	const stepBytes = 64 // of 16 pairs in a row of A
	name := fmt.Sprintf("tiles%dx%dAMX", rows, columns)
	s.TEXT(name, attr.NOSPLIT, "func(config *byte, strips, k int, a *uint32, lda int, b *uint32, c *float32, ldc, add int)")
	s.Doc(fmt.Sprintf("%s computes strips ≥ 1 of %d×%d tiles of C from k ≥ 1 tiles of A and B, and adds C to them unless add is 0; strides are in bytes.", name, rows, columns))
	s.Member("tilesAMX", name)
	strips, k, lda, ldb, ldc, add := RCX, RDX, R8, R9, R10, R11
	first, a, b, c := R13, [2]GPPhysical{RAX, RBX}, RSI, [2]GPPhysical{RDI, R12}
	load := func(name string, to GPPhysical) { s.Load(s.Param(name), to) }
	load("config", RAX)
	s.amx("LDTILECFG (AX)", 0x78, 0x49, 0x00)
	load("strips", strips)
	load("lda", lda)
	load("ldc", ldc)
	load("add", add)
	load("a", first)
	load("c", c[0])
	s.MOVQ(I32(64*columns), ldb)

	s.Label("strip")
	s.MOVQ(first, a[0])
	if rows == 2 {
		s.sixteenBelow(a[0], lda, a[1])
		s.sixteenBelow(c[0], ldc, c[1])
	}
	load("b", b)
	load("k", k)
	each := func(do func(tile int, c GPPhysical, offset int)) {
		for i := range rows {
			for j := range columns {
				do(2*i+j, c[i], 64*j)
			}
		}
	}
	s.TESTQ(add, add)
	s.JE(LabelRef("zero"))
	each(func(tile int, c GPPhysical, offset int) { s.tileMove("TILELOADD", 0x7b, tile, c, ldc, offset) })
	s.JMP(LabelRef("loop"))
	s.Label("zero")
	each(func(tile int, _ GPPhysical, _ int) {
		s.amx(fmt.Sprintf("TILEZERO TMM%d", tile), 0x7b, 0x49, byte(0xc0|tile<<3))
	})
	s.Label("loop")
	for j := range columns {
		s.tileMove("TILELOADD", 0x7b, tilesOfB+j, b, ldb, 64*j)
	}
	for i := range rows {
		s.tileMove("TILELOADD", 0x7b, tilesOfA+i, a[i], lda, 0)
		for j := range columns {
			s.amx(fmt.Sprintf("TDPBF16PS TMM%d, TMM%d, TMM%d", tilesOfB+j, tilesOfA+i, 2*i+j),
				byte(^(tilesOfB+j)&15<<3|2), 0x5c, byte(0xc0|(2*i+j)<<3|tilesOfA+i))
		}
		s.ADDQ(Imm(stepBytes), a[i])
	}
	s.ADDQ(I32(16*64*columns), b)
	s.DECQ(k)
	s.JNE(LabelRef("loop"))
	each(func(tile int, c GPPhysical, offset int) { s.tileMove("TILESTORED", 0x7a, tile, c, ldc, offset) })

	// The next strip is 16 rows below the last tile.
	for range rows {
		s.sixteenBelow(first, lda, first)
		s.sixteenBelow(c[0], ldc, c[0])
	}
	s.DECQ(strips)
	s.JNE(LabelRef("strip"))
	s.amx("TILERELEASE", 0x78, 0x49, 0xc0)
	s.RET()
}

// sixteenBelow sets to to the address 16 rows below from, with rows stride apart.
func (s *isa) sixteenBelow(from, stride, to GPPhysical) {
	s.MOVQ(stride, R14)
	s.SHLQ(Imm(4), R14)
	if from != to {
		s.MOVQ(from, to)
	}
	s.ADDQ(R14, to)
}

// tileMove emits an instruction that loads a tile, or stores it, by the prefix and the code of
// loads: rows at base + offset, stride apart.
func (s *isa) tileMove(name string, prefix byte, tile int, base, stride GPPhysical, offset int) {
	number := func(r GPPhysical) int { return int(r.PhysicalIndex()) }
	registers := 0xe2 &^ (number(stride)>>3<<6 | number(base)>>3<<5) // the bits of numbers above 7 are inverted
	code := []byte{0xc4, byte(registers), prefix, 0x4b, byte(0x44 | tile<<3), byte(number(stride)&7<<3 | number(base)&7), byte(offset)}
	s.bytes(fmt.Sprintf("%s %d(%s)(%s*1), TMM%d", name, offset, base.Asm(), stride.Asm(), tile), code)
}

// amx emits an instruction of AMX that addresses at most AX.
func (s *isa) amx(name string, code ...byte) { s.bytes(name, slices.Concat([]byte{0xc4, 0xe2}, code)) }

// bytes emits an instruction by its code.
func (s *isa) bytes(name string, code []byte) {
	s.Comment(name)
	for _, c := range code {
		s.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(c))}})
	}
}
