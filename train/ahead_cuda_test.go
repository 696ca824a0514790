//go:build cu

package train

import (
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
)

// Windows that are prepared ahead are those that the CPU would make, whichever stream goes
// first, and whether or not an epoch is one window, has the distinct points of all of its
// batches found, or of a few.
func TestWindowsPreparedAheadOnDevice(t *testing.T) {
	const points, edges, size, epochs = 50, 990, 100, 5
	const batches = (edges + size - 1) / size
	d := fakecuda.Open(t)
	list := randomEdges(points, edges)
	all, last := func(int) int { return 0 }, func(int) int { return batches - 1 }
	for name, c := range map[string]struct {
		perWindow  int
		layoutFrom func(epoch int) int
		ahead      bool
	}{
		"whole epochs":        {batches, all, true},
		"three windows":       {4, all, true},
		"a window of a batch": {1, all, true},
		"more in each epoch":  {batches, func(epoch int) int { return max(0, batches-3*epoch) }, true},
		"the last batch":      {batches, last, true},
		"no layout":           {4, func(int) int { return batches }, true},
		"one after the other": {4, all, false},
	} {
		for order := range uint64(4) {
			fakecuda.Order(t, order)
			f, err := newDeviceBatcher(fanoutOf(edges), d, list, points, size, 3)
			must(t, err)
			p, err := newDevicePrefetcher(f, batches, epochs, c.layoutFrom)
			must(t, err)
			p.perWindow, p.tried = c.perWindow, !c.ahead
			cpu := newShuffler(fanoutOf(edges), list, 3)
			// The main stream copies what it finds, as late as it may.
			kept, err := f.newOrder()
			must(t, err)
			rows, local := newInts(t, d), newInts(t, d)
			for epoch := range epochs {
				cpu.begin(epoch)
				want := cpu.upTo(edges)
				distinct := newDeduper(points, size, false)
				for batch := 0; batch < batches; batch++ {
					w, err := p.at(epoch, batch)
					must(t, err)
					if !w.holds(epoch, batch) || w.first%c.perWindow != 0 {
						t.Fatalf("%s: the window of batch %d of epoch %d is that of %d from %d of %d", name, batch, epoch, w.count, w.first, w.epoch)
					}
					must(t, d.Copy(kept.Pointer(), w.order.Pointer(), 8*edges))
					lo, hi := batch*size, min(edges, (batch+1)*size)
					var points model.Batch
					distinct.fill(&points, want[lo:hi])
					if found := batch >= c.layoutFrom(epoch); found {
						count, err := w.distinct(batch)
						must(t, err)
						if count != len(points.Rows) {
							t.Fatalf("%s: batch %d of epoch %d has %d distinct points, want %d", name, batch, epoch, count, len(points.Rows))
						}
						must(t, w.layout.batch(rows, local, batch-w.from, hi-lo, count))
					}
					must(t, p.next())
					if p.ahead != c.ahead {
						t.Fatalf("%s: that windows are prepared ahead is %t", name, p.ahead)
					}
					got := make([]edge, edges)
					must(t, device.Download(d, got, kept.Pointer()))
					if !slices.Equal(got, want) {
						t.Fatalf("%s, order %d: epoch %d has another order of edges at batch %d", name, order, epoch, batch)
					}
					if batch >= c.layoutFrom(epoch) && (!slices.Equal(download[int32](t, rows), points.Rows) || !slices.Equal(download[int32](t, local), points.Local)) {
						t.Fatalf("%s, order %d: batch %d of epoch %d is laid out otherwise", name, order, batch, epoch)
					}
				}
			}
			kept.Free()
			must(t, p.close())
			f.close()
		}
	}
}
