package quality

import (
	"math"
	"testing"

	"cne/data/neighbors"
)

// For every kind of embedding, the estimated losses are as far from the exact ones as
// their errors say, in single and in double precision.
func TestSampledLosses(t *testing.T) {
	const n, seeds = 1500, 25
	discriminators := []Discriminator{neg(1), umap(), neg(1e-3), nc(1e-30, 3)}
	for name, c := range sampledCases(t, n) {
		t.Run(name, func(t *testing.T) {
			c.o.Sample, c.o.Losses = new(1400), LossOptions{Negatives: 3, Clamp: 1e-10}
			heads, tails := c.o.Graph.EdgeList()
			for _, some := range [][]Discriminator{discriminators[:3], discriminators} {
				exact := need(ExpectedLosses(t.Context(), heads, tails, c.embedding.X, c.embedding.D, 3, 1e-10, some, nil))(t)
				squares := make([]float64, len(some))
				for seed := range uint64(seeds) {
					c.o.Seed = seed
					sampleFrom(t, n-1)
					m := need(newMeasurement(nil, c.embedding, c.o))(t)
					got := need(m.sampleLosses(t.Context(), some))(t)
					for k, e := range got {
						off := (e.Mean - exact[k]) / e.Error
						if math.Abs(e.Mean-exact[k]) < 1e-6*exact[k] {
							off = 0 // single precision
						}
						if !(math.Abs(off) < 4.5) {
							t.Errorf("seed %d: loss %d is %v ± %v, exactly %v", seed, k, e.Mean, e.Error, exact[k])
						}
						squares[k] += off * off / seeds
					}
				}
				for k, v := range squares {
					if k < 3 && (v < 0.5 || v > 2) {
						t.Errorf("loss %d of %d: %.2f standard errors off in the root mean square", k, len(some), math.Sqrt(v))
					}
				}
			}
		})
	}
}

// The sums of all rows are the sums of all pairs.
func TestRowLosses(t *testing.T) {
	for _, d := range []int{1, 2, 5} {
		const n = 1100 // more than two blocks
		e := matrix(normal[float32](3, n, d, 2), d)
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		for _, discriminators := range [][]Discriminator{{neg(1), umap()}, {umap(), neg(1e25)}} {
			for _, clamp := range []float64{0, 0.1} {
				sums := need(overRows(t.Context(), n, rows, 8, n, len(discriminators), repulsionTerms(e.X, n, d, clamp, discriminators)))(t)
				want := need(lossesOfPairs(t.Context(), e.X, n, d, clamp, discriminators, nil))(t)
				for k := range discriminators {
					var got float64
					for _, row := range sums {
						got += row[k]
					}
					near(t, "sum over rows", got, 2*want[k], 1e-6)
				}
			}
		}
	}
}

// Measure estimates the losses of more than ExactPoints, with errors, and only of those.
func TestLossesHaveErrors(t *testing.T) {
	c := sampledCases(t, 1200)["reduced"]
	c.o.Skip, c.o.Losses = ^MetricLosses, LossOptions{ZBar: 1e4, LearntZ: 1e5}
	exact := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
	sampleFrom(t, 1199)
	got := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
	count := 0
	for _, f := range c.o.Losses.figures() {
		want, wantErr := f.Of(exact)
		v, e := f.Of(got)
		if f.loss.Info().PerHead {
			continue // estimated by draws in both
		}
		count++
		if wantErr != nil {
			t.Errorf("%s, exact, has the error %v", f.Key, *wantErr)
		}
		if v == nil || e == nil || !(*e > 0 && math.Abs(*v-*want) < 4**e) {
			t.Errorf("%s is %v, exactly %v, with the error %v", f.Key, v, want, e)
		}
	}
	if count < 5 {
		t.Errorf("only %d losses", count)
	}
	m := need(newMeasurement(nil, c.embedding, c.o))(t)
	sameBits(t, "losses", func() (float64, error) {
		e, err := m.sampleLosses(t.Context(), []Discriminator{neg(2), umap()})
		if err != nil {
			return 0, err
		}
		return e[0].Mean + e[0].Error + e[1].Mean + e[1].Error, nil
	})
	// Where none of the points drawn has an edge, nothing is known.
	c.o.Graph = &neighbors.Graph{N: 1200, Indptr: make([]int64, 1201)}
	if f, err := Measure(t.Context(), c.points, c.embedding, c.o); err != nil || f.Losses != nil {
		t.Errorf("of a graph without edges: %v, %v", f.Losses, err)
	}
}
