//go:build !amd64 || noasm

package simd

// The vector forms are never called where vectors is false.

func pairs2Vector(d2, dx, dy, features []float32, head int, tails []int32) {
	panic("simd: no vector form")
}

func spread2Vector(grad, hx, hy, g, dx, dy []float32, tails []int32) {
	panic("simd: no vector form")
}

func negPositiveVector(x []float32, c, limit, logLimit float32) (loss float32, dTheta float32) {
	panic("simd: no vector form")
}

func negNegativeVector(x []float32, invC, limit float32) (loss float32, dTheta float32) {
	panic("simd: no vector form")
}

func umapPositiveVector(x []float32, limit, logLimit float32) (loss float32) {
	panic("simd: no vector form")
}

func umapNegativeVector(x []float32, limit, logLimit float32) (loss float32) {
	panic("simd: no vector form")
}

func similaritiesVector(x, total []float32, clamp float32) { panic("simd: no vector form") }

func logTotalsVector(total []float32, weight float32) (loss float32) { panic("simd: no vector form") }

func infoncPositiveVector(q, share []float32, clamp, inTotal float32) (loss float32) {
	panic("simd: no vector form")
}

func infoncNegativeVector(q, share []float32, clamp float32) { panic("simd: no vector form") }

func addVector(dst, src []float32) { panic("simd: no vector form") }

func maxUint32Vector(x []int32) uint32 { panic("simd: no vector form") }

func inverseSum2Vector(xs, ys []float32, x, y float32) (sum float32) {
	panic("simd: no vector form")
}

func inverseSum2NearVector(xs, ys []float32, x, y float32) (sum float32) {
	panic("simd: no vector form")
}

func addSquaresVector(dst, xs []float32, x float32) { panic("simd: no vector form") }

func inverseSumVector(d2 []float32) (sum float32) { panic("simd: no vector form") }

func inverseLogSumVector(x []float32, slope, offset, limit, logLimit float32) (sum float32) {
	panic("simd: no vector form")
}

func countBelowVector(counts []int32, x, limits []float32) { panic("simd: no vector form") }

func scaleVector(x []float32, f float32) { panic("simd: no vector form") }

func addPlaneVector(dst, xs, ys []float32) { panic("simd: no vector form") }

func gatherRows2Vector(dst, src []float32, index []int32) { panic("simd: no vector form") }

func scatterRows2Vector(dst, src []float32, index []int32) { panic("simd: no vector form") }

func descendRows2Vector(table, grad []float32, rows []int32, step, clip float32) {
	panic("simd: no vector form")
}

func drawOthersVector(column []int32, state uint64, others uint32) { panic("simd: no vector form") }

func descendVector(x, grad []float32, step, clip float32) { panic("simd: no vector form") }

func momentumStepVector(w, g, buf []float32, step, clip, decay, keep, add, ofG, ofBuf float32) {
	panic("simd: no vector form")
}

func adamStepVector(w, g, m, v []float32, step, clip, decay, ofG, keep, ofG2, scale, epsilon float32) {
	panic("simd: no vector form")
}

func maskPositiveVector(dst, y, g []float32) { panic("simd: no vector form") }

func columnSumsVector(dst, x []float32, rows, d int) { panic("simd: no vector form") }
