package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// forEach emits body for each element of a slice.
func forEach(slice, label string, body func(i Register)) {
	n, i := Load(Param(slice).Len(), GP64()), GP64()
	XORQ(i, i)
	Label(label)
	CMPQ(i, n)
	JGE(LabelRef(label + "_done"))
	body(i)
	INCQ(i)
	JMP(LabelRef(label))
	Label(label + "_done")
}

func placeWords() {
	TEXT("placeWords", NOSPLIT, "func(order, words []uint64, choice []uint8, next []int)")
	Doc("placeWords is PlaceWords. It asks for the cache line after the one it writes to.")
	order, words := Load(Param("order").Base(), GP64()), Load(Param("words").Base(), GP64())
	choice, next := Load(Param("choice").Base(), GP64()), Load(Param("next").Base(), GP64())
	forEach("choice", "words", func(i Register) {
		c, at, word := GP64(), GP64(), GP64()
		MOVBQZX(Mem{Base: choice, Index: i, Scale: 1}, c)
		MOVQ(Mem{Base: next, Index: c, Scale: 8}, at)
		MOVQ(Mem{Base: words, Index: i, Scale: 8}, word)
		PREFETCHT0(Mem{Base: order, Index: at, Scale: 8, Disp: 64})
		MOVQ(word, Mem{Base: order, Index: at, Scale: 8})
		INCQ(Mem{Base: next, Index: c, Scale: 8})
	})
	RET()
}

func holdsWord() {
	TEXT("holdsWord", NOSPLIT, "func(list []uint64, word, set uint64) bool")
	Doc("holdsWord is HoldsWord.")
	list, n, i, end := Load(Param("list").Base(), GP64()), Load(Param("list").Len(), GP64()), GP64(), GP64()
	word, set := Load(Param("word"), GP64()), Load(Param("set"), GP64())
	words, sets, found, v := YMM(), YMM(), YMM(), YMM()
	VMOVQ(word, words.AsX())
	VPBROADCASTQ(words.AsX(), words)
	VMOVQ(set, sets.AsX())
	VPBROADCASTQ(sets.AsX(), sets)
	VPXOR(found, found, found)
	XORQ(i, i)
	MOVQ(n, end)
	ANDQ(I32(-4), end)
	Label("vectors")
	CMPQ(i, end)
	JGE(LabelRef("rest"))
	VPOR(Mem{Base: list, Index: i, Scale: 8}, sets, v)
	VPCMPEQQ(words, v, v)
	VPOR(v, found, found)
	ADDQ(Imm(4), i)
	JMP(LabelRef("vectors"))
	Label("rest")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	one := GP64()
	MOVQ(Mem{Base: list, Index: i, Scale: 8}, one)
	ORQ(set, one)
	CMPQ(one, word)
	JEQ(LabelRef("held"))
	INCQ(i)
	JMP(LabelRef("rest"))
	Label("done")
	VPTEST(found, found)
	SETNE(memory(ReturnIndex(0)))
	VZEROUPPER()
	RET()
	Label("held")
	MOVB(U8(1), memory(ReturnIndex(0)))
	VZEROUPPER()
	RET()
}
