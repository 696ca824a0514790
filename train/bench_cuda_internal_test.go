//go:build cu

package train

import (
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// benchmarkBatcher times one call of f on a batcher with as many edges as MNIST's
// graph.
func benchmarkBatcher(b *testing.B, size int, f func(batcher *deviceBatcher, order *device.Memory, layout *deviceLayout, i int) error) {
	points, edges := 70000, 1500000
	if testing.Short() {
		points, edges, size = 700, 6000, min(size, 6000)
	}
	d := fakecuda.Open(b)
	d.Unpooled = false
	batcher, err := newDeviceBatcher(fanoutOf(edges), d, randomEdges(points, edges), points, size, 3)
	must(b, err)
	defer batcher.close()
	layout := newDeviceLayout(d)
	defer layout.free()
	must(b, layout.resize(edges/size, size))
	order, err := batcher.newOrder()
	must(b, err)
	defer order.Free()
	wait := func(errs ...error) {
		b.Helper()
		for _, err := range append(errs, d.Synchronize()) {
			must(b, err)
		}
	}
	wait(batcher.begin(order, 0), f(batcher, order, layout, 0))
	b.ResetTimer()
	for i := range b.N {
		must(b, f(batcher, order, layout, i))
	}
	wait()
	b.StopTimer()
	b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "Gedges/s")
}

// BenchmarkShuffleOnDevice times the order of an epoch.
func BenchmarkShuffleOnDevice(b *testing.B) {
	benchmarkBatcher(b, 1024, func(batcher *deviceBatcher, order *device.Memory, _ *deviceLayout, i int) error {
		return batcher.begin(order, i)
	})
}

// BenchmarkDistinctOnDevice times the search for the distinct points of an epoch's
// whole batches: many at a time in shared memory, or one after the other.
func BenchmarkDistinctOnDevice(b *testing.B) {
	for name, size := range map[string]int{"b=1024": 1024, "b=2^19": 1 << 19} {
		b.Run(name, func(b *testing.B) {
			benchmarkBatcher(b, size, func(batcher *deviceBatcher, order *device.Memory, layout *deviceLayout, _ int) error {
				return batcher.distinct(order, layout, 0)
			})
		})
	}
}
