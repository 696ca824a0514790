package op

import (
	"runtime"
	"testing"

	"cne/internal/rng"
)

// What is done meanwhile gets each of a batch's edges once and in order, whatever the size
// of tiles, where one goroutine computes all pairs, and none of them twice where several
// do; and the sums are those without it.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		b, m, d  int
		metric   Metric
		withGrad bool
	}{
		{1, 0, 2, Euclidean, true}, {5, 3, 2, Euclidean, true}, {130, 5, 2, Euclidean, true}, {130, 5, 2, Euclidean, false},
		{1024, 5, 3, Euclidean, true}, {700, 80, 2, Euclidean, true}, {100, 200, 2, Cosine, true}, {4096, 20, 2, Euclidean, true},
	} {
		stream := rng.New(1, rng.Sample)
		features, negatives := make([]float32, 2*c.b*c.d), make([]int32, c.m*c.b)
		for i := range features {
			features[i] = float32(stream.Normal())
		}
		for i := range negatives {
			negatives[i] = int32(stream.IntN(2 * c.b))
		}
		for _, procs := range []int{1, 2} {
			old := runtime.GOMAXPROCS(procs)
			var with, without pairLoop[float32]
			with.init(ContrastiveOptions{Metric: c.metric, Temperature: 1})
			without.init(with.options)
			times, next := make([]int, c.b), 0
			with.overlap = func(from, to int) {
				if from < next || from > to {
					t.Errorf("%+v, %d cores: [%d, %d) after %d", c, procs, from, to, next)
				}
				next = to
				for i := from; i < to; i++ {
					times[i]++
				}
			}
			got := with.run(features, c.d, negatives, c.b, 0, c.withGrad)
			if want := without.run(features, c.d, negatives, c.b, 0, c.withGrad); got != want {
				t.Errorf("%+v, %d cores: sums %v, without anything meanwhile %v", c, procs, got, want)
			}
			for i, k := range times {
				if k > 1 || k == 0 && procs == 1 {
					t.Errorf("%+v, %d cores: edge %d came %d times", c, procs, i, k)
					break
				}
			}
			runtime.GOMAXPROCS(old)
		}
	}
}

// Tiles are of full vectors and whole parts, in the plane as well, and have at most
// tilePairs pairs unless 16 heads have more.
func TestTiles(t *testing.T) {
	for m := range 3000 {
		for _, d := range []int{2, 3} {
			s := pairLoop[float32]{d: d, m: m}
			tile := s.tileOf()
			if tile < 16 || tile%16 != 0 || tile > tileHeads && tile != planeHeads || tile*(1+m) > max(16*(1+m), tilePairs) {
				t.Errorf("m = %d, d = %d: a tile of %d heads", m, d, tile)
			}
		}
	}
}
