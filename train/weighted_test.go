package train_test

import (
	"errors"
	"math"
	"testing"

	"cne/model/op"
	"cne/train"
)

// Two points with a heavy edge come nearer to each other than those with light ones, and
// weights that are none are refused.
func TestWeightsDrawEdges(t *testing.T) {
	const n = 40
	var heads, tails []int32
	var weights []float32
	for i := range int32(n) {
		for _, step := range []int32{1, n - 1} {
			heads, tails = append(heads, i), append(tails, (i+step)%n)
			w := float32(1)
			if tails[len(tails)-1]/2 == i/2 { // the pair 2k, 2k+1
				w = 50
			}
			weights = append(weights, w)
		}
	}
	fit := func(weights []float32) ([]float32, error) {
		m := tableOf[float32](t, n, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
		if _, err := train.Fit(t.Context(), m, heads, tails, train.Options{
			Phases: []train.Phase{{Epochs: 300, LR: 0.5, Negatives: 5}}, BatchSize: 16, Seed: 1, Clip: 4, Weights: weights,
		}); err != nil {
			return nil, err
		}
		x := make([]float32, 2*n)
		return x, m.EmbedTo(x)
	}
	ratio := func(x []float32) float64 {
		within, between := 0., 0.
		for i := range n {
			j := (i + 1) % n
			d := math.Hypot(float64(x[2*i]-x[2*j]), float64(x[2*i+1]-x[2*j+1]))
			if i%2 == 0 {
				within += d
			} else {
				between += d
			}
		}
		return within / between
	}
	plain, err := fit(nil)
	must(t, err)
	weighted, err := fit(weights)
	must(t, err)
	if a, b := ratio(plain), ratio(weighted); a < 0.6 || b > 0.5*a {
		t.Errorf("pairs are %.3f as far apart as others without weights, and %.3f with them", a, b)
	}
	for _, bad := range [][]float32{{1}, append(weights[1:len(weights):len(weights)], 0), append(weights[1:len(weights):len(weights)], float32(math.NaN())), append(weights[1:len(weights):len(weights)], -1)} {
		if _, err := fit(bad); !errors.Is(err, train.ErrInput) {
			t.Errorf("%d weights, the last %v: %v", len(bad), bad[len(bad)-1], err)
		}
	}
}
