package op_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/rng"
	"cne/model/op"
	"cne/model/vm"
)

// convCase is a convolution of n images [c, h, w] with k windows [kh, kw].
type convCase struct{ n, c, h, w, k, kh, kw, stride, pad int }

func (c convCase) String() string {
	return fmt.Sprintf("%dx%dx%dx%d_k%d_%dx%d_s%d_p%d", c.n, c.c, c.h, c.w, c.k, c.kh, c.kw, c.stride, c.pad)
}

func (c convCase) result() (oh, ow int) {
	return (c.h+2*c.pad-c.kh)/c.stride + 1, (c.w+2*c.pad-c.kw)/c.stride + 1
}

var convCases = []convCase{
	{2, 3, 8, 8, 4, 3, 3, 1, 1},
	{1, 1, 1, 1, 1, 1, 1, 1, 0},
	{3, 2, 5, 7, 3, 3, 3, 2, 1},  // odd, stride 2
	{2, 3, 6, 5, 2, 1, 1, 2, 0},  // a shortcut
	{2, 3, 6, 5, 5, 1, 1, 1, 0},  // the image is its patches
	{1, 2, 4, 4, 3, 3, 3, 1, 0},  // no padding
	{2, 1, 3, 4, 2, 2, 4, 1, 2},  // windows that are not square, much padding
	{1, 2, 9, 3, 2, 3, 3, 3, 1},  // stride 3
	{1, 1, 1, 1, 2, 3, 3, 1, 1},  // less image than window
	{2, 1, 2, 2, 1, 1, 1, 1, 3},  // some windows see only padding
	{17, 2, 3, 3, 2, 3, 3, 1, 1}, // several images a piece
	{2, 3, 4, 4, 16, 3, 3, 1, 1}, // a whole panel of columns
	// Every window sees all of the image: with and without padding, of one pixel's height,
	// in strides.
	{3, 3, 2, 2, 4, 3, 3, 1, 1}, {2, 2, 1, 2, 3, 3, 3, 1, 1}, {2, 3, 3, 3, 2, 5, 5, 1, 2},
	{3, 2, 2, 3, 4, 2, 3, 1, 0}, {2, 2, 2, 2, 3, 3, 3, 2, 1}, {2, 1, 1, 2, 2, 5, 6, 2, 4},
}

// exactly returns the result [n,oh,ow,k] and the gradients of a convolution of images
// [n,h,w,c], weights [k,c,kh,kw] and a gradient of the result, by the definition.
func (c convCase) exactly(in [3][]float64) (out [3][]float64) {
	oh, ow := c.result()
	x, w, g := in[0], in[1], in[2]
	y, dx, dw := make([]float64, len(g)), make([]float64, len(x)), make([]float64, len(w))
	for at := range y {
		k, px, py, n := at%c.k, at/c.k%ow, at/c.k/ow%oh, at/c.k/ow/oh
		for tap := range c.kh * c.kw {
			iy, ix := py*c.stride+tap/c.kw-c.pad, px*c.stride+tap%c.kw-c.pad
			if iy < 0 || ix < 0 || iy >= c.h || ix >= c.w {
				continue
			}
			for ch := range c.c {
				i, j := ((n*c.h+iy)*c.w+ix)*c.c+ch, (k*c.c+ch)*c.kh*c.kw+tap
				y[at] += x[i] * w[j]
				dx[i] += g[at] * w[j]
				dw[j] += g[at] * x[i]
			}
		}
	}
	return [3][]float64{y, dx, dw}
}

// A convGraph is a convolution and the gradients of its contraction with given
// factors.
type convGraph struct {
	x, w, factors, y, dx, dw *gorgonia.Node
	graph                    *gorgonia.ExprGraph
	shapeX, shapeW, shapeY   []int
	dtype                    tensor.Dtype
}

