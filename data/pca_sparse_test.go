package data_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"cne/data"
)

// drawSparse draws n sparse points of d values in classes, each of which has some
// columns of its own, so that there are as many clear components.
func drawSparse(seed uint64, n, d, perRow, classes int) *data.Matrix {
	r := rand.New(rand.NewPCG(seed, 1))
	indptr, indices, values := []int{0}, []int{}, []float32{}
	for i := range n {
		class := i % classes
		for range perRow {
			j := r.IntN(d)
			if r.IntN(2) == 0 {
				j = class*(d/classes) + int(float64(d/classes)*r.Float64()*r.Float64())
			}
			indices, values = append(indices, j), append(values, float32(r.ExpFloat64()))
		}
		indptr = append(indptr, len(values))
	}
	m, err := data.FromCSR(n, d, indptr, indices, values)
	if err != nil {
		panic(err)
	}
	return m
}

func TestX(t *testing.T) {
	for _, m := range []*data.Matrix{drawSparse(1, 3000, 400, 20, 40), drawSparse(1, 500, 900, 20, 10), drawSparse(2, 3000, 400, 20, 1)} {
		dense, _ := m.Dense()
		k := 20
		exact, err := data.FitPCA(context.Background(), dense, k, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := data.FitSparsePCA(context.Background(), m, k, 5)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.
		for a := range k {
			worst = max(worst, math.Abs(got.Variance[a]/exact.Variance[a]-1))
		}
		fmt.Println(worst, exact.Variance[0]/exact.Variance[k-1], got.TotalVariance/exact.TotalVariance-1)
	}
}

func BenchmarkSparsePCA(b *testing.B) {
	m := drawSparse(1, 50000, 20000, 540, 100)
	b.Log(m.Nonzeros())
	b.ResetTimer()
	for range b.N {
		p, err := data.FitSparsePCA(context.Background(), m, 50, 1)
		if err != nil {
			b.Fatal(err)
		}
		_ = p
	}
}
