package train

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
)

// drawnOften counts how often each of n edges is drawn in an epoch.
func drawnOften(d *edgeDrawer, epoch, n int) []int {
	count := make([]int, n)
	for _, e := range d.draw(epoch) {
		count[e.head()]++
	}
	return count
}

// An edge comes as often as its share of the weight says, rounded up or down, and exactly
// so on average; all together as often as there are edges.
func TestEdgesAreDrawnByWeight(t *testing.T) {
	s := rng.New(1, rng.Sample)
	for _, n := range []int{1, 2, 7, 1000, 70_001} {
		weights, sum := make([]float32, n), 0.
		for e := range weights {
			weights[e] = float32(math.Exp(3 * s.Normal()))
			sum += float64(weights[e])
		}
		epochs := 400
		if n > 10_000 {
			epochs = 20
		}
		d := newEdgeDrawer(numbered(n), weights, 5)
		total := make([]float64, n)
		for epoch := range epochs {
			all := 0
			for e, c := range drawnOften(d, epoch, n) {
				all += c
				total[e] += float64(c)
				if share := float64(weights[e]) / sum * float64(n); math.Abs(float64(c)-share) >= 1+1e-6 {
					t.Fatalf("%d edges: one with the share of %g comes %d times", n, share, c)
				}
			}
			if all != n {
				t.Fatalf("%d edges are drawn of %d", all, n)
			}
		}
		for e, c := range total {
			// The remainder of a share is a Bernoulli variable with a variance of at most ¼.
			share := float64(weights[e]) / sum * float64(n)
			if off := math.Abs(c/float64(epochs) - share); off > 5*0.5/math.Sqrt(float64(epochs)) {
				t.Errorf("%d edges: one with the share of %g comes %g times an epoch", n, share, c/float64(epochs))
			}
		}
	}
}

// Equal weights give every edge once; the same epoch gives the same edges, on any number
// of cores, and another one others.
func TestDrawnEdgesAreDecided(t *testing.T) {
	const n = 100_000
	edges := numbered(n)
	if d := newEdgeDrawer(edges, slices.Repeat([]float32{0.3}, n), 1); !slices.Equal(d.draw(3), edges) {
		t.Error("of equal weights, edges are drawn twice")
	}
	weights := make([]float32, n)
	for e := range weights {
		weights[e] = float32(1 + e%9)
	}
	draw := func(epoch int) []edge { return slices.Clone(newEdgeDrawer(edges, weights, 1).draw(epoch)) }
	want := draw(0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !slices.Equal(draw(0), want) || slices.Equal(draw(1), want) {
		t.Error("the edges of an epoch depend on the cores, or not on the epoch")
	}
}
