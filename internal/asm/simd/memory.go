package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// forEach emits body for each element of a slice.
func (s *isa) forEach(slice, label string, body func(i Register)) {
	n, i := s.Load(s.Param(slice).Len(), s.GP64()), s.GP64()
	s.XORQ(i, i)
	s.Label(label)
	s.CMPQ(i, n)
	s.JGE(LabelRef(label + "_done"))
	body(i)
	s.INCQ(i)
	s.JMP(LabelRef(label))
	s.Label(label + "_done")
}

func (s *isa) scatterWords() {
	s.TEXT("scatterWords", attr.NOSPLIT, "func(order, words []uint64, choice []uint8, next []int)")
	s.Doc("scatterWords is ScatterWords. It asks for the cache line after the one it writes to.")
	order, words := s.Load(s.Param("order").Base(), s.GP64()), s.Load(s.Param("words").Base(), s.GP64())
	choice, next := s.Load(s.Param("choice").Base(), s.GP64()), s.Load(s.Param("next").Base(), s.GP64())
	s.forEach("choice", "words", func(i Register) {
		c, at, word := s.GP64(), s.GP64(), s.GP64()
		s.MOVBQZX(Mem{Base: choice, Index: i, Scale: 1}, c)
		s.MOVQ(Mem{Base: next, Index: c, Scale: 8}, at)
		s.MOVQ(Mem{Base: words, Index: i, Scale: 8}, word)
		s.PREFETCHT0(Mem{Base: order, Index: at, Scale: 8, Disp: 64})
		s.MOVQ(word, Mem{Base: order, Index: at, Scale: 8})
		s.INCQ(Mem{Base: next, Index: c, Scale: 8})
	})
	s.RET()
}

// unlessHeld emits a jump to held if e|set is word for an element e of list.
func (s *isa) unlessHeld(list, n, word Register, words VecVirtual) {
	i, end, set, one := s.GP64(), s.GP64(), s.Load(s.Param("set"), s.GP64()), s.GP64()
	sets, found, v := s.YMM(), s.YMM(), s.YMM()
	s.VMOVQ(word, words.AsX())
	s.VPBROADCASTQ(words.AsX(), words)
	s.VMOVQ(set, sets.AsX())
	s.VPBROADCASTQ(sets.AsX(), sets)
	s.VPXOR(found, found, found)
	s.XORQ(i, i)
	s.MOVQ(n, end)
	s.ANDQ(I32(-4), end)
	s.Label("vectors")
	s.CMPQ(i, end)
	s.JGE(LabelRef("rest"))
	s.VPOR(Mem{Base: list, Index: i, Scale: 8}, sets, v)
	s.VPCMPEQQ(words, v, v)
	s.VPOR(v, found, found)
	s.ADDQ(Imm(4), i)
	s.JMP(LabelRef("vectors"))
	s.Label("rest")
	s.CMPQ(i, n)
	s.JGE(LabelRef("searched"))
	s.MOVQ(Mem{Base: list, Index: i, Scale: 8}, one)
	s.ORQ(set, one)
	s.CMPQ(one, word)
	s.JEQ(LabelRef("held"))
	s.INCQ(i)
	s.JMP(LabelRef("rest"))
	s.Label("searched")
	s.VPTEST(found, found)
	s.JNE(LabelRef("held"))
}

// result emits the end of a function that returns a truth.
func (s *isa) result(truth uint8) {
	s.MOVB(U8(truth), s.memory(s.ReturnIndex(0)))
	s.VZEROUPPER()
	s.RET()
}

func (s *isa) holdsWord() {
	s.TEXT("holdsWord", attr.NOSPLIT, "func(list []uint64, word, set uint64) bool")
	s.Doc("holdsWord is HoldsWord.")
	s.unlessHeld(s.pointer("list"), s.Load(s.Param("list").Len(), s.GP64()), s.Load(s.Param("word"), s.GP64()), s.YMM())
	s.result(0)
	s.Label("held")
	s.result(1)
}

