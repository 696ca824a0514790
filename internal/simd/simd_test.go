package simd

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// forms runs a test on every form that this processor has.
func forms(t *testing.T, test func(t *testing.T)) {
	for _, set := range Sets() {
		t.Run(set.String(), func(t *testing.T) {
			defer use(set)()
			test(t)
		})
	}
}

// use selects a form and returns a function that selects the former one again.
func use(set Set) func() {
	old := current
	current = set
	return func() { current = old }
}

// lengths are around the multiples of the vectors' widths.
var lengths = []int{0, 1, 7, 8, 15, 16, 17, 31, 32, 48, 100, 129}

func draw(n int, seed uint64, f func(s *rng.Stream) float64) (x32 []float32, x64 []float64) {
	s := rng.New(seed, rng.Sample)
	x32, x64 = make([]float32, n), make([]float64, n)
	for i := range x32 {
		x32[i] = float32(f(&s))
		x64[i] = float64(x32[i])
	}
	return x32, x64
}

// distances are squared distances of all magnitudes that a run sees, with
// zeros, and beyond what clamps let through.
func distances(s *rng.Stream) float64 {
	switch s.IntN(10) {
	case 0:
		return 0
	case 1:
		return math.Exp(60*s.Float64() - 30)
	default:
		return math.Exp(10*s.Float64() - 5)
	}
}

func compare(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if diff := math.Abs(float64(got[i]) - want[i]); !(diff <= tol*(math.Abs(want[i])+1e-30)) {
			t.Errorf("%s[%d] of %d: %g, want %g", what, i, len(want), got[i], want[i])
			return
		}
	}
}

func compareScalar(t *testing.T, what string, got, want, scale float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 3e-6*(math.Abs(want)+scale)) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

func TestPointwiseKernels(t *testing.T) {
	const tol = 1e-5
	forms(t, func(t *testing.T) {
		for _, n := range append(slices.Clone(lengths), logChunk, 2*logChunk+17) {
			for _, clamp := range []float64{1e-10, 1e-4, 0} {
				limit32 := BoundOf[float32](clamp)
				limit64 := Bound[float64]{float64(limit32.limit), limit32.log}
				for _, c := range []float64{1, 8.3e-3, 140} {
					for name, f := range map[string]func(a []float32, b []float64) (Sum, Sum){
						"NegPositive": func(a []float32, b []float64) (Sum, Sum) {
							return NegPositive(a, float32(c), limit32), NegPositive(b, float64(float32(c)), limit64)
						},
						"NegNegative": func(a []float32, b []float64) (Sum, Sum) {
							return NegNegative(a, float32(c), limit32), NegNegative(b, float64(float32(c)), limit64)
						},
						"UMAPPositive": func(a []float32, b []float64) (Sum, Sum) {
							return Sum{Loss: UMAPPositive(a, limit32)}, Sum{Loss: UMAPPositive(b, limit64)}
						},
						"UMAPNegative": func(a []float32, b []float64) (Sum, Sum) {
							return Sum{Loss: UMAPNegative(a, limit32)}, Sum{Loss: UMAPNegative(b, limit64)}
						},
					} {
						x32, x64 := draw(n, uint64(n), distances)
						got, want := f(x32, x64)
						what := fmt.Sprintf("%s n=%d c=%g clamp=%g", name, n, c, clamp)
						compare(t, what, x32, x64, tol)
						compareScalar(t, what+" loss", got.Loss, want.Loss, float64(n))
						compareScalar(t, what+" dTheta", got.DTheta, want.DTheta, float64(n))
					}
				}
			}
		}
	})
}

// The products of mantissas do not overflow: arguments of the logarithm just below a power
// of two, in more pairs than one product takes.
func TestNegNegativeOfLargeMantissas(t *testing.T) {
	const n = 2*logChunk + 5
	forms(t, func(t *testing.T) {
		for _, v := range []float64{2 - 1e-6, math.Ldexp(2-1e-6, 20), math.Ldexp(2-1e-6, 124)} {
			c := float32(1 / (v - 1))
			x := make([]float32, n)
			got, want := NegNegative(x, c, BoundOf[float32](0)), n*math.Log1p(1/float64(c))
			if !(math.Abs(got.Loss-want) <= 1e-6*want) || !(math.Abs(got.DTheta+n*(v-1)/v) <= 1e-5*n) {
				t.Errorf("c=%g: loss %g and derivative %g, want %g and %g", c, got.Loss, got.DTheta, want, -n*(v-1)/v)
			}
		}
	})
}

