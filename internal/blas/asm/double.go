package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// doubles makes the inner loop of the double-precision product: a tile of as many rows as
// in single precision, and of two vectors of columns.
func (i *isa) doubles() {
	s := shape{i, i.lanes, 2}
	columns := i.lanes // two vectors of half as many float64
	name := "doubles" + i.name
	TEXT(name, NOSPLIT, "func(k int, a, b, c *float64, ldc int)")
	Doc(fmt.Sprintf("%s adds to the %d×%d block at c, with rows ldc bytes apart, the product of k packed columns of a and rows of b.", name, i.rows, columns))
	k := Load(Param("k"), GP64())
	a, b := Load(Param("a"), GP64()), Load(Param("b"), GP64())
	acc := s.zeros(i.rows)
	TESTQ(k, k)
	JE(LabelRef("finish"))
	Label("loop")
	{
		rows, x := s.vecs(), s.vec()
		for j, v := range rows {
			VMOVUPD(s.at(b, j), v)
		}
		for r := range acc {
			VBROADCASTSD(Mem{Base: a}.Offset(8*r), x)
			for j, v := range rows {
				VFMADD231PD(v, x, acc[r][j])
			}
		}
		ADDQ(Imm(uint64(8*i.rows)), a)
		ADDQ(Imm(uint64(8*columns)), b)
		DECQ(k)
		JNE(LabelRef("loop"))
	}
	Label("finish")
	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	for r := range acc {
		for j, v := range acc[r] {
			VADDPD(s.at(c, j), v, v)
			VMOVUPD(v, s.at(c, j))
		}
		if r < i.rows-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}
