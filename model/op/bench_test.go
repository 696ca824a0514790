package op_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/rng"
	"cne/model/op"
)

// spread returns features [rows, d] as large as an embedding's, or of unit length for the
// cosine metric.
func spread(metric op.Metric, rows, d int) []float32 {
	s := rng.New(1, rng.Sample)
	x := make([]float32, rows*d)
	for i := range rows {
		row := x[i*d : (i+1)*d]
		var squares float64
		for k := range row {
			row[k] = float32(20 * s.Normal())
			squares += float64(row[k]) * float64(row[k])
		}
		if metric == op.Cosine {
			for k := range row {
				row[k] /= float32(math.Sqrt(squares))
			}
		}
	}
	return x
}

// BenchmarkFullBatch times loss and gradient of a batch of 1024 edges. Each head is
// contrasted with every other row: an operation is one step. bench/torch_full.py times
// the same in PyTorch.
func BenchmarkFullBatch(b *testing.B) {
	const edges = 1024
	for _, c := range []struct {
		loss   op.Loss
		metric op.Metric
		d      int
	}{
		{op.Neg, op.Euclidean, 2},
		{op.NC, op.Euclidean, 2},
		{op.InfoNC, op.Euclidean, 2},
		{op.UMAP, op.Euclidean, 2},
		{op.InfoNC, op.Euclidean, 1},
		{op.InfoNC, op.Euclidean, 3},
		{op.InfoNC, op.Euclidean, 10},
		{op.InfoNC, op.Euclidean, 50},
		{op.UMAP, op.Euclidean, 3},
		{op.InfoNC, op.Cosine, 128},
	} {
		b.Run(fmt.Sprintf("%v/%v/d=%d", c.loss, c.metric, c.d), func(b *testing.B) {
			g := gorgonia.NewGraph()
			features := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("features"),
				gorgonia.WithValue(tensor.New(tensor.WithShape(2*edges, c.d), tensor.WithBacking(spread(c.metric, 2*edges, c.d)))))
			negatives := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithName("negatives"), // only the shape counts
				gorgonia.WithValue(tensor.New(tensor.WithShape(1, edges), tensor.WithBacking(make([]int32, edges)))))
			runs := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithName("runs"),
				gorgonia.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]int32{-1}))))
			theta := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("theta"), gorgonia.WithValue(float32(0)))
			loss := gorgonia.Must(op.Contrastive(features, negatives, runs, theta, op.ContrastiveOptions{Loss: c.loss, Metric: c.metric, Clamp: 1e-10}))
			grads := gradients(b, loss, features, theta)
			p := ran(b, loss, grads[0], grads[1])
			b.ReportAllocs()
			for b.Loop() {
				must(b, p.Run())
			}
		})
	}
}
