//go:build !amd64 || noasm

package simd

func vectorLanes() int { panic("simd: no vector form") }

func columnMomentsVector([]float32, int, int, []float32, []float64, []float64) {
	panic("simd: no vector form")
}

func columnApplyVector([]float32, []float32, int, int, []float32, []float32, []float32, float32) {
	panic("simd: no vector form")
}

func columnProductsVector([]float32, []float32, int, int, []float32, []float32, []float32, float32, []float64, []float64) {
	panic("simd: no vector form")
}

func columnGradientVector([]float32, []float32, []float32, int, int, []float32, []float32, []float32, float32, []float32, []float32, []float32) {
	panic("simd: no vector form")
}

func addReLUVector(dst, a, b []float32) { panic("simd: no vector form") }
