package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// stripWidth is the number of float64 in a row of a strip.
const stripWidth = 16

// strips makes the inner loops over the elements of a sparse row times a strip of
// float64.
func (i *isa) strips() {
	vectors := 2 * stripWidth / i.lanes // i counts lanes of float32
	bytes := 4 * i.lanes
	at := func(base Register, j int) Mem { return Mem{Base: base}.Offset(bytes * j) }
	s := shape{i, i.lanes, vectors}

	name := "sumStrip" + i.name
	s.TEXT(name, attr.NOSPLIT, "func(n int, col *int32, val *float32, strip *float64, y *float64)")
	s.Doc(fmt.Sprintf("%s adds to y the rows of the strip, of %d elements, that col names, each times its val.", name, stripWidth))
	n, col, val := s.Load(s.Param("n"), s.GP64()), s.Load(s.Param("col"), s.GP64()), s.Load(s.Param("val"), s.GP64())
	strip, y := s.Load(s.Param("strip"), s.GP64()), s.Load(s.Param("y"), s.GP64())
	sums, x := s.vecs(), s.vec()
	for j, v := range sums {
		s.VMOVUPD(at(y, j), v)
	}
	s.stripElements(n, col, val, strip, x, func(row Register) {
		for j, v := range sums {
			s.VFMADD231PD(at(row, j), x, v)
		}
	})
	for j, v := range sums {
		s.VMOVUPD(v, at(y, j))
	}
	s.VZEROUPPER()
	s.RET()

	name = "spreadStrip" + i.name
	s.TEXT(name, attr.NOSPLIT, "func(n int, col *int32, val *float32, strip *float64, y *float64)")
	s.Doc(fmt.Sprintf("%s adds y, of %d elements, times each val, to the row of the strip that its col names.", name, stripWidth))
	n, col, val = s.Load(s.Param("n"), s.GP64()), s.Load(s.Param("col"), s.GP64()), s.Load(s.Param("val"), s.GP64())
	strip, y = s.Load(s.Param("strip"), s.GP64()), s.Load(s.Param("y"), s.GP64())
	ys, x, z := s.vecs(), s.vec(), s.vec()
	for j, v := range ys {
		s.VMOVUPD(at(y, j), v)
	}
	s.stripElements(n, col, val, strip, x, func(row Register) {
		for j, v := range ys {
			s.VMOVUPD(at(row, j), z)
			s.VFMADD231PD(v, x, z)
			s.VMOVUPD(z, at(row, j))
		}
	})
	s.VZEROUPPER()
	s.RET()
}

// stripElements emits a loop over the n elements of a sparse row: body gets the address of
// the strip's row for the element's column, and x holds the element's value.
func (s *isa) stripElements(n, col, val, strip Register, x VecVirtual, body func(row Register)) {
	s.TESTQ(n, n)
	s.JE(LabelRef("done"))
	row, value := s.GP64(), s.XMM()
	s.Label("loop")
	s.MOVLQSX(Mem{Base: col}, row)
	s.SHLQ(Imm(7), row) // 16 float64
	s.ADDQ(strip, row)
	s.VCVTSS2SD(Mem{Base: val}, value, value)
	s.broadcastDouble(value, x)
	body(row)
	s.ADDQ(Imm(4), col)
	s.ADDQ(Imm(4), val)
	s.DECQ(n)
	s.JNE(LabelRef("loop"))
	s.Label("done")
}
