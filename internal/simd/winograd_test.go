package simd

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/rng"
)

// transforms are the five, with the sizes of their tiles.
var transforms = []struct {
	name    string
	in, out int
	masks   bool
	run     func(dst []float32, to Grid, src []float32, from Grid, channels int, inside *Inside)
}{
	{"image", 6, 6, true, WinogradImage},
	{"gradient", 4, 6, true, WinogradGradient},
	{"result", 6, 4, true, WinogradResult},
	{"weights", 3, 6, false, func(dst []float32, to Grid, src []float32, from Grid, channels int, _ *Inside) {
		WinogradWeights(dst, to, src, from, channels)
	}},
	{"weights' gradient", 6, 3, false, func(dst []float32, to Grid, src []float32, from Grid, channels int, _ *Inside) {
		WinogradWeightsGradient(dst, to, src, from, channels)
	}},
}

// everywhere and somewhere are masks of whole tiles and of partial ones.
func everywhere() *Inside {
	m := new(Inside)
	for i := range m {
		m[i] = math.MaxUint32
	}
	return m
}

func somewhere(seed uint64) *Inside {
	m, s := new(Inside), rng.New(seed, rng.Sample)
	for i := range m {
		if s.Float64() < 0.6 {
			m[i] = math.MaxUint32
		}
	}
	return m
}

// Every vector form gives the results of the portable form, and touches nothing else.
func TestWinogradForms(t *testing.T) {
	for _, tr := range transforms {
		for _, channels := range []int{16, 48} {
			for name, inside := range map[string]*Inside{"whole": everywhere(), "part": somewhere(7)} {
				from, to := Grid{3, 7 * channels, channels}, Grid{5, 8 * channels, channels + 1}
				src, _ := draw(from.At+7*channels*tr.in, 1, (*rng.Stream).Normal)
				var want []float32
				forms(t, func(t *testing.T) {
					dst := make([]float32, to.At+8*channels*tr.out)
					for i := range dst {
						dst[i] = 1000
					}
					tr.run(dst, to, src, from, channels, inside)
					if want == nil {
						want = dst
						return
					}
					for i, w := range want {
						if math.Abs(float64(dst[i]-w)) > 1e-5*(1+math.Abs(float64(w))) || (w == 1000) != (dst[i] == 1000) {
							t.Fatalf("%s of %d channels, %s: element %d is %g, want %g", tr.name, channels, name, i, dst[i], w)
						}
					}
				})
			}
		}
	}
}

// The result of a tile is the convolution, by the definition.
func TestWinogradIsAConvolution(t *testing.T) {
	const channels = 16
	forms(t, func(t *testing.T) {
		pixels, exact := draw(36*channels, 1, (*rng.Stream).Normal)
		weights, exactWeights := draw(9*channels, 2, (*rng.Stream).Normal)
		v, u, y := make([]float32, 36*channels), make([]float32, 36*channels), make([]float32, 16*channels)
		WinogradImage(v, WinogradGrid(0, channels), pixels, WinogradGrid(0, channels), channels, everywhere())
		WinogradWeights(u, WinogradGrid(0, channels), weights, Grid{0, 3 * channels, channels}, channels)
		for i := range v {
			v[i] *= u[i]
		}
		WinogradResult(y, Grid{0, 4 * channels, channels}, v, WinogradGrid(0, channels), channels, everywhere())
		for i := range 4 {
			for j := range 4 {
				for c := range channels {
					var want float64
					for r := range 3 {
						for q := range 3 {
							want += exact[((i+r)*6+j+q)*channels+c] * exactWeights[(r*3+q)*channels+c]
						}
					}
					if got := float64(y[(i*4+j)*channels+c]); math.Abs(got-want) > 3e-5 {
						t.Fatalf("result %d,%d of channel %d: %g, want %g", i, j, c, got, want)
					}
				}
			}
		}
	})
}

// ⟨T x, y⟩ = ⟨x, Tᵀ y⟩ for the transforms that are each other's transposes.
func TestWinogradTransposes(t *testing.T) {
	const channels = 16
	forms(t, func(t *testing.T) {
		for _, pair := range [][2]int{{1, 2}, {3, 4}} {
			a, b := transforms[pair[0]], transforms[pair[1]]
			small, large := Grid{0, a.in * channels, channels}, WinogradGrid(0, channels)
			x, _ := draw(a.in*a.in*channels, 1, (*rng.Stream).Normal)
			y, _ := draw(36*channels, 2, (*rng.Stream).Normal)
			ax, by := make([]float32, 36*channels), make([]float32, a.in*a.in*channels)
			a.run(ax, large, x, small, channels, everywhere())
			b.run(by, small, y, large, channels, everywhere())
			var left, right float64
			for i, v := range ax {
				left += float64(v) * float64(y[i])
			}
			for i, v := range by {
				right += float64(v) * float64(x[i])
			}
			if math.Abs(left-right) > 1e-5*math.Abs(left)+1e-2 {
				t.Errorf("%s and %s: %g and %g", a.name, b.name, left, right)
			}
		}
	})
}

func BenchmarkWinograd(b *testing.B) {
	const channels = 64
	src, dst := make([]float32, 36*channels), make([]float32, 36*channels)
	for _, tr := range transforms {
		b.Run(fmt.Sprint(tr.name), func(b *testing.B) {
			inside := everywhere()
			for b.Loop() {
				tr.run(dst, Grid{0, tr.out * channels, channels}, src, Grid{0, tr.in * channels, channels}, channels, inside)
			}
		})
	}
}
