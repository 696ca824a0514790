package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train/initial"
)

func TestStepLeavesTheGradientOfTheBatchsRows(t *testing.T) {
	table := []float64{0, 0, 1, 0, 0, 2, 3, 3, 9, 9}
	e := newEmbedding(t, table, 2, op.ContrastiveOptions{Clamp: 1e-10})
	// The edges 3→1 and 1→0; each head has the other edge's tail as its
	// negative, which for the second is its own point.
	b := &model.Batch{Rows: []int32{3, 1, 0}, Local: []int32{0, 1, 1, 2}, Negatives: []int32{3, 2}}
	if b.Edges() != 2 {
		t.Errorf("%d edges, want 2", b.Edges())
	}
	loss := step(t, e, b, 0)
	// Squared distances: 13 for the first edge and 18 to its negative, 1 for
	// the second and 0 to its negative.
	want := math.Log(1+14) + math.Log(1+1./19) + math.Log(1+2) + math.Log(1+1./1)
	if math.Abs(loss-want) > 1e-12 {
		t.Errorf("loss %g, want %g", loss, want)
	}
	p := e.Parameters()
	if len(p) != 1 || !p[0].Sparse || p[0].Grad.Rows() != 3 {
		t.Fatalf("parameters %+v", p)
	}
	// The gradient with respect to point 1: from 3→1 and from 1→0.
	grad := op.Data[float64](p[0].Grad)
	wantX, wantY := -2*2/15.+2*1/3., -2*3/15.
	if math.Abs(grad[2]-wantX) > 1e-12 || math.Abs(grad[3]-wantY) > 1e-12 {
		t.Errorf("gradient of point 1 is (%g, %g), want (%g, %g)", grad[2], grad[3], wantX, wantY)
	}
	dst := make([]float32, 10)
	must(t, e.EmbedTo(dst))
	if n, d := e.Points(); n != 5 || d != 2 || dst[8] != 9 {
		t.Errorf("%d×%d points %v", n, d, dst)
	}
	if err := e.Diagnose(); err != nil {
		t.Errorf("a finite model is diagnosed with %v", err)
	}
	e.Table()[2] = math.NaN()
	if err := e.Diagnose(); err == nil || !strings.Contains(err.Error(), "embedding is not finite in row 1") {
		t.Errorf("a NaN in row 1 is diagnosed with %v", err)
	}
}

// A batch by its endpoints gives the bits of the same batch by its distinct points, with
// the gradient of a point in the row of its first endpoint.
func TestBatchesByEndpoints(t *testing.T) {
	const edges = 40 // more than the lanes of a vector
	byPoints := &model.Batch{Negatives: make([]int32, 3*edges)}
	byEnds := &model.Batch{Negatives: byPoints.Negatives}
	for i := range byPoints.Negatives {
		byPoints.Negatives[i] = int32((i%edges + 1 + 7*i) % (2 * edges))
	}
	first := map[int32]int{} // endpoints of points
	var firsts []int
	for i := range 2 * edges {
		point := int32(i * 11 % 97)
		if i%9 == 8 {
			point = byEnds.Rows[i/2]
		}
		k, again := first[point]
		if again {
			byEnds.Repeats = append(byEnds.Repeats, model.Repeat{First: int32(k), Again: int32(i)})
		} else {
			first[point], k = i, i
			byPoints.Rows, firsts = append(byPoints.Rows, point), append(firsts, i)
		}
		byEnds.Rows = append(byEnds.Rows, point)
		byPoints.Local = append(byPoints.Local, int32(slices.Index(firsts, k)))
	}
	for _, options := range []op.ContrastiveOptions{
		{Clamp: 1e-10}, {Loss: op.NC, Clamp: 1e-10}, {Loss: op.InfoNC, Scale: 0.5, Mean: true}, {Loss: op.UMAP, Clamp: 1e-4}, {Loss: op.InfoNC, Metric: op.Cosine},
	} {
		for _, d := range []int{2, 3} {
			table, err := initial.Random[float32](97, d, 1, 1)
			must(t, err)
			e := newEmbedding(t, table, d, options)
			want := step(t, e, byPoints, 0.3)
			p := e.Parameters()[0]
			grad, dTheta := slices.Clone(op.Data[float32](p.Grad)), e.DTheta()
			got := step(t, e, byEnds, 0.3)
			if got != want || e.DTheta() != dTheta || p.Grad.Rows() != 2*edges || byEnds.Edges() != edges {
				t.Errorf("%+v: loss %v, derivative %v, %d rows of %d edges; want %v, %v, %d and %d", options, got, e.DTheta(), p.Grad.Rows(), byEnds.Edges(), want, dTheta, 2*edges, edges)
			}
			of := func(row int) []float32 { return op.Data[float32](p.Grad)[row*d:][:d] }
			for k, i := range firsts {
				if !slices.Equal(of(i), grad[k*d:][:d]) {
					t.Errorf("%+v: point %d has the gradient %v, want %v", options, byEnds.Rows[i], of(i), grad[k*d:][:d])
				}
			}
			left := slices.Clone(op.Data[float32](p.Grad))
			if err := e.Diagnose(); err != nil || !slices.Equal(op.Data[float32](p.Grad), left) {
				t.Errorf("%+v: Diagnose changes the gradient, or fails: %v", options, err)
			}
			for _, r := range byEnds.Repeats {
				if !slices.Equal(of(int(r.Again)), make([]float32, d)) {
					t.Errorf("%+v: endpoint %d, a repeat, has the gradient %v", options, r.Again, of(int(r.Again)))
				}
			}
		}
	}
}

