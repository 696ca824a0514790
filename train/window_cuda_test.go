//go:build cu

package train

import (
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
)

// Windows have the batches that the CPU would make, whether or not an epoch is one window,
// has the distinct points of all of its batches found, or of a few.
func TestWindowsOnDevice(t *testing.T) {
	const points, edges, size, epochs = 50, 990, 100, 5
	const batches = (edges + size - 1) / size
	d := fakecuda.Open(t)
	list := randomEdges(points, edges)
	all, last := func(int) int { return 0 }, func(int) int { return batches - 1 }
	for name, c := range map[string]struct {
		perWindow  int
		layoutFrom func(epoch int) int
	}{
		"whole epochs":        {batches, all},
		"three windows":       {4, all},
		"a window of a batch": {1, all},
		"more in each epoch":  {batches, func(epoch int) int { return max(0, batches-3*epoch) }},
		"the last batch":      {batches, last},
		"no layout":           {4, func(int) int { return batches }},
	} {
		f, err := newDeviceBatcher(fanoutOf(edges), d, list, points, size, 3)
		must(t, err)
		w, err := newBatchWindow(f, batches, c.layoutFrom)
		must(t, err)
		w.perWindow = c.perWindow
		cpu := newShuffler(fanoutOf(edges), list, 3)
		rows, local := newInts(t, d), newInts(t, d)
		got := make([]edge, edges)
		for epoch := range epochs {
			cpu.begin(epoch)
			want := cpu.upTo(edges)
			distinct := newDeduper(points, false)
			for batch := range batches {
				must(t, w.at(epoch, batch))
				if w.epoch != epoch || w.first != batch/c.perWindow*c.perWindow || w.count != min(c.perWindow, batches-w.first) {
					t.Fatalf("%s: batch %d of epoch %d: got the window of epoch %d, with %d batches from number %d", name, batch, epoch, w.epoch, w.count, w.first)
				}
				must(t, device.Download(d, got, w.order.Pointer()))
				if !slices.Equal(got, want) {
					t.Fatalf("%s: epoch %d has another order of edges at batch %d", name, epoch, batch)
				}
				if batch < c.layoutFrom(epoch) {
					continue
				}
				lo, hi := batch*size, min(edges, (batch+1)*size)
				var points model.Batch
				distinct.fill(&points, want[lo:hi])
				count, err := w.distinct(batch)
				must(t, err)
				if count != len(points.Rows) {
					t.Fatalf("%s: batch %d of epoch %d has %d distinct points, want %d", name, batch, epoch, count, len(points.Rows))
				}
				must(t, w.layout.batch(rows, local, batch-w.from, hi-lo, count))
				if !slices.Equal(download[int32](t, rows), points.Rows) || !slices.Equal(download[int32](t, local), points.Local) {
					t.Fatalf("%s: batch %d of epoch %d is laid out otherwise", name, batch, epoch)
				}
			}
		}
		w.free()
	}
}
