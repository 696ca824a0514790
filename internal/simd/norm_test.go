package simd

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/rng"
)

// channels are those of small images, between whose planes there are others.
func channels(t *testing.T, test func(t *testing.T, what string, c Channel, n int)) {
	for _, size := range lengths[1:] {
		for _, images := range []int{0, 1, 3} {
			c := Channel{Images: images, Size: size, Stride: 2*size + 1}
			test(t, fmt.Sprintf("%d images of %d", images, size), c, max(0, (images-1)*c.Stride+size))
		}
	}
}

// inChannel tells whether an element is in one of the planes.
func inChannel(c Channel, i int) bool { return i%c.Stride < c.Size }

func TestChannelSums(t *testing.T) {
	forms(t, func(t *testing.T) {
		channels(t, func(t *testing.T, what string, c Channel, n int) {
			const pivot = 100.25
			far := func(s *rng.Stream) float64 { return 100 + s.Normal() }
			x32, x64 := draw(n, 1, far)
			g32, g64 := draw(n, 2, (*rng.Stream).Normal)
			var sum, squares, sumG, products float64
			for i, v := range x64 {
				if inChannel(c, i) {
					sum += v - pivot
					squares += (v - pivot) * (v - pivot)
					sumG += g64[i]
					products += g64[i] * (v - pivot)
				}
			}
			check := func(kernel string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-12*float64(1+n) {
					t.Errorf("%s of %s: %.15g, want %.15g", kernel, what, got, want)
				}
			}
			s, q := ChannelMoments(x32, c, pivot)
			check("sum", s, sum)
			check("squares", q, squares)
			s, q = ChannelMoments(x64, c, pivot)
			check("sum in float64", s, sum)
			check("squares in float64", q, squares)
			s, q = ChannelProducts(g32, x32, c, pivot)
			check("sum of g", s, sumG)
			check("products", q, products)
			s, q = ChannelProducts(g64, x64, c, pivot)
			check("sum of g in float64", s, sumG)
			check("products in float64", q, products)
		})
	})
}

func TestChannelMaps(t *testing.T) {
	forms(t, func(t *testing.T) {
		channels(t, func(t *testing.T, what string, c Channel, n int) {
			x32, x64 := draw(n, 1, (*rng.Stream).Normal)
			g32, g64 := draw(n, 2, (*rng.Stream).Normal)
			for kernel, f := range map[string]struct {
				single func(dst []float32)
				double func(dst []float64)
				want   func(i int) float64
			}{
				"scale": {
					func(dst []float32) { ChannelScale(dst, x32, c, 0.5, 1.5, -2) },
					func(dst []float64) { ChannelScale(dst, x64, c, 0.5, 1.5, -2) },
					func(i int) float64 { return 1.5*(x64[i]-0.5) - 2 }},
				"blend": {
					func(dst []float32) { ChannelBlend(dst, g32, x32, c, 0.5, 0.75, 1.5, -2) },
					func(dst []float64) { ChannelBlend(dst, g64, x64, c, 0.5, 0.75, 1.5, -2) },
					func(i int) float64 { return 0.75*g64[i] + 1.5*(x64[i]-0.5) - 2 }},
			} {
				const before = 7 // what lies between the planes stays
				got32, got64 := make([]float32, n), make([]float64, n)
				for i := range n {
					got32[i], got64[i] = before, before
				}
				f.single(got32)
				f.double(got64)
				for i := range n {
					want := float64(before)
					if inChannel(c, i) {
						want = f.want(i)
					}
					if math.Abs(float64(got32[i])-want) > 1e-6 || math.Abs(got64[i]-want) > 1e-14 {
						t.Errorf("%s of %s: element %d is %g and %g, want %g", kernel, what, i, got32[i], got64[i], want)
						return
					}
				}
			}
		})
	})
}

func TestRectify(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			a, _ := draw(n, 1, (*rng.Stream).Normal)
			b, _ := draw(n, 2, (*rng.Stream).Normal)
			if n > 5 {
				nan, inf := float32(math.NaN()), float32(math.Inf(1))
				copy(a, []float32{nan, inf, -inf, 0, 1})
				copy(b, []float32{1, 1, 1, 0, nan})
			}
			got, sum := make([]float32, n), make([]float32, n)
			Rectify(got, a)
			AddRectify(sum, a, b)
			for i, v := range a {
				for what, x := range map[string][2]float32{"Rectify": {got[i], v}, "AddRectify": {sum[i], v + b[i]}} {
					want := x[1]
					if want < 0 {
						want = 0
					}
					if x[0] != want && !(math.IsNaN(float64(x[0])) && math.IsNaN(float64(want))) {
						t.Errorf("%s of %d: element %d is %g, want %g", what, n, i, x[0], want)
					}
				}
			}
		}
	})
}

// A NaN anywhere shows in the sums.
func TestChannelKernelsKeepNaN(t *testing.T) {
	forms(t, func(t *testing.T) {
		c := Channel{Images: 2, Size: 37, Stride: 40}
		for _, at := range []int{0, 15, 36, 40, 70} {
			x, _ := draw(77, 1, (*rng.Stream).Normal)
			g, _ := draw(77, 2, (*rng.Stream).Normal)
			x[at] = float32(math.NaN())
			sum, squares := ChannelMoments(x, c, 0)
			sumG, products := ChannelProducts(g, x, c, 0)
			if !math.IsNaN(sum) || !math.IsNaN(squares) || math.IsNaN(sumG) || !math.IsNaN(products) {
				t.Errorf("at %d: %g, %g, %g and %g", at, sum, squares, sumG, products)
			}
		}
	})
}
