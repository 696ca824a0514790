package pca

import (
	"cmp"
	"context"

	"cne/data"
	"cne/internal/device"
)

// The device, too, computes the products in float64, in which small eigenvalues
// survive; GPUs for computing multiply float64 at half the rate of float32. The points
// are uploaded as they are.
const (
	// deviceTile is the width of the products' tiles.
	deviceTile    = 64
	deviceThreads = 256 // for each tile
	// With fewer tiles than deviceBlocks, the rows are cut into slices of at least
	// sliceRows, to keep all multiprocessors busy.
	deviceBlocks = 512
	sliceRows    = 256
)

// deviceBytes bounds the points that are on a device at a time, in bytes. A variable
// for tests.
var deviceBytes = 256 << 20

// deviceProducts is products on a device.
func (f *pcaFit) deviceProducts(ctx context.Context, wide bool) ([]float64, error) {
	d := f.device
	_, stride := f.points.Dims()
	// A chunk of points is uploaded at a time; AᵀA is computed of A, rows×width.
	chunk, width, across := min(f.n, max(sliceRows, deviceBytes/(4*stride))), len(f.columns), 0
	rows := chunk
	if wide {
		chunk, rows, width, across = f.n, len(f.columns), f.n, 1
	}
	tiles := (width + deviceTile - 1) / deviceTile
	tiles = tiles * (tiles + 1) / 2
	slices := max(1, min((deviceBlocks+tiles-1)/tiles, rows/sliceRows))
	each := (rows + slices - 1) / slices

	memory, err := d.AllocPieces(slices*width*width*8, chunk*stride*4, len(f.columns)*4, len(f.mean)*8)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	sums, x := memory.At(0), memory.At(1)
	if err := cmp.Or(device.Upload(d, memory.At(2), f.columns), device.Upload(d, memory.At(3), f.mean)); err != nil {
		return nil, err
	}
	l := device.Launch{Grid: tiles * slices, Block: deviceThreads}
	err = f.points.Each(ctx, chunk, func(lo int, points *data.Matrix) error {
		if !wide {
			rows = points.N
		}
		more := min(lo, 1)
		return cmp.Or(device.Upload(d, x, points.X),
			d.Launch("components_products", l, device.Arg(sums), device.Arg(x), device.Arg(memory.At(2)), device.Arg(memory.At(3)),
				device.Int(stride), device.Int(across), device.Int(rows), device.Int(width), device.Int(each), device.Int(more)))
	})
	if err == nil && slices > 1 {
		err = d.Each("components_add_slices", width*width, device.Arg(sums), device.Int(slices), device.Int(width*width))
	}
	if err != nil {
		return nil, err
	}
	c := make([]float64, width*width)
	return c, device.Download(d, c, sums)
}

// transformOnDevice is TransformTo on a device, for checked arguments. origin are the
// coordinates of the mean.
func (p *PCA) transformOnDevice(ctx context.Context, d *device.Device, dst *data.Matrix, from data.Source, origin []float64) error {
	chunk := min(dst.N, max(1, deviceBytes/(4*p.D)))
	memory, err := d.AllocPieces(chunk*p.K*4, chunk*p.D*4, len(p.Axes)*8, p.K*8)
	if err != nil {
		return err
	}
	defer memory.Free()
	if err := cmp.Or(device.Upload(d, memory.At(2), p.Axes), device.Upload(d, memory.At(3), origin)); err != nil {
		return err
	}
	return from.Each(ctx, chunk, func(lo int, points *data.Matrix) error {
		grid := (points.N + deviceTile - 1) / deviceTile * ((p.K + deviceTile - 1) / deviceTile)
		return cmp.Or(
			device.Upload(d, memory.At(1), points.X),
			d.Launch("components_project", device.Launch{Grid: grid, Block: deviceThreads}, device.Arg(memory.At(0)), device.Arg(memory.At(1)),
				device.Arg(memory.At(2)), device.Arg(memory.At(3)), device.Int(points.N), device.Int(p.D), device.Int(p.K)),
			device.Download(d, dst.X[lo*p.K:(lo+points.N)*p.K], memory.At(0)),
		)
	})
}
