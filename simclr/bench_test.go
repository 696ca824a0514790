package simclr_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"cne/data/images"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// noise returns images of random bytes, smooth enough to have hues.
func noise(n, h, w int) *images.Set {
	s := rng.New(1, rng.Sample)
	m := &images.Set{C: 3, N: n, H: h, W: w, Pixels: make([]byte, 3*n*h*w)}
	for i := range m.Pixels {
		m.Pixels[i] = byte(s.Uint64() >> 56)
	}
	return m
}

// Views of CIFAR's size; one operation is one view on one core.
func BenchmarkView(b *testing.B) {
	images := noise(64, 32, 32)
	paper := simclr.Paper()
	crop := paper
	crop.Jitter, crop.Gray = 0, 0
	for _, c := range []struct {
		name string
		a    simclr.Augmentation
	}{{"paper", paper}, {"crop", crop}} {
		b.Run(c.name, func(b *testing.B) {
			dst := make([]float32, 3*32*32)
			b.ReportAllocs()
			for i := range b.N {
				must(b, c.a.ViewTo(dst, images.Image(i%64), 32, 32, simclr.ViewStream(1, 0, i, 0)))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "views/s")
		})
	}
}

// BenchmarkPretraining times steps of the paper's run on small batches: views, both passes, and
// the step of the weights. An operation is a step with one batch of views.
func BenchmarkPretraining(b *testing.B) {
	p := simclr.PaperPretraining()
	for _, views := range []int{64, 256} {
		if testing.Short() && views > 64 {
			continue
		}
		p.BatchSize = views / 2
		benchmarkPretraining(b, fmt.Sprintf("views=%d", views), p)
	}
}

// BenchmarkOptimizers times steps of the stages of configs/simclr-cifar10-cpu.yaml in the same
// way.
func BenchmarkOptimizers(b *testing.B) {
	p := simclr.PaperPretraining()
	p.BatchSize, p.Views, p.Negatives = 128, 8, train.Full
	p.Network = model.ResNetOptions{Small: true, Hidden: 512}
	for _, p.Augmentation.Size = range []int{8, 16, 24} {
		for _, p.Optimizer = range []simclr.Optimizer{simclr.SGD, simclr.Muon} {
			p.LR = 0.03
			benchmarkPretraining(b, fmt.Sprintf("%v/size=%d", p.Optimizer, p.Augmentation.Size), p)
		}
	}
}

func benchmarkPretraining(b *testing.B, name string, p simclr.Pretraining) {
	p.WarmUp = 0
	for _, p.Precision = range []op.Precision{op.Float32, op.BFloat16} {
		if !p.Precision.Native() {
			continue
		}
		b.Run(fmt.Sprintf("%s/%v", name, p.Precision), func(b *testing.B) {
			p.Epochs = b.N
			_, r, err := p.Run(context.Background(), noise(p.BatchSize, 32, 32), nil)
			must(b, err)
			b.ReportMetric(float64(p.BatchSize*p.Views*b.N)/r.Elapsed.Seconds(), "views/s")
		})
	}
}

// The views of a batch of 512 images on all cores.
func BenchmarkBatch(b *testing.B) {
	images := noise(512, 32, 32)
	index := make([]int32, 512)
	for i := range index {
		index[i] = int32(i)
	}
	a := simclr.Paper()
	dst := make([]float32, 512*3*32*32)
	b.Run(fmt.Sprintf("cores=%d", runtime.GOMAXPROCS(0)), func(b *testing.B) {
		for i := range b.N {
			must(b, a.BatchTo(dst, images, index, i, 0, 1))
		}
		b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "views/s")
	})
}
