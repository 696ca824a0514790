//go:build !amd64 || noasm

package simd

func channelMomentsVector(x []float32, images, size, stride int, pivot float32) (sum, squares float64) {
	panic("simd: no vector form")
}

func channelProductsVector(g, x []float32, images, size, stride int, pivot float32) (sum, products float64) {
	panic("simd: no vector form")
}

func channelScaleVector(dst, x []float32, images, size, stride int, pivot, a, b float32) {
	panic("simd: no vector form")
}

func channelBlendVector(dst, g, x []float32, images, size, stride int, pivot, a, b, c float32) {
	panic("simd: no vector form")
}

func rectifyVector(dst, x []float32) { panic("simd: no vector form") }

func addRectifyVector(dst, a, b []float32) { panic("simd: no vector form") }
