package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"cne/model"
	"cne/model/op"
)

// pairBatch is a batch of b edges between 2b points with images of size×size
// pixels, each head contrasted with three rows.
func pairBatch(b, size int) *model.Batch {
	batch := &model.Batch{Images: to32(normals(2*b*3*size*size, 3))}
	for i := range 2 * b {
		batch.Rows = append(batch.Rows, int32(i))
		batch.Local = append(batch.Local, int32(i))
	}
	for j := range 3 {
		for i := range b {
			batch.Negatives = append(batch.Negatives, int32((i+1+j)%(2*b)))
		}
	}
	return batch
}

func newConvolutional[T op.Float](t *testing.T, n *model.ResNet[T], points, size int, o op.ContrastiveOptions) *model.Convolutional[T] {
	t.Helper()
	c, err := model.NewConvolutional(n, points, size, o, nil, op.Float32)
	must(t, err)
	return c
}

func cosine(loss op.Loss) op.ContrastiveOptions {
	return op.ContrastiveOptions{Loss: loss, Metric: op.Cosine, Temperature: 0.4, Scale: 0.5, Mean: true}
}

// The gradients of the whole model against central differences in float64, some of each
// parameter.
func TestConvolutionalByFiniteDifferences(t *testing.T) {
	const b, size = 3, 8
	batch := pairBatch(b, size)
	for name, o := range map[string]op.ContrastiveOptions{
		"infonce": cosine(op.InfoNC), "neg": cosine(op.Neg), "nc": cosine(op.NC), "umap": {Loss: op.UMAP, Clamp: 1e-10},
	} {
		t.Run(name, func(t *testing.T) {
			net := newResNet[float64](t, model.ResNetOptions{Small: o.Loss == op.Neg, Width: 1, Hidden: 6, Out: 4}, 2)
			c := newConvolutional(t, net, 2*b, size, o)
			loss := func() float64 {
				return step(t, c, batch, 0.3)
			}
			loss()
			params := c.Parameters()
			grads := make([][]float64, len(params))
			for i, p := range params {
				grads[i] = slices.Clone(op.Data[float64](p.Grad))
			}
			for i, p := range params {
				w := op.Data[float64](p.Value)
				for _, k := range []int{0, len(w) - 1} {
					if want := slope(w, k, 1e-6, loss); math.Abs(grads[i][k]-want) > 1e-6*(1+math.Abs(want)) {
						t.Errorf("the gradient of %s[%d] is %g, want %g", p.Name, k, grads[i][k], want)
					}
				}
			}
		})
	}
}

// What is projected are the head's outputs in evaluation; neither they nor
// representations change a step that follows.
func TestConvolutionalProjects(t *testing.T) {
	g := readGoldenResNet(t)
	x, shape := g.tensor("x")
	want, _ := g.tensor("eval.z")
	// The golden evaluation comes after one training pass; the network is set to
	// the statistics it left.
	net := goldenNet[float64](g)
	for name, a := range net.Tensors() {
		if strings.Contains(name, "running") {
			after, _ := g.tensor("after." + name)
			copy(op.Data[float64](a), after)
		}
	}
	c := newConvolutional(t, net, shape[0], shape[2], cosine(op.InfoNC))
	got := make([]float64, len(want))
	must(t, c.ProjectTo(got, x))
	compareTo(t, "eval.z", got, want, 1e-9)
	if err := c.ProjectTo(got[1:], x); err == nil {
		t.Error("a result of the wrong size is taken")
	}

	batch := pairBatch(3, shape[2])
	step := func(between func(c *model.Convolutional[float64])) (losses []float64, grads []float64) {
		c := newConvolutional(t, goldenNet[float64](g), shape[0], shape[2], cosine(op.InfoNC))
		for range 2 {
			losses = append(losses, step(t, c, batch, 0))
			between(c)
		}
		for _, p := range c.Parameters() {
			grads = append(grads, op.Data[float64](p.Grad)...)
		}
		return losses, append(grads, op.Data[float64](c.Tensors()["bn1.running_var"])...)
	}
	wantLosses, wantGrads := step(func(*model.Convolutional[float64]) {})
	losses, grads := step(func(c *model.Convolutional[float64]) {
		must(t, c.ProjectTo(make([]float64, len(want)), x))
		must(t, c.RepresentTo(make([]float64, shape[0]*c.Width()), x, shape[2], shape[3]))
	})
	if !slices.Equal(losses, wantLosses) || !slices.Equal(grads, wantGrads) {
		t.Error("projections between the steps change them")
	}
}

// A projection between a step and its diagnosis leaves the diagnosis a training
// pass, which moves the running statistics.
func TestConvolutionalDiagnosesTheStep(t *testing.T) {
	net := newResNet[float64](t, model.ResNetOptions{Width: 1, Hidden: 2, Out: 2}, 1)
	c := newConvolutional(t, net, 6, 8, cosine(op.InfoNC))
	batch := pairBatch(3, 8)
	step(t, c, batch, 0)
	must(t, c.ProjectTo(make([]float64, 2), normals(3*8*8, 1)))
	running := op.Data[float64](net.Tensors()["bn1.running_mean"])
	before := running[0]
	must(t, c.Diagnose())
	if running[0] == before {
		t.Error("the step was diagnosed in evaluation")
	}
}

func TestConvolutionalRefuses(t *testing.T) {
	net := newResNet[float32](t, model.ResNetOptions{Width: 1, Hidden: 2, Out: 2}, 1)
	for name, tc := range map[string]struct {
		points, size int
		options      op.ContrastiveOptions
		want         string
	}{
		"no points": {0, 8, cosine(op.Neg), "images: got 0 of 8×8 pixels, want 1 or more of each"},
		"no pixels": {2, 0, cosine(op.Neg), "of 0×0 pixels"},
		"UMAP":      {2, 8, op.ContrastiveOptions{Loss: op.UMAP, Metric: op.Cosine}, "loss.metric: got cosine with loss.name umap"},
	} {
		if _, err := model.NewConvolutional(net, tc.points, tc.size, tc.options, nil, op.Float32); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	c := newConvolutional(t, net, 4, 8, cosine(op.Neg))
	batch := pairBatch(2, 8)
	step(t, c, batch, 0)
	if err := c.Diagnose(); err != nil {
		t.Errorf("a finite model is diagnosed with %v", err)
	}
	batch.Images = batch.Images[1:]
	if _, err := c.Step(batch, 0); err == nil || !strings.Contains(err.Error(), "got 767 values, want 4 images of 3×8×8") {
		t.Errorf("error %v", err)
	}
	if n, d := c.Points(); n != 4 || d != 2 {
		t.Errorf("%d points of %d", n, d)
	}
}
