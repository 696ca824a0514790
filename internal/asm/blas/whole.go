package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
)

// wholeTiles makes the inner loops of products of pairs of whole numbers, for AVX2.
func (s *isa) wholeTiles() {
	for rows := 1; rows <= s.rows; rows++ {
		s.wholeTile(rows)
	}
}

// wholeTile computes a block of C with the given number of rows and two vectors of columns.
func (i *isa) wholeTile(rows int) {
	s := i.shape(2 * i.lanes)
	name := fmt.Sprintf("whole%dx%d%s", rows, 2*s.lanes, s.name)
	s.TEXT(name, attr.NOSPLIT, "func(k int, a *uint32, lda int, b *uint32, scale float32, c *float32, ldc int)")
	s.Doc(fmt.Sprintf("%s computes a tile of %d rows and %d columns from k ≥ 1 pairs of whole numbers, times scale; strides are in bytes.", name, rows, 2*s.lanes))
	s.Member("whole"+s.name, name)
	k := s.Load(s.Param("k"), s.GP64())
	lda := s.Load(s.Param("lda"), s.GP64())
	b := s.Load(s.Param("b"), s.GP64())
	bases, element := s.rowBases(rows, lda)
	sums := s.zeros(rows)
	s.Label("loop")
	columns, x, product := s.vecs(), s.vec(), s.vec()
	for j, v := range columns {
		s.VMOVDQU(s.at(b, j), v)
	}
	for r := range rows {
		s.VPBROADCASTD(element(r), x)
		for j, v := range columns {
			s.VPMADDWD(v, x, product)
			s.VPADDD(product, sums[r][j], sums[r][j])
		}
	}
	s.ADDQ(Imm(uint64(4*s.lanes*s.vectors)), b)
	for _, p := range bases {
		s.ADDQ(Imm(4), p)
	}
	s.DECQ(k)
	s.JNE(LabelRef("loop"))
	c := s.Load(s.Param("c"), s.GP64())
	ldc := s.Load(s.Param("ldc"), s.GP64())
	scale := s.broadcast("scale")
	for r := range rows {
		for j, v := range sums[r] {
			s.VCVTDQ2PS(v, v)
			s.VMULPS(scale, v, v)
			s.VMOVUPS(v, s.at(c, j))
		}
		if r < rows-1 {
			s.ADDQ(ldc, c)
		}
	}
	s.VZEROUPPER()
	s.RET()
}
