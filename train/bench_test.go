package train_test

import (
	"fmt"
	"testing"

	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
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

// normal returns n points of d coordinates, normally distributed.
func normal[T op.Float](n, d int, seed uint64) []T {
	table, err := initial.Random[T](n, d, 1, seed)
	if err != nil {
		panic(err)
	}
	return table
}

// Points and directed edges of MNIST's graph.
const mnistPoints, mnistEdges = 70000, 1499592

// timedEdges returns how many edges an epoch has that is timed: as many as MNIST's
// graph, or a part that shows that the benchmark runs.
func timedEdges() int {
	if testing.Short() {
		return mnistEdges / 32
	}
	return mnistEdges
}

// benchmarkEpochs times epochs over as many edges as MNIST's graph has, of a
// table in d dimensions with learning rate 1: an operation is one epoch.
func benchmarkEpochs(b *testing.B, d int, loss op.Loss, heads, tails []int32, size, negatives int, sampling train.Sampling) {
	m := tableOf[float32](b, mnistPoints, d, 1, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
	b.ResetTimer()
	trained(b, m, heads, tails, train.Options{
		BatchSize: size, Clip: 4, Sampling: sampling,
		Phases: []train.Phase{{Epochs: b.N, LR: 1, Spectrum: train.SpectrumParam{}, Negatives: negatives}},
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(timedEdges()), "ns/edge")
}

// BenchmarkEpoch times the losses with five negatives, with batches of two
// sizes.
func BenchmarkEpoch(b *testing.B) {
	heads, tails := randomEdges(mnistPoints, timedEdges())
	for _, size := range []int{1024, 32768} {
		for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
			b.Run(fmt.Sprintf("%v/b=%d", loss, size), func(b *testing.B) {
				benchmarkEpochs(b, 2, loss, heads, tails, size, 5, train.SampleAuto)
			})
		}
	}
}

// BenchmarkNegatives times InfoNC-t-SNE with few and many negatives, drawn in
// either way, and with all other rows of a batch of 1024 edges.
func BenchmarkNegatives(b *testing.B) {
	heads, tails := randomEdges(mnistPoints, timedEdges())
	for _, c := range []struct {
		name      string
		negatives int
		sampling  train.Sampling
	}{
		{"m=5/singly", 5, train.SamplePerHead},
		{"m=5/runs", 5, train.SampleSharedRuns},
		{"m=50/singly", 50, train.SamplePerHead},
		{"m=50/runs", 50, train.SampleSharedRuns},
		{"m=500/singly", 500, train.SamplePerHead},
		{"m=500/runs", 500, train.SampleSharedRuns},
		{"m=full/all", train.Full, train.SampleAuto},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchmarkEpochs(b, 2, op.InfoNC, heads, tails, 1024, c.negatives, c.sampling)
		})
	}
}

// BenchmarkDimensions times InfoNC-t-SNE with all other rows of a batch of 1024
// edges as negatives, in several dimensions.
func BenchmarkDimensions(b *testing.B) {
	heads, tails := randomEdges(mnistPoints, timedEdges())
	for _, d := range []int{1, 2, 3, 10, 50} {
		b.Run(fmt.Sprintf("d=%d", d), func(b *testing.B) {
			benchmarkEpochs(b, d, op.InfoNC, heads, tails, 1024, train.Full, train.SampleAuto)
		})
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
	const in = 784
	heads, tails := randomEdges(mnistPoints, timedEdges())
	for _, ground := range grounds {
		points := grounded(mnistPoints, ground.share)
		for _, size := range []int{1024, 32768, 524288} {
			b.Run(fmt.Sprintf("neg-%s/b=%d", ground.name, size), func(b *testing.B) {
				m := networkOf(b, points, in, nil, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
				b.ResetTimer()
				trained(b, m, heads, tails, train.Options{
					BatchSize: size, Clip: 4, Optimizer: new(train.Adam),
					Phases: []train.Phase{{Epochs: b.N, LR: 0.001, Negatives: 5}},
				})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(timedEdges()), "ns/edge")
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
			m := networkOf(b, points, in, nil, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			stream := rng.New(1, rng.Sample)
			batch := model.Batch{Rows: make([]int32, 2*edges), Local: make([]int32, 2*edges), Negatives: make([]int32, 5*edges)}
			for i, p := range stream.Perm(n)[:2*edges] {
				batch.Rows[i], batch.Local[i] = int32(p), int32(i)
			}
			for i := range batch.Negatives {
				batch.Negatives[i] = int32(stream.IntN(2 * edges))
			}
			optimizer := new(train.Adam)
			must(b, optimizer.Init(m.Parameters()))
			b.ReportAllocs()
			for range b.N {
				if _, err := m.Step(&batch, 0); err != nil {
					b.Fatal(err)
				}
				optimizer.Step(batch.Rows, 1e-3, 4)
			}
		})
	}
}

// scattered returns the edges of n points on a ring, each with the nearest on either
// side, in all about e, whose numbers say nothing about where they lie.
func scattered(n, e int) (heads, tails []int32) {
	s := rng.New(1, rng.Sample)
	number := s.Perm(n)
	side := e / n / 2
	for i := range n {
		for step := 1; step <= side; step++ {
			a, b := int32(number[i]), int32(number[(i+step)%n])
			heads, tails = append(heads, a, b), append(tails, b, a)
		}
	}
	return heads, tails
}

// BenchmarkManyPoints times epochs of Neg-t-SNE for numbers of points whose table is
// larger than the caches near a core.
func BenchmarkManyPoints(b *testing.B) {
	for _, n := range []int{200_000, 1_000_000} {
		if testing.Short() {
			n /= 32
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			heads, tails := scattered(n, 22*n)
			m := tableOf[float32](b, n, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
			b.ResetTimer()
			trained(b, m, heads, tails, train.Options{
				BatchSize: 1024, Clip: 4, Phases: []train.Phase{{Epochs: b.N, LR: 1, Negatives: 5}},
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(heads)), "ns/edge")
		})
	}
}
