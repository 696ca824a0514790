//go:build !amd64 || noasm

package simd

func pairUpVector([]uint32, []float32) { panic("simd: no vector form") }

func pairRowsVector(_ []uint32, _, _ []float32) { panic("simd: no vector form") }

func winogradImagePairsVector([]uint32, Grid, []float32, Grid, int, *Inside) {
	panic("simd: no vector form")
}

func winogradImageHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half) {
	panic("simd: no vector form")
}

func winogradGradientHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half) {
	panic("simd: no vector form")
}

func winogradWeightsHalfVector([]uint32, Grid, []float32, Grid, int, Half) {
	panic("simd: no vector form")
}
