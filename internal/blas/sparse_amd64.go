//go:build amd64 && !noasm

package blas

import (
	"math"
	"unsafe"

	"cne/internal/simd"
)

// A sumFunc and a spreadFunc are the inner loops over the elements of a sparse
// row: see stubs_amd64.go.
type (
	sumFunc    func(n int, col *uint16, val *float32, w *float32, stride int, bias *float32, floor float32, y *float32, mask *uint32, nextCol *uint16, nextVal *float32)
	spreadFunc func(n int, col *uint16, val *float32, grad *float32, mask *uint32, dw *float32, stride int, nextCol *uint16, nextVal *float32)
)

// The inner loops by the number of vectors − 1.
var (
	sums512    = [maxChunk]sumFunc{sum1AVX512, sum2AVX512, sum3AVX512, sum4AVX512, sum5AVX512, sum6AVX512, sum7AVX512, sum8AVX512}
	sums2      = [maxChunk]sumFunc{sum1AVX2, sum2AVX2, sum3AVX2, sum4AVX2, sum5AVX2, sum6AVX2, sum7AVX2, sum8AVX2}
	spreads512 = [maxChunk]spreadFunc{spread1AVX512, spread2AVX512, spread3AVX512, spread4AVX512, spread5AVX512, spread6AVX512, spread7AVX512, spread8AVX512}
	spreads2   = [maxChunk]spreadFunc{spread1AVX2, spread2AVX2, spread3AVX2, spread4AVX2, spread5AVX2, spread6AVX2, spread7AVX2, spread8AVX2}
)

// sparseLanes returns how many outputs a vector holds.
func sparseLanes() int {
	if current == simd.AVX512 {
		return 16
	}
	return 8
}

func sumRowVector(row, next sparseRow, w, bias []float32, relu bool, y []float32) {
	floor := float32(math.Inf(-1))
	if relu {
		floor = 0
	}
	vectors, last := lastVector(len(y))
	sum := sums2[vectors-1]
	if current == simd.AVX512 {
		sum = sums512[vectors-1]
	}
	sum(len(row.col), unsafe.SliceData(row.col), unsafe.SliceData(row.val), &w[0], 4*len(bias), &bias[0], floor, &y[0], mask(last),
		unsafe.SliceData(next.col), unsafe.SliceData(next.val))
}

func spreadRowVector(row, next sparseRow, g, dw []float32, width int) {
	vectors, last := lastVector(len(g))
	spread := spreads2[vectors-1]
	if current == simd.AVX512 {
		spread = spreads512[vectors-1]
	}
	spread(len(row.col), unsafe.SliceData(row.col), unsafe.SliceData(row.val), &g[0], mask(last), &dw[0], 4*width,
		unsafe.SliceData(next.col), unsafe.SliceData(next.val))
}

// lastVector returns how many vectors n outputs take and how many of them are
// in the last.
func lastVector(n int) (vectors, last int) {
	lanes := sparseLanes()
	vectors = ceil(n, lanes)
	return vectors, n - (vectors-1)*lanes
}

// transposeVector transposes as many rows as it can, a multiple of 8, and
// returns their number.
func transposeVector(dst []float32, ldDst int, src []float32, ldSrc, rows, cols int) int {
	whole := cols &^ 7
	if whole == 0 {
		return 0
	}
	r := 0
	for ; r+8 <= rows; r += 8 {
		transpose8(&dst[r], 4*ldDst, &src[r*ldSrc], 4*ldSrc, whole)
		for c := whole; c < cols; c++ {
			for i := range 8 {
				dst[c*ldDst+r+i] = src[(r+i)*ldSrc+c]
			}
		}
	}
	return r
}
