package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// newQuad returns four heads and n columns at random, in float32 and float64.
// Some columns lie where a head is.
func newQuad(d, n int, seed uint64, withTotals bool) (*HeadBlock[float32], *HeadBlock[float64]) {
	s := rng.New(seed, rng.Sample)
	stride := n + 5
	slots := d
	if withTotals {
		slots++
	}
	a := &HeadBlock[float32]{D: d, Stride: stride, Most: 1e4,
		Columns: make([]float32, d*stride), Heads: make([]float32, BlockHeads*d),
		Sums: make([]float32, BlockHeads*slots*Lanes), Gradient: make([]float32, d*stride), State: make([]float32, 3*Lanes)}
	for i := range a.Columns {
		a.Columns[i] = float32(3 * s.Normal())
	}
	for i := range a.Heads {
		a.Heads[i] = float32(3 * s.Normal())
	}
	for h := range BlockHeads {
		if j := s.IntN(n); h > 0 {
			for k := range d {
				a.Columns[k*stride+j] = a.Heads[h*d+k]
			}
		}
	}
	// The heads meet all of the first range and part of the second, whose squares
	// come first.
	all, some := new(Masks), new(Masks)
	for i := range all {
		all[i] = -1
		some[i] = -int32(min(1, s.IntN(5)))
	}
	first := n / 2 / Lanes * Lanes
	a.Ranges = []ColumnRange{{First: 0, N: first, At: n - first, Masks: all}, {First: first, N: n - first, At: 0, Masks: some}}
	b := &HeadBlock[float64]{D: d, Stride: stride, Ranges: a.Ranges, Most: 1e4, Columns: widen(a.Columns), Heads: widen(a.Heads),
		Sums: widen(a.Sums), Gradient: widen(a.Gradient), State: widen(a.State)}
	a.Fresh(true)
	b.Fresh(true)
	return a, b
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near compares relative to the largest magnitude.
func near(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	var most float64
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tol*most) {
			t.Errorf("%s[%d] of %d: %g, want %g; the largest is %g", what, i, len(want), got[i], want[i], most)
			return
		}
	}
}

// fold adds up the slots, whose parts differ between the forms.
func fold[T Float](slots []T) []T {
	sums := make([]T, len(slots)/Lanes)
	Fold(sums, slots)
	return sums
}

func TestDenseKernels(t *testing.T) {
	forms(t, func(t *testing.T) {
		for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
			for _, n := range []int{16, 32, 160} {
				for _, clamp := range []float64{0, 1e-10, 1e-4, 0.3} {
					bound32 := BoundOf[float32](clamp)
					bound64 := Bound[float64]{float64(bound32.limit), bound32.log}
					for name, f := range map[string]struct {
						single func(q *HeadBlock[float32])
						double func(q *HeadBlock[float64])
					}{
						"neg 1":    {func(q *HeadBlock[float32]) { DenseNeg(q, 1, bound32) }, func(q *HeadBlock[float64]) { DenseNeg(q, 1, bound64) }},
						"neg 1e-3": {func(q *HeadBlock[float32]) { DenseNeg(q, 1e-3, bound32) }, func(q *HeadBlock[float64]) { DenseNeg(q, float64(float32(1e-3)), bound64) }},
						"neg 400":  {func(q *HeadBlock[float32]) { DenseNeg(q, 400, bound32) }, func(q *HeadBlock[float64]) { DenseNeg(q, 400, bound64) }},
						"umap":     {func(q *HeadBlock[float32]) { DenseUMAP(q, bound32) }, func(q *HeadBlock[float64]) { DenseUMAP(q, bound64) }},
					} {
						if name == "umap" && clamp == 0 {
							continue // what is added up then is of the order of 1/clamp
						}
						a, b := newQuad(d, n, uint64(n+d), false)
						for _, most := range []float32{1e4, 1e12} { // fast and careful, which adds to the first
							a.Most = most
							f.single(a)
							f.double(b)
						}
						what := fmt.Sprintf("%s d=%d n=%d clamp=%g", name, d, n, clamp)
						near(t, what+" sums", fold(a.Sums), fold(b.Sums), 1e-5)
						near(t, what+" gradient", a.Gradient, b.Gradient, 1e-5)
						compareScalar(t, what+" loss", a.Sum().Loss, b.Sum().Loss, 10)
						compareScalar(t, what+" dTheta", a.Sum().DTheta, b.Sum().DTheta, 1)
					}

					a, b := newQuad(d, n, uint64(n+d), true)
					width := n + 3
					squares32, squares64 := make([]float32, BlockHeads*width), make([]float64, BlockHeads*width)
					out32, out64 := make([]float32, (1+d)*a.Stride), make([]float64, (1+d)*a.Stride)
					coefficients, _ := draw(BlockHeads*(1+d), 3, (*rng.Stream).Normal)
					for _, most := range []float32{1e4, 1e12} {
						a.Most = most
						DenseTotals(a, squares32, width, bound32)
						DenseTotals(b, squares64, width, bound64)
						DenseScatter(out32, d, n, a.Stride, squares32, width, coefficients)
						DenseScatter(out64, d, n, a.Stride, squares64, width, widen(coefficients))
					}
					what := fmt.Sprintf("infonce d=%d n=%d clamp=%g", d, n, clamp)
					near(t, what+" squares", squares32, squares64, 1e-6)
					near(t, what+" sums", fold(a.Sums), fold(b.Sums), 1e-5)
					near(t, what+" spread", out32, out64, 1e-5)
				}
			}
		}
	})
}

