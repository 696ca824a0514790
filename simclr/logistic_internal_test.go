package simclr

import (
	"math"
	"testing"

	"cne/internal/rng"
)

// blobs returns n standardised points of d values, correlated with each other,
// in k classes that overlap.
func blobs(n, d, k int) (x []float32, class []int32) {
	s := rng.New(1, rng.Sample)
	x, class = make([]float32, n*d), make([]int32, n)
	for i := range n {
		class[i] = int32(i % k)
		var common float64
		for j := range d {
			common = 0.8*common + 0.6*s.Normal()
			v := common
			if j%k == i%k {
				v += 0.1
			}
			x[i*d+j] = float32(v)
		}
	}
	return x, class
}

// The gradient agrees with finite differences of the objective. The objective multiplies in
// float32; the numbers chosen are exact in it.
func TestObjectiveGradient(t *testing.T) {
	const n, d, k = 1100, 3, 4 // three pieces
	x, class := blobs(n, d, k)
	o := &objective{n: n, d: d, k: k, x: x, class: class, penalty: 0.3}
	o.prepare()
	s := rng.New(2, rng.Sample)
	theta, gradient, other := make([]float64, k*d+k), make([]float64, k*d+k), make([]float64, k*d+k)
	for i := range theta {
		theta[i] = float64(s.IntN(64)-32) / 32
	}
	loss := o.evaluate(theta, gradient)
	if !(loss > 0) {
		t.Fatalf("a loss of %v", loss)
	}
	const h = 1. / 128
	for i := range theta {
		here := theta[i]
		theta[i] = here + h
		up := o.evaluate(theta, other)
		theta[i] = here - h
		down := o.evaluate(theta, other)
		theta[i] = here
		if want := (up - down) / (2 * h); math.Abs(gradient[i]-want) > 3e-5 {
			t.Errorf("derivative %d is %v, by differences %v", i, gradient[i], want)
		}
	}
}

// L⁻¹·C·L⁻ᵀ is the identity, for sizes below, at and above the simple form's, and features
// in any number of chunks and strips.
func TestWhitener(t *testing.T) {
	for _, c := range []struct{ n, d int }{{20, 1}, {300, 47}, {300, 48}, {400, 49}, {5000, 131}, {1200, 600}} {
		x, _ := blobs(c.n, c.d, 3)
		lower := covariance(x, c.n, c.d)
		full := make([]float64, c.d*c.d)
		for i := range c.d {
			for j := range i + 1 {
				var want float64
				for r := range c.n {
					want += float64(x[r*c.d+i]) * float64(x[r*c.d+j])
				}
				want /= float64(c.n)
				got := lower[i*c.d+j]
				if math.Abs(got-want) > 1e-5 {
					t.Fatalf("%d×%d: covariance %d, %d is %v, want %v", c.n, c.d, i, j, got, want)
				}
				full[i*c.d+j], full[j*c.d+i] = got, got
			}
			full[i*c.d+i] += leastVariance + 0.25
		}
		// C⁻¹·(C·v) = v.
		w := newPreconditioner(x, c.n, c.d, 0.25)
		v, product := make([]float64, 2*c.d), make([]float64, 2*c.d)
		for i := range v {
			v[i] = math.Sin(float64(i))
		}
		for r := range 2 {
			for i := range c.d {
				product[r*c.d+i] = dot(full[i*c.d:(i+1)*c.d], v[r*c.d:])
			}
		}
		w.apply(product, 2)
		for i, got := range product {
			if math.Abs(got-v[i]) > 1e-3 {
				t.Fatalf("%d×%d: C⁻¹Cv has %v at %d, want %v", c.n, c.d, got, i, v[i])
			}
		}
	}
}

// Linearly dependent features (constant, equal to others or sums of them) have a factor,
// too.
func TestWhitenerOfDependentFeatures(t *testing.T) {
	const n, d = 40, 120
	x, _ := blobs(n, d, 3)
	for i := range n {
		x[i*d+1] = x[i*d]
		x[i*d+2] = 0
		x[i*d+3] = (x[i*d] + x[i*d+4]) / 2
	}
	w := newPreconditioner(x, n, d, 0)
	for i, v := range w.inverse {
		if v-v != 0 {
			t.Fatalf("entry %d is %v", i, v)
		}
	}
	v := make([]float64, d)
	for i := range v {
		v[i] = 1
	}
	before := append([]float64(nil), v...)
	w.apply(v, 1)
	if dot(before, v) <= 0 {
		t.Error("the inverse is not positive")
	}
}

// The fit reaches the same optimum with and without preconditioning.
func TestMinimiseWithoutWhitening(t *testing.T) {
	const n, d, k = 700, 12, 3
	x, class := blobs(n, d, k)
	var fits [2][]float64
	var losses [2]Logistic
	for i := range fits {
		o := &objective{n: n, d: d, k: k, x: x, class: class}
		o.prepare()
		if i == 1 {
			o.inverse = nil
		}
		var err error
		fits[i], err = o.minimize(t.Context(), LogisticOptions{Tolerance: 1e-6}.complete(), &losses[i])
		must(t, err)
		if !losses[i].Converged {
			t.Fatalf("fit %d: %+v", i, losses[i])
		}
	}
	for i, v := range fits[0] {
		if math.Abs(v-fits[1][i]) > 1e-3 {
			t.Errorf("coefficient %d is %v and %v", i, v, fits[1][i])
		}
	}
	if losses[0].Steps > losses[1].Steps {
		t.Errorf("%d steps, without a preconditioner %d", losses[0].Steps, losses[1].Steps)
	}
}
