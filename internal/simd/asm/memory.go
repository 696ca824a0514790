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
