//go:build amd64 && !noasm

package simd

import (
	"unsafe"

	"cne/internal/isa"
)

type (
	negKernel    = func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state, constants []float32)
	umapKernel   = func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state []float32, least float32)
	totalsKernel = func(columns []float32, stride int, stretches *byte, count int, heads, sums, squares []float32, width int, clamp float32)
)

// The assembly knows the layout of a Stretch: another one does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Stretch{})-32]
	_ = [1]struct{}{}[unsafe.Offsetof(Stretch{}.First)]
	_ = [1]struct{}{}[unsafe.Offsetof(Stretch{}.N)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(Stretch{}.At)-16]
	_ = [1]struct{}{}[unsafe.Offsetof(Stretch{}.Masks)-24]
)

const denseWidths = MaxDenseWidth - MinDenseWidth + 1

// The vector forms of the dense kernels, by d − MinDenseWidth. Of those in pairs the second
// is the careful variant.
type denseKernels struct {
	neg     [2][denseWidths]negKernel
	umap    [2][denseWidths]umapKernel
	totals  [2][denseWidths]totalsKernel
	spread  [denseWidths]func(out []float32, n, stride int, squares []float32, width int, coefficients []float32)
	extents [denseWidths]func(least, most, sum, src []float32)
	planes  func(dst []float32, stride int, src []float32, d, n int)
	fold    func(dst, src []float32)
}

var (
	dense512 = denseKernels{
		neg:     [...][denseWidths]negKernel{{denseNeg2AVX512, denseNeg3AVX512}, {denseNegCareful2AVX512, denseNegCareful3AVX512}},
		umap:    [...][denseWidths]umapKernel{{denseUMAP2AVX512, denseUMAP3AVX512}, {denseUMAPCareful2AVX512, denseUMAPCareful3AVX512}},
		totals:  [...][denseWidths]totalsKernel{{denseTotals2AVX512, denseTotals3AVX512}, {denseTotalsCareful2AVX512, denseTotalsCareful3AVX512}},
		spread:  [...]func([]float32, int, int, []float32, int, []float32){denseSpread2AVX512, denseSpread3AVX512},
		extents: [...]func([]float32, []float32, []float32, []float32){extents2AVX512, extents3AVX512},
		planes:  planesAVX512,
		fold:    foldSlotsAVX512,
	}
	dense256 = denseKernels{
		neg:     [...][denseWidths]negKernel{{denseNeg2AVX2, denseNeg3AVX2}, {denseNegCareful2AVX2, denseNegCareful3AVX2}},
		umap:    [...][denseWidths]umapKernel{{denseUMAP2AVX2, denseUMAP3AVX2}, {denseUMAPCareful2AVX2, denseUMAPCareful3AVX2}},
		totals:  [...][denseWidths]totalsKernel{{denseTotals2AVX2, denseTotals3AVX2}, {denseTotalsCareful2AVX2, denseTotalsCareful3AVX2}},
		spread:  [...]func([]float32, int, int, []float32, int, []float32){denseSpread2AVX2, denseSpread3AVX2},
		extents: [...]func([]float32, []float32, []float32, []float32){extents2AVX2, extents3AVX2},
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

func variant(careful bool) int {
	if careful {
		return 1
	}
	return 0
}

func denseNegVector(q *Quad[float32], careful bool) {
	denseInUse().neg[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Gradient, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, q.State, q.constants[:])
}

func denseUMAPVector(q *Quad[float32], least float32, careful bool) {
	denseInUse().umap[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Gradient, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, q.State, least)
}

func denseTotalsVector(q *Quad[float32], squares []float32, width int, clamp float32, careful bool) {
	denseInUse().totals[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Stride, q.stretches(), len(q.Stretches), q.Heads, q.Sums, squares, width, clamp)
}

func denseSpreadVector(out []float32, d, n, stride int, squares []float32, width int, coefficients []float32) {
	denseInUse().spread[d-MinDenseWidth](out, n, stride, squares, width, coefficients)
}

func foldSlotsVector(dst, src []float32) { denseInUse().fold(dst, src) }

func planesVector(dst []float32, stride int, src []float32, d, n int) {
	denseInUse().planes(dst, stride, src, d, n)
}

func extentsVector(least, most, sum, src []float32, d int) {
	denseInUse().extents[d-MinDenseWidth](least, most, sum, src)
}

func lessProductVector(dst, a, b []float32, c float32) {
	if current == isa.AVX512 {
		lessProductAVX512(dst, a, b, c)
	} else {
		lessProductAVX2(dst, a, b, c)
	}
}

func pullVector(dst, w, a, b []float32, f float32) {
	if current == isa.AVX512 {
		pullAVX512(dst, w, a, b, f)
	} else {
		pullAVX2(dst, w, a, b, f)
	}
}
