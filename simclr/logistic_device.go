package simclr

import (
	"cmp"

	"cne/internal/device"
	"cne/internal/parallel"
)

// A deviceObjective computes an objective on an accelerator.
type deviceObjective struct {
	device       *device.Device
	memory       device.Pieces
	pieces, wide int // wide: d + 1, for a feature that is always 1

	x, class, w, bias, z, losses, parts, gradient device.Pointer

	weights []float32 // [k, wide]: W, and zeros for the last feature
	lossOf  []float64 // of each block of images
	sums    []float64 // [k, wide]: the derivatives' sums over the images
}

// Sizes that the kernels share.
const (
	deviceImages   = 256 // of a block of losses
	deviceFeatures = 128 // of a block of products
	deviceClasses  = 8
)

func newDeviceObjective(d *device.Device, o *objective) (*deviceObjective, error) {
	r := &deviceObjective{device: d, pieces: parallel.Pieces(o.n, o.grain), wide: o.d + 1}
	blocks := parallel.Pieces(o.n, deviceImages)
	r.weights, r.lossOf, r.sums = make([]float32, o.k*r.wide), make([]float64, blocks), make([]float64, o.k*r.wide)
	var err error
	if r.memory, err = d.AllocPieces(
		o.n*r.wide*4, o.n*4, len(r.weights)*4, o.k*8, o.n*o.k*4, blocks*8, r.pieces*len(r.sums)*8, len(r.sums)*8); err != nil {
		return nil, err
	}
	for i, at := range []*device.Pointer{&r.x, &r.class, &r.w, &r.bias, &r.z, &r.losses, &r.parts, &r.gradient} {
		*at = r.memory.At(i)
	}
	if err := r.upload(o); err != nil {
		r.free()
		return nil, err
	}
	return r, nil
}

// upload uploads the features and classes, which stay the same.
func (r *deviceObjective) upload(o *objective) error {
	rows := max(1, 1<<22/r.wide)
	chunk := make([]float32, min(rows, o.n)*r.wide)
	for lo := 0; lo < o.n; lo += rows {
		hi := min(o.n, lo+rows)
		for i := lo; i < hi; i++ {
			row := chunk[(i-lo)*r.wide : (i-lo+1)*r.wide]
			copy(row, o.x[i*o.d:(i+1)*o.d])
			row[o.d] = 1
		}
		if err := device.Upload(r.device, r.x.At(lo*r.wide, 4), chunk[:(hi-lo)*r.wide]); err != nil {
			return err
		}
	}
	return device.Upload(r.device, r.class, o.class)
}

func (r *deviceObjective) free() { r.memory.Free() }

// at is objective.at, after o.w and o.bias were set.
func (r *deviceObjective) at(o *objective, theta, gradient []float64) (float64, error) {
	d, k, dev := o.d, o.k, r.device
	for c := range k {
		copy(r.weights[c*r.wide:], o.w[c*d:(c+1)*d])
	}
	across, chunks := parallel.Pieces(r.wide, deviceFeatures), parallel.Pieces(k, deviceClasses)
	if err := cmp.Or(
		device.Upload(dev, r.w, r.weights),
		device.Upload(dev, r.bias, o.bias),
		dev.Multiply(device.Product{
			TransB: true, M: o.n, N: k, K: r.wide, Alpha: 1, A: r.x, LDA: r.wide, B: r.w, LDB: r.wide, C: r.z, LDC: k, Exact: true,
		}),
		dev.Launch("logistic_losses", device.Launch{Grid: len(r.lossOf), Block: deviceImages}, device.Arg(r.losses),
			device.Arg(r.z), device.Arg(r.bias), device.Arg(r.class), device.Int(o.n), device.Int(k)),
		dev.Launch("logistic_products", device.Launch{Grid: across * chunks * r.pieces, Block: deviceFeatures}, device.Arg(r.parts),
			device.Arg(r.z), device.Arg(r.x), device.Int(o.n), device.Int(r.wide), device.Int(k), device.Int(o.grain)),
		dev.Each("logistic_gradient", len(r.sums), device.Arg(r.gradient), device.Arg(r.parts), device.Int(r.pieces), device.Int(len(r.sums))),
		device.Download(dev, r.sums, r.gradient),
		device.Download(dev, r.lossOf, r.losses),
	); err != nil {
		return 0, err
	}
	var loss float64
	for _, l := range r.lossOf {
		loss += l
	}
	scale := 1 / float64(o.n)
	for c := range k {
		for l, w := range theta[c*d : (c+1)*d] {
			gradient[c*d+l] = r.sums[c*r.wide+l]*scale + o.penalty*w
		}
		gradient[k*d+c] = r.sums[c*r.wide+d] * scale
	}
	return loss*scale + o.penaltyOf(theta), nil
}
