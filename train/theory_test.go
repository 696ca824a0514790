package train_test

import (
	"math"
	"testing"

	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

// fitSimplex trains the d+1 corners of a simplex, each the neighbour of all others, with
// Neg-t-SNE and every edge in one batch, and returns their partition function.
func fitSimplex(t *testing.T, d int, place train.SpectrumParam, m int) float64 {
	t.Helper()
	var heads, tails []int32
	for i := range int32(d + 1) {
		for j := range int32(d + 1) {
			if i != j {
				heads, tails = append(heads, i), append(tails, j)
			}
		}
	}
	e := tableOf[float64](t, d+1, d, 7, op.ContrastiveOptions{Clamp: 1e-10})
	trained(t, e, heads, tails, train.Options{
		BatchSize: len(heads), Seed: 3, Phases: []train.Phase{{Epochs: 4000, LR: 0.01, Spectrum: place, Negatives: m}},
	})
	z, err := quality.PartitionFunction(t.Context(), e.Table(), d)
	must(t, err)
	return z
}

// noiseOf returns ξ of an ordered pair of the d+1 corners: of the 2E−1 rows that a head
// can draw from a batch of all E edges, 2d belong to each other point.
func noiseOf(d int) float64 {
	edges := float64(d * (d + 1))
	return 2 * float64(d) / (2*edges - 1) / float64(d+1)
}

// Corollary 2 of the paper, in more dimensions than the toy data's: at the optimum the
// partition function is Z̄, below the d(d+1) where all points meet.
func TestPartitionFunctionIsZBarInSpace(t *testing.T) {
	for _, d := range []int{3, 4} {
		most := float64(d * (d + 1))
		n := float64(d + 1)
		for _, zBar := range []float64{1, most / 2, 0.9 * most, 1.2 * most} {
			// The program takes 1/n² for ξ.
			z := fitSimplex(t, d, train.FromZBar(zBar*noiseOf(d)*n*n), 5)
			if want := min(zBar, most); math.Abs(z/want-1) > 0.02 {
				t.Errorf("d = %d, Z̄ = %g: partition function %.4f, want %.4f", d, zBar, z, want)
			}
		}
	}
}

// Corollary 2 of the paper (Sec. 4): plain negative sampling, which has no Z̄, makes the partition
// function 1/(m·ξ), that is |X|/m: the number of negatives decides how large the embedding
// becomes.
func TestNegativeSamplingMakesThePartitionFunctionXOverM(t *testing.T) {
	for _, m := range []int{1, 2, 3, 5, 8} {
		z := fitSimplex(t, 2, train.SpectrumParam{}, m)
		if want := min(6, 1/(float64(m)*noiseOf(2))); math.Abs(z/want-1) > 0.02 {
			t.Errorf("m = %d: partition function %.4f, want %.4f", m, z, want)
		}
	}
}
