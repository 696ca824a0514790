package pca

import (
	"cmp"

	"cne/internal/device"
)

// productSlices is into how many slices a device cuts the sums of a product of a matrix with
// a subspace, to keep all multiprocessors busy.
const productSlices = 4

// A deviceMatrix is a symmetric matrix on a device that multiplies the vectors of a subspace.
type deviceMatrix struct {
	device   *device.Device
	n, width int
	memory   device.Pieces // the matrix [n, n], vectors [n, width], and slices of a product [productSlices, n, width]
}

// newDeviceMatrix uploads a matrix, both of whose triangles are given.
func newDeviceMatrix(d *device.Device, matrix []float64, n, width int) (*deviceMatrix, error) {
	memory, err := d.AllocPieces(len(matrix)*8, n*width*8, productSlices*n*width*8)
	if err != nil {
		return nil, err
	}
	if err := device.Upload(d, memory.At(0), matrix); err != nil {
		memory.Free()
		return nil, err
	}
	return &deviceMatrix{d, n, width, memory}, nil
}

// multiply sets to to the matrix times from.
func (m *deviceMatrix) multiply(to, from []float64) error {
	tiles := (m.n + deviceTile - 1) / deviceTile * ((m.width + deviceTile - 1) / deviceTile)
	return cmp.Or(
		device.Upload(m.device, m.memory.At(1), from),
		m.device.Launch("components_multiply", device.Launch{Grid: tiles * productSlices, Block: deviceThreads},
			device.Arg(m.memory.At(2)), device.Arg(m.memory.At(0)), device.Arg(m.memory.At(1)), device.Int(m.n), device.Int(m.width), device.Int(productSlices)),
		m.device.Each("components_add_slices", len(to), device.Arg(m.memory.At(2)), device.Int(productSlices), device.Int(len(to))),
		device.Download(m.device, to, m.memory.At(2)),
	)
}