func TestPlanesAndExtents(t *testing.T) {
	forms(t, func(t *testing.T) {
		for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
			for _, n := range lengths[1:] {
				src, _ := draw(n*d, uint64(n), (*rng.Stream).Normal)
				stride := n + 3
				dst := make([]float32, d*stride)
				Planes(dst, stride, src, d)
				least, most, sum := make([]float32, d*Lanes), make([]float32, d*Lanes), make([]float32, d*Lanes)
				Extents(least, most, sum, src, d)
				for k := range d {
					lo, hi, total := src[k], src[k], 0.
					for i := range n {
						v := src[i*d+k]
						lo, hi = min(lo, v), max(hi, v)
						total += float64(v)
						if dst[k*stride+i] != v {
							t.Fatalf("d=%d n=%d: row %d, coordinate %d is %g, want %g", d, n, i, k, dst[k*stride+i], v)
						}
					}
					if least[k] != lo || most[k] != hi || math.Abs(float64(sum[k])-total) > 1e-5*float64(n) {
						t.Errorf("d=%d n=%d: coordinate %d lies in [%g, %g] and adds up to %g, want [%g, %g] and %g", d, n, k, least[k], most[k], sum[k], lo, hi, total)
					}
					for _, v := range dst[k*stride+n : (k+1)*stride] {
						if v != 0 {
							t.Errorf("d=%d n=%d: something is written after plane %d", d, n, k)
						}
					}
				}
			}
		}
	})
}

func TestFinishingKernels(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			x, y := make([][]float32, 4), make([][]float64, 4)
			for i := range x {
				x[i], y[i] = draw(n, uint64(i), (*rng.Stream).Normal)
			}
			LessProduct(x[0], x[1], x[2], 0.5)
			LessProduct(y[0], y[1], y[2], 0.5)
			near(t, "LessProduct", x[0], y[0], 1e-6)
			Pull(x[0], x[1], x[2], x[3], -2)
			Pull(y[0], y[1], y[2], y[3], -2)
			near(t, "Pull", x[0], y[0], 1e-6)
		}
	})
}

// A NaN shows in the sums and losses of every form.
func TestDenseKernelsKeepNaN(t *testing.T) {
	forms(t, func(t *testing.T) {
		for name, f := range map[string]func(q *HeadBlock[float32]){
			"neg":  func(q *HeadBlock[float32]) { DenseNeg(q, 1, BoundOf[float32](1e-10)) },
			"umap": func(q *HeadBlock[float32]) { DenseUMAP(q, BoundOf[float32](1e-10)) },
			"infonce": func(q *HeadBlock[float32]) {
				DenseTotals(q, make([]float32, BlockHeads*q.Stride), q.Stride, BoundOf[float32](1e-10))
			},
		} {
			q, _ := newQuad(2, 32, 1, name == "infonce")
			q.Columns[7] = float32(math.NaN())
			q.Ranges[1].Masks = q.Ranges[0].Masks
			f(q)
			if !slices.ContainsFunc(fold(q.Sums), func(v float32) bool { return v != v }) {
				t.Errorf("%s: the sums do not show it: %v", name, fold(q.Sums))
			}
			if loss := q.Sum().Loss; name != "infonce" && loss == loss {
				t.Errorf("%s: the loss is %g", name, loss)
			}
		}
	})
}

func BenchmarkDense(b *testing.B) {
	const n, width = 2048, 2048
	for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
		q, _ := newQuad(d, n, 1, true)
		q.Ranges[1].Masks = q.Ranges[0].Masks
		bound := BoundOf[float32](1e-10)
		squares, out := make([]float32, 16*width), make([]float32, (1+d)*q.Stride)
		coefficients := make([]float32, 16*(1+d))
		for name, f := range map[string]func(){
			"neg":    func() { DenseNeg(q, 1, bound) },
			"umap":   func() { DenseUMAP(q, bound) },
			"totals": func() { DenseTotals(q, squares, width, bound) },
			"spread": func() { DenseScatter(out, d, n, q.Stride, squares, width, coefficients) },
		} {
			b.Run(fmt.Sprintf("%s/d=%d", name, d), func(b *testing.B) {
				for range b.N {
					q.Fresh(true)
					f()
				}
				heads := BlockHeads
				if name == "spread" {
					heads = 16
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*heads*n/16), "ns/vector")
			})
		}
	}
}

// Any width has planes.
func TestPlanesOfAnyWidth(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, d := range []int{1, 4, 7, 50} {
			for _, n := range lengths[1:] {
				src, _ := draw(n*d, uint64(n), (*rng.Stream).Normal)
				dst := make([]float32, d*n)
				Planes(dst, n, src, d)
				for i, v := range src {
					if got := dst[i%d*n+i/d]; got != v {
						t.Fatalf("n=%d, d=%d: coordinate %d of row %d is %v, want %v", n, d, i%d, i/d, got, v)
					}
				}
			}
		}
	})
}
