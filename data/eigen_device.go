package data

import (
	"math"

	"cne/internal/device"
)

// productSlices is into how many slices a device cuts the sums of a product of a matrix with
// a subspace, to keep all multiprocessors busy.
const productSlices = 4

// A deviceMatrix is a symmetric matrix on a device that multiplies the vectors of a subspace.
type deviceMatrix struct {
	device   *device.Device
	n, width int
	memory   device.Pieces
	// matrix is [n, n]; basis, image and spare are those of a subspace, [n, width], and parts
	// are the slices of a product, [productSlices, n, width].
	matrix, parts, basis, image, spare device.Pointer
}

// newDeviceMatrix uploads a matrix, both of whose triangles are given.
func newDeviceMatrix(d *device.Device, matrix []float64, n, width int) (*deviceMatrix, error) {
	size := n * width * 8
	memory, err := d.AllocPieces(len(matrix)*8, productSlices*size, size, size, size)
	if err != nil {
		return nil, err
	}
	m := &deviceMatrix{device: d, n: n, width: width, memory: memory,
		matrix: memory.At(0), parts: memory.At(1), basis: memory.At(2), image: memory.At(3), spare: memory.At(4)}
	if err := device.Upload(d, m.matrix, matrix); err != nil {
		memory.Free()
		return nil, err
	}
	return m, nil
}

// multiply sets to to alpha times the matrix times from and, if less is not 0, subtracts
// twice from and less.
func (m *deviceMatrix) multiply(to, from, less device.Pointer, alpha float64) error {
	tiles := (m.n + deviceTile - 1) / deviceTile * ((m.width + deviceTile - 1) / deviceTile)
	if err := m.device.Launch("components_multiply", device.Launch{Grid: tiles * productSlices, Block: deviceThreads},
		device.Arg(m.parts), device.Arg(m.matrix), device.Arg(from), device.Int(m.n), device.Int(m.width), device.Int(productSlices)); err != nil {
		return err
	}
	return m.device.Each("components_recur", m.n*m.width, device.Arg(to), device.Arg(m.parts), device.Arg(from), device.Arg(less),
		device.Word(math.Float64bits(alpha)), device.Int(productSlices), device.Int(m.n*m.width))
}

// project sets image to the matrix times the basis.
func (m *deviceMatrix) project(image, basis []float64) error {
	if err := device.Upload(m.device, m.basis, basis); err != nil {
		return err
	}
	if err := m.multiply(m.image, m.basis, 0, 1); err != nil {
		return err
	}
	return device.Download(m.device, image, m.image)
}

// filter sets now to T(degree) of what T(1) is and T(0) before, by the recurrence of
// subspace.filter.
func (m *deviceMatrix) filter(before, now []float64, degree int, c float64) error {
	if err := device.Upload(m.device, m.basis, before); err != nil {
		return err
	}
	if err := device.Upload(m.device, m.image, now); err != nil {
		return err
	}
	old, latest, next := m.basis, m.image, m.spare
	for range degree - 1 {
		if err := m.multiply(next, latest, old, 2/c); err != nil {
			return err
		}
		old, latest, next = latest, next, old
	}
	return device.Download(m.device, now, latest)
}

func (m *deviceMatrix) free() { m.memory.Free() }
