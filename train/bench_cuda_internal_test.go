//go:build cu

package train

import (
	"testing"

	"cne/internal/device/fakecuda"
)

// benchmarkFeed times what a device does with the edges of a graph as large as MNIST's.
// An operation is one call of f, on this many edges.
func benchmarkFeed(b *testing.B, size int, f func(feed *remoteFeed, layout *remoteLayout, i int) error) {
	points, edges := 70000, 1500000
	if testing.Short() {
		points, edges, size = 700, 6000, min(size, 6000)
	}
	d := fakecuda.Open(b)
	d.Unpooled = false
	feed, err := newRemoteFeed(d, randomEdges(points, edges), points, size, 3)
	if err != nil {
		b.Fatal(err)
	}
	defer feed.close()
	layout, err := newRemoteLayout(d)
	if err != nil {
		b.Fatal(err)
	}
	defer layout.free()
	wait := func(errs ...error) {
		b.Helper()
		for _, err := range append(errs, d.Synchronise()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	wait(feed.begin(0), f(feed, layout, 0))
	b.ResetTimer()
	for i := range b.N {
		if err := f(feed, layout, i); err != nil {
			b.Fatal(err)
		}
	}
	wait()
	b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "Gedges/s")
}

// BenchmarkShuffleOnDevice times the order of an epoch.
func BenchmarkShuffleOnDevice(b *testing.B) {
	benchmarkFeed(b, 1024, func(feed *remoteFeed, _ *remoteLayout, i int) error { return feed.begin(i) })
}

// BenchmarkDistinctOnDevice times the search for the distinct points of all whole
// batches of an epoch: many at a time in blocks' memory, or one after the other.
func BenchmarkDistinctOnDevice(b *testing.B) {
	for name, size := range map[string]int{"b=1024": 1024, "b=2^19": 1 << 19} {
		b.Run(name, func(b *testing.B) {
			benchmarkFeed(b, size, func(feed *remoteFeed, layout *remoteLayout, _ int) error {
				return feed.distinct(layout, 0, feed.edges/feed.size)
			})
		})
	}
}
