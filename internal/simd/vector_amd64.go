//go:build amd64 && !noasm

package simd

import "cne/internal/isa"

func pairs2Vector(d2, dx, dy, features []float32, head int, tails []int32) {
	if current == isa.AVX512 {
		pairs2AVX512(d2, dx, dy, features, head, tails)
	} else {
		pairs2AVX2(d2, dx, dy, features, head, tails)
	}
}

func spread2Vector(grad, hx, hy, g, dx, dy []float32, tails []int32) {
	if current == isa.AVX512 {
		spread2AVX512(grad, hx, hy, g, dx, dy, tails)
	} else {
		spread2AVX2(grad, hx, hy, g, dx, dy, tails)
	}
}

func negPositiveVector(x []float32, c, limit, logLimit float32) (loss float32, dTheta float32) {
	if current == isa.AVX512 {
		return negPositiveAVX512(x, c, limit, logLimit)
	}
	return negPositiveAVX2(x, c, limit, logLimit)
}

func negNegativeVector(x []float32, invC, limit float32) (loss float32, dTheta float32) {
	if current == isa.AVX512 {
		return negNegativeAVX512(x, invC, limit)
	}
	return negNegativeAVX2(x, invC, limit)
}

func umapPositiveVector(x []float32, limit, logLimit float32) (loss float32) {
	if current == isa.AVX512 {
		return umapPositiveAVX512(x, limit, logLimit)
	}
	return umapPositiveAVX2(x, limit, logLimit)
}

func umapNegativeVector(x []float32, limit, logLimit float32) (loss float32) {
	if current == isa.AVX512 {
		return umapNegativeAVX512(x, limit, logLimit)
	}
	return umapNegativeAVX2(x, limit, logLimit)
}

func similaritiesVector(x, total []float32, clamp float32) {
	if current == isa.AVX512 {
		similaritiesAVX512(x, total, clamp)
	} else {
		similaritiesAVX2(x, total, clamp)
	}
}

func logTotalsVector(total []float32, weight float32) (loss float32) {
	if current == isa.AVX512 {
		return logTotalsAVX512(total, weight)
	}
	return logTotalsAVX2(total, weight)
}

func infoncPositiveVector(q, share []float32, clamp, inTotal float32) (loss float32) {
	if current == isa.AVX512 {
		return infoncPositiveAVX512(q, share, clamp, inTotal)
	}
	return infoncPositiveAVX2(q, share, clamp, inTotal)
}

func infoncNegativeVector(q, share []float32, clamp float32) {
	if current == isa.AVX512 {
		infoncNegativeAVX512(q, share, clamp)
	} else {
		infoncNegativeAVX2(q, share, clamp)
	}
}

func addVector(dst, src []float32) {
	if current == isa.AVX512 {
		addAVX512(dst, src)
	} else {
		addAVX2(dst, src)
	}
}

func maxUint32Vector(x []int32) uint32 {
	if current == isa.AVX512 {
		return maxUint32AVX512(x)
	}
	return maxUint32AVX2(x)
}

func inverseSum2Vector(xs, ys []float32, x, y float32) (sum float32) {
	if current == isa.AVX512 {
		return inverseSum2AVX512(xs, ys, x, y)
	}
	return inverseSum2AVX2(xs, ys, x, y)
}

func inverseSum2NearVector(xs, ys []float32, x, y float32) (sum float32) {
	if current == isa.AVX512 {
		return inverseSum2NearAVX512(xs, ys, x, y)
	}
	return inverseSum2NearAVX2(xs, ys, x, y)
}

func addSquaresVector(dst, xs []float32, x float32) {
	if current == isa.AVX512 {
		addSquaresAVX512(dst, xs, x)
	} else {
		addSquaresAVX2(dst, xs, x)
	}
}

func inverseSumVector(d2 []float32) (sum float32) {
	if current == isa.AVX512 {
		return inverseSumAVX512(d2)
	}
	return inverseSumAVX2(d2)
}

func inverseLogSumVector(x []float32, slope, offset, limit, logLimit float32) (sum float32) {
	if current == isa.AVX512 {
		return inverseLogSumAVX512(x, slope, offset, limit, logLimit)
	}
	return inverseLogSumAVX2(x, slope, offset, limit, logLimit)
}

func countBelowVector(counts []int32, x, limits []float32) {
	if current == isa.AVX512 {
		countBelowAVX512(counts, x, limits)
	} else {
		countBelowAVX2(counts, x, limits)
	}
}

func scaleVector(x []float32, f float32) {
	if current == isa.AVX512 {
		scaleAVX512(x, f)
	} else {
		scaleAVX2(x, f)
	}
}

func addPlaneVector(dst, xs, ys []float32) {
	if current == isa.AVX512 {
		addPlaneAVX512(dst, xs, ys)
	} else {
		addPlaneAVX2(dst, xs, ys)
	}
}

func gatherRows2Vector(dst, src []float32, index []int32) {
	if current == isa.AVX512 {
		gatherRows2AVX512(dst, src, index)
	} else {
		gatherRows2AVX2(dst, src, index)
	}
}

func scatterRows2Vector(dst, src []float32, index []int32) {
	if current == isa.AVX512 {
		scatterRows2AVX512(dst, src, index)
	} else {
		scatterRows2AVX2(dst, src, index)
	}
}

func descendRows2Vector(table, grad []float32, rows []int32, step, clip float32) {
	if current == isa.AVX512 {
		descendRows2AVX512(table, grad, rows, step, clip)
	} else {
		descendRows2AVX2(table, grad, rows, step, clip)
	}
}

func drawOthersVector(column []int32, state uint64, others uint32) {
	if current == isa.AVX512 {
		drawOthersAVX512(column, state, others)
	} else {
		drawOthersAVX2(column, state, others)
	}
}

func descendVector(x, grad []float32, step, clip float32) {
	if current == isa.AVX512 {
		descendAVX512(x, grad, step, clip)
	} else {
		descendAVX2(x, grad, step, clip)
	}
}

func momentumStepVector(w, g, buf []float32, step, clip, decay, keep, add, ofG, ofBuf float32) {
	if current == isa.AVX512 {
		momentumStepAVX512(w, g, buf, step, clip, decay, keep, add, ofG, ofBuf)
	} else {
		momentumStepAVX2(w, g, buf, step, clip, decay, keep, add, ofG, ofBuf)
	}
}

func adamStepVector(w, g, m, v []float32, step, clip, decay, ofG, keep, ofG2, scale, epsilon float32) {
	if current == isa.AVX512 {
		adamStepAVX512(w, g, m, v, step, clip, decay, ofG, keep, ofG2, scale, epsilon)
	} else {
		adamStepAVX2(w, g, m, v, step, clip, decay, ofG, keep, ofG2, scale, epsilon)
	}
}

func maskPositiveVector(dst, y, g []float32) {
	if current == isa.AVX512 {
		maskPositiveAVX512(dst, y, g)
	} else {
		maskPositiveAVX2(dst, y, g)
	}
}

func columnSumsVector(dst, x []float32, rows, d int) {
	if current == isa.AVX512 {
		columnSumsAVX512(dst, x, rows, d)
	} else {
		columnSumsAVX2(dst, x, rows, d)
	}
}
