package pca

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/blas"
)

// wholeMatrix returns points of whole numbers from least to most, divided by unit.
func wholeMatrix(n, d, least, most int, unit float32) *data.Matrix {
	m, rng := data.NewMatrix(n, d), rand.New(rand.NewPCG(uint64(n), uint64(d)))
	for i := range m.X {
		m.X[i] = float32(least+rng.IntN(most-least+1)) / unit
	}
	return m
}

// exactProducts returns XᵀX for the centred points X, rounded once, where X·unit are whole numbers.
func exactProducts(m *data.Matrix, unit int64) []float64 {
	value := func(i, j int) int64 {
		v := m.Row(i)[j] * float32(unit)
		if v < 0 {
			return int64(v - 0.5)
		}
		return int64(v + 0.5)
	}
	products := make([]float64, m.D*m.D)
	for a := range m.D {
		for b := range m.D {
			var both, ofA, ofB int64
			for i := range m.N {
				both, ofA, ofB = both+value(i, a)*value(i, b), ofA+value(i, a), ofB+value(i, b)
			}
			x := big.NewInt(both)
			x.Mul(x, big.NewInt(int64(m.N))).Sub(x, new(big.Int).Mul(big.NewInt(ofA), big.NewInt(ofB)))
			products[a*m.D+b], _ = new(big.Rat).SetFrac(x, big.NewInt(int64(m.N)*unit*unit)).Float64()
		}
	}
	return products
}

// fitFor returns a fit of all columns of points.
func fitFor(points data.Source, pairs bool) *pcaFit {
	n, d := points.Dims()
	f := &pcaFit{points: points, n: n, pairs: pairs, mean: make([]float64, d)}
	for j := range d {
		f.columns = append(f.columns, int32(j))
	}
	return f
}

// Products of whole numbers are exact up to the last rounding, whatever computes them.
func TestWholeProducts(t *testing.T) {
	for _, c := range []struct {
		n, d, least, most int
		unit              float32
	}{
		{3, 2, 0, 255, 1}, {300, 33, 0, 255, 1}, {257, 31, -256, 256, 1}, {256, 1, 256, 256, 1}, {513, 64, -256, -255, 1},
		{1000, 15, 254, 255, 255}, {2100, 97, 0, 255, 255}, {9000, 20, 0, 1, 1}, {512, 16, -256, 256, 255},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			m := wholeMatrix(c.n, c.d, c.least, c.most, c.unit)
			want := exactProducts(m, int64(c.unit))
			for _, pairs := range []bool{false, blas.BFloat16()} {
				got, ok := fitFor(m, pairs).wholeProducts(context.Background(), c.unit)
				if !ok {
					t.Fatal("not taken for whole numbers")
				}
				for a := range c.d {
					for b := a; b < c.d; b++ {
						got, want := got[a*c.d+b], want[a*c.d+b]
						if math.Abs(got-want) > 5e-16*math.Abs(want) {
							t.Fatalf("pairs %v: product of columns %d and %d: got %v, want %v", pairs, a, b, got, want)
						}
					}
				}
			}
		})
	}
}

// Other values are noticed wherever they are, and do not take part.
func TestOtherValues(t *testing.T) {
	const n, d = 20000, 70 // two blocks
	for _, c := range []struct {
		unit, other float32
	}{{1, 0.5}, {1, 257}, {1, -257}, {255, 0.5}, {255, 257. / 255}, {1, 3e38}, {1, -3e38}, {255, 1e-30}} {
		m := wholeMatrix(n, d, 0, 255, c.unit)
		for _, row := range []int{0, 255, 256, n - 1} {
			m := &data.Matrix{N: n, D: d, X: slices.Clone(m.X)}
			m.Row(row)[d-1] = c.other
			if _, ok := fitFor(m, blas.BFloat16()).wholeProducts(context.Background(), c.unit); ok {
				t.Errorf("multiples of 1/%v, and %v in row %d: taken for whole numbers", c.unit, c.other, row)
			}
		}
	}
}

// Pixels have the components of the same points moved by a number that no pixel has, whose
// products are computed in the general way.
func TestFitOfPixels(t *testing.T) {
	const n, d, k = 3000, 50, 6
	m := wholeMatrix(n, d, 0, 255, 255)
	for i := range n { // directions of different variance
		for j := range d {
			m.Row(i)[j] = float32((i*(j%k+1))%(40*(j%k+1))) / 255
		}
	}
	moved := m.Clone()
	for i := range moved.X {
		moved.X[i] += 0.3
	}
	pixels, others := need(Fit(context.Background(), m, k))(t), need(Fit(context.Background(), moved, k))(t)
	for a, want := range others.Variance {
		if got := pixels.Variance[a]; got < want*(1-1e-6) || got > want*(1+1e-6) {
			t.Errorf("variance %d: got %v, want %v", a, got, want)
		}
	}
}
