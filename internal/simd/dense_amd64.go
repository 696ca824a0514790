//go:build amd64 && !noasm

package simd

import (
	"unsafe"

	"cne/internal/isa"
)

// The vector forms of the dense kernels, by d − 1.
type denseKernels struct {
	neg     [MaxDenseWidth]func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state, constants []float32)
	umap    [MaxDenseWidth]func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state []float32, least float32)
	totals  [MaxDenseWidth]func(columns []float32, stride int, stretches *byte, count int, heads, sums, squares []float32, width int)
	spread  [MaxDenseWidth]func(out []float32, n, stride int, squares []float32, width int, coefficients []float32)
	extents [MaxDenseWidth]func(least, most, src []float32)
	planes  func(dst []float32, stride int, src []float32, d, n int, centre []float32)
	fold    func(dst, src []float32)
}

var (
	dense512 = denseKernels{
		neg:     [...]func([]float32, []float32, int, *byte, int, []float32, []float32, []float32, []float32){denseNeg1AVX512, denseNeg2AVX512, denseNeg3AVX512},
		umap:    [...]func([]float32, []float32, int, *byte, int, []float32, []float32, []float32, float32){denseUMAP1AVX512, denseUMAP2AVX512, denseUMAP3AVX512},
		totals:  [...]func([]float32, int, *byte, int, []float32, []float32, []float32, int){denseTotals1AVX512, denseTotals2AVX512, denseTotals3AVX512},
		spread:  [...]func([]float32, int, int, []float32, int, []float32){denseSpread1AVX512, denseSpread2AVX512, denseSpread3AVX512},
		extents: [...]func([]float32, []float32, []float32){extents1AVX512, extents2AVX512, extents3AVX512},
		planes:  planesAVX512,
		fold:    foldSlotsAVX512,
	}
	dense256 = denseKernels{
		neg:     [...]func([]float32, []float32, int, *byte, int, []float32, []float32, []float32, []float32){denseNeg1AVX2, denseNeg2AVX2, denseNeg3AVX2},
		umap:    [...]func([]float32, []float32, int, *byte, int, []float32, []float32, []float32, float32){denseUMAP1AVX2, denseUMAP2AVX2, denseUMAP3AVX2},
		totals:  [...]func([]float32, int, *byte, int, []float32, []float32, []float32, int){denseTotals1AVX2, denseTotals2AVX2, denseTotals3AVX2},
		spread:  [...]func([]float32, int, int, []float32, int, []float32){denseSpread1AVX2, denseSpread2AVX2, denseSpread3AVX2},
		extents: [...]func([]float32, []float32, []float32){extents1AVX2, extents2AVX2, extents3AVX2},
		planes:  planesAVX2,
		fold:    foldSlotsAVX2,
	}
)

func denseInUse() *denseKernels {
	if current == isa.AVX512 {
		return &dense512
	}
	return &dense256
}

// stretches returns where the stretches are, as the kernels take it.
func (q *Quad[T]) stretches() *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(q.Stretches))) }

func denseNegVector(q *Quad[float32]) {
	denseInUse().neg[q.D-1](q.Columns, q.Gradient, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, q.State, q.constants[:])
}

func denseUMAPVector(q *Quad[float32], least float32) {
	denseInUse().umap[q.D-1](q.Columns, q.Gradient, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, q.State, least)
}

func denseTotalsVector(q *Quad[float32], squares []float32, width int) {
	denseInUse().totals[q.D-1](q.Columns, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, squares, width)
}

func denseSpreadVector(out []float32, d, n, stride int, squares []float32, width int, coefficients []float32) {
	denseInUse().spread[d-1](out, n, stride, squares, width, coefficients)
}

func foldSlotsVector(dst, src []float32) { denseInUse().fold(dst, src) }

func planesVector(dst []float32, stride int, src []float32, d, n int, centre []float32) {
	denseInUse().planes(dst, stride, src, d, n, centre)
}

func extentsVector(least, most, src []float32, d int) {
	denseInUse().extents[d-1](least, most, src)
}

func lessProductVector(dst, a, b []float32) {
	if current == isa.AVX512 {
		lessProductAVX512(dst, a, b)
	} else {
		lessProductAVX2(dst, a, b)
	}
}

func pullVector(dst, w, a, b []float32, f float32) {
	if current == isa.AVX512 {
		pullAVX512(dst, w, a, b, f)
	} else {
		pullAVX2(dst, w, a, b, f)
	}
}
