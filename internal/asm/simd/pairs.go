package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pairs makes the conversions to pairs of bfloat16, for AVX-512 with its instructions
// for bfloat16.
func (s *isa) pairs() {
	s.TEXT("pairUpVector", attr.NOSPLIT, "func(dst []uint32, x []float32)")
	s.Doc("pairUpVector writes the numbers of x in pairs; their number is a multiple of 16.")
	dst, x := s.pointer("dst"), s.pointer("x")
	s.loop("x", "pairs", func(i Register) {
		s.storeHalves(s.load(x, i), asPairs, Mem{Base: dst, Index: i, Scale: 2})
	})
	s.end()

	s.TEXT("pairRowsVector", attr.NOSPLIT, "func(dst []uint32, x, y []float32)")
	s.Doc("pairRowsVector pairs each number of x with that of y; their number is a multiple of 16.")
	dst, x = s.pointer("dst"), s.pointer("x")
	y := s.pointer("y")
	s.loop("x", "rows", func(i Register) {
		to := at(dst, i)
		s.storeHalves(s.load(x, i), asFirst, to)
		s.storeHalves(s.load(y, i), asSecond, to)
	})
	s.end()
}

// storeHalves writes a vector of 16 numbers in bfloat16: as 8 pairs; as the first halves
// of 16 words, whose second halves become 0; or as the second halves, keeping the first.
// The registers are chosen here, since the instruction that rounds is written as bytes.
func (s *isa) storeHalves(v VecVirtual, form tileForm, to Mem) {
	s.VMOVAPS(v, Z31)
	s.roundZ31()
	switch form {
	case asPairs:
		s.VMOVUPS(Y31, to)
		return
	case asFirst:
		s.VPMOVZXWD(Y31, Z31)
	case asSecond:
		s.VPMOVZXWD(Y31, Z31)
		s.VPSLLD(Imm(16), Z31, Z31)
		s.VPORD(to, Z31, Z31)
	}
	s.VMOVUPS(Z31, to)
}

// roundZ31 emits VCVTNEPS2BF16 from Z31 to Y31, which neither Go's assembler nor avo
// knows.
func (s *isa) roundZ31() {
	s.Comment("VCVTNEPS2BF16 Z31, Y31")
	code := []uint64{0x62, 0x02, 0x7e, 0x48, 0x72, 0xff}
	for i, c := range code {
		emitted := &ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(c)}}
		if i == len(code)-1 {
			emitted.Inputs, emitted.Outputs = []Op{Z31}, []Op{Y31}
		}
		s.Instruction(emitted)
	}
}
