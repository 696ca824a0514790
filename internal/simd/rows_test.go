package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// rowLengths are lengths of rows, some beyond what a vector form takes at once.
var rowLengths = append(slices.Clone(lengths), 960, 976, 2048, 4096, 5003)

// compareSum compares sums of n terms, none of them negative.
func compareSum(t *testing.T, what string, got, want float64, n int) {
	t.Helper()
	if !(math.Abs(got-want) <= 2e-6*math.Abs(want)+1.2e-7*float64(n)) {
		t.Errorf("%s of %d: %g, want %g", what, n, got, want)
	}
}

func TestRowDistances(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range rowLengths {
			x32, x64 := draw(n, 1, func(s *rng.Stream) float64 { return -3 * s.Float64() })
			norms32, norms64 := draw(n, 2, (*rng.Stream).Float64)
			found := slices.Repeat([]uint64{math.MaxUint64}, (n+63)/64+1)
			RowDistances(x32, norms32, 1, 0.125, 0.25, found)
			for j := range x64 {
				sum := float64(float32(1 + norms64[j]))
				d2 := max(0, float64(float32(sum+x64[j])))
				if float64(x32[j]) != d2 {
					t.Fatalf("distance %d of %d is %g, want %g", j, n, x32[j], d2)
				}
				if want := float32(d2)+0.125 < 0.25*float32(sum); found[j/64]>>(j%64)&1 == 1 != want {
					t.Fatalf("near %d of %d: %v, want %v", j, n, !want, want)
				}
			}
			if n%64 != 0 && found[n/64]>>(n%64) != 0 {
				t.Errorf("n=%d: pairs beyond the last are near", n)
			}
			if found[len(found)-1] != math.MaxUint64 {
				t.Errorf("n=%d: more words are written than pairs need", n)
			}
		}
	})
}

func TestRowKernels(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range rowLengths {
			for _, clamp := range []float64{1e-10, 1e-4, 0} {
				limit32 := BoundOf[float32](clamp)
				limit64 := Bound[float64]{float64(limit32.limit), limit32.log}
				for _, c := range []float64{1, 8.3e-3, 140, 1e-30, 1e20} {
					for name, f := range map[string]func(a []float32, b []float64) (Sum, Sum){
						"RowNeg": func(a []float32, b []float64) (Sum, Sum) {
							return RowNeg(a, float32(c), limit32), RowNeg(b, float64(float32(c)), limit64)
						},
						"RowUMAP": func(a []float32, b []float64) (Sum, Sum) {
							return Sum{Loss: RowUMAP(a, limit32)}, Sum{Loss: RowUMAP(b, limit64)}
						},
					} {
						x32, x64 := draw(n, uint64(n), distances)
						got, want := f(x32, x64)
						what := fmt.Sprintf("%s n=%d c=%g clamp=%g", name, n, c, clamp)
						compare(t, what, x32, x64, 1e-5)
						compareSum(t, what+" loss", got.Loss, want.Loss, n)
						compareSum(t, what+" dTheta", got.DTheta, want.DTheta, n)
					}
				}
				q32, q64 := draw(n, uint64(n), distances)
				got, want := RowSimilarities(q32, limit32.Clamp()), RowSimilarities(q64, float64(limit32.Clamp()))
				compare(t, "similarity", q32, q64, 1e-6)
				compareSum(t, "similarities", got, want, 0)
				RowInfoNC(q32, 0.3, limit32.Clamp())
				RowInfoNC(q64, float64(float32(0.3)), float64(limit32.Clamp()))
				compare(t, "derivative", q32, q64, 1e-5)
			}
		}
	})
}

