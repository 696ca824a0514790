package train

import (
	"fmt"
	"math"
	"testing"

	"cne/model/op"
)

// Supp. D of the paper: which points the in-batch negatives of a head are, for batches of
// any size b. The batch of an edge has 2b−1 other rows: one is the edge's own tail, and
// each of the other E−1 edges is in the batch with probability (b−1)/(E−1). With small
// batches the head's own neighbours are drawn too often, with b = E and with large graphs
// every point in proportion to its degree.
func TestInBatchNoiseForAnyBatchSize(t *testing.T) {
	// A wheel: point 0 is the neighbour of all others, which are a ring besides.
	const n = 9
	neighbors := [n]map[int]bool{}
	var edges []edge
	join := func(i, j int) {
		for _, e := range [][2]int{{i, j}, {j, i}} {
			if neighbors[e[0]] == nil {
				neighbors[e[0]] = map[int]bool{}
			}
			neighbors[e[0]][e[1]] = true
			edges = append(edges, packEdge(int32(e[0]), int32(e[1])))
		}
	}
	for i := 1; i < n; i++ {
		join(0, i)
		join(i, i%(n-1)+1)
	}
	total := float64(len(edges)) // 32
	// noise is the probability that a negative of head i is point j.
	noise := func(b, i, j int) float64 {
		degree, tail, own := float64(len(neighbors[i])), 0., 0.
		if neighbors[i][j] {
			tail = 1 / degree
		}
		if i == j {
			own = 1
		}
		others := 2*float64(len(neighbors[j])) - tail - own // ends of the other edges that are j
		return (tail + float64(b-1)/(total-1)*others) / float64(2*b-1)
	}
	for _, tc := range []struct {
		how  Sampling
		b, m int
	}{
		{SamplePerHead, 2, 1}, {SamplePerHead, 4, 1}, {SamplePerHead, 8, 1}, {SamplePerHead, 32, 1},
		{SampleSharedRuns, 4, 2}, {SampleSharedRuns, 8, 3}, {SampleSharedRuns, 32, 20},
	} {
		b := tc.b
		t.Run(fmt.Sprint(tc.how, b), func(t *testing.T) {
			const epochs = 16000
			feed := newPrefetcher(edges, n, false, &Options{BatchSize: b, Seed: 5}, position{}, epochs)
			defer feed.close()
			sampler := negativeSampler{how: tc.how}
			var count [n][n]float64
			for block := feed.next(); block != nil; block = feed.next() {
				for k, batch := range block.batches {
					sampler.draw(&batch, tc.m, block.epoch, block.first+k)
					met := func(e int, r int32) { count[batch.Rows[batch.Local[e]]][batch.Rows[batch.Local[r]]]++ }
					for e, r := range batch.Negatives {
						met(e, r)
					}
					for e := 0; tc.how == SampleSharedRuns && e < b; e++ {
						for j := range int32(tc.m) {
							if r := (batch.Layout[1+e/op.GroupHeads] + j) % int32(2*b); r != int32(e) {
								met(e, r)
							}
						}
					}
				}
				feed.recycle(block)
			}
			// How far the counts are from a noise's, in standard deviations.
			off := func(noise func(i, j int) float64) float64 {
				most := 0.
				for i := range n {
					draws := float64(epochs * len(neighbors[i]) * tc.m)
					if tc.how == SampleSharedRuns { // without those that are the head
						draws *= float64(2*b-1) / float64(2*b)
					}
					for j := range n {
						p := noise(i, j)
						most = max(most, math.Abs(count[i][j]-draws*p)/math.Sqrt(draws*p*(1-p)))
					}
				}
				return most
			}
			if d := off(func(i, j int) float64 { return noise(b, i, j) }); d > 4.5 {
				t.Errorf("a count is off by %.1f standard deviations", d)
			}
			if d := off(func(_, j int) float64 { return float64(len(neighbors[j])) / total }); d < 10 {
				t.Errorf("the counts are within %.1f standard deviations of the degrees", d)
			}
		})
	}
}