func TestInfoNCKernels(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			const clamp, weight, m = 1e-10, 0.6, 3
			total32, total64 := make([]float32, n), make([]float64, n)
			var x32 [m][]float32
			var x64 [m][]float64
			for j := range m {
				x32[j], x64[j] = draw(n, uint64(100*n+j), distances)
				Similarities(x32[j], total32, clamp)
				Similarities(x64[j], total64, float64(float32(clamp)))
				compare(t, "similarity", x32[j], x64[j], 1e-6)
			}
			compare(t, "total", total32, total64, 1e-6)
			compareScalar(t, "log total", LogTotals(total32, float32(weight)), LogTotals(total64, float64(float32(weight))), float64(n))
			compare(t, "share", total32, total64, 1e-6)
			compareScalar(t, "positive", InfoNCPositive(x32[0], total32, float32(clamp)),
				InfoNCPositive(x64[0], total64, float64(float32(clamp))), float64(n))
			InfoNCNegative(x32[1], total32, clamp)
			InfoNCNegative(x64[1], total64, float64(float32(clamp)))
			compare(t, "negative derivative", x32[1], x64[1], 1e-5)
			for i := range x32[0] { // q − q²·share cancels: compare with q
				if math.Abs(float64(x32[0][i])-x64[0][i]) > 3e-7 {
					t.Errorf("positive derivative %d: %g, want %g", i, x32[0][i], x64[0][i])
				}
			}
		}
	})
}

func TestNaNsAreKept(t *testing.T) {
	nan := float32(math.NaN())
	forms(t, func(t *testing.T) {
		fresh := func() []float32 { x := make([]float32, 32); x[5] = nan; return x }
		limit := BoundOf[float32](1e-10)
		for name, f := range map[string]func(x []float32) float64{
			"NegPositive":  func(x []float32) float64 { return NegPositive(x, 1, limit).Loss },
			"NegNegative":  func(x []float32) float64 { return NegNegative(x, 1, limit).Loss },
			"UMAPPositive": func(x []float32) float64 { return UMAPPositive(x, limit) },
			"UMAPNegative": func(x []float32) float64 { return UMAPNegative(x, limit) },
			"InfoNC": func(x []float32) float64 {
				total := make([]float32, len(x))
				Similarities(x, total, 1e-10)
				loss := LogTotals(total, 1)
				return loss + InfoNCPositive(x, total, 1e-10)
			},
		} {
			x := fresh()
			if loss := f(x); !math.IsNaN(loss) {
				t.Errorf("%s: loss %g, want NaN", name, loss)
			}
			if !math.IsNaN(float64(x[5])) {
				t.Errorf("%s: derivative %g, want NaN", name, x[5])
			}
		}
	})
}

func TestPairsAndSpread(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			const rows = 300
			f32, f64 := draw(2*rows, 1, func(s *rng.Stream) float64 { return s.Normal() })
			s := rng.New(uint64(n), rng.Negatives)
			tails := make([]int32, n)
			for k := range tails {
				tails[k] = int32(s.IntN(20)) // few rows, so that they repeat
			}
			var v32 [6][]float32
			var v64 [6][]float64
			for i := range v32 {
				v32[i], v64[i] = make([]float32, n), make([]float64, n)
			}
			const head = 13
			Pairs2(v32[0], v32[1], v32[2], f32, head, tails)
			Pairs2(v64[0], v64[1], v64[2], f64, head, tails)
			for i, what := range []string{"d2", "dx", "dy"} {
				for k := range tails {
					if math.Abs(float64(v32[i][k])-v64[i][k]) > 1e-5 {
						t.Errorf("n=%d %s[%d]: %g, want %g", n, what, k, v32[i][k], v64[i][k])
					}
				}
			}
			g32, g64 := draw(n, 2, func(s *rng.Stream) float64 { return s.Normal() })
			grad32, grad64 := make([]float32, 2*rows), make([]float64, 2*rows)
			for range 2 { // the head's sums are added to
				ScatterGradient2(grad32, v32[3], v32[4], g32, v32[1], v32[2], tails)
				ScatterGradient2(grad64, v64[3], v64[4], g64, v64[1], v64[2], tails)
			}
			for k := range tails {
				if math.Abs(float64(v32[3][k])-v64[3][k]) > 1e-4 || math.Abs(float64(v32[4][k])-v64[4][k]) > 1e-4 {
					t.Errorf("n=%d head %d: (%g, %g), want (%g, %g)", n, k, v32[3][k], v32[4][k], v64[3][k], v64[4][k])
				}
			}
			for i := range grad64 {
				if math.Abs(float64(grad32[i])-grad64[i]) > 1e-4 {
					t.Errorf("n=%d grad[%d]: %g, want %g", n, i, grad32[i], grad64[i])
				}
			}
		}
	})
}

