//go:build cu

package train_test

import (
	"fmt"
	"testing"

	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// BenchmarkEpochOnDevice times an epoch over as many edges as MNIST's graph has, of a
// table and of the paper's network.
func BenchmarkEpochOnDevice(b *testing.B) {
	points, edges, smaller := mnistPoints, mnistEdges, 1
	if testing.Short() {
		points, edges, smaller = 100, 600, 16
	}
	heads, tails := randomEdges(points, edges)
	for _, c := range []struct {
		network         bool
		size, negatives int
	}{
		{false, 1024, 5}, {false, 1 << 15, 5}, {false, 1 << 19, 5}, {false, 1024, 500}, {false, 1024, train.Full}, {true, 32768, 5},
	} {
		kind, negatives := "table", fmt.Sprint(c.negatives)
		if c.network {
			kind = "network"
		}
		if c.negatives == train.Full {
			negatives = "full"
		}
		size := c.size / smaller
		b.Run(fmt.Sprintf("%s/b=%d/m=%s", kind, size, negatives), func(b *testing.B) {
			d := fakecuda.Open(b)
			d.TF32, d.Unpooled = true, false
			o := train.Options{BatchSize: size, Clip: 4, Device: d, Phases: []train.Phase{{Epochs: b.N + 1, LR: 1, Negatives: c.negatives}}}
			var m model.Model
			if c.network {
				o.Optimizer, o.Phases[0].LR = new(train.Adam), 0.001
				m = networkOf(b, grounded(points, 0.19), 784, nil, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			} else {
				m = tableOf[float32](b, points, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			}
			// The first epoch, which loads the kernels, is not timed.
			o.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
				if s.Epoch == 1 {
					b.ResetTimer()
				}
				return nil
			})}
			trained(b, m, heads, tails, o)
			b.StopTimer()
			b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds()*1e-6, "Medges/s")
		})
	}
}

// BenchmarkProjectorOnDevice times the placing of 10 000 points beside a table of MNIST's
// size, with the search for their neighbours in 50 dimensions.
func BenchmarkProjectorOnDevice(b *testing.B) {
	n, placed, width := mnistPoints, 10000, 50
	if testing.Short() {
		n, placed = 300, 64
	}
	d := fakecuda.Open(b)
	d.Unpooled = false
	training := projectorOptions()[op.Neg.String()]
	training.Neighbors = 15
	p, err := train.NewProjector(b.Context(), d, clustered(n, width, 1, 1), clustered(n, 2, 0.5, 2).X, 2, training)
	must(b, err)
	x := clustered(placed, width, 1, 3)
	placeWith(b, p, x)
	for b.Loop() {
		placeWith(b, p, x)
	}
	b.ReportMetric(float64(placed)*float64(b.N)/b.Elapsed().Seconds()*1e-6, "Mpoints/s")
}