// The loss is still right for a c beyond the range of the arithmetic.
func TestRowNegOfExtremes(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, tc := range []struct{ c, clamp, loss float64 }{
			{1e30, 0, 0}, {3e38, 1e-10, 0}, {math.Inf(1), 0, 0}, {1e-44, 1e-10, -math.Log(1e-10)},
		} {
			x, _ := draw(64, 1, func(s *rng.Stream) float64 { return math.Exp(40*s.Float64() - 20) })
			got := RowNeg(x, float32(tc.c), BoundOf[float32](tc.clamp))
			compareSum(t, fmt.Sprintf("c=%g: loss", tc.c), got.Loss, 64*tc.loss, 1)
			if !(math.Abs(got.DTheta) < 1e-18) {
				t.Errorf("c=%g: dTheta is %g", tc.c, got.DTheta)
			}
			for j, v := range x {
				if !(math.Abs(float64(v)) < 1e-19) {
					t.Fatalf("c=%g: derivative %d is %g", tc.c, j, v)
				}
			}
		}
	})
}

// cosines are cosines over τ, up to the values at the lowest temperature.
func cosines(s *rng.Stream) float64 {
	if s.IntN(4) == 0 {
		return 200*s.Float64() - 100
	}
	return 4*s.Float64() - 2
}

func TestRowsOfCosines(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range rowLengths {
			x32, x64 := draw(n, uint64(n), cosines)
			top := RowMax(x32, -50)
			if want := RowMax(x64, -50); float64(top) != want {
				t.Errorf("maximum of %d is %g, want %g", n, top, want)
			}
			for j := range x64 { // the difference as float32 has it
				x64[j] = float64(x32[j] - top)
			}
			got, want := RowExp(x32, top), RowExp(x64, 0)
			compareSum(t, "sum of exponentials", got, want, 0)
			for j, w := range x64 {
				if diff := math.Abs(float64(x32[j]) - w); !(diff <= 2.4e-7*w+2e-22) { // about e⁻⁵⁰, below which it is 0
					t.Fatalf("exponential %d of %d is %g, want %g", j, n, x32[j], w)
				}
			}
			for _, theta := range []float32{0, 3.5, -60} {
				x32, x64 = draw(n, uint64(n), cosines)
				got, want := RowLogistic(x32, theta), RowLogistic(x64, float64(theta))
				for j, w := range x64 {
					if diff := math.Abs(float64(x32[j]) - w); !(diff <= 1e-5*w+2e-22) { // x−θ is rounded
						t.Fatalf("θ=%g: slope %d of %d is %g, want %g", theta, j, n, x32[j], w)
					}
				}
				compareSum(t, "loss", got.Loss, want.Loss, n)
				compareSum(t, "dTheta", got.DTheta, want.DTheta, n)
			}
		}
	})
}

func TestSoftmaxGrad(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range rowLengths {
			y32, y64 := draw(n, 1, (*rng.Stream).Float64)
			g32, g64 := draw(n, 2, cosines)
			Scale(y32, 1./1024) // the sum of a softmax is 1
			Scale(y64, 1./1024)
			SoftmaxGrad(g32, y32, g32)
			SoftmaxGrad(g64, y64, g64)
			near(t, "SoftmaxGrad", g32, g64, 1e-5)
		}
	})
}

// Excluded pairs leave no trace.
func TestRowsExclude(t *testing.T) {
	rows := func(mark float64) []float32 {
		x := make([]float32, 100)
		for j := range x {
			x[j] = float32(mark)
		}
		return x
	}
	inf := math.Inf(1)
	forms(t, func(t *testing.T) {
		for name, k := range map[string]struct {
			mark float64
			run  func(x []float32) Sum
		}{
			"RowNeg":          {inf, func(x []float32) Sum { return RowNeg(x, 1e-20, BoundOf[float32](0)) }},
			"RowUMAP":         {inf, func(x []float32) Sum { return Sum{Loss: RowUMAP(x, BoundOf[float32](1e-10))} }},
			"RowSimilarities": {-1, func(x []float32) Sum { return Sum{Loss: RowSimilarities(x, 1e-4)} }},
			"RowInfoNC":       {0, func(x []float32) Sum { RowInfoNC(x, 1, 1e-4); return Sum{} }},
			"RowExp":          {-inf, func(x []float32) Sum { return Sum{Loss: RowExp(x, 3)} }},
			"RowLogistic":     {-inf, func(x []float32) Sum { return RowLogistic(x, -5) }},
		} {
			x := rows(k.mark)
			if got := k.run(x); got != (Sum{}) {
				t.Errorf("%s: %+v", name, got)
			}
			for j, v := range x {
				if v != 0 {
					t.Errorf("%s: derivative %d is %g", name, j, v)
					break
				}
			}
		}
	})
}

