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

func (s *isa) holdsWord() {
	s.TEXT("holdsWord", attr.NOSPLIT, "func(list []uint64, word, set uint64) bool")
	s.Doc("holdsWord is HoldsWord.")
	list, n, i, end := s.Load(s.Param("list").Base(), s.GP64()), s.Load(s.Param("list").Len(), s.GP64()), s.GP64(), s.GP64()
	word, set := s.Load(s.Param("word"), s.GP64()), s.Load(s.Param("set"), s.GP64())
	words, sets, found, v := s.YMM(), s.YMM(), s.YMM(), s.YMM()
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
	s.JGE(LabelRef("done"))
	one := s.GP64()
	s.MOVQ(Mem{Base: list, Index: i, Scale: 8}, one)
	s.ORQ(set, one)
	s.CMPQ(one, word)
	s.JEQ(LabelRef("held"))
	s.INCQ(i)
	s.JMP(LabelRef("rest"))
	s.Label("done")
	s.VPTEST(found, found)
	s.SETNE(s.memory(s.ReturnIndex(0)))
	s.VZEROUPPER()
	s.RET()
	s.Label("held")
	s.MOVB(U8(1), s.memory(s.ReturnIndex(0)))
	s.VZEROUPPER()
	s.RET()
}
