package op

import (
	"fmt"
	"math"
	"testing"

	"cne/internal/rng"
)

// lossOfEdges returns the loss of k edges from their similarities q = 1 − rest, with
// negatives that stand for m of each.
func lossOfEdges(o ContrastiveOptions, m int, theta float64, tails, negatives []float64) (loss float64) {
	similarity := func(d2 float64) (q, rest float64) {
		if o.Metric == Cosine {
			q = math.Exp((1 - d2/2) / o.Temperature)
			return q, 1 - q
		}
		return 1 / (1 + d2), d2 / (1 + d2)
	}
	info, share := o.Loss.Info(), float64(m)/float64(len(negatives))
	c := math.Exp(theta)
	if info.Constant == LearntZ {
		c *= float64(m)
	}
	var total float64
	for _, d2 := range negatives {
		q, rest := similarity(d2)
		total += share * q
		if !info.PerHead {
			loss += share * float64(len(tails)) * info.Negative(q, rest, c).Loss
		}
	}
	for _, d2 := range tails {
		q, rest := similarity(d2)
		switch {
		case !info.PerHead:
			loss += info.Positive(q, rest, c).Loss
		default:
			loss += -math.Log(q) + math.Log(total+q)/c
		}
	}
	return loss
}

// The slopes are the difference quotients of the loss, for any number of edges.
func TestSlopes(t *testing.T) {
	const m, n, theta = 7, 32, 0.3
	for _, o := range []ContrastiveOptions{
		{Loss: Neg}, {Loss: NC}, {Loss: UMAP}, {Loss: InfoNC},
		{Loss: Neg, Metric: Cosine}, {Loss: NC, Metric: Cosine}, {Loss: InfoNC, Metric: Cosine},
	} {
		for _, k := range []int{1, 15, 16, 17} {
			t.Run(fmt.Sprint(o.Loss, o.Metric, k), func(t *testing.T) {
				o.Clamp, o.Temperature = 1e-10, 0.5
				s, err := NewSlopes(o, m, theta)
				if err != nil {
					t.Fatal(err)
				}
				stream := rng.New(1, rng.Sample)
				x := make([]float64, k+n)
				tails, negatives := make([]float32, (k+15)&^15), make([]float32, n)
				for j := range x {
					v := float32(0.1 + 3*stream.Float64())
					if x[j] = float64(v); j < k {
						tails[j] = v
					} else {
						negatives[j-k] = v
					}
				}
				s.Of(tails, k, negatives)
				for j, at := range x {
					const h = 1e-5
					x[j] = at + h
					above := lossOfEdges(o, m, theta, x[:k], x[k:])
					x[j] = at - h
					want := (above - lossOfEdges(o, m, theta, x[:k], x[k:])) / (2 * h)
					x[j] = at
					got := append(tails[:k:k], negatives...)[j]
					if math.Abs(float64(got)-want) > 1e-4*(1+math.Abs(want)) {
						t.Errorf("slope %d is %g, want %g", j, got, want)
					}
				}
				for _, v := range tails[k:] {
					if v != 0 {
						t.Errorf("the rest is %v", tails[k:])
					}
				}
			})
		}
	}
	if _, err := NewSlopes(ContrastiveOptions{Loss: 77}, m, theta); err == nil {
		t.Error("loss 77 has slopes")
	}
}
