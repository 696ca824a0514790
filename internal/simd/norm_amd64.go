//go:build amd64 && !noasm

package simd

import "cne/internal/isa"

func channelMomentsVector(x []float32, images, size, stride int, pivot float32) (sum, squares float64) {
	if current == isa.AVX512 {
		return channelMomentsAVX512(x, images, size, stride, pivot)
	}
	return channelMomentsAVX2(x, images, size, stride, pivot)
}

func channelProductsVector(g, x []float32, images, size, stride int, pivot float32) (sum, products float64) {
	if current == isa.AVX512 {
		return channelProductsAVX512(g, x, images, size, stride, pivot)
	}
	return channelProductsAVX2(g, x, images, size, stride, pivot)
}

func channelScaleVector(dst, x []float32, images, size, stride int, pivot, a, b float32) {
	if current == isa.AVX512 {
		channelScaleAVX512(dst, x, images, size, stride, pivot, a, b)
	} else {
		channelScaleAVX2(dst, x, images, size, stride, pivot, a, b)
	}
}

func channelBlendVector(dst, g, x []float32, images, size, stride int, pivot, a, b, c float32) {
	if current == isa.AVX512 {
		channelBlendAVX512(dst, g, x, images, size, stride, pivot, a, b, c)
	} else {
		channelBlendAVX2(dst, g, x, images, size, stride, pivot, a, b, c)
	}
}

func rectifyVector(dst, x []float32) {
	if current == isa.AVX512 {
		rectifyAVX512(dst, x)
	} else {
		rectifyAVX2(dst, x)
	}
}

func addRectifyVector(dst, a, b []float32) {
	if current == isa.AVX512 {
		addRectifyAVX512(dst, a, b)
	} else {
		addRectifyAVX2(dst, a, b)
	}
}
