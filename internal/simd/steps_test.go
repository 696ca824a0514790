package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// A stepper is a step on arrays of equal length: the parameters, their
// gradients, and what the method remembers.
type stepper struct {
	name   string
	arrays int
	single func(x [][]float32)
	double func(x [][]float64)
}

func steppers() []stepper {
	var list []stepper
	for _, clip := range []float64{0.75, math.Inf(1)} {
		list = append(list, stepper{fmt.Sprintf("Descend/clip=%g", clip), 2,
			func(x [][]float32) { Descend(x[0], x[1], 0.125, float32(clip)) },
			func(x [][]float64) { Descend(x[0], x[1], 0.125, clip) }})
		for _, p := range []Momentum{
			{Step: 0.1, Clip: clip, Momentum: 0.9},
			{Step: 0.1, Clip: clip, Momentum: 0.9, WeightDecay: 5e-4},
		} {
			list = append(list, stepper{fmt.Sprintf("Momentum/%+v", p), 3,
				func(x [][]float32) { MomentumStep(x[0], x[1], x[2], &p) },
				func(x [][]float64) { MomentumStep(x[0], x[1], x[2], &p) }})
		}
		for _, decay := range []float64{0, 0.01} {
			p := Adam{Step: 0.1, Clip: clip, WeightDecay: decay, Beta1: 0.9, Beta2: 0.999, Scale: 7, Epsilon: 1e-8}
			list = append(list, stepper{fmt.Sprintf("Adam/%+v", p), 4,
				func(x [][]float32) { AdamStep(x[0], x[1], x[2], x[3], &p) },
				func(x [][]float64) { AdamStep(x[0], x[1], x[2], x[3], &p) }})
		}
	}
	return list
}

// operands returns n elements of each array, which begin at an offset in their
// memory; the last array, a mean square, is not negative.
func (s *stepper) operands(n, offset int) (x32 [][]float32, x64 [][]float64) {
	for k := range s.arrays {
		a32, a64 := draw(offset+n, uint64(k+1), (*rng.Stream).Normal)
		if k == 3 {
			for i := range a32 {
				a32[i], a64[i] = a32[i]*a32[i], float64(a32[i]*a32[i])
			}
		}
		x32, x64 = append(x32, a32[offset:]), append(x64, a64[offset:])
	}
	return x32, x64
}

// The forms agree bit for bit with each other, and with float64 but for
// rounding.
func TestSteps(t *testing.T) {
	for _, s := range steppers() {
		for n := range 71 {
			for _, offset := range []int{0, 1, 5} {
				var want [][]float32
				forms(t, func(t *testing.T) {
					x32, x64 := s.operands(n, offset)
					s.single(x32)
					s.double(x64)
					for k := range x32 {
						for i, v := range x64[k] {
							if !(math.Abs(float64(x32[k][i])-v) <= 1e-5*(1+math.Abs(v))) {
								t.Fatalf("%s n=%d: element %d of array %d is %g, want %g", s.name, n, i, k, x32[k][i], v)
							}
						}
						if want != nil && !slices.Equal(x32[k], want[k]) {
							t.Fatalf("%s n=%d: array %d is %v, in the portable form %v", s.name, n, k, x32[k], want[k])
						}
					}
					want = x32
				})
			}
		}
	}
}

// A step as the definitions have it, with PyTorch's names.
func TestStepsFollowTheDefinitions(t *testing.T) {
	const lr, clip, decay, g, w0 = 0.1, 2, 0.5, 10, 3.
	d := clip + decay*w0
	w, buf := []float64{w0}, []float64{7}
	MomentumStep(w, []float64{g}, buf, &Momentum{Step: lr, Clip: clip, WeightDecay: decay, Momentum: 0.9})
	if sum := 0.9*7 + d; !(math.Abs(w[0]-(w0-lr*sum)) < 1e-14) || !(math.Abs(buf[0]-sum) < 1e-14) {
		t.Errorf("momentum: w = %g, buf = %g, want %g, %g", w[0], buf[0], w0-lr*sum, sum)
	}
	w, m, v := []float64{w0}, []float64{7}, []float64{5}
	AdamStep(w, []float64{g}, m, v, &Adam{Step: lr, Clip: clip, WeightDecay: decay, Beta1: 0.9, Beta2: 0.99, Scale: 4, Epsilon: 0.25})
	mean, square := 0.9*7+0.1*d, 0.99*5+0.01*d*d
	want := w0 - lr*mean/(4*math.Sqrt(square)+0.25)
	if !(math.Abs(w[0]-want) < 1e-14) || !(math.Abs(m[0]-mean) < 1e-14) || !(math.Abs(v[0]-square) < 1e-14) {
		t.Errorf("Adam: w = %g, m = %g, v = %g, want %g, %g, %g", w[0], m[0], v[0], want, mean, square)
	}
}

