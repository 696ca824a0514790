//go:build cu

package op_test

import (
	"fmt"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model/op"
)

// benchmarkOn times runs of a graph on a device, and returns the seconds of one.
func benchmarkOn(b *testing.B, build func(d *device.Device, g *gorgonia.ExprGraph) (in map[*gorgonia.Node]*op.Array, out gorgonia.Nodes)) (seconds float64) {
	b.Helper()
	d := fakecuda.Open(b)
	d.TF32, d.Unpooled = true, false
	in, out := build(d, gorgonia.NewGraph())
	p := compiled(b, d, in, out...)
	must(b, p.Run()) // loads the kernels
	must(b, d.Synchronize())
	b.ResetTimer()
	for range b.N {
		must(b, p.Run())
	}
	must(b, d.Synchronize())
	seconds = b.Elapsed().Seconds() / float64(b.N)
	b.StopTimer()
	must(b, p.Close())
	return seconds
}

// BenchmarkContrastiveOnDevice times a loss with its gradient, with few and many
// negatives and all of a batch.
func BenchmarkContrastiveOnDevice(b *testing.B) {
	edges := 1024
	if testing.Short() {
		edges = 40
	}
	for _, c := range []struct {
		options   op.ContrastiveOptions
		d         int
		negatives string
	}{
		{op.ContrastiveOptions{Clamp: 1e-10}, 2, "5"},
		{op.ContrastiveOptions{Clamp: 1e-10}, 2, "500"},
		{op.ContrastiveOptions{Clamp: 1e-10}, 2, "full"},
		{op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Mean: true}, 128, "16"},
		{op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Mean: true}, 128, "full"},
	} {
		b.Run(fmt.Sprintf("%v/d=%d/b=%d/m=%s", c.options.Loss, c.d, edges, c.negatives), func(b *testing.B) {
			rows := 2 * edges
			p := lossCase{features: normals(rows*c.d, 5), d: c.d, b: edges, options: c.options}
			var m int
			switch c.negatives {
			case "full":
				m, p.runs = rows-2, []int32{-1}
			case "500":
				// Neighbouring heads share runs of rows.
				m = min(500, rows/4)
				p.runs = []int32{int32(m)}
				for head := 0; head < edges; head += op.GroupHeads {
					p.runs = append(p.runs, int32(head%(rows/4)))
				}
			default:
				if _, err := fmt.Sscan(c.negatives, &m); err != nil {
					b.Fatal(err)
				}
				p.negatives, p.runs = draws(m, edges, 1), []int32{0}
			}
			if c.options.Metric == op.Cosine {
				p.features = unit(p.features, c.d)
			}
			s := benchmarkOn(b, func(_ *device.Device, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
				return p.graph(b, g)
			})
			b.ReportMetric(float64(edges)*float64(m+1)/s*1e-9, "Gpairs/s")
		})
	}
}

// imageSize returns the shape of the first images of SimCLR's network.
func imageSize() [4]int {
	if testing.Short() {
		return [4]int{2, 8, 8, 8}
	}
	return [4]int{512, 32, 32, 64}
}

// BenchmarkConvolutionOnDevice times the most frequent convolution of SimCLR's network
// with both gradients, by cuDNN, if it is there, and by im2col: in TF32, and in bfloat16 of
// arrays of float32.
func BenchmarkConvolutionOnDevice(b *testing.B) {
	shape := imageSize()
	c := shape[3]
	x, w, gradient := filled(b, 1, shape[:]...), filled(b, 2, c, c, 3, 3), filled(b, 3, shape[:]...)
	for _, by := range []string{"library", "patches", "library/bf16", "patches/bf16"} {
		b.Run(by, func(b *testing.B) {
			by, halves := strings.CutSuffix(by, "/bf16")
			precision, unit := op.Float32, "TFLOP/s-tf32"
			if halves {
				precision, unit = op.BFloat16, "TFLOP/s-bf16"
			}
			fakecuda.Convolutions(b, by == "library")
			var used *device.Device
			s := benchmarkOn(b, func(d *device.Device, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
				used = d
				nx, nw, ng := nodeOf(g, x, "x"), nodeOf(g, w, "w"), nodeOf(g, gradient, "gradient")
				y := gorgonia.Must(op.Conv2d(nx, nw, 1, 1, precision))
				return map[*gorgonia.Node]*op.Array{nx: x, nw: w, ng: gradient}, append(gorgonia.Nodes{y}, weighted(b, y, ng, nx, nw)...)
			})
			if software := used.Properties().Software; by == "library" && !strings.Contains(software, "cuDNN") {
				b.Skipf("there is no library of convolutions (%s)", software)
			}
			each := 2 * float64(x.Len()) * float64(9*c)
			b.ReportMetric(3*each/s*1e-12, unit)
		})
	}
}

// BenchmarkBatchNormOnDevice times a batch normalisation with ReLU, with its gradients.
func BenchmarkBatchNormOnDevice(b *testing.B) {
	shape := imageSize()
	c := shape[3]
	x, gradient, scale, shift := filled(b, 1, shape[:]...), filled(b, 2, shape[:]...), filled(b, 3, c), filled(b, 4, c)
	s := benchmarkOn(b, func(d *device.Device, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
		stats, err := op.NewBatchStats(d, tensor.Float32, c)
		must(b, err)
		nx, ng, ns, nh := nodeOf(g, x, "x"), nodeOf(g, gradient, "gradient"), nodeOf(g, scale, "scale"), nodeOf(g, shift, "shift")
		y := gorgonia.Must(op.BatchNorm(nx, ns, nh, stats, op.ReLUActivation))
		return map[*gorgonia.Node]*op.Array{nx: x, ng: gradient, ns: scale, nh: shift}, append(gorgonia.Nodes{y}, weighted(b, y, ng, nx, ns, nh)...)
	})
	// Forwards the images are read twice and written; backwards they and the gradient are
	// read twice and the images' gradient is written.
	b.ReportMetric(8*4*float64(x.Len())/s*1e-9, "GB/s")
}
