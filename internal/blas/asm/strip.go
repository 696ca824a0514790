package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
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
	TEXT(name, NOSPLIT, "func(n int, col *int32, val *float32, strip *float64, y *float64)")
	Doc(fmt.Sprintf("%s adds to y the rows of the strip, of %d elements, that col names, each times its val.", name, stripWidth))
	n, col, val := Load(Param("n"), GP64()), Load(Param("col"), GP64()), Load(Param("val"), GP64())
	strip, y := Load(Param("strip"), GP64()), Load(Param("y"), GP64())
	sums, x := s.vecs(), s.vec()
	for j, v := range sums {
		VMOVUPD(at(y, j), v)
	}
	stripElements(n, col, val, strip, x, func(row Register) {
		for j, v := range sums {
			VFMADD231PD(at(row, j), x, v)
		}
	})
	for j, v := range sums {
		VMOVUPD(v, at(y, j))
	}
	VZEROUPPER()
	RET()

	name = "spreadStrip" + i.name
	TEXT(name, NOSPLIT, "func(n int, col *int32, val *float32, strip *float64, y *float64)")
	Doc(fmt.Sprintf("%s adds y, of %d elements, times each val, to the row of the strip that its col names.", name, stripWidth))
	n, col, val = Load(Param("n"), GP64()), Load(Param("col"), GP64()), Load(Param("val"), GP64())
	strip, y = Load(Param("strip"), GP64()), Load(Param("y"), GP64())
	ys, x, z := s.vecs(), s.vec(), s.vec()
	for j, v := range ys {
		VMOVUPD(at(y, j), v)
	}
	stripElements(n, col, val, strip, x, func(row Register) {
		for j, v := range ys {
			VMOVUPD(at(row, j), z)
			VFMADD231PD(v, x, z)
			VMOVUPD(z, at(row, j))
		}
	})
	VZEROUPPER()
	RET()
}

// stripElements goes through the n elements of a sparse row: body gets the address of the
// row of the strip that belongs to the column of each, and x holds its value.
func stripElements(n, col, val, strip Register, x VecVirtual, body func(row Register)) {
	TESTQ(n, n)
	JE(LabelRef("done"))
	row, value := GP64(), XMM()
	Label("loop")
	MOVLQSX(Mem{Base: col}, row)
	SHLQ(Imm(7), row) // 16 float64
	ADDQ(strip, row)
	VCVTSS2SD(Mem{Base: val}, value, value)
	VBROADCASTSD(value, x)
	body(row)
	ADDQ(Imm(4), col)
	ADDQ(Imm(4), val)
	DECQ(n)
	JNE(LabelRef("loop"))
	Label("done")
}
