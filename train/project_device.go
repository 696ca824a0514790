package train

import (
	"cmp"
	"fmt"

	"cne/data/neighbors"
	"cne/internal/device"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model/op"
)

// projectionBlock is the number of threads of a block of the kernel project.
const projectionBlock = 128

// A deviceProjection is a table on a device, among which new points are moved.
type deviceProjection struct {
	device *device.Device
	table  *device.Memory // [n, d]
}

// whyNotOnDevice says why a projector's points are moved on the CPU, although their
// neighbours are found on a device; "" if they are moved there, too.
func (p *Projector) whyNotOnDevice() string {
	switch {
	case p.training.Objective.Metric != op.Euclidean:
		return "they are compared by their cosine"
	case p.d > 4:
		return fmt.Sprintf("they have %d dimensions, more than 4", p.d)
	}
	return ""
}

// useDevice has points moved on an accelerator.
func (p *Projector) useDevice(on *device.Device) error {
	if why := p.whyNotOnDevice(); why != "" {
		on.Say("new points are placed on the CPU, with neighbours from the GPU, since " + why)
		return nil
	}
	table, err := on.Alloc(4 * len(p.table))
	if err != nil {
		return err
	}
	p.onDevice = &deviceProjection{on, table}
	return device.Upload(on, table.Pointer(), p.table)
}

// placeOnDevice is place for all points of a call, a thread of the device for each.
func (p *Projector) placeOnDevice(dst, x []float32, near *neighbors.Neighbors) error {
	on, q, k, m := p.onDevice.device, len(dst)/p.d, near.K, p.training.Negatives
	parallel.For(q, projectionRows, func(_, lo, hi int) { p.start(dst[lo*p.d:hi*p.d], near, lo) })
	epochs := cmp.Or(p.Epochs, projectionEpochs)
	if epochs < 0 {
		return nil
	}
	lrs := make([]float32, epochs)
	for epoch := range lrs {
		lrs[epoch] = p.stepSize(epoch, epochs)
	}
	at := 1
	var keys []uint64 // states of streams: of the points, or of the steps
	if m >= runsFrom {
		at = simd.QuadHeads
		for epoch := range epochs {
			for edge := 0; edge < k; edge += at {
				stream := p.sharedStream(epoch, edge)
				keys = append(keys, stream.State())
			}
		}
	} else {
		keys = make([]uint64, q)
		parallel.For(q, projectionRows, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				stream := p.streamOf(x[i*p.width : (i+1)*p.width])
				keys[i] = stream.State()
			}
		})
	}
	memory, err := on.AllocPieces(4*len(dst), 4*len(near.Index), 8*len(keys), 4*len(lrs))
	if err != nil {
		return err
	}
	defer memory.Free()
	o := p.training.Objective
	flags := 0
	if o.ExcludePositive {
		flags = withoutPositive
	}
	kernel, args := op.KernelForWidth("project_%s", p.d,
		device.Arg(memory.At(0)), argOf(p.onDevice.table), device.Arg(memory.At(1)), device.Arg(memory.At(2)), device.Arg(memory.At(3)),
		device.Int(q), device.Int(p.n), device.Int(k), device.Int(m), device.Int(epochs), device.Int(at), device.F32(p.training.LogConst),
		device.Int(int(o.Loss)), device.Int(flags), device.F32(float64(1/simd.BoundOf[float32](o.Clamp).Clamp())), device.F32(cmp.Or(o.Scale, 1)),
		device.F32(bound(p.training.Clip)))
	return cmp.Or(
		device.Upload(on, memory.At(0), dst), device.Upload(on, memory.At(1), near.Index), device.Upload(on, memory.At(2), keys), device.Upload(on, memory.At(3), lrs),
		on.Launch(kernel, device.Launch{Grid: parallel.Pieces(q, projectionBlock), Block: projectionBlock}, args...),
		device.Download(on, dst, memory.At(0)),
	)
}

// withoutPositive is the flag of the kernels' sweeps.h.
const withoutPositive = 2

// stepSize returns that of an epoch of so many.
func (p *Projector) stepSize(epoch, epochs int) float32 {
	return float32(p.training.LR * (1 - float64(epoch)/float64(epochs)))
}

// streamOf returns the stream of a point's own negatives, and sharedStream that of those
// that all points share in a step.
func (p *Projector) streamOf(x []float32) rng.Stream {
	return rng.New(p.training.Seed, rng.Projection, contentKey(x))
}
func (p *Projector) sharedStream(epoch, edge int) rng.Stream {
	return rng.New(p.training.Seed, rng.Projection, uint64(epoch), uint64(edge))
}
