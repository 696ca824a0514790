package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// columns runs a test for matrices of several sizes; some channels fill no vector.
func columns(t *testing.T, test func(t *testing.T, what string, rows, c int)) {
	for _, c := range []int{1, 7, 16, 24, 32, 51} {
		for _, rows := range []int{0, 1, 31, 32, 70} {
			test(t, fmt.Sprintf("%d rows of %d", rows, c), rows, c)
		}
	}
}

// normOf returns a map of c channels, in both types.
func normOf(c int, floor float64) (*Norm[float32], *Norm[float64]) {
	pivot32, pivot := draw(c, 11, (*rng.Stream).Normal)
	scale32, scale := draw(c, 12, (*rng.Stream).Normal)
	shift32, shift := draw(c, 13, (*rng.Stream).Normal)
	return &Norm[float32]{pivot32, scale32, shift32, float32(floor)}, &Norm[float64]{pivot, scale, shift, floor}
}

func TestColumnMoments(t *testing.T) {
	forms(t, func(t *testing.T) {
		columns(t, func(t *testing.T, what string, rows, c int) {
			far := func(s *rng.Stream) float64 { return 100 + s.Normal() }
			x32, x64 := draw(rows*c, 1, far)
			pivot32, pivot64 := draw(c, 2, far)
			want, wantSquares := slices.Repeat([]float64{5}, c), slices.Repeat([]float64{7}, c)
			sums, squares := [][]float64{slices.Clone(want), slices.Clone(want)}, [][]float64{slices.Clone(wantSquares), slices.Clone(wantSquares)}
			for i, v := range x64 {
				d := v - pivot64[i%c]
				want[i%c] += d
				wantSquares[i%c] += d * d
			}
			ColumnMoments(sums[0], squares[0], x32, pivot32)
			ColumnMoments(sums[1], squares[1], x64, pivot64)
			for i := range 2 {
				for k := range c {
					if math.Abs(sums[i][k]-want[k]) > 1e-11 || math.Abs(squares[i][k]-wantSquares[k]) > 1e-11 {
						t.Fatalf("%s: moments of column %d are %g and %g, want %g and %g", what, k, sums[i][k], squares[i][k], want[k], wantSquares[k])
					}
				}
			}
		})
	})
}

// What a Norm does to rows and their gradients, by its definition.
func TestNorm(t *testing.T) {
	forms(t, func(t *testing.T) {
		columns(t, func(t *testing.T, what string, rows, c int) {
			for _, floor := range []float64{0, math.Inf(-1)} {
				n32, n64 := normOf(c, floor)
				x32, x64 := draw(rows*c, 1, (*rng.Stream).Normal)
				g32, g64 := draw(rows*c, 2, (*rng.Stream).Normal)
				a32, a64 := draw(c, 3, (*rng.Stream).Normal)
				b32, b64 := draw(c, 4, (*rng.Stream).Normal)
				o32, o64 := draw(c, 5, (*rng.Stream).Normal)
				y, gradient := make([]float64, rows*c), make([]float64, rows*c)
				sums, products := make([]float64, c), make([]float64, c)
				for i, v := range x64 {
					k := i % c
					value, g := n64.Scale[k]*(v-n64.Pivot[k])+n64.Shift[k], g64[i]
					if value <= floor {
						g = 0
					}
					y[i] = max(floor, value)
					sums[k] += g
					products[k] += g * (v - n64.Pivot[k])
					gradient[i] = a64[k]*g + b64[k]*(v-n64.Pivot[k]) + o64[k]
				}
				y32, gradient32, sums32, products32 := make([]float32, rows*c), make([]float32, rows*c), make([]float64, c), make([]float64, c)
				n32.Apply(y32, x32)
				n32.Gradient(gradient32, g32, x32, a32, b32, o32)
				n32.Products(sums32, products32, g32, x32)
				y64, gradient64, sums64, products64 := make([]float64, rows*c), make([]float64, rows*c), make([]float64, c), make([]float64, c)
				n64.Apply(y64, x64)
				n64.Gradient(gradient64, g64, x64, a64, b64, o64)
				n64.Products(sums64, products64, g64, x64)
				compare := func(kernel string, i int, single, double, want, tol float64) {
					t.Helper()
					if math.Abs(single-want) > tol || math.Abs(double-want) > 1e-13*float64(1+rows) {
						t.Fatalf("%s, floor %g: %s %d is %g and %g, want %g", what, floor, kernel, i, single, double, want)
					}
				}
				for i := range y {
					compare("value", i, float64(y32[i]), y64[i], y[i], 4e-6)
					compare("gradient", i, float64(gradient32[i]), gradient64[i], gradient[i], 4e-6)
				}
				for k := range c {
					compare("sum", k, sums32[k], sums64[k], sums[k], 1e-12*float64(1+rows))
					compare("product", k, products32[k], products64[k], products[k], 1e-6*float64(1+rows))
				}
			}
		})
	})
}

func TestAddReLU(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			a, _ := draw(n, 1, (*rng.Stream).Normal)
			b, _ := draw(n, 2, (*rng.Stream).Normal)
			if n > 5 {
				nan, inf := float32(math.NaN()), float32(math.Inf(1))
				copy(a, []float32{nan, inf, -inf, 0, 1})
				copy(b, []float32{1, 1, 1, 0, nan})
			}
			sum := make([]float32, n)
			AddReLU(sum, a, b)
			for i, v := range a {
				want := v + b[i]
				if want < 0 {
					want = 0
				}
				if sum[i] != want && !(math.IsNaN(float64(sum[i])) && math.IsNaN(float64(want))) {
					t.Errorf("of %d: element %d is %g, want %g", n, i, sum[i], want)
				}
			}
		}
	})
}

// A NaN shows in the results of its column, and in no other.
func TestNormKeepsNaN(t *testing.T) {
	forms(t, func(t *testing.T) {
		const rows, c = 40, 19
		for _, at := range []int{0, 15, 16, 18, 35*c + 3} {
			n, _ := normOf(c, 0)
			x, _ := draw(rows*c, 1, (*rng.Stream).Normal)
			g, _ := draw(rows*c, 2, (*rng.Stream).Normal)
			x[at] = float32(math.NaN())
			sums, squares, products := make([]float64, c), make([]float64, c), make([]float64, c)
			ColumnMoments(sums, squares, x, n.Pivot)
			n.Products(make([]float64, c), products, g, x)
			y, dx := make([]float32, rows*c), make([]float32, rows*c)
			n.Apply(y, x)
			n.Gradient(dx, g, x, n.Pivot, n.Scale, n.Shift)
			for k := range c {
				for what, v := range map[string]float64{"sum": sums[k], "square": squares[k], "product": products[k]} {
					if math.IsNaN(v) != (k == at%c) {
						t.Errorf("a NaN at %d: %s of column %d is %g", at, what, k, v)
					}
				}
			}
			for i := range y {
				if math.IsNaN(float64(y[i])) != (i == at) || math.IsNaN(float64(dx[i])) != (i == at) {
					t.Errorf("a NaN at %d: element %d is %g, its gradient %g", at, i, y[i], dx[i])
				}
			}
		}
	})
}
