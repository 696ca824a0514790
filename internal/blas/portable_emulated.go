//go:build !(arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64)

package blas

import (
	"math"
	"unsafe"

	"cne/internal/simd"
)

// A call to simd.FMA would spill the sums, so the common case is inline, and rounded is called
// only where rounding twice may differ.

// addSingle sets a tile to the product of k columns of a and packed rows of b. Numbers are
// float64 that hold float32.
func addSingle(sums *[4][4]float32, k int, a *float32, rowStride, stepStride int, b *float32) {
	for j := 0; j < 4; j += 2 {
		var s00, s01, s10, s11, s20, s21, s30, s31 float64
		a, b := a, at(b, 4*j)
		for range k {
			row := (*[2]float32)(unsafe.Pointer(b))
			y0, y1 := float64(row[0]), float64(row[1])
			x := float64(*a)
			t0, t1 := x*y0+s00, x*y1+s01
			if doubtful(t0) || doubtful(t1) {
				t0, t1 = rounded(x, y0, s00), rounded(x, y1, s01)
			}
			s00, s01 = float64(float32(t0)), float64(float32(t1))
			x = float64(*at(a, rowStride))
			t0, t1 = x*y0+s10, x*y1+s11
			if doubtful(t0) || doubtful(t1) {
				t0, t1 = rounded(x, y0, s10), rounded(x, y1, s11)
			}
			s10, s11 = float64(float32(t0)), float64(float32(t1))
			x = float64(*at(a, 2*rowStride))
			t0, t1 = x*y0+s20, x*y1+s21
			if doubtful(t0) || doubtful(t1) {
				t0, t1 = rounded(x, y0, s20), rounded(x, y1, s21)
			}
			s20, s21 = float64(float32(t0)), float64(float32(t1))
			x = float64(*at(a, 3*rowStride))
			t0, t1 = x*y0+s30, x*y1+s31
			if doubtful(t0) || doubtful(t1) {
				t0, t1 = rounded(x, y0, s30), rounded(x, y1, s31)
			}
			s30, s31 = float64(float32(t0)), float64(float32(t1))
			a, b = at(a, stepStride), at(b, 32)
		}
		for i, s := range [4][2]float64{{s00, s01}, {s10, s11}, {s20, s21}, {s30, s31}} {
			sums[i][j], sums[i][j+1] = float32(s[0]), float32(s[1])
		}
	}
}

// doubtful reports whether rounding a sum to float64 and then to float32 may differ from
// rounding it once: see simd.FMA.
func doubtful(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1-1 < (1023-126)<<53-1
}

// rounded returns x·y + z for numbers that are float32.
//
//go:noinline
func rounded(x, y, z float64) float64 {
	return float64(simd.FMA(float32(x), float32(y), float32(z)))
}
