//go:build !amd64 || noasm

package blas

func multiplyVectors(*product[float32]) { panic("blas: no vector form") }

func multiplyDoubles(*product[float64]) { panic("blas: no vector form") }

// sparseLanes is how many outputs the sparse products pad to.
func sparseLanes() int { return 8 }

func sumRowVector(_, _ sparseRow, _, _ []float32, _ bool, _ []float32) {
	panic("blas: no vector form")
}

func spreadRowVector(_, _ sparseRow, _, _ []float32, _ int) { panic("blas: no vector form") }

func transposeVector([]float32, int, []float32, int, int, int) int { panic("blas: no vector form") }

func panelWidth() int { panic("blas: no vector form") }

func multiplyPanels(Panels, int, []float32, int, int, []float32, float32, []float32, int) {
	panic("blas: no vector form")
}

func sumStripVector([]int32, []float32, []float64, *[StripWidth]float64) {
	panic("blas: no vector form")
}

func spreadStripVector([]int32, []float32, []float64, *[StripWidth]float64) {
	panic("blas: no vector form")
}

func pairVectors(Panels) bool { return false }

func multiplyPairs(Panels, int, []uint32, int, int, []uint32, bool, []float32, int) {
	panic("blas: no vector form")
}
