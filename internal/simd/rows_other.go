//go:build !amd64 || noasm

package simd

func rowDistancesVector(x, norms []float32, norm, slack, near float32, found []uint64) {
	panic("simd: no vector form")
}

func rowSimilaritiesVector(x []float32, clamp float32) (sum float32) {
	panic("simd: no vector form")
}

func rowInfoNCVector(q []float32, share, clamp float32) {
	panic("simd: no vector form")
}

func rowNegVector(x []float32, c, invC, limit float32) (loss, dTheta float32) {
	panic("simd: no vector form")
}

func rowUMAPVector(x []float32, limit float32) (loss float32) {
	panic("simd: no vector form")
}

func rowMaxVector(x []float32, least float32) float32 {
	panic("simd: no vector form")
}

func rowExpVector(x []float32, top float32) (sum float32) {
	panic("simd: no vector form")
}

func rowLogisticVector(x []float32, theta float32) (loss, dTheta float32) {
	panic("simd: no vector form")
}
