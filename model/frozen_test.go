package model_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// frozenOptions are all losses with both metrics.
func frozenOptions() map[string]op.ContrastiveOptions {
	all := map[string]op.ContrastiveOptions{}
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		all[loss.String()] = op.ContrastiveOptions{Loss: loss, Clamp: 1e-10}
		if loss != op.UMAP { // whose similarities have to be below 1
			all[loss.String()+" cosine"] = op.ContrastiveOptions{Loss: loss, Metric: op.Cosine, Temperature: 0.5}
		}
	}
	return all
}

func newFrozen(t *testing.T, d int, o op.ContrastiveOptions) *model.Frozen {
	t.Helper()
	f, err := model.NewFrozen(d, o)
	must(t, err)
	return f
}

// frozenStep returns the loss and a copy of the gradient.
func frozenStep(t *testing.T, f *model.Frozen, x []float32, q, m int, shared bool) (float64, []float32) {
	t.Helper()
	loss, grad, err := f.Step(x, q, m, shared, -0.5)
	must(t, err)
	return loss, slices.Clone(grad)
}

func TestFrozenGradient(t *testing.T) {
	const q, m = 5, 3
	for name, o := range frozenOptions() {
		for _, d := range []int{1, 2, 3} {
			if d == 1 && o.Metric == op.Cosine {
				continue // all cosines are ±1
			}
			t.Run(fmt.Sprintf("%s %dD", name, d), func(t *testing.T) {
				f := newFrozen(t, d, o)
				x := to32(normals(q*(2+m)*d, 3))
				_, grad := frozenStep(t, f, x, q, m, false)
				for i := range q * d {
					loss := func() float64 { v, _ := frozenStep(t, f, x, q, m, false); return v }
					const h = 1e-2
					if by := (4*slope(x, i, h, loss) - slope(x, i, 2*h, loss)) / 3; math.Abs(by-float64(grad[i])) > 2e-3*(1+math.Abs(by)) {
						t.Errorf("coordinate %d: gradient %g, by differences %g", i, grad[i], by)
					}
				}
			})
		}
	}
}

// The gradient of a head has the same bits wherever it stands among others,
// whatever they are, and whatever GOMAXPROCS is.
func TestFrozenHeadsAreIndependent(t *testing.T) {
	const q, few, m = 9000, 16, 5 // enough for several pieces
	for name, o := range frozenOptions() {
		for _, d := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s %dD", name, d), func(t *testing.T) {
				x := to32(normals(q*(2+m)*d, 4))
				f := newFrozen(t, d, o)
				loss, grad := frozenStep(t, f, x, q, m, false)
				order := rng.New(1, rng.Sample)
				chosen := order.Perm(q)[:few]
				part := make([]float32, 0, few*(2+m)*d)
				for column := range 2 + m {
					for _, i := range chosen {
						at := (column*q + i) * d
						part = append(part, x[at:at+d]...)
					}
				}
				_, some := frozenStep(t, f, part, few, m, false)
				for k, i := range chosen {
					if !slices.Equal(some[k*d:(k+1)*d], grad[i*d:(i+1)*d]) {
						t.Errorf("head %d: gradient %v among few, %v among many", i, some[k*d:(k+1)*d], grad[i*d:(i+1)*d])
					}
				}
				for _, procs := range []int{1, 2, 7} {
					old := runtime.GOMAXPROCS(procs)
					again, grads := frozenStep(t, f, x, q, m, false)
					runtime.GOMAXPROCS(old)
					if again != loss || !slices.Equal(grads, grad) {
						t.Errorf("GOMAXPROCS %d gives another loss or gradient", procs)
					}
				}
			})
		}
	}
}

// Negatives that all heads share are as those of each head on its own, and what
// four consecutive heads give does not depend on the others.
func TestFrozenSharedNegatives(t *testing.T) {
	const q, m = 48, 37
	for name, o := range frozenOptions() {
		for _, d := range []int{2, 3, 7} {
			t.Run(fmt.Sprintf("%s %dD", name, d), func(t *testing.T) {
				f := newFrozen(t, d, o)
				x := to32(normals((2*q+m)*d, 4))
				alone := slices.Clone(x[:2*q*d])
				for j := range m {
					for range q {
						alone = append(alone, x[(2*q+j)*d:(2*q+j+1)*d]...)
					}
				}
				want, wantGrad := frozenStep(t, f, alone, q, m, false)
				loss, grad := frozenStep(t, f, x, q, m, true)
				if math.Abs(loss-want) > 1e-5*math.Abs(want) {
					t.Errorf("loss %g, want %g", loss, want)
				}
				var most float64
				for _, v := range wantGrad {
					most = max(most, math.Abs(float64(v)))
				}
				for i, v := range wantGrad {
					if math.Abs(float64(grad[i]-v)) > 1e-4*most {
						t.Fatalf("gradient[%d] is %g, want %g", i, grad[i], v)
					}
				}
				// The last 16 heads, the second four of them first.
				part := slices.Concat(x[(q-12)*d:(q-8)*d], x[(q-16)*d:(q-12)*d], x[(q-8)*d:q*d],
					x[(2*q-12)*d:(2*q-8)*d], x[(2*q-16)*d:(2*q-12)*d], x[(2*q-8)*d:])
				_, some := frozenStep(t, f, part, 16, m, true)
				if same := slices.Concat(grad[(q-12)*d:(q-8)*d], grad[(q-16)*d:(q-12)*d], grad[(q-8)*d:]); !slices.Equal(some, same) {
					t.Errorf("the bits of heads depend on others: %v, %v", some, same)
				}
			})
		}
	}
}

func TestFrozenRefuses(t *testing.T) {
	for want, o := range map[string]struct {
		d       int
		options op.ContrastiveOptions
	}{
		"dimensions: got 0, want 1 or more": {0, op.ContrastiveOptions{}},
		"temperature":                       {2, op.ContrastiveOptions{Metric: op.Cosine, Temperature: -1}},
		"loss":                              {2, op.ContrastiveOptions{Loss: 99}},
		"loss.metric: got cosine with loss.name umap": {2, op.ContrastiveOptions{Loss: op.UMAP, Metric: op.Cosine, Temperature: 0.5}},
	} {
		if f, err := model.NewFrozen(o.d, o.options); err == nil || f != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	f := newFrozen(t, 2, op.ContrastiveOptions{Clamp: 1e-10})
	for _, tc := range []struct{ values, q, m int }{{0, 0, 1}, {6, 1, 0}, {5, 1, 1}, {8, 1, 1}, {6, -1, -1}} {
		if _, _, err := f.Step(make([]float32, tc.values), tc.q, tc.m, false, 0); err == nil {
			t.Errorf("%d values for %d heads with %d negatives are taken", tc.values, tc.q, tc.m)
		}
	}
}

// A network of the default size on as many points as MNIST has.
func BenchmarkProject(b *testing.B) {
	const n, in, out = 70000, 784, 2
	network := newMLP[float32](b, in, nil, out, 1)
	x, dst := make([]float32, n*in), make([]float32, n*out)
	for i := range x {
		x[i] = float32(i%256) / 255
	}
	b.ResetTimer()
	for range b.N {
		must(b, network.ProjectTo(dst, x))
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "points/s")
}
