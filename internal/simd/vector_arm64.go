//go:build arm64 && !noasm

package simd

// NEON has no kernels for these.

func planesVector(dst []float32, stride int, src []float32, d, n int) {
	for k := range d {
		for i, plane := 0, dst[k*stride:][:n]; i < n; i++ {
			plane[i] = src[i*d+k]
		}
	}
}

// In Go, reading what another goroutine may write would be a race.
func holdsWord([]uint64, uint64, uint64) bool { return false }

// The forms for bfloat16 are never called where BFloat16 is false.
const noForm = "simd: no vector form"

func pairUpVector([]uint32, []float32)                                               { panic(noForm) }
func pairRowsVector([]uint32, []float32, []float32)                                  { panic(noForm) }
func winogradImagePairsVector([]uint32, Grid, []float32, Grid, int, *Inside)         { panic(noForm) }
func winogradImageHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half)    { panic(noForm) }
func winogradGradientHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half) { panic(noForm) }
func winogradWeightsHalfVector([]uint32, Grid, []float32, Grid, int, Half)           { panic(noForm) }
