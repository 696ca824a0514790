//go:build amd64 && !noasm

package simd

import "cne/internal/isa"

func rowDistancesVector(x, norms []float32, norm, slack, near float32, found []uint64) {
	if current == isa.AVX512 {
		rowDistancesAVX512(x, norms, norm, slack, near, found)
	} else {
		rowDistancesAVX2(x, norms, norm, slack, near, found)
	}
}

func rowSimilaritiesVector(x []float32, clamp float32) (sum float32) {
	if current == isa.AVX512 {
		return rowSimilaritiesAVX512(x, clamp)
	}
	return rowSimilaritiesAVX2(x, clamp)
}

func rowInfoNCVector(q []float32, share, clamp float32) {
	if current == isa.AVX512 {
		rowInfoNCAVX512(q, share, clamp)
	} else {
		rowInfoNCAVX2(q, share, clamp)
	}
}

func rowNegVector(x []float32, c, invC, limit float32) (loss, dTheta float32) {
	if current == isa.AVX512 {
		return rowNegAVX512(x, c, invC, limit)
	}
	return rowNegAVX2(x, c, invC, limit)
}

func rowUMAPVector(x []float32, limit float32) (loss float32) {
	if current == isa.AVX512 {
		return rowUMAPAVX512(x, limit)
	}
	return rowUMAPAVX2(x, limit)
}

func rowMaxVector(x []float32, least float32) float32 {
	if current == isa.AVX512 {
		return rowMaxAVX512(x, least)
	}
	return rowMaxAVX2(x, least)
}

func rowExpVector(x []float32, top float32) (sum float32) {
	if current == isa.AVX512 {
		return rowExpAVX512(x, top)
	}
	return rowExpAVX2(x, top)
}

func rowLogisticVector(x []float32, theta float32) (loss, dTheta float32) {
	if current == isa.AVX512 {
		return rowLogisticAVX512(x, theta)
	}
	return rowLogisticAVX2(x, theta)
}
