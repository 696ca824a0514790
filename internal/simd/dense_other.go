//go:build !amd64 || noasm

package simd

func denseNegVector(q *Quad[float32], careful bool) { panic("simd: no vector form") }

func denseUMAPVector(q *Quad[float32], least float32, careful bool) { panic("simd: no vector form") }

func denseTotalsVector(q *Quad[float32], squares []float32, width int, clamp float32, careful bool) {
	panic("simd: no vector form")
}

func denseSpreadVector(out []float32, d, n, stride int, squares []float32, width int, coefficients []float32) {
	panic("simd: no vector form")
}

func foldSlotsVector(dst, src []float32) { panic("simd: no vector form") }

func planesVector(dst []float32, stride int, src []float32, d, n int) {
	panic("simd: no vector form")
}

func extentsVector(least, most, sum, src []float32, d int) { panic("simd: no vector form") }

func lessProductVector(dst, a, b []float32, c float32) { panic("simd: no vector form") }

func pullVector(dst, w, a, b []float32, f float32) { panic("simd: no vector form") }