// The cosine metric looks only at directions.
func TestCosineIgnoresLengths(t *testing.T) {
	b := &model.Batch{Rows: []int32{0, 1, 2, 3}, Local: []int32{0, 1, 2, 3}, Negatives: []int32{3, 2}}
	var losses []float64
	for _, length := range []float64{1, 7} {
		e := newEmbedding(t, []float64{1 * length, 0, 0.6, 0.8, 0, -1, -0.8 * length, 0.6 * length}, 2, op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine})
		losses = append(losses, step(t, e, b, 0))
	}
	// Cosines at τ = ½: 0→2 are at right angles, 1→3 at 0; 0 and 3 at −0.8, 1
	// and 2 at −0.8.
	want := math.Log(1+math.Exp(2*-0.8)) + math.Log(1+math.Exp(2*-0.8))
	for _, loss := range losses {
		if math.Abs(loss-want) > 1e-12 {
			t.Errorf("losses %v, want %g", losses, want)
		}
	}
}

func TestStepRefusesWhatIsNoBatch(t *testing.T) {
	e := newEmbedding(t, make([]float32, 8), 2, op.ContrastiveOptions{})
	for name, b := range map[string]model.Batch{
		"empty":            {},
		"half an edge":     {Rows: []int32{0, 1}, Local: []int32{0, 1, 0}},
		"ragged negatives": {Rows: []int32{0, 1}, Local: []int32{0, 1, 1, 0}, Negatives: []int32{1, 2, 3}},
		"unknown row":      {Rows: []int32{0, 4}, Local: []int32{0, 1}},
		"unknown local":    {Rows: []int32{0, 1}, Local: []int32{0, 2}},
		"unknown endpoint": {Rows: []int32{0, 1}, Local: []int32{0, 1}, Negatives: []int32{2}},
		"half an end":      {Rows: []int32{0, 1, 2}},
		"unknown end":      {Rows: []int32{0, 4}},
		"repeats of rows":  {Rows: []int32{0, 1}, Local: []int32{0, 1}, Repeats: []model.Repeat{{First: 0, Again: 1}}},
		"other points":     {Rows: []int32{0, 1, 2, 0}, Repeats: []model.Repeat{{First: 1, Again: 3}}},
		"before the first": {Rows: []int32{0, 1, 2, 0}, Repeats: []model.Repeat{{First: 3, Again: 0}}},
		"repeat below 0":   {Rows: []int32{0, 1, 2, 0}, Repeats: []model.Repeat{{First: -1, Again: 3}}},
		"repeat beyond":    {Rows: []int32{0, 1, 2, 0}, Repeats: []model.Repeat{{First: 0, Again: 4}}},
		"not the first":    {Rows: []int32{0, 0, 2, 0}, Repeats: []model.Repeat{{First: 0, Again: 1}, {First: 1, Again: 3}}},
		"repeats in turn":  {Rows: []int32{0, 0, 2, 0}, Repeats: []model.Repeat{{First: 0, Again: 3}, {First: 0, Again: 1}}},
	} {
		if _, err := e.Step(&b, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	network := newMLP[float32](t, 2, []int{3}, 2, 1)
	p := newParametric(t, network, make([]float32, 8), op.ContrastiveOptions{})
	if _, err := p.Step(&model.Batch{Rows: []int32{0, 1}}, 0); err == nil || !strings.Contains(err.Error(), "got no Local") {
		t.Errorf("a network has the error %v for a batch by its endpoints", err)
	}
}

func TestNewEmbeddingRefuses(t *testing.T) {
	for _, tc := range []struct {
		table []float32
		d     int
		o     op.ContrastiveOptions
		want  string
	}{
		{nil, 2, op.ContrastiveOptions{}, "0 coordinates"},
		{make([]float32, 5), 2, op.ContrastiveOptions{}, "table: got 5 coordinates, want a multiple of 2"},
		{make([]float32, 4), 0, op.ContrastiveOptions{}, "table: got 4 coordinates, want a multiple of 0"},
		{make([]float32, 4), 2, op.ContrastiveOptions{Clamp: -1}, "loss.clamp: got -1"},
	} {
		if _, err := model.NewEmbedding(tc.table, tc.d, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want one with %q", err, tc.want)
		}
	}
}

// A destination of the wrong length, and the CPU as an accelerator, are refused.
func TestModelsRefuse(t *testing.T) {
	table := newEmbedding(t, make([]float32, 8), 2, op.ContrastiveOptions{})
	network := newMLP[float32](t, 3, nil, 2, 1)
	parametric := newParametric(t, network, make([]float32, 12), op.ContrastiveOptions{})
	for name, m := range map[string]interface {
		EmbedTo([]float32) error
		OnDevice(*model.Device) (*model.DeviceModel, error)
	}{"table": table, "network": parametric} {
		if err := m.EmbedTo(make([]float32, 7)); err == nil || !strings.Contains(err.Error(), "got 7 values, want 4 points of 2") {
			t.Errorf("%s: EmbedTo gives %v", name, err)
		}
		if _, err := m.OnDevice(nil); err == nil || !strings.Contains(err.Error(), "got the CPU, want an accelerator") {
			t.Errorf("%s: OnDevice gives %v", name, err)
		}
	}
}
