package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// doubles makes the inner loop of the double-precision product: a tile with the rows of
// single precision and two vectors of columns.
func (i *isa) doubles() {
	s := shape{i, i.lanes, 2}
	columns := i.lanes // two vectors of half as many float64
	name := "doubles" + i.name
	s.TEXT(name, attr.NOSPLIT, "func(k int, a, b, c *float64, ldc int)")
	s.Doc(fmt.Sprintf("%s adds to the %d×%d block at c, with rows ldc bytes apart, the product of k packed columns of a and rows of b.", name, i.rows, columns))
	k := s.Load(s.Param("k"), s.GP64())
	a, b := s.Load(s.Param("a"), s.GP64()), s.Load(s.Param("b"), s.GP64())
	acc := s.zeros(i.rows)
	s.TESTQ(k, k)
	s.JE(LabelRef("finish"))
	s.Label("loop")
	{
		rows, x := s.vecs(), s.vec()
		for j, v := range rows {
			s.VMOVUPD(s.at(b, j), v)
		}
		for r := range acc {
			s.broadcastDouble(Mem{Base: a}.Offset(8*r), x)
			for j, v := range rows {
				s.VFMADD231PD(v, x, acc[r][j])
			}
		}
		s.ADDQ(Imm(uint64(8*i.rows)), a)
		s.ADDQ(Imm(uint64(8*columns)), b)
		s.DECQ(k)
		s.JNE(LabelRef("loop"))
	}
	s.Label("finish")
	c, ldc := s.Load(s.Param("c"), s.GP64()), s.Load(s.Param("ldc"), s.GP64())
	for r := range acc {
		for j, v := range acc[r] {
			s.VADDPD(s.at(c, j), v, v)
			s.VMOVUPD(v, s.at(c, j))
		}
		if r < i.rows-1 {
			s.ADDQ(ldc, c)
		}
	}
	s.VZEROUPPER()
	s.RET()
}

// broadcastDouble sets all lanes to a float64.
func (s *isa) broadcastDouble(from Op, x VecVirtual) {
	if s.neon() {
		s.VMOVDDUP(from, x)
	} else {
		s.VBROADCASTSD(from, x)
	}
}
