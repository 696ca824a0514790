package simd

import (
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

func TestPair(t *testing.T) {
	for _, tc := range []struct{ x, want float32 }{
		{0, 0}, {1, 1}, {-3.5, -3.5},
		{1 + 0x1p-8, 1},                    // the even one of two
		{1 + 0x3p-8, 1 + 0x2p-7},           // likewise
		{1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-7}, // the nearest
		{math.MaxFloat32, float32(math.Inf(1))},
		{float32(math.Inf(-1)), float32(math.Inf(-1))},
		{0x1p-126, 0x1p-126},
		{0x1p-127, 0}, // subnormal
	} {
		word := Pair(tc.x, -tc.x)
		first, second := math.Float32frombits(word<<16), math.Float32frombits(word&0xffff0000)
		if first != tc.want || second != -tc.want {
			t.Errorf("%g becomes %g, and %g becomes %g", tc.x, first, -tc.x, second)
		}
	}
	if word := Pair(0, math.Float32frombits(0x7f800001)); !(math.IsNaN(float64(math.Float32frombits(word)))) {
		t.Errorf("NaN becomes %x", word)
	}
}

// All forms round alike, to the bit.
func TestPairsOfRows(t *testing.T) {
	for _, n := range lengths {
		x, _ := draw(n, 1, (*rng.Stream).Normal)
		y, _ := draw(n, 2, func(s *rng.Stream) float64 { return float64(math.Float32frombits(uint32(s.Uint64()) &^ 0x40000000)) })
		if n > 20 {
			x[3], x[17], x[19] = float32(math.NaN()), 0x1p-130, 1+0x1p-8
		}
		up, rows := make([]uint32, (n+1)/2), make([]uint32, n)
		for i := range rows {
			rows[i] = Pair(x[i], y[i])
		}
		for i := range up {
			second := float32(0)
			if 2*i+1 < n {
				second = x[2*i+1]
			}
			up[i] = Pair(x[2*i], second)
		}
		forms(t, func(t *testing.T) {
			gotUp, gotRows := make([]uint32, len(up)+1), make([]uint32, n+1)
			PairUp(gotUp[:len(up)], x)
			PairRows(gotRows[:n], x, y)
			if !slices.Equal(gotUp[:len(up)], up) || !slices.Equal(gotRows[:n], rows) || gotUp[len(up)] != 0 || gotRows[n] != 0 {
				t.Fatalf("%d numbers: other pairs than one by one", n)
			}
		})
	}
}

// The transforms to bfloat16 are the transforms to float32, rounded, to the bit,
// and touch nothing else.
func TestWinogradInPairs(t *testing.T) {
	for _, channels := range []int{16, 48} {
		for name, inside := range map[string]*Inside{"whole": everywhere(), "part": somewhere(7)} {
			from, to := Grid{3, 7 * channels, channels}, Grid{5, 8 * channels, channels + 1}
			src, _ := draw(from.At+7*channels*6, 1, (*rng.Stream).Normal)
			length := to.At + 8*channels*6
			forms(t, func(t *testing.T) {
				for _, tr := range []struct {
					name  string
					run   func(dst []float32, to Grid, src []float32, from Grid, channels int, inside *Inside)
					halve func(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside, h Half)
				}{
					{"image", WinogradImage, WinogradImageHalf},
					{"gradient", WinogradGradient, WinogradGradientHalf},
					{"weights", transforms[3].run, func(dst []uint32, to Grid, src []float32, from Grid, channels int, _ *Inside, h Half) {
						WinogradWeightsHalf(dst, to, src, from, channels, h)
					}},
				} {
					exact := make([]float32, length)
					tr.run(exact, to, src, from, channels, inside)
					want, got := make([]uint32, length), make([]uint32, length)
					for i := range want {
						want[i], got[i] = 7, 7
					}
					for p := range WinogradPoints {
						for c := range channels {
							i := to.at(p) + c
							want[i] = Pair(exact[i], exact[i])
						}
					}
					tr.halve(got, to, src, from, channels, inside, First)
					for p := range WinogradPoints {
						if i := to.at(p); got[i] != want[i]&0xffff {
							t.Fatalf("%s of %d channels, %s: the first half of word %d is %x", tr.name, channels, name, i, got[i])
						}
					}
					tr.halve(got, to, src, from, channels, inside, Second)
					if !slices.Equal(got, want) {
						t.Fatalf("%s of %d channels, %s: not the rounded transform", tr.name, channels, name)
					}
				}
				exact, want, got := make([]float32, length), make([]uint32, length), make([]uint32, length)
				WinogradImage(exact, to, src, from, channels, inside)
				for p := range WinogradPoints {
					PairUp(want[to.at(p):][:channels/2], exact[to.at(p):][:channels])
				}
				WinogradImagePairs(got, to, src, from, channels, inside)
				if !slices.Equal(got, want) {
					t.Fatalf("image of %d channels, %s: not the rounded transform in pairs", channels, name)
				}
			})
		}
	}
}
