package train_test

import (
	"fmt"
	"testing"

	"cne/internal/rng"
	"cne/model/op"
	"cne/train"
)

// scattered returns the edges of n points on a ring, each with the nearest on either
// side, in all about e, whose numbers say nothing about where they lie.
func scattered(n, e int) (heads, tails []int32) {
	s := rng.New(1, rng.Sample)
	number := s.Perm(n)
	side := e / n / 2
	for i := range n {
		for step := 1; step <= side; step++ {
			a, b := int32(number[i]), int32(number[(i+step)%n])
			heads, tails = append(heads, a, b), append(tails, b, a)
		}
	}
	return heads, tails
}

// BenchmarkManyPoints times epochs of Neg-t-SNE for numbers of points whose table is
// larger than the caches near a core.
func BenchmarkManyPoints(b *testing.B) {
	for _, n := range []int{200_000, 1_000_000} {
		if testing.Short() {
			n /= 32
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			heads, tails := scattered(n, 22*n)
			m := tableOf[float32](b, n, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			b.ResetTimer()
			trained(b, m, heads, tails, train.Options{
				BatchSize: 1024, Clip: 4, Phases: []train.Phase{{Epochs: b.N, LR: 1, Negatives: 5}},
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(heads)), "ns/edge")
		})
	}
}
