package train_test

import (
	"context"
	"fmt"
	"testing"

	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// randomEdges returns e edges between n points, as many as MNIST's graph has
// unless tests say otherwise.
func randomEdges(n, e int) (heads, tails []int32) {
	s := rng.New(1, rng.Sample)
	heads, tails = make([]int32, e), make([]int32, e)
	for i := range heads {
		heads[i] = int32(s.IntN(n))
		tails[i] = int32((int(heads[i]) + 1 + s.IntN(n-1)) % n)
	}
	return heads, tails
}

// normal returns n points in the plane, normally distributed.
func normal[T op.Float](n int, seed uint64) []T {
	table, err := model.InitNormal[T](n, 2, 1, seed)
	if err != nil {
		panic(err)
	}
	return table
}

// BenchmarkEpoch times epochs over as many edges as MNIST's graph has: an
// operation is one epoch.
func BenchmarkEpoch(b *testing.B) {
	const n, edges = 70000, 1499592
	heads, tails := randomEdges(n, edges)
	for _, size := range []int{1024, 32768} {
		for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
			b.Run(fmt.Sprintf("%v/b=%d", loss, size), func(b *testing.B) {
				m, err := model.NewEmbedding(normal[float32](n, 1), 2, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				_, err = train.Fit(context.Background(), m, heads, tails, train.Options{
					BatchSize: size, Clip: 4,
					Phases: []train.Phase{{Epochs: b.N, LR: 1, Place: train.Place{}, Negatives: 5}},
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
			})
		}
	}
}

// grounds are sorts of points of 784 values: a share of them, in runs, is not
// zero, as in the images of MNIST.
var grounds = []struct {
	name  string
	share float64
}{{"sparse", 0.19}, {"dense", 1}}

func grounded(n int, share float64) []float32 {
	s := rng.New(2, rng.Sample)
	x := make([]float32, n*784)
	const run = 5
	for i := 0; i < len(x); i += run {
		if s.Float64() < share {
			for j := i; j < min(len(x), i+run); j++ {
				x[j] = 1 - float32(s.Float64())
			}
		}
	}
	return x
}

// BenchmarkNetworkEpoch is BenchmarkEpoch for the network 784-100-100-100-2 on
// as many points as MNIST has, with Adam.
func BenchmarkNetworkEpoch(b *testing.B) {
	const n, in, edges = 70000, 784, 1499592
	heads, tails := randomEdges(n, edges)
	for _, ground := range grounds {
		points := grounded(n, ground.share)
		for _, size := range []int{1024, 32768, 524288} {
			b.Run(fmt.Sprintf("neg-%s/b=%d", ground.name, size), func(b *testing.B) {
				network, err := model.NewMLP[float32](in, nil, 2, 1)
				if err != nil {
					b.Fatal(err)
				}
				m, err := model.NewParametric(network, points, op.ContrastiveOptions{Clamp: 1e-10})
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				if _, err = train.Fit(context.Background(), m, heads, tails, train.Options{
					BatchSize: size, Clip: 4, Method: new(train.Adam),
					Phases: []train.Phase{{Epochs: b.N, LR: 0.001, Negatives: 5}},
				}); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
			})
		}
	}
}

// BenchmarkNetworkStep times a step of the network 784-100-100-100-2 on a
// batch of 1024 edges without a point in common, whose 2048 rows lie anywhere
// among 20 000: forward, backward and Adam.
func BenchmarkNetworkStep(b *testing.B) {
	const n, in = 20000, 784
	for _, ground := range grounds {
		points := grounded(n, ground.share)
		const edges = 1024
		b.Run(ground.name, func(b *testing.B) {
			network, err := model.NewMLP[float32](in, nil, 2, 1)
			if err != nil {
				b.Fatal(err)
			}
			m, err := model.NewParametric(network, points, op.ContrastiveOptions{Clamp: 1e-10})
			if err != nil {
				b.Fatal(err)
			}
			stream := rng.New(1, rng.Sample)
			batch := model.Batch{Rows: make([]int32, 2*edges), Slots: make([]int32, 2*edges), Negatives: make([]int32, 5*edges)}
			for i, p := range stream.Perm(n)[:2*edges] {
				batch.Rows[i], batch.Slots[i] = int32(p), int32(i)
			}
			for i := range batch.Negatives {
				batch.Negatives[i] = int32(stream.IntN(2 * edges))
			}
			method := new(train.Adam)
			if err := method.Init(m.Parameters()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for range b.N {
				if _, err := m.Step(&batch, 0); err != nil {
					b.Fatal(err)
				}
				method.Step(batch.Rows, 1e-3, 4)
			}
		})
	}
}
