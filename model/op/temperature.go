package op

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/kind"
)

// MinTemperature and MaxTemperature bound the temperatures of ScaleByTemperature.
const (
	MinTemperature = 0.01
	MaxTemperature = 100
)

// ScaleByTemperature returns x [n, d] divided by √τ, where log τ is a vector of one
// number. The inner products of unit rows become cosines divided by the temperature τ, so
// τ can be learnt. Contrastive must then have temperature 1. τ is clamped to
// [MinTemperature, MaxTemperature]. Beyond a bound the gradient of log τ is zero unless a
// descent step leads back.
func ScaleByTemperature(x, logTemperature *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&temperature{base{name: "scale_by_temperature", arity: 2, typ: hm.NewFnType(matrix, vector, matrix)}}, x, logTemperature)
}

type temperature struct{ base }

func (o *temperature) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 || in[1].dims != 1 || in[1].shape[0] != 1 {
		return nil, kind.Errorf(ErrInput, "op: scale_by_temperature: got shapes %v and %v, want a matrix and a vector of one number", in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[0].shape[0], in[0].shape[1]), nil
}

func (o *temperature) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		scaleByTemperature(dst.f64, in[0].f64, in[1].f64[0])
	} else {
		scaleByTemperature(dst.f32, in[0].f32, in[1].f32[0])
	}
	return nil
}

// Launch implements Launcher.
func (o *temperature) Launch(d *Device, dst *Array, in []*Array) error {
	return d.Each("scale_by_temperature", dst.Len(), dst.Arg(), in[0].Arg(), in[1].Arg(),
		device.F32(minLog), device.F32(maxLog), device.Int(dst.Len()))
}

func (o *temperature) DiffWRT(int) []bool { return []bool{true, true} }

func (o *temperature) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := ScaleByTemperature(grad, in[1])
	if err != nil {
		return nil, err
	}
	dLog, err := apply(&temperatureGrad{base: base{name: "scale_by_temperature_grad", arity: 3, typ: hm.NewFnType(vector, matrix, matrix, vector)}}, in[1], out, grad)
	return gorgonia.Nodes{dx, dLog}, err
}

// temperatureGrad is the gradient with respect to log τ, −½·Σ y·g. Its inputs are
// log τ, the result y and the incoming gradient g.
type temperatureGrad struct {
	base
	sums scratch // float64, of an accelerator's blocks
}

func (o *temperatureGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	return append(dst, 1), nil
}

func (o *temperatureGrad) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		dst.f64[0] = temperatureSlope(in[0].f64[0], in[1].f64, in[2].f64)
	} else {
		dst.f32[0] = temperatureSlope(in[0].f32[0], in[1].f32, in[2].f32)
	}
	return nil
}

// mostBlocks is the largest number of blocks of 256 threads that add up an array. It
// suffices for every accelerator.
const mostBlocks = 512

// blocksFor returns the number of blocks that add up n elements.
func blocksFor(n int) int { return min(mostBlocks, (n+1023)/1024) }

// Launch implements Launcher.
func (o *temperatureGrad) Launch(d *Device, dst *Array, in []*Array) error {
	n := in[1].Len()
	blocks := blocksFor(n)
	sums, err := o.sums.of(d, tensor.Int32, 2*blocks)
	if err != nil {
		return err
	}
	if n > 0 {
		if err := d.Launch("temperature_sums", device.Launch{Grid: blocks, Block: 256}, sums.Arg(), in[1].Arg(), in[2].Arg(), device.Int(n)); err != nil {
			return err
		}
	}
	return d.Launch("temperature_grad", device.Launch{Grid: 1, Block: 256}, dst.Arg(), sums.Arg(), device.Int(blocks), in[0].Arg(),
		device.F32(minLog), device.F32(maxLog))
}

var minLog, maxLog = elementary.Log(MinTemperature), elementary.Log(MaxTemperature)

func scaleByTemperature[T Float](dst, x []T, logTemperature T) {
	f := T(elementary.Exp(-min(max(float64(logTemperature), minLog), maxLog) / 2))
	for i, v := range x {
		dst[i] = f * v
	}
}

func temperatureSlope[T Float](logTemperature T, y, g []T) T {
	var sum float64
	for i, v := range y {
		sum += float64(float64(v) * float64(g[i]))
	}
	slope := -sum / 2
	if t := float64(logTemperature); t <= minLog && slope > 0 || t >= maxLog && slope < 0 {
		return 0
	}
	return T(slope)
}
