package model_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
	"cne/model/vm"
)

// goldenResNet is a network of base width 4 in float64, with what a training
// pass and an evaluation pass through PyTorch's gave.
type goldenResNet struct {
	t    *testing.T
	file *safetensors.File
}

func readGoldenResNet(t *testing.T) goldenResNet {
	t.Helper()
	f, err := safetensors.ReadFile("testdata/resnet18_w4.safetensors")
	must(t, err)
	return goldenResNet{t, f}
}

func (g goldenResNet) tensor(name string) ([]float64, []int) {
	g.t.Helper()
	v, ok := g.file.Tensors[name]
	if !ok {
		g.t.Fatalf("no golden %s", name)
	}
	x, err := v.Float64s()
	if err != nil {
		g.t.Fatal(err)
	}
	return x, v.Shape
}

// goldenNet returns a network with the golden parameters and running
// statistics.
func goldenNet[T op.Float](g goldenResNet) *model.ResNet[T] {
	g.t.Helper()
	net, err := model.NewResNet[T](model.ResNetOptions{Width: 4, Hidden: 16, Out: 8}, 1)
	if err != nil {
		g.t.Fatal(err)
	}
	tensors := net.Tensors()
	count := 0
	for name := range g.file.Tensors {
		if name, ok := strings.CutPrefix(name, "param."); ok {
			count++
			a := tensors[name]
			if a == nil {
				g.t.Fatalf("the network has no %s", name)
			}
			x, shape := g.tensor("param." + name)
			if !slices.Equal(shape, a.Shape()) {
				g.t.Fatalf("%s has shape %v, want %v", name, a.Shape(), shape)
			}
			for i, v := range x {
				op.Data[T](a)[i] = T(v)
			}
		}
	}
	if count != len(tensors) {
		g.t.Fatalf("%d golden tensors for the %d of the network", count, len(tensors))
	}
	return net
}

func converted[T op.Float](x []float64) []T {
	y := make([]T, len(x))
	for i, v := range x {
		y[i] = T(v)
	}
	return y
}

// compareTo compares with a tolerance relative to the largest wanted number.
func compareTo[T op.Float](t *testing.T, what string, got []T, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 1e-30
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i])-v) <= tol*scale) {
			t.Errorf("%s[%d] = %.12g, want %.12g", what, i, got[i], v)
			return
		}
	}
}

func testGoldenResNet[T op.Float](t *testing.T, tol float64) {
	g := readGoldenResNet(t)
	net := goldenNet[T](g)
	x, shape := g.tensor("x")
	gradZ, shapeZ := g.tensor("grad_z")

	graph := gorgonia.NewGraph()
	in := gorgonia.NewTensor(graph, op.Dtype[T](), 4, gorgonia.WithShape(shape...), gorgonia.WithName("x"))
	gradIn := gorgonia.NewTensor(graph, op.Dtype[T](), 2, gorgonia.WithShape(shapeZ...), gorgonia.WithName("grad_z"))
	h, z, nodes, err := net.Graph(in)
	must(t, err)
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{z}, gorgonia.Nodes{gradIn}, nodes)
	must(t, err)
	p, err := vm.Compile(nil, append(gorgonia.Nodes{h, z}, grads...)...)
	must(t, err)
	must(t, net.Share(p, nodes))
	must(t, op.Share(p.Input(in), converted[T](x), shape...))
	must(t, op.Share(p.Input(gradIn), converted[T](gradZ), shapeZ...))
	must(t, p.Run())
	wantH, _ := g.tensor("train.h")
	wantZ, _ := g.tensor("train.z")
	compareTo(t, "train.h", op.Data[T](p.Output(h)), wantH, tol)
	compareTo(t, "train.z", op.Data[T](p.Output(z)), wantZ, tol)
	for i, q := range net.Parameters() {
		want, _ := g.tensor("grad." + q.Name)
		compareTo(t, "grad."+q.Name, op.Data[T](p.Output(grads[i])), want, 50*tol)
	}
	after := map[string][]T{}
	for name, a := range net.Tensors() {
		if strings.Contains(name, "running") {
			want, _ := g.tensor("after." + name)
			compareTo(t, "after."+name, op.Data[T](a), want, tol)
		}
		after[name] = slices.Clone(op.Data[T](a))
	}

	// Representations come from the evaluation pass and change nothing.
	wantEval, evalShape := g.tensor("eval.h")
	for _, count := range []int{shape[0], 1} {
		got := make([]T, count*evalShape[1])
		must(t, net.RepresentTo(got, converted[T](x)[:count*3*shape[2]*shape[3]], shape[2], shape[3]))
		compareTo(t, "eval.h", got, wantEval[:len(got)], tol)
	}
	net.Evaluate(true)
	must(t, p.Run())
	wantEvalZ, _ := g.tensor("eval.z")
	compareTo(t, "eval.z", op.Data[T](p.Output(z)), wantEvalZ, tol)
	for name, a := range net.Tensors() {
		if !slices.Equal(op.Data[T](a), after[name]) {
			t.Errorf("evaluation has changed %s", name)
		}
	}
}

