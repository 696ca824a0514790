//go:build amd64 && !noasm

package simd

import "cne/internal/isa"

// vectorLanes returns how many floats a vector has.
func vectorLanes() int {
	if current == isa.AVX512 {
		return 16
	}
	return 8
}

func columnMomentsVector(x []float32, rows, c int, pivot []float32, sums, squares []float64) {
	if current == isa.AVX512 {
		columnMomentsAVX512(&x[0], rows, 4*c, &pivot[0], &sums[0], &squares[0])
	} else {
		columnMomentsAVX2(&x[0], rows, 4*c, &pivot[0], &sums[0], &squares[0])
	}
}

func columnApplyVector(dst, x []float32, rows, c int, pivot, scale, shift []float32, floor float32) {
	if current == isa.AVX512 {
		columnApplyAVX512(&dst[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor)
	} else {
		columnApplyAVX2(&dst[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor)
	}
}

func columnProductsVector(g, x []float32, rows, c int, pivot, scale, shift []float32, floor float32, sums, products []float64) {
	if current == isa.AVX512 {
		columnProductsAVX512(&g[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor, &sums[0], &products[0])
	} else {
		columnProductsAVX2(&g[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor, &sums[0], &products[0])
	}
}

func columnGradientVector(dst, g, x []float32, rows, c int, pivot, scale, shift []float32, floor float32, a, b, o []float32) {
	if current == isa.AVX512 {
		columnGradientAVX512(&dst[0], &g[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor, &a[0], &b[0], &o[0])
	} else {
		columnGradientAVX2(&dst[0], &g[0], &x[0], rows, 4*c, &pivot[0], &scale[0], &shift[0], floor, &a[0], &b[0], &o[0])
	}
}

func addReLUVector(dst, a, b []float32) {
	if current == isa.AVX512 {
		addReLUAVX512(dst, a, b)
	} else {
		addReLUAVX2(dst, a, b)
	}
}
