package op_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

// bfloat16s rounds numbers to 8 bits of mantissa.
func bfloat16s(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		fraction, exponent := math.Frexp(v)
		y[i] = math.Ldexp(math.RoundToEven(fraction*256), exponent-8)
	}
	return y
}

// parts returns the result of a convolution and both gradients.
func (c convCase) parts(t *testing.T, dtype tensor.Dtype, precision op.Precision, x, w, factors []float64) [3][]float64 {
	t.Helper()
	g := newConvGraph(t, c, dtype, precision)
	g.let(t, x, w, factors)
	ran(t, g.y, g.dx, g.dw)
	return [3][]float64(valuesOf(t, g.y, g.dx, g.dw))
}

var partNames = [3]string{"result", "gradient of the images", "gradient of the weights"}

// Where a convolution is products of patches, those in bfloat16 are those in float64 of factors
// that are rounded, but for how float32 adds them up.
func TestConv2dInBFloat16(t *testing.T) {
	for _, tc := range []struct {
		convCase
		paired [3]bool
	}{
		{convCase{3, 16, 8, 8, 16, 3, 3, 2, 1}, [3]bool{true, true, true}},
		{convCase{2, 16, 7, 5, 48, 3, 3, 2, 1}, [3]bool{true, true, true}}, // an odd number of positions
		{convCase{3, 32, 6, 6, 16, 1, 1, 2, 0}, [3]bool{true, true, true}},
		{convCase{3, 16, 3, 3, 32, 1, 1, 1, 0}, [3]bool{true, true, true}}, // the image is its patches
		// Every window sees all of the image.
		{convCase{3, 64, 2, 2, 80, 3, 3, 1, 1}, [3]bool{}},
		{convCase{2, 32, 2, 2, 16, 3, 3, 2, 1}, [3]bool{}},
		{convCase{2, 3, 8, 8, 16, 3, 3, 1, 1}, [3]bool{true, false, true}}, // three colours
		{convCase{2, 3, 3, 3, 16, 1, 1, 1, 0}, [3]bool{true, false, true}},
		{convCase{2, 16, 5, 5, 12, 3, 3, 1, 1}, [3]bool{false, true, false}},
		{convCase{2, 8, 5, 5, 12, 3, 3, 2, 1}, [3]bool{}},
	} {
		oh, ow := tc.result()
		x, w, factors := normals(tc.n*tc.c*tc.h*tc.w, 1), normals(tc.k*tc.c*tc.kh*tc.kw, 2), normals(tc.n*tc.k*oh*ow, 3)
		got := tc.parts(t, tensor.Float32, op.BFloat16, x, w, factors)
		exact := tc.parts(t, tensor.Float64, op.Float32, x, w, factors)
		rounded := tc.parts(t, tensor.Float64, op.Float32, bfloat16s(x), bfloat16s(w), bfloat16s(factors))
		for i, what := range partNames {
			want := exact
			if tc.paired[i] {
				want = rounded
			}
			closeTo(t, fmt.Sprintf("%v: %s", tc.convCase, what), got[i], want[i], 2e-5)
		}
	}
}

