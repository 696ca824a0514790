//go:build arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64

package blas

import "unsafe"

// addSingle sets a tile to the product of k columns of a and packed rows of b; addDouble
// takes packed columns.
func addSingle(sums *[4][4]float32, k int, a *float32, rowStride, stepStride int, b *float32) {
	addRows(sums, k, a, rowStride, stepStride, b)
}

func addDouble(sums *[4][4]float64, k int, a, b *float64) { addRows(sums, k, a, 8, 32, b) }

// addRows sets a tile to the product of k columns of a and rows of b. It relies on the
// compiler to fuse, like simd.FMA, but without the conversions there, which cost an
// instruction each. Strides are in bytes.
func addRows[T Float](sums *[4][4]T, k int, a *T, rowStride, stepStride int, b *T) {
	var s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33 T
	for range k {
		row := (*[4]T)(unsafe.Pointer(b))
		y0, y1, y2, y3 := row[0], row[1], row[2], row[3]
		x := *a
		s00 += x * y0
		s01 += x * y1
		s02 += x * y2
		s03 += x * y3
		x = *at(a, rowStride)
		s10 += x * y0
		s11 += x * y1
		s12 += x * y2
		s13 += x * y3
		x = *at(a, 2*rowStride)
		s20 += x * y0
		s21 += x * y1
		s22 += x * y2
		s23 += x * y3
		x = *at(a, 3*rowStride)
		s30 += x * y0
		s31 += x * y1
		s32 += x * y2
		s33 += x * y3
		a, b = at(a, stepStride), at(b, 32)
	}
	*sums = [4][4]T{{s00, s01, s02, s03}, {s10, s11, s12, s13}, {s20, s21, s22, s23}, {s30, s31, s32, s33}}
}
