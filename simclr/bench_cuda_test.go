//go:build cu

package simclr

import (
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// BenchmarkViewsOnDevice times the views of a batch of CIFAR-10; an operation is one batch.
func BenchmarkViewsOnDevice(b *testing.B) {
	images, views := 4096, 2048
	if testing.Short() {
		images, views = 32, 16
	}
	d := fakecuda.Open(b)
	d.Unpooled = false
	v, err := NewDeviceViews(d, randomImages(images, 32, 32), nil, Paper(), 1)
	must(b, err)
	defer v.Close()
	points := make([]int32, views)
	for i := range points {
		points[i] = int32(i)
	}
	index, err := op.NewArray(d, tensor.Int32, views)
	must(b, err)
	defer index.Free()
	must(b, device.Upload(d, index.Pointer(), points))
	dst, err := op.NewArray(d, tensor.Float32, views, 3, 32, 32)
	must(b, err)
	defer dst.Free()
	must(b, v.Launch(dst, index, 0))
	must(b, d.Synchronize())
	b.ResetTimer()
	for i := range b.N {
		must(b, v.Launch(dst, index, i))
	}
	must(b, d.Synchronize())
	b.StopTimer()
	b.ReportMetric(float64(views)*float64(b.N)/b.Elapsed().Seconds()*1e-6, "Mviews/s")
	// Each view is written once, and at most all of its image is read.
	b.ReportMetric((4+1)*3*32*32*float64(views)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GB/s")
}

// BenchmarkPretrainingOnDevice times steps of the paper's network in both precisions: an
// operation is one on 1024 images, with their views.
func BenchmarkPretrainingOnDevice(b *testing.B) {
	for _, precision := range []op.Precision{op.Float32, op.BFloat16} {
		name := precision.String()
		if precision == op.Float32 {
			name = "tf32"
		}
		b.Run(name, func(b *testing.B) {
			p, images, size := PaperPretraining(), 1024, 32
			if testing.Short() {
				p.Network, images, size = model.ResNetOptions{Width: 4}, 8, 8
			}
			d := fakecuda.Open(b)
			d.TF32, d.Unpooled = true, false
			p.Augmentation.Size = size
			// The first epoch, of one step as all are, loads the kernels and is not timed.
			p.Precision, p.Device, p.BatchSize, p.Epochs, p.WarmUp = precision, d, images, b.N+1, 0
			p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
				if s.Epoch == 1 {
					b.ResetTimer()
				}
				return nil
			})}
			if _, _, err := p.Run(b.Context(), randomImages(images, size, size), nil); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(2*float64(images)*float64(b.N)/b.Elapsed().Seconds(), "views/s")
		})
	}
}
