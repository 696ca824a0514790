package op

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/simd"
)

// The derivatives of the table's functions are those by finite differences.
func TestPairLossesByFiniteDifferences(t *testing.T) {
	for _, l := range Losses() {
		if l.Info().PerHead {
			continue
		}
		for name, f := range map[string]func(q, rest, c float64) PairLoss{"positive": l.Info().Positive, "negative": l.Info().Negative} {
			at := func(logQ, logC float64) float64 { return f(math.Exp(logQ), -math.Expm1(logQ), math.Exp(logC)).Loss }
			for _, logQ := range []float64{-20, -3, -0.5, -1e-3} {
				for _, logC := range []float64{-8, 0, 5} {
					const step = 1e-6
					h := min(step, -logQ/100)
					got := f(math.Exp(logQ), -math.Expm1(logQ), math.Exp(logC))
					byQ := (at(logQ+h, logC) - at(logQ-h, logC)) / (2 * h)
					byC := (at(logQ, logC+step) - at(logQ, logC-step)) / (2 * step)
					if math.Abs(got.LogQ-byQ) > 1e-5*(1+math.Abs(byQ)+got.Loss) || math.Abs(got.LogC-byC) > 1e-5*(1+got.Loss) {
						t.Errorf("%v, %s, log q = %g, log c = %g: derivatives %g and %g, want %g and %g", l, name, logQ, logC, got.LogQ, got.LogC, byQ, byC)
					}
					if l.Info().Constant == NoConstant && got.LogC != 0 {
						t.Errorf("%v, %s: depends on a constant that it does not have", l, name)
					}
				}
			}
		}
	}
}

// Kernels are the table's functions, pair by pair, also where the clamp binds and where
// points coincide or are excluded.
func TestKernelsAreTheTables(t *testing.T) {
	testKernels[float32](t, 1e-5)
	testKernels[float64](t, 1e-12)
}

func testKernels[T Float](t *testing.T, tol float64) {
	for _, l := range Losses() {
		if l.Info().PerHead {
			continue
		}
		for _, metric := range []Metric{Euclidean, Cosine} {
			if metric == Cosine && l.Info().EuclideanOnly {
				continue
			}
			generic := euclideanPairs[T]
			if metric == Cosine {
				generic = cosinePairs[T]
			}
			o := ContrastiveOptions{Loss: l, Metric: metric, Clamp: 1e-4}
			k, bound := kernelsFor[T](o), simd.BoundOf[T](o.Clamp)
			for _, c := range []float64{0.01, 1, 30} {
				constant := T(c)
				if metric == Cosine {
					constant = T(math.Log(c))
				}
				for name, both := range map[string][2]kernel[T]{
					"positive": {k.positive, generic(l.Info().Positive, math.Inf(1))},
					"negative": {k.negative, generic(l.Info().Negative, 0)},
					"row":      {k.row, generic(l.Info().Negative, 0)},
				} {
					got := make([]T, 2*simd.Lanes+5)
					for i := range got {
						got[i] = T(i-5) / 8 // cosines
						if metric == Euclidean {
							got[i] = T(i*i*i) / 100
						}
					}
					if name == "row" {
						got[3] = T(math.Inf(int(1 - 2*metric)))
					}
					if metric == Euclidean {
						got[20] = 1e7
					}
					want := append([]T(nil), got...)
					sum, wantSum := both[0](got, constant, bound), both[1](want, constant, bound)
					what := fmt.Sprintf("%T, %v, %v, %s, c = %g", got[0], l, metric, name, c)
					sameAs(t, what, got, want, tol)
					sameAs(t, what+": sums", []float64{sum.Loss, sum.DTheta}, []float64{wantSum.Loss, wantSum.DTheta}, tol)
				}
			}
		}
	}
}