func TestResNetMatchesGolden(t *testing.T) {
	t.Run("float64", func(t *testing.T) { testGoldenResNet[float64](t, 1e-9) })
	t.Run("float32", func(t *testing.T) { testGoldenResNet[float32](t, 1e-4) })
}

// The paper's network: 11 million parameters, with PyTorch's names.
func TestResNetSizes(t *testing.T) {
	net := newResNet[float32](t, model.ResNetOptions{}, 1)
	if got, want := net.Options(), (model.ResNetOptions{Width: 64, Hidden: 1024, Out: 128}); got != want || net.Width() != 512 {
		t.Errorf("options %+v and width %d, want %+v and 512", got, net.Width(), want)
	}
	body, head := 0, 0
	for _, p := range net.Parameters() {
		if strings.HasPrefix(p.Name, "fc") {
			head += p.Value.Len()
		} else {
			body += p.Value.Len()
		}
	}
	if body != 11168832 || head != 512*1024+1024+1024*128+128 {
		t.Errorf("%d parameters and %d of the head", body, head)
	}
	for _, o := range []model.ResNetOptions{{Width: -1}, {Width: 5000}, {Hidden: -2}, {Out: 1 << 20}} {
		if _, err := model.NewResNet[float32](o, 1); err == nil || !strings.Contains(err.Error(), "widths of a ResNet: got") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	if err := net.RepresentTo(make([]float32, 5), make([]float32, 3*8*8), 8, 8); err == nil {
		t.Error("a result of the wrong size is taken")
	}
}

// The same seed makes the same network, with convolutions of Kaiming's
// deviation.
func TestResNetStart(t *testing.T) {
	a, errA := model.NewResNet[float64](model.ResNetOptions{Width: 16}, 3)
	b, errB := model.NewResNet[float64](model.ResNetOptions{Width: 16}, 3)
	c, errC := model.NewResNet[float64](model.ResNetOptions{Width: 16}, 4)
	if errA != nil || errB != nil || errC != nil {
		t.Fatal(errA, errB, errC)
	}
	same := c.Tensors()
	for name, x := range a.Tensors() {
		values := op.Data[float64](x)
		if !slices.Equal(values, op.Data[float64](b.Tensors()[name])) {
			t.Errorf("%s differs with one seed", name)
		}
		if strings.Contains(name, "conv") {
			if slices.Equal(values, op.Data[float64](same[name])) {
				t.Errorf("%s is the same with two seeds", name)
			}
			var squares float64
			for _, v := range values {
				squares += v * v
			}
			want := 2 / float64(x.Shape()[0]*9)
			if got := squares / float64(len(values)); math.Abs(got/want-1) > 5*math.Sqrt(2/float64(len(values))) {
				t.Errorf("%s has variance %g, want %g", name, got, want)
			}
		}
	}
}

// BenchmarkResNet times forward and backward pass of the paper's network on
// images of 32×32: an operation is one pass.
func BenchmarkResNet(b *testing.B) {
	counts := []int{64, 256, 512}
	if testing.Short() {
		counts = []int{8}
	}
	for _, count := range counts {
		b.Run(fmt.Sprintf("images=%d", count), func(b *testing.B) {
			net := newResNet[float32](b, model.ResNetOptions{}, 1)
			graph := gorgonia.NewGraph()
			x := gorgonia.NewTensor(graph, gorgonia.Float32, 4, gorgonia.WithShape(count, 3, 32, 32), gorgonia.WithName("x"))
			gradZ := gorgonia.NewTensor(graph, gorgonia.Float32, 2, gorgonia.WithShape(count, 128), gorgonia.WithName("grad_z"))
			_, z, nodes, err := net.Graph(x)
			must(b, err)
			grads, err := gorgonia.Backpropagate(gorgonia.Nodes{z}, gorgonia.Nodes{gradZ}, nodes)
			must(b, err)
			p, err := vm.Compile(nil, append(gorgonia.Nodes{z}, grads...)...)
			must(b, err)
			must(b, errors.Join(
				net.Share(p, nodes),
				op.Share(p.Input(x), to32(normals(count*3*32*32, 1)), count, 3, 32, 32),
				op.Share(p.Input(gradZ), to32(normals(count*128, 2)), count, 128),
			))
			for b.Loop() {
				must(b, p.Run())
			}
			b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
