//go:build amd64 && !noasm

package blas

import (
	"unsafe"

	"cne/internal/simd"
)

func sumStripVector(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	sum := sumStripAVX2
	if current == simd.AVX512 {
		sum = sumStripAVX512
	}
	sum(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
}

func spreadStripVector(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	spread := spreadStripAVX2
	if current == simd.AVX512 {
		spread = spreadStripAVX512
	}
	spread(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
}
