package data

import "cne/internal/device"

// On an accelerator the products are computed in double precision, too, from points
// that are uploaded as they are: GPUs for computation multiply float64 at half of
// float32's rate, and the small eigenvalues do not survive float32.
const (
	// remoteTile is the width of the tiles in which products are computed.
	remoteTile    = 64
	remoteThreads = 256 // for each
	// With fewer tiles than remoteBlocks the rows are cut into slices, of sliceRows
	// rows or more, so that there is work for all multiprocessors.
	remoteBlocks = 512
	sliceRows    = 256
)

// remoteBytes bounds the points that are on the accelerator at a time; a variable
// for tests.
var remoteBytes = 256 << 20

// FitPCAOn is FitPCA on a device: an accelerator forms the products, which take
// most of the time, in double precision, and the CPU solves the eigenvalue problem.
// The results agree up to the rounding of sums. Beside the products, of the order
// of min(n,D)², an accelerator holds 256 MiB of the points, or, if they are fewer
// than their columns, all of them. Errors are also the device's.
func FitPCAOn(d *device.Device, m *Matrix, k int) (*PCA, error) { return fitPCA(d, m, k) }

// remoteProducts is upperProducts on an accelerator: of the points without their
// constant columns, less the shift, or (across) of the transpose of that.
func (f *pcaFit) remoteProducts(across bool) ([]float64, error) {
	d, m := f.device, f.m
	rows, width := m.N, len(f.columns)
	chunk := min(rows, max(sliceRows, remoteBytes/(4*m.D))) // points uploaded at a time
	crossed := 0
	if across {
		rows, width, chunk, crossed = len(f.columns), m.N, m.N, 1
	}
	tiles := (width + remoteTile - 1) / remoteTile
	tiles = tiles * (tiles + 1) / 2
	n := rows // of A, in a chunk
	if !across {
		n = chunk
	}
	slices := max(1, min((remoteBlocks+tiles-1)/tiles, n/sliceRows))
	each := (n + slices - 1) / slices

	columns := make([]int32, len(f.columns))
	for b, j := range f.columns {
		columns[b] = int32(j)
	}
	memory, err := d.AllocPieces(slices*width*width*8, chunk*m.D*4, len(columns)*4, len(f.shift)*8)
	if err != nil {
		return nil, err
	}
	defer memory.Free()
	sums, x := memory.At(0), memory.At(1)
	if err := device.Upload(d, memory.At(2), columns); err != nil {
		return nil, err
	}
	if err := device.Upload(d, memory.At(3), f.shift); err != nil {
		return nil, err
	}
	l := device.Launch{Grid: tiles * slices, Block: remoteThreads}
	for lo := 0; lo < m.N; lo += chunk {
		points := m.Rows(lo, min(m.N, lo+chunk))
		if err := device.Upload(d, x, points.X); err != nil {
			return nil, err
		}
		if !across {
			rows = points.N
		}
		more := min(lo, 1)
		if err := d.Launch("components_products", l, device.Arg(sums), device.Arg(x), device.Arg(memory.At(2)), device.Arg(memory.At(3)),
			device.Int(m.D), device.Int(crossed), device.Int(rows), device.Int(width), device.Int(each), device.Int(more)); err != nil {
			return nil, err
		}
	}
	if slices > 1 {
		if err := d.Each("components_gather", width*width, device.Arg(sums), device.Int(slices), device.Int(width*width)); err != nil {
			return nil, err
		}
	}
	c := make([]float64, width*width)
	return c, device.Download(d, c, sums)
}

// TransformOn is Transform on a device. The results agree up to the rounding of
// sums in float64. Errors are also the device's.
func (p *PCA) TransformOn(d *device.Device, m *Matrix) (*Matrix, error) {
	if d.OnHost() {
		return p.Transform(m)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := p.check(m.D); err != nil {
		return nil, err
	}
	dst := NewMatrix(m.N, p.K)
	return dst, p.project(d, dst, m)
}

// project is TransformTo on an accelerator for checked arguments.
func (p *PCA) project(d *device.Device, dst, m *Matrix) error {
	origin := make([]float64, p.K)
	for a := range p.K {
		for j, v := range p.axis(a) {
			origin[a] += v * p.Mean[j]
		}
	}
	chunk := min(m.N, max(1, remoteBytes/(4*p.D)))
	memory, err := d.AllocPieces(chunk*p.K*4, chunk*p.D*4, len(p.Axes)*8, p.K*8)
	if err != nil {
		return err
	}
	defer memory.Free()
	if err := device.Upload(d, memory.At(2), p.Axes); err != nil {
		return err
	}
	if err := device.Upload(d, memory.At(3), origin); err != nil {
		return err
	}
	for lo := 0; lo < m.N; lo += chunk {
		points := m.Rows(lo, min(m.N, lo+chunk))
		if err := device.Upload(d, memory.At(1), points.X); err != nil {
			return err
		}
		grid := (points.N + remoteTile - 1) / remoteTile * ((p.K + remoteTile - 1) / remoteTile)
		if err := d.Launch("components_project", device.Launch{Grid: grid, Block: remoteThreads}, device.Arg(memory.At(0)), device.Arg(memory.At(1)),
			device.Arg(memory.At(2)), device.Arg(memory.At(3)), device.Int(points.N), device.Int(p.D), device.Int(p.K)); err != nil {
			return err
		}
		if err := device.Download(d, dst.X[lo*p.K:(lo+points.N)*p.K], memory.At(0)); err != nil {
			return err
		}
	}
	return nil
}
