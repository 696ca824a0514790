//go:build cu

package simclr

import (
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/device/roofline"
	"cne/model/op"
)

// BenchmarkViewsOnDevice times the views of a batch of CIFAR-10: an operation is all of
// them.
func BenchmarkViewsOnDevice(b *testing.B) {
	images, views := 4096, 2048
	if testing.Short() {
		images, views = 32, 16
	}
	d := fakecuda.Open(b)
	d.Unpooled = false
	fatal := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	v, err := NewDeviceViews(d, randomImages(images, 32, 32), nil, Paper(), 1)
	fatal(err)
	defer v.Close()
	points := make([]int32, views)
	for i := range points {
		points[i] = int32(i)
	}
	index, err := op.NewArray(d, tensor.Int32, views)
	fatal(err)
	defer index.Free()
	fatal(device.Upload(d, index.Pointer(), points))
	dst, err := op.NewArray(d, tensor.Float32, views, 3, 32, 32)
	fatal(err)
	defer dst.Free()
	fatal(v.Launch(dst, index, 0))
	fatal(d.Synchronize())
	meter := roofline.Start(d)
	b.ResetTimer()
	for i := range b.N {
		fatal(v.Launch(dst, index, i))
	}
	fatal(d.Synchronize())
	b.StopTimer()
	meter.Report(b, b.N, roofline.Views(views, 3*32*32))
	b.ReportMetric(float64(views)*float64(b.N)/b.Elapsed().Seconds()*1e-6, "Mviews/s")
	// Each view is written once, and at most all of its image is read.
	b.ReportMetric((4+1)*3*32*32*float64(views)*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GB/s")
}