// insertWord moves four elements at a time, from the end: each becomes the one before it, if
// that is above the word, or the word, if the element is. The place of the word decides only
// one branch in every 64 elements. Loads that overlap with earlier stores wait for them, so
// loads and stores are of the same four.
func (s *isa) insertWord() {
	s.TEXT("insertWord", attr.NOSPLIT, "func(list []uint64, word, set uint64) bool")
	s.Doc("insertWord is InsertWord for at least 4 elements.")
	list, i, word := s.pointer("list"), s.Load(s.Param("list").Len(), s.GP64()), s.Load(s.Param("word"), s.GP64())
	words, first, v, turned, next, before, above := s.YMM(), s.YMM(), s.YMM(), s.YMM(), s.YMM(), s.YMM(), s.YMM()
	s.unlessHeld(list, i, word, words)
	insert := func(v VecVirtual) {
		s.VPCMPGTQ(words, v, above)
		s.VBLENDVPD(above, words, v, v)
		s.VPCMPGTQ(words, before, above)
		s.VBLENDVPD(above, before, v, v)
	}
	turn := func(v, turned VecVirtual) { s.VPERMQ(Imm(0b10_01_00_11), v, turned) }
	element := func(at int) Mem { return Mem{Base: list, Index: i, Scale: 8, Disp: 8 * at} }
	s.VMOVDQU(Mem{Base: list}, first)
	turn(first, turned)
	s.VPXOR(before, before, before)
	s.VPBLENDD(Imm(0b11), before, turned, before) // nothing is before the first
	insert(first)
	s.VMOVDQU(element(-4), v)
	turn(v, turned)
	s.Label("move")
	s.CMPQ(i, Imm(8))
	s.JL(LabelRef("last"))
	s.VMOVDQU(element(-8), next)
	turn(next, before)
	s.VPBLENDD(Imm(0b11), before, turned, above)
	s.VMOVDQA(before, turned)
	s.VMOVDQA(above, before)
	insert(v)
	s.VMOVDQU(v, element(-4))
	s.VMOVDQA(next, v)
	s.SUBQ(Imm(4), i)
	s.TESTQ(U32(60), i)
	s.JNE(LabelRef("move"))
	s.CMPQ(element(-1), word)
	s.JG(LabelRef("move"))
	s.JMP(LabelRef("done"))
	s.Label("last")
	s.CMPQ(i, Imm(4))
	s.JE(LabelRef("whole"))
	s.VMOVDQU(element(-5), before)
	insert(v)
	s.VMOVDQU(v, element(-4))
	s.Label("whole")
	s.VMOVDQU(first, Mem{Base: list})
	s.Label("done")
	s.result(1)
	s.Label("held")
	s.result(0)
}

// insertWordWide moves eight elements at a time, from the start.
func (s *isa) insertWordWide() {
	s.TEXT("insertWordWide", attr.NOSPLIT, "func(list []uint64, word, set uint64) bool")
	s.Doc("insertWordWide is InsertWord with AVX-512 for a multiple of 8 elements.")
	list, n, i := s.pointer("list"), s.Load(s.Param("list").Len(), s.GP64()), s.GP64()
	word, set, held, found := s.ZMM(), s.ZMM(), s.K(), s.K()
	v, before, moved := s.ZMM(), s.ZMM(), s.ZMM()
	s.VPBROADCASTQ(s.memory(s.Param("word")), word)
	s.VPBROADCASTQ(s.memory(s.Param("set")), set)
	eight := Mem{Base: list, Index: i, Scale: 8}
	s.KXORW(found, found, found)
	s.XORQ(i, i)
	s.Label("search")
	s.VPORQ(eight, set, v)
	s.VPCMPEQQ(word, v, held)
	s.KORW(held, found, found)
	s.ADDQ(Imm(8), i)
	s.CMPQ(i, n)
	s.JL(LabelRef("search"))
	s.KORTESTW(found, found)
	s.JNE(LabelRef("held"))
	s.VPXORQ(before, before, before) // nothing is before the first
	s.XORQ(i, i)
	s.Label("move")
	s.VMOVDQU64(eight, v)
	s.VALIGNQ(Imm(7), before, v, moved)
	s.VMOVDQA64(v, before)
	s.VPMINSQ(word, v, v)
	s.VPMAXSQ(moved, v, v)
	s.VMOVDQU64(v, eight)
	s.ADDQ(Imm(8), i)
	s.CMPQ(i, n)
	s.JL(LabelRef("move"))
	s.result(1)
	s.Label("held")
	s.result(0)
}