func newConvGraph(t testing.TB, c convCase, dtype tensor.Dtype, precision op.Precision) *convGraph {
	t.Helper()
	oh, ow := c.result()
	g := &convGraph{graph: gorgonia.NewGraph(), dtype: dtype, shapeX: []int{c.n, c.h, c.w, c.c}, shapeW: []int{c.k, c.c, c.kh, c.kw}, shapeY: []int{c.n, oh, ow, c.k}}
	node := func(name string, shape []int) *gorgonia.Node {
		return gorgonia.NewTensor(g.graph, dtype, 4, gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	g.x, g.w, g.factors = node("x", g.shapeX), node("w", g.shapeW), node("factors", g.shapeY)
	g.y = gorgonia.Must(op.Conv2d(g.x, g.w, c.stride, c.pad, precision))
	grads := weighted(t, g.y, g.factors, g.x, g.w)
	g.dx, g.dw = grads[0], grads[1]
	return g
}

func (g *convGraph) let(t testing.TB, x, w, factors []float64) {
	t.Helper()
	for n, v := range map[*gorgonia.Node]struct {
		shape []int
		data  []float64
	}{g.x: {g.shapeX, x}, g.w: {g.shapeW, w}, g.factors: {g.shapeY, factors}} {
		must(t, gorgonia.Let(n, valueOf(g.dtype, slices.Clone(v.data), v.shape...)))
	}
}

// By the definition, and by central differences, under both machines.
func TestConv2d(t *testing.T) {
	for _, c := range convCases {
		for machine, newMachine := range machines {
			for _, dtype := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
				t.Run(fmt.Sprintf("%v/%s/%v", c, machine, dtype), func(t *testing.T) {
					g := newConvGraph(t, c, dtype, op.Float32)
					x, w, factors := normals(product(g.shapeX), 1), normals(product(g.shapeW), 2), normals(product(g.shapeY), 3)
					g.let(t, x, w, factors)
					m := newMachine(t, g.graph, g.y, g.dx, g.dw)
					defer m.Close()
					evaluate := func() float64 {
						m.Reset()
						g.let(t, x, w, factors)
						must(t, m.RunAll())
						var sum float64
						for i, v := range float64sOf(t, g.y.Value()) {
							sum += v * factors[i]
						}
						return sum
					}
					evaluate()
					tol := 1e-12
					if dtype == tensor.Float32 {
						tol = 1e-5
					}
					closeTo(t, "result", float64sOf(t, g.y.Value()), c.exactly([3][]float64{x, w, factors})[0], tol)
					if dtype == tensor.Float32 {
						return
					}
					dx, dw := slices.Clone(float64sOf(t, g.dx.Value())), slices.Clone(float64sOf(t, g.dw.Value()))
					closeTo(t, "gradient of the images", dx, differences(x, evaluate), 1e-8)
					closeTo(t, "gradient of the weights", dw, differences(w, evaluate), 1e-8)
				})
			}
		}
	}
}

// oneCoreBlocks has so many tiles that each core computes blocks of its own by
// Winograd's method, and adds up several of them in a copy of the gradient.
var oneCoreBlocks = convCase{50, 16, 5, 6, 528, 3, 3, 1, 1}

// Sizes that use the vector kernels, against float64.
func TestConv2dFloat32(t *testing.T) {
	for _, c := range []convCase{
		{5, 16, 16, 16, 24, 3, 3, 1, 1}, {4, 24, 17, 15, 33, 3, 3, 2, 1}, {3, 40, 8, 8, 20, 1, 1, 2, 0}, {3, 200, 4, 4, 130, 3, 3, 1, 1}, {2, 3, 9, 7, 48, 3, 3, 2, 1},
		// By Winograd's method: many tiles and few, odd sizes, one pixel, many channels.
		{2, 64, 32, 32, 64, 3, 3, 1, 1}, {40, 16, 13, 18, 48, 3, 3, 1, 1}, {1, 32, 1, 1, 16, 3, 3, 1, 1}, {3, 16, 7, 2, 16, 3, 3, 1, 1}, {2, 144, 5, 6, 160, 3, 3, 1, 1}, {300, 16, 4, 4, 16, 3, 3, 1, 1},
		oneCoreBlocks,
		{5, 32, 2, 2, 48, 3, 3, 1, 1}, {70, 16, 2, 1, 24, 3, 3, 1, 1},
	} {
		var got, want [][]float64
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			g := newConvGraph(t, c, dtype, op.Float32)
			g.let(t, normals(product(g.shapeX), 1), normals(product(g.shapeW), 2), normals(product(g.shapeY), 3))
			ran(t, g.y, g.dx, g.dw)
			got, want = want, valuesOf(t, g.y, g.dx, g.dw)
		}
		for i, what := range partNames {
			closeTo(t, fmt.Sprintf("%v: %s", c, what), got[i], want[i], 2e-5)
		}
	}
}