// A NaN shows in the sum and in the derivative of its pair, and in no other.
func TestRowsKeepNaNs(t *testing.T) {
	forms(t, func(t *testing.T) {
		for name, run := range map[string]func(x []float32) float64{
			"RowNeg":          func(x []float32) float64 { return RowNeg(x, 1, BoundOf[float32](1e-10)).Loss },
			"RowNeg dTheta":   func(x []float32) float64 { return RowNeg(x, 1, BoundOf[float32](1e-10)).DTheta },
			"RowUMAP":         func(x []float32) float64 { return RowUMAP(x, BoundOf[float32](1e-10)) },
			"RowSimilarities": func(x []float32) float64 { return RowSimilarities(x, 1e-4) },
			"RowInfoNC":       func(x []float32) float64 { RowInfoNC(x, 1, 1e-4); return math.NaN() },
			"RowExp":          func(x []float32) float64 { return RowExp(x, 3) },
			"RowLogistic":     func(x []float32) float64 { return RowLogistic(x, -5).Loss },
			"RowDistances": func(x []float32) float64 {
				RowDistances(x, make([]float32, len(x)), 1, 0, 0.1, make([]uint64, 1))
				return math.NaN()
			},
		} {
			for _, at := range []int{5, 30, 40} {
				for _, nan := range []uint32{0x7fc00000, 0xffc00000, 0x7fc00001} {
					x := make([]float32, 42)
					for j := range x {
						x[j] = 1
					}
					x[at] = math.Float32frombits(nan)
					if sum := run(x); !math.IsNaN(sum) {
						t.Errorf("%s: the sum with a NaN is %g", name, sum)
					}
					for j, v := range x {
						if math.IsNaN(float64(v)) != (j == at) {
							t.Errorf("%s: NaN at %d leaves %g at %d", name, at, v, j)
						}
					}
				}
			}
		}
	})
}

func BenchmarkRows(b *testing.B) {
	const n = 2048
	limit := BoundOf[float32](1e-10)
	x, _ := draw(n, 1, func(s *rng.Stream) float64 { return math.Exp(4*s.Float64() - 2) })
	norms, work, found := make([]float32, n), make([]float32, n), make([]uint64, n/64)
	for _, form := range Sets() {
		for _, k := range []struct {
			name string
			run  func()
		}{
			{"Copy", func() {}},
			{"Distances", func() { RowDistances(work, norms, 1, 1, 1e-2, found) }},
			{"Similarities", func() { RowSimilarities(work, 1e-10) }},
			{"InfoNC", func() { RowInfoNC(work, 0.5, 1e-10) }},
			{"Neg", func() { RowNeg(work, 1, limit) }},
			{"NegNegative", func() { NegNegative(work, 1, limit) }},
			{"UMAP", func() { RowUMAP(work, limit) }},
			{"UMAPNegative", func() { UMAPNegative(work, limit) }},
			{"Max", func() { RowMax(work, 0) }},
			{"Exp", func() { RowExp(work, 8) }},
			{"SoftmaxGrad", func() { SoftmaxGrad(work, work, norms) }},
			{"Logistic", func() { RowLogistic(work, 1) }},
		} {
			b.Run(k.name+"/"+form.String(), func(b *testing.B) {
				defer use(form)()
				for b.Loop() {
					copy(work, x)
					k.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
			})
		}
	}
}
