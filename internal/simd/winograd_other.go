//go:build !amd64 || noasm

package simd

func winogradImageVector([]float32, Grid, []float32, Grid, int, *Inside) {
	panic("simd: no vector form")
}

func winogradGradientVector([]float32, Grid, []float32, Grid, int, *Inside) {
	panic("simd: no vector form")
}

func winogradResultVector([]float32, Grid, []float32, Grid, int, *Inside) {
	panic("simd: no vector form")
}

func winogradWeightsVector([]float32, Grid, []float32, Grid, int) {
	panic("simd: no vector form")
}

func winogradWeightsGradientVector([]float32, Grid, []float32, Grid, int) {
	panic("simd: no vector form")
}