func TestRows(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			for _, d := range []int{1, 2, 3} {
				const rows = 200
				table32, table64 := draw(rows*d, 1, func(s *rng.Stream) float64 { return s.Normal() })
				s := rng.New(uint64(n), rng.Negatives)
				index, distinct := make([]int32, n), make([]int32, n)
				for i, p := range s.Perm(rows)[:n] {
					index[i], distinct[i] = int32(s.IntN(9)), int32(p)
				}
				got32, got64 := make([]float32, n*d), make([]float64, n*d)
				GatherRows(got32, table32, d, index)
				GatherRows(got64, table64, d, index)
				compare(t, "GatherRows", got32, got64, 0)
				for i, r := range index {
					for j := range d {
						if got64[i*d+j] != table64[int(r)*d+j] {
							t.Fatalf("row %d is not row %d of the source", i, r)
						}
					}
				}
				ScatterRows(table32, got32, d, index)
				ScatterRows(table64, got64, d, index)
				compare(t, "ScatterRows", table32, table64, 1e-4)
				grad32, grad64 := draw(n*d, 2, func(s *rng.Stream) float64 { return 5 * s.Normal() })
				for _, clip := range []float64{4, math.Inf(1)} {
					DescendRows(table32, grad32, d, distinct, 0.5, float32(clip))
					DescendRows(table64, grad64, d, distinct, 0.5, clip)
					DescendRows(table32, grad32, d, index, 0.01, float32(clip)) // most rows more than once
					DescendRows(table64, grad64, d, index, 0.01, clip)
					for i := range table64 {
						if math.Abs(float64(table32[i])-table64[i]) > 2e-4 {
							t.Fatalf("n=%d d=%d clip=%g: element %d after descent is %g, want %g", n, d, clip, i, table32[i], table64[i])
						}
					}
				}
			}
		}
		table, grad := make([]float32, 64), make([]float32, 64)
		rows := make([]int32, 32)
		for i := range rows {
			rows[i] = int32(i)
		}
		grad[9], grad[10], grad[11] = float32(math.NaN()), 100, -100
		DescendRows(table, grad, 2, rows, 1, 4)
		if !math.IsNaN(float64(table[9])) || table[10] != -4 || table[11] != 4 {
			t.Errorf("gradients NaN, 100, -100 move a table by %g, %g, %g", table[9], table[10], table[11])
		}
	})
}

// The forms draw the same numbers: a seed means the same on every processor.
func TestDrawOthers(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range append(lengths[1:], 1024) {
			got, want := make([]int32, n), make([]int32, n)
			stream := rng.New(uint64(n), rng.Negatives)
			DrawOthers(got, stream.State())
			for i := range want {
				word := stream.At(uint64(i / 2))
				want[i] = int32(rng.Bounded(uint32(word.Uint64()>>(i%2*32)), uint32(2*n-1)))
				if want[i] >= int32(i) {
					want[i]++
				}
			}
			for i := range want {
				if got[i] != want[i] || got[i] == int32(i) || got[i] < 0 || int(got[i]) >= 2*n {
					t.Fatalf("n=%d: number %d is %d, want %d", n, i, got[i], want[i])
				}
			}
		}
	})
}

func TestReductions(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			a32, a64 := draw(n, 3, func(s *rng.Stream) float64 { return 10 * s.Normal() })
			b32, b64 := draw(n, 4, func(s *rng.Stream) float64 { return 10 * s.Normal() })
			compareScalar(t, "InverseSum2", InverseSum2(a32, b32, 0.5, -2), InverseSum2(a64, b64, 0.5, -2), 1)
			compareScalar(t, "InverseSum2Near", InverseSum2Near(a32, b32, 0.5, -2), InverseSum2Near(a64, b64, 0.5, -2), 1)
			compareScalar(t, "InverseSum2Near, far", 1e17*InverseSum2Near(a32, b32, 7e8, 7e8), 1e17*InverseSum2(a64, b64, 7e8, 7e8), 1)
			d32, d64 := draw(n, 6, func(s *rng.Stream) float64 { return 20 * s.Float64() })
			compareScalar(t, "InverseSum", InverseSum(d32), InverseSum(d64), 1)
			AddSquares(d32, a32, 0.5)
			AddSquares(d64, a64, 0.5)
			compare(t, "AddSquares", d32, d64, 1e-4)
			Add(a32, b32)
			Add(a64, b64)
			compare(t, "Add", a32, a64, 1e-4)
			Scale(a32, 0.3)
			Scale(a64, float64(float32(0.3)))
			compare(t, "Scale", a32, a64, 1e-4)
			plane32, plane64 := draw(2*n, 5, func(s *rng.Stream) float64 { return 100 + s.Float64() })
			AddPlane(plane32, a32, b32)
			AddPlane(plane64, a64, b64)
			compare(t, "AddPlane", plane32, plane64, 1e-5)
			for _, at := range []int{0, n / 2, n - 1} {
				if n == 0 {
					continue
				}
				x := make([]int32, n)
				x[n/2] = 7
				x[at] = -3
				if got := MaxUint32(x); got != math.MaxUint32-2 {
					t.Errorf("n=%d: maximum %d with −3 at %d", n, got, at)
				}
			}
		}
		if got := MaxUint32(nil); got != 0 {
			t.Errorf("maximum of nothing is %d", got)
		}
	})
}

