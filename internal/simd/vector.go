package simd

import (
	"unsafe"

	"cne/internal/selection"
)

type (
	negKernel    = func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state, constants []float32)
	umapKernel   = func(columns, gradient []float32, stride int, stretches *byte, count int, heads, sums, state []float32, least float32)
	totalsKernel = func(columns []float32, stride int, stretches *byte, count int, heads, sums, squares []float32, width int, clamp float32)
)

const denseWidths = MaxDenseWidth - MinDenseWidth + 1

// The vector forms of the dense kernels, by d − MinDenseWidth. In pairs, the second is
// the careful variant.
var (
	denseNegs     = [2][denseWidths]negKernel{{denseNeg2Vector, denseNeg3Vector}, {denseNegCareful2Vector, denseNegCareful3Vector}}
	denseUMAPs    = [2][denseWidths]umapKernel{{denseUMAP2Vector, denseUMAP3Vector}, {denseUMAPCareful2Vector, denseUMAPCareful3Vector}}
	denseTotalsOf = [2][denseWidths]totalsKernel{{denseTotals2Vector, denseTotals3Vector},
		{denseTotalsCareful2Vector, denseTotalsCareful3Vector}}
	denseSpreads = [denseWidths]func(out []float32, n, stride int, squares []float32, width int,
		coefficients []float32){denseScatter2Vector, denseScatter3Vector}
	extentsByWidth = [denseWidths]func(least, most, sum, src []float32){extents2Vector, extents3Vector}
)

// eachRange returns the address of the ranges, which the kernels take.
func (b *HeadBlock[T]) eachRange() *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(b.Ranges))) }

func variant(careful bool) int { return selection.If(careful, 1, 0) }

func denseNegVector(q *HeadBlock[float32], careful bool) {
	denseNegs[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Gradient, q.Stride, q.eachRange(), len(q.Ranges), q.Heads,
		q.Sums, q.State, q.constants[:])
}

func denseUMAPVector(q *HeadBlock[float32], least float32, careful bool) {
	denseUMAPs[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Gradient, q.Stride, q.eachRange(), len(q.Ranges), q.Heads,
		q.Sums, q.State, least)
}

func denseTotalsVector(q *HeadBlock[float32], squares []float32, width int, clamp float32, careful bool) {
	denseTotalsOf[variant(careful)][q.D-MinDenseWidth](q.Columns, q.Stride, q.eachRange(), len(q.Ranges), q.Heads, q.Sums,
		squares, width, clamp)
}

func denseScatterVector(out []float32, d, n, stride int, squares []float32, width int, coefficients []float32) {
	denseSpreads[d-MinDenseWidth](out, n, stride, squares, width, coefficients)
}

func extentsVector(least, most, sum, src []float32, d int) {
	extentsByWidth[d-MinDenseWidth](least, most, sum, src)
}

// A pairsFunc is a transform of tiles to bfloat16 in assembly, with distances in bytes.
type pairsFunc func(dst *uint32, dstAt, dstRow, dstPixel int, src *float32, srcAt, srcRow, srcPixel, channels int, inside *uint32)

func (f pairsFunc) run(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside) {
	f(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &src[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, (*uint32)(unsafe.Pointer(inside)))
}