// A NaN in the gradient shows in the parameter, whatever the clip; its neighbours
// stay as they are.
func TestStepsKeepNaNs(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, s := range steppers() {
			for _, at := range []int{5, 40} { // in a vector, and in the rest
				got, _ := s.operands(42, 0)
				want, _ := s.operands(42, 0)
				got[1][at] = float32(math.NaN())
				s.single(got)
				s.single(want)
				for i, v := range got[0] {
					if i == at && !math.IsNaN(float64(v)) || i != at && v != want[0][i] {
						t.Errorf("%s: NaN at %d leaves parameter %d at %g", s.name, at, i, v)
					}
				}
			}
		}
	})
}

func TestMaskPositive(t *testing.T) {
	nan := float32(math.NaN())
	forms(t, func(t *testing.T) {
		for n := range 71 {
			for offset := range 3 {
				y, _ := draw(offset+n, 1, (*rng.Stream).Normal)
				g, _ := draw(offset+n, 2, (*rng.Stream).Normal)
				y, g = y[offset:], g[offset:]
				for i := 0; i < n; i += 3 {
					y[i] = 0
				}
				if n > 4 {
					y[n-1], g[n-1], y[1], y[2] = 1, nan, nan, float32(math.Copysign(0, -1))
				}
				dst := make([]float32, n)
				MaskPositive(dst, y, g)
				for i, v := range dst {
					want := float32(0)
					if y[i] > 0 {
						want = g[i]
					}
					if math.Float32bits(v) != math.Float32bits(want) {
						t.Fatalf("n=%d: y = %g, g = %g give %g", n, y[i], g[i], v)
					}
				}
				MaskPositive(g, y, g) // in place
				for i := range g {
					if math.Float32bits(g[i]) != math.Float32bits(dst[i]) {
						t.Fatalf("n=%d: element %d is %g in place, %g elsewhere", n, i, g[i], dst[i])
					}
				}
			}
		}
	})
}

// The sums have the bits of the portable form: the order is fixed.
func TestColumnSums(t *testing.T) {
	forms(t, func(t *testing.T) {
		for d := 1; d <= 70; d++ {
			for _, n := range []int{0, 1, 7, 8, 9, 16, 27} {
				x, _ := draw(n*d+1, uint64(d), (*rng.Stream).Normal)
				x = x[1:]
				got, _ := draw(d+2, 2, (*rng.Stream).Normal)
				want := slices.Clone(got)
				ColumnSums(got[1:1+d], x, d)
				columnSums(want[1:1+d], x, d)
				if !slices.Equal(got, want) {
					t.Fatalf("n=%d d=%d: %v, want %v", n, d, got, want)
				}
			}
		}
	})
}

func BenchmarkSteps(b *testing.B) {
	const n = 1 << 15
	var x [4][]float32
	for i := range x {
		x[i] = make([]float32, n)
	}
	momentum := Momentum{Step: 1, Clip: 4, Momentum: 0.9}
	adam := Adam{Step: 1, Clip: 4, Beta1: 0.9, Beta2: 0.999, Scale: 1, Epsilon: 1e-8}
	sums := make([]float32, 128)
	for _, k := range []struct {
		name string
		run  func()
	}{
		{"Descend", func() { Descend(x[0], x[1], 1, 4) }},
		{"Momentum", func() { MomentumStep(x[0], x[1], x[2], &momentum) }},
		{"Adam", func() { AdamStep(x[0], x[1], x[2], x[3], &adam) }},
		{"MaskPositive", func() { MaskPositive(x[0], x[1], x[2]) }},
		{"ColumnSums2", func() { ColumnSums(sums, x[0], 2) }},
		{"ColumnSums100", func() { ColumnSums(sums, x[0], 100) }},
	} {
		for _, form := range Sets() {
			b.Run(k.name+"/"+form.String(), func(b *testing.B) {
				defer use(form)()
				for b.Loop() {
					k.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
			})
		}
	}
}