func TestCountBelow(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, n := range lengths {
			x, _ := draw(n, 1, func(s *rng.Stream) float64 { return math.Round(4 * s.Normal()) })
			if n > 0 {
				x[n/2] = float32(math.NaN())
			}
			for _, k := range []int{0, 1, 3, 4, 5, 8, 30} {
				limits, _ := draw(k, 2, func(s *rng.Stream) float64 { return math.Round(5 * s.Normal()) })
				if k > 2 {
					limits[0], limits[1], limits[2] = float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())
				}
				counts := slices.Repeat([]int32{7}, k+1)
				CountBelow(counts, x, limits)
				for l, limit := range limits {
					want := int32(7)
					for _, v := range x {
						if v < limit {
							want++
						}
					}
					if counts[l] != want {
						t.Errorf("n=%d, %d limits: %d below %g, want %d", n, k, counts[l]-7, limit, want-7)
					}
				}
				if counts[k] != 7 {
					t.Errorf("n=%d, %d limits: the count after the last has changed", n, k)
				}
			}
		}
	})
}

// Too few counts must not become a write beyond them.
func TestCountBelowNeedsAllCounts(t *testing.T) {
	forms(t, func(t *testing.T) {
		counts := []int32{7, 7, 7, 7}
		defer func() {
			if recover() == nil || counts[3] != 7 {
				t.Errorf("3 counts for 4 limits were taken, and the count behind them is %d", counts[3])
			}
		}()
		CountBelow(counts[:3:3], make([]float32, 64), []float32{1, 1, 1, 1})
	})
}

func BenchmarkKernels(b *testing.B) {
	const n = 1024
	limit := BoundOf[float32](1e-10)
	x, _ := draw(n, 1, func(s *rng.Stream) float64 { return math.Exp(10*s.Float64() - 5) })
	work := make([]float32, n)
	features, _ := draw(4*n, 1, func(s *rng.Stream) float64 { return s.Normal() })
	tails := make([]int32, n)
	s := rng.New(1, rng.Negatives)
	for i := range tails {
		tails[i] = int32(s.IntN(2 * n))
	}
	var v [5][]float32
	for i := range v {
		v[i] = make([]float32, n)
	}
	grad := make([]float32, 4*n)
	drawn, counts := make([]int32, n), make([]int32, 32)
	for _, form := range Sets() {
		for _, k := range []struct {
			name string
			run  func()
		}{
			{"Pairs2", func() { Pairs2(v[0], v[1], v[2], features, 0, tails) }},
			{"Spread2", func() { ScatterGradient2(grad, v[3], v[4], v[0], v[1], v[2], tails) }},
			{"NegPositive", func() { copy(work, x); NegPositive(work, 1, limit) }},
			{"NegNegative", func() { copy(work, x); NegNegative(work, 1, limit) }},
			{"UMAPNegative", func() { copy(work, x); UMAPNegative(work, limit) }},
			{"Similarities", func() { copy(work, x); Similarities(work, v[3], 1e-10) }},
			{"LogTotals", func() { copy(work, x); LogTotals(work, 1) }},
			{"DrawOthers", func() { DrawOthers(drawn, s.State()) }},
			{"AddSquares", func() { clear(work); AddSquares(work, x, 1) }},
			{"InverseSum", func() { InverseSum(x) }},
			{"CountBelow/32", func() { CountBelow(counts, x, x[:32]) }},
			{"InverseSum2", func() { InverseSum2(x, v[1], 0, 0) }},
			{"InverseSum2Near", func() { InverseSum2Near(x, v[1], 0, 0) }},
		} {
			b.Run(k.name+"/"+form.String(), func(b *testing.B) {
				defer use(form)()
				for b.Loop() {
					k.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pair")
				if MaxUint32(tails) >= 2*n {
					b.Fatal("the rows that other kernels take are out of range now")
				}
			})
		}
	}
}

// Sets returns the sets that the processor has.
func Sets() []Set {
	switch best := Best(); best {
	case AVX512:
		return []Set{Portable, AVX2, AVX512}
	case Portable:
		return []Set{Portable}
	default:
		return []Set{Portable, best}
	}
}
