//go:build arm64 && !noasm

package simd

// NEON has no forms of what follows.

func planesVector(dst []float32, stride int, src []float32, d, n int) {
	for k := range d {
		for i, plane := 0, dst[k*stride:][:n]; i < n; i++ {
			plane[i] = src[i*d+k]
		}
	}
}

func holdsWord(list []uint64, word, set uint64) bool {
	for _, w := range list {
		if w|set == word {
			return true
		}
	}
	return false
}

// The forms for bfloat16 are never called where BFloat16 is false.
const noForm = "simd: no vector form"

func pairUpVector([]uint32, []float32)                                               { panic(noForm) }
func pairRowsVector([]uint32, []float32, []float32)                                  { panic(noForm) }
func winogradImagePairsVector([]uint32, Grid, []float32, Grid, int, *Inside)         { panic(noForm) }
func winogradImageHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half)    { panic(noForm) }
func winogradGradientHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half) { panic(noForm) }
func winogradWeightsHalfVector([]uint32, Grid, []float32, Grid, int, Half)           { panic(noForm) }