// Gorgonia's own convolution and its gradients, which are right but slow, of
// images whose channels come first.
func TestConv2dIsGorgonias(t *testing.T) {
	for _, c := range []convCase{{2, 3, 8, 8, 4, 3, 3, 1, 1}, {2, 3, 7, 9, 4, 3, 3, 2, 1}, {2, 4, 6, 6, 5, 1, 1, 1, 0}} {
		oh, ow := c.result()
		graph := gorgonia.NewGraph()
		x := imagesOf(graph, tensor.Float64, "x", normals(c.n*c.c*c.h*c.w, 1), c.n, c.c, c.h, c.w)
		w := imagesOf(graph, tensor.Float64, "w", normals(c.k*c.c*c.kh*c.kw, 2), c.k, c.c, c.kh, c.kw)
		factors := imagesOf(graph, tensor.Float64, "factors", normals(c.n*c.k*oh*ow, 3), c.n, oh, ow, c.k)
		last := func(n *gorgonia.Node, err error) *gorgonia.Node {
			if err == nil {
				n, err = op.ChannelsLast(n)
			}
			must(t, err)
			return n
		}
		var nodes [2]gorgonia.Nodes
		for i, y := range []*gorgonia.Node{
			gorgonia.Must(op.Conv2d(last(x, nil), w, c.stride, c.pad, op.Float32)),
			last(gorgonia.Conv2d(x, w, tensor.Shape{c.kh, c.kw}, []int{c.pad, c.pad}, []int{c.stride, c.stride}, []int{1, 1})),
		} {
			nodes[i] = append(gorgonia.Nodes{y}, gradients(t, contracted(y, factors), x, w)...)
		}
		m := gorgonia.NewTapeMachine(graph)
		must(t, m.RunAll())
		for i, what := range partNames {
			closeTo(t, fmt.Sprintf("%v: %s", c, what), float64sOf(t, nodes[0][i].Value()), float64sOf(t, nodes[1][i].Value()), 1e-12)
		}
		must(t, m.Close())
	}
}

// convProgram is a convolution in a precision, ready to run.
func convProgram(t testing.TB, c convCase, precision op.Precision) (*convGraph, *vm.Program) {
	t.Helper()
	g := newConvGraph(t, c, tensor.Float32, precision)
	p, err := vm.Compile(nil, g.y, g.dx, g.dw)
	must(t, err)
	for n, shape := range map[*gorgonia.Node][]int{g.x: g.shapeX, g.w: g.shapeW, g.factors: g.shapeY} {
		data := make([]float32, product(shape))
		s := rng.New(1, rng.Sample)
		for i := range data {
			data[i] = float32(s.Normal())
		}
		must(t, op.Share(p.Input(n), data, shape...))
	}
	return g, p
}

func TestConv2dSameBitsAndNoAllocation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tc := range []struct {
		convCase
		precision op.Precision
	}{
		{convCase{37, 8, 9, 9, 12, 3, 3, 1, 1}, op.Float32},
		{convCase{20, 8, 9, 9, 12, 3, 3, 2, 1}, op.Float32},
		{convCase{70, 16, 9, 9, 48, 3, 3, 1, 1}, op.Float32},
		{convCase{9, 144, 9, 9, 160, 3, 3, 1, 1}, op.Float32},
		{oneCoreBlocks, op.Float32},
		{convCase{20, 16, 9, 9, 16, 3, 3, 2, 1}, op.BFloat16},
		{convCase{37, 3, 9, 9, 16, 3, 3, 1, 1}, op.BFloat16},
		{convCase{9, 16, 9, 9, 32, 3, 3, 1, 1}, op.BFloat16},
		{convCase{60, 16, 13, 13, 16, 3, 3, 1, 1}, op.BFloat16},
		{convCase{201, 32, 2, 2, 48, 3, 3, 1, 1}, op.Float32},
		{convCase{201, 32, 2, 2, 48, 3, 3, 1, 1}, op.BFloat16},
	} {
		g, p := convProgram(t, tc.convCase, tc.precision)
		var want [][]float32
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			must(t, p.Run())
			var got [][]float32
			for _, n := range []*gorgonia.Node{g.y, g.dx, g.dw} {
				got = append(got, slices.Clone(op.Data[float32](p.Output(n))))
			}
			if want == nil {
				want = got
			}
			for i := range got {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%v: output %d has other bits with %d cores", tc, i, procs)
				}
			}
		}
		runtime.GOMAXPROCS(1)
		// What the runtime allocates at the same time counts, too, but not again and again.
		n := testing.AllocsPerRun(3, func() { _ = p.Run() })
		for again := 0; n > 0 && again < 3; again++ {
			n = testing.AllocsPerRun(3, func() { _ = p.Run() })
		}
		if n > 0 {
			t.Errorf("%v: %g allocations a run", tc, n)
		}
	}
}