// The matrices of Winograd's F(4×4, 3×3): a tile of the result is
// Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A.
var (
	winogradB = [][]float64{{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}}
	winogradG = [][]float64{{1. / 4, 0, 0}, {-1. / 6, -1. / 6, -1. / 6}, {-1. / 6, 1. / 6, -1. / 6}, {1. / 24, 1. / 12, 1. / 6}, {1. / 24, -1. / 12, 1. / 6}, {0, 0, 1}}
	winogradA = [][]float64{{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}
)

// transposed returns the transpose of a matrix.
func transposed(m [][]float64) [][]float64 {
	t := make([][]float64, len(m[0]))
	for j := range t {
		for _, row := range m {
			t[j] = append(t[j], row[j])
		}
	}
	return t
}

// magnitudes returns |m x mᵀ| for a matrix x that element gives or, if all is set, the
// |m| |x| |m|ᵀ that no choice of signs exceeds.
func magnitudes(m [][]float64, all bool, element func(r, q int) float64) [][]float64 {
	y := make([][]float64, len(m))
	for i := range y {
		y[i] = make([]float64, len(m))
		for j := range y[i] {
			for r, a := range m[i] {
				for q, b := range m[j] {
					term := a * b * element(r, q)
					if all {
						term = math.Abs(term)
					}
					y[i][j] += term
				}
			}
			y[i][j] = math.Abs(y[i][j])
		}
	}
	return y
}

// winogradBound returns how far the parts can be off where both factors of each product
// of Winograd's method are rounded to 8 bits of mantissa.
func (c convCase) winogradBound(x, w, factors []float64) [3][]float64 {
	const unit = 2*0x1p-8 + 0x1p-16
	pixel := func(of []float64, channels, n, row, column, channel int) float64 {
		if row < 0 || row >= c.h || column < 0 || column >= c.w {
			return 0
		}
		return of[((n*c.h+row)*c.w+column)*channels+channel]
	}
	product := func(sum, a, b [][]float64) {
		for i := range sum {
			for j := range sum[i] {
				sum[i][j] += unit * a[i][j] * b[i][j]
			}
		}
	}
	square := func() [][]float64 {
		m := make([][]float64, 6)
		for i := range m {
			m[i] = make([]float64, 6)
		}
		return m
	}
	convolution := func(of []float64, in, out int, weight func(in, out, r, q int) float64) []float64 {
		bound := make([]float64, c.n*c.h*c.w*out)
		for n := range c.n {
			for y := 0; y < c.h; y += 4 {
				for x := 0; x < c.w; x += 4 {
					for o := range out {
						sum := square()
						for i := range in {
							product(sum, magnitudes(winogradB, false, func(r, q int) float64 { return pixel(of, in, n, y+r-1, x+q-1, i) }),
								magnitudes(winogradG, false, func(r, q int) float64 { return weight(i, o, r, q) }))
						}
						for r, row := range magnitudes(winogradA, true, func(r, q int) float64 { return sum[r][q] }) {
							for q, v := range row {
								if y+r < c.h && x+q < c.w {
									bound[((n*c.h+y+r)*c.w+x+q)*out+o] = v
								}
							}
						}
					}
				}
			}
		}
		return bound
	}
	weight := func(in, out, r, q int) float64 { return w[((out*c.c+in)*3+r)*3+q] }
	bounds := [3][]float64{
		convolution(x, c.c, c.k, weight),
		convolution(factors, c.k, c.c, func(in, out, r, q int) float64 { return weight(out, in, 2-r, 2-q) }),
		make([]float64, len(w)),
	}
	for k := range c.k {
		for ch := range c.c {
			sum := square()
			for n := range c.n {
				for y := 0; y < c.h; y += 4 {
					for col := 0; col < c.w; col += 4 {
						product(sum, magnitudes(winogradB, false, func(r, q int) float64 { return pixel(x, c.c, n, y+r-1, col+q-1, ch) }),
							magnitudes(transposed(winogradA), false, func(r, q int) float64 { return pixel(factors, c.k, n, y+r, col+q, k) }))
					}
				}
			}
			for r, row := range magnitudes(transposed(winogradG), true, func(r, q int) float64 { return sum[r][q] }) {
				copy(bounds[2][((k*c.c+ch)*3+r)*3:], row)
			}
		}
	}
	return bounds
}

// By Winograd's method, no element is further off than the rounding of the factors of its
// products can bring it, and the errors are typically some per cent: not less, or
// nothing was rounded.
func TestWinogradInBFloat16(t *testing.T) {
	for _, c := range []convCase{
		{2, 16, 8, 8, 16, 3, 3, 1, 1}, {1, 32, 5, 6, 16, 3, 3, 1, 1}, {3, 16, 3, 7, 48, 3, 3, 1, 1}, // an odd number of tiles, too
	} {
		x, w, factors := normals(c.n*c.c*c.h*c.w, 1), normals(c.k*c.c*9, 2), normals(c.n*c.k*c.h*c.w, 3)
		got := c.parts(t, tensor.Float32, op.BFloat16, x, w, factors)
		want := c.parts(t, tensor.Float64, op.Float32, x, w, factors)
		for i, bound := range c.winogradBound(x, w, factors) {
			var squares, errors float64
			for j, v := range want[i] {
				d := got[i][j] - v
				squares, errors = squares+v*v, errors+d*d
				if !(math.Abs(d) <= bound[j]+1e-4) {
					t.Fatalf("%v: %s: element %d is %g, want %g within %g", c, partNames[i], j, got[i][j], v, bound[j])
				}
			}
			if relative := math.Sqrt(errors / squares); relative < 0.01 || relative > 0.05 {
				t.Errorf("%v: %s: off by %.2g of a typical element", c, partNames[i], relative)
			}
		}
	}
}

func TestConv2dRoundsFloat32Alone(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewTensor(g, tensor.Float64, 4, gorgonia.WithShape(1, 8, 8, 16))
	w := gorgonia.NewTensor(g, tensor.Float64, 4, gorgonia.WithShape(16, 16, 3, 3))
	if _, err := op.Conv2d(x, w, 1, 1, op.BFloat16); err == nil || !strings.Contains(err.Error(), "want float32") {
		t.Errorf("bfloat16 of float64: error %v", err)
	}
}

func TestPrecisionNames(t *testing.T) {
	for _, p := range []op.Precision{op.Float32, op.BFloat16} {
		var q op.Precision
		if err := q.UnmarshalText([]byte(p.String())); err != nil || q != p {
			t.Errorf("%v is read as %v, error %v", p, q, err)
		}
	}
	var q op.Precision
	if err := q.UnmarshalText([]byte("fp8")); err == nil || !strings.Contains(err.Error(), `no precision is named "fp8"`) {
		t.Errorf("error %v", err)
	}
}