// A batch without images has no results, and weights without a gradient.
func TestConv2dOfNoImages(t *testing.T) {
	for i, c := range []convCase{
		{3, 2, 5, 5, 3, 3, 3, 2, 1}, {3, 2, 5, 5, 3, 1, 1, 1, 0}, {3, 16, 5, 5, 16, 3, 3, 1, 1}, {3, 16, 2, 2, 16, 3, 3, 1, 1},
		{3, 16, 5, 5, 16, 3, 3, 2, 1}, {3, 16, 5, 5, 16, 3, 3, 1, 1}, {3, 16, 2, 2, 16, 3, 3, 1, 1},
	} {
		precision := op.Float32
		if i >= 4 {
			precision = op.BFloat16
		}
		g, p := convProgram(t, c, precision)
		must(t, p.Run()) // leaves what the next run must not find
		for _, n := range []*gorgonia.Node{g.x, g.factors} {
			must(t, op.Share(p.Input(n), []float32{}, append([]int{0}, n.Shape()[1:]...)...))
		}
		must(t, p.Run())
		y, dx, dw := p.Output(g.y), p.Output(g.dx), op.Data[float32](p.Output(g.dw))
		if y.Len() != 0 || dx.Len() != 0 || len(dw) == 0 || slices.ContainsFunc(dw, func(v float32) bool { return v != 0 }) {
			t.Errorf("%v: results of shapes %v and %v, a gradient %v", c, y.Shape(), dx.Shape(), dw)
		}
	}
}

func TestConv2dRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		x, w        []int
		stride, pad int
		want        string
	}{
		"stride":   {[]int{1, 3, 3, 1}, []int{1, 1, 1, 1}, 0, 0, "got stride 0 and padding 0"},
		"padding":  {[]int{1, 3, 3, 1}, []int{1, 1, 1, 1}, 1, -1, "got stride 1 and padding -1"},
		"channels": {[]int{1, 3, 3, 2}, []int{1, 1, 1, 1}, 1, 0, "got shapes [1 3 3 2] and [1 1 1 1], want images"},
		"size":     {[]int{1, 3, 3, 1}, []int{1, 1, 6, 1}, 1, 1, "got windows of 6×1, want no larger than images of 3×3 padded by 1"},
	} {
		g := gorgonia.NewGraph()
		x := gorgonia.NewTensor(g, tensor.Float32, 4, gorgonia.WithShape(tc.x...), gorgonia.WithName("x"))
		w := gorgonia.NewTensor(g, tensor.Float32, 4, gorgonia.WithShape(tc.w...), gorgonia.WithName("w"))
		if _, err := op.Conv2d(x, w, tc.stride, tc.pad, op.Float32); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// BenchmarkConv2d times result and both gradients of the convolutions of a
// ResNet18 for images of 32×32, for 64 images, and of the last stage of one of a quarter
// of the width for 512 of 16×16.
func BenchmarkConv2d(b *testing.B) {
	for _, c := range []convCase{
		{64, 3, 32, 32, 64, 3, 3, 1, 1}, {64, 64, 32, 32, 64, 3, 3, 1, 1},
		{64, 64, 32, 32, 128, 3, 3, 2, 1}, {64, 64, 32, 32, 128, 1, 1, 2, 0}, {64, 128, 16, 16, 128, 3, 3, 1, 1},
		{64, 256, 8, 8, 256, 3, 3, 1, 1}, {64, 512, 4, 4, 512, 3, 3, 1, 1},
		{512, 128, 2, 2, 128, 3, 3, 1, 1},
	} {
		for _, precision := range []op.Precision{op.Float32, op.BFloat16} {
			b.Run(fmt.Sprintf("%v/%v", c, precision), func(b *testing.B) {
				_, p := convProgram(b, c, precision)
				b.ReportAllocs()
				for b.Loop() {
					must(b, p.Run())
				}
				oh, ow := c.result()
				work := 3 * 2 * float64(c.n*c.k*oh*ow) * float64(c.c*c.kh*c.kw)
				b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
