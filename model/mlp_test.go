package model_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func normals(n int, seed uint64) []float64 {
	s := rng.New(seed, rng.Sample)
	x := make([]float64, n)
	for i := range x {
		x[i] = s.Normal()
	}
	return x
}

func to32(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func newMLP[T op.Float](t testing.TB, in int, hidden []int, out int, seed uint64) *model.MLP[T] {
	t.Helper()
	n, err := model.NewMLP[T](in, hidden, out, seed)
	must(t, err)
	return n
}

func newParametric[T op.Float](t testing.TB, n *model.MLP[T], points []T, o op.ContrastiveOptions) *model.Parametric[T] {
	t.Helper()
	p, err := model.NewParametric(n, points, o)
	must(t, err)
	return p
}

func newResNet[T op.Float](t testing.TB, o model.ResNetOptions, seed uint64) *model.ResNet[T] {
	t.Helper()
	n, err := model.NewResNet[T](o, seed)
	must(t, err)
	return n
}

func newEmbedding[T op.Float](t testing.TB, table []T, d int, o op.ContrastiveOptions) *model.Embedding[T] {
	t.Helper()
	e, err := model.NewEmbedding(table, d, o)
	must(t, err)
	return e
}

func load(t testing.TB, path string) *model.Saved {
	t.Helper()
	s, err := model.Load(path)
	must(t, err)
	return s
}

// slope returns the derivative of f with respect to x[i], which f reads, by differences.
func slope[T op.Float](x []T, i int, h T, f func() float64) float64 {
	at := x[i]
	x[i] = at + h
	up := f()
	x[i] = at - h
	down := f()
	x[i] = at
	return (up - down) / (2 * float64(h))
}

// step returns the loss of a step.
func step(t testing.TB, m interface {
	Step(b *model.Batch, logConst float64) (float64, error)
}, b *model.Batch, logConst float64) float64 {
	t.Helper()
	loss, err := m.Step(b, logConst)
	must(t, err)
	return loss
}

// PyTorch's Linear draws weights and biases uniformly from ±1/√in.
func TestMLPInitialisation(t *testing.T) {
	n := newMLP[float64](t, 400, nil, 2, 7)
	if want := []int{400, 100, 100, 100, 2}; !slices.Equal(n.Widths(), want) {
		t.Errorf("widths %v, want %v", n.Widths(), want)
	}
	p := newParametric(t, n, normals(800, 1), op.ContrastiveOptions{}).Parameters()
	var names []string
	for i, x := range p {
		names = append(names, x.Name)
		bound := 1 / math.Sqrt(float64(n.Widths()[i/2]))
		values := op.Data[float64](x.Value)
		var sum2 float64
		for _, v := range values {
			if math.Abs(v) > bound {
				t.Fatalf("%s holds %g, beyond %g", x.Name, v, bound)
			}
			sum2 += v * v
		}
		if sum2 == 0 {
			t.Errorf("%s is not drawn", x.Name)
		}
		// A uniform distribution of ±bound has variance bound²/3.
		if len(values) >= 10000 && math.Abs(sum2/float64(len(values))/(bound*bound/3)-1) > 0.05 {
			t.Errorf("%s has variance %g, want %g", x.Name, sum2/float64(len(values)), bound*bound/3)
		}
	}
	if want := []string{"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias", "6.weight", "6.bias"}; !slices.Equal(names, want) {
		t.Errorf("parameters %v, want %v", names, want)
	}
	project := func(seed uint64) []float32 {
		dst := make([]float32, 2)
		must(t, newMLP[float64](t, 400, nil, 2, seed).ProjectTo(dst, to32(normals(400, 1))))
		return dst
	}
	if !slices.Equal(project(7), project(7)) || slices.Equal(project(7), project(8)) {
		t.Error("the seed does not decide the weights")
	}
}

// A batch's points go through the network once each; the gradient is the same as if every
// endpoint went through it, and finite differences agree.
func TestDistinctPointsHaveThePlainGradient(t *testing.T) {
	const n, in = 6, 5
	points := normals(n*in, 1)
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		t.Run(loss.String(), func(t *testing.T) {
			network := newMLP[float64](t, in, []int{8, 7}, 2, 3)
			p := newParametric(t, network, points, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
			distinct := &model.Batch{Rows: []int32{4, 1, 2, 0}, Local: []int32{0, 1, 1, 2, 1, 0, 3, 3}, Negatives: []int32{2, 3, 7, 6, 5, 6, 1, 4}}
			plain := &model.Batch{Local: []int32{0, 1, 2, 3, 4, 5, 6, 7}, Negatives: distinct.Negatives}
			for _, s := range distinct.Local {
				plain.Rows = append(plain.Rows, distinct.Rows[s])
			}
			step := func(b *model.Batch) (float64, [][]float64) {
				loss := step(t, p, b, -0.5)
				var grads [][]float64
				for _, x := range p.Parameters() {
					grads = append(grads, slices.Clone(op.Data[float64](x.Grad)))
				}
				return loss, grads
			}
			wantLoss, want := step(plain)
			gotLoss, got := step(distinct)
			if math.Abs(gotLoss-wantLoss) > 1e-12*math.Abs(wantLoss) {
				t.Errorf("loss %g, want %g", gotLoss, wantLoss)
			}
			for i, x := range p.Parameters() {
				values := op.Data[float64](x.Value)
				for j := range values {
					if math.Abs(got[i][j]-want[i][j]) > 1e-10*(1+math.Abs(want[i][j])) {
						t.Fatalf("gradient of %s[%d] is %g, plainly %g", x.Name, j, got[i][j], want[i][j])
					}
				}
				j := len(values) / 2
				by := slope(values, j, 1e-6, func() float64 { loss, _ := step(distinct); return loss })
				if math.Abs(by-got[i][j]) > 1e-5*(1+math.Abs(by)) {
					t.Errorf("gradient of %s[%d] is %g, by differences %g", x.Name, j, got[i][j], by)
				}
			}
		})
	}
}

// Points that are mostly zeros have the loss and the gradient of any others.
func TestSparsePointsHaveTheDenseGradient(t *testing.T) {
	const n, in = 60, 40
	sparse := to32(normals(n*in, 1))
	for i := range sparse {
		if i%7 > 1 {
			sparse[i] = 0
		}
	}
	exact := make([]float64, len(sparse))
	for i, v := range sparse {
		exact[i] = float64(v)
	}
	o := op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10}
	single := newMLP[float32](t, in, []int{30, 20}, 2, 3)
	p, q := newParametric(t, single, sparse, o), newParametric(t, newMLP[float64](t, in, []int{30, 20}, 2, 3), exact, o)
	b := &model.Batch{Rows: []int32{4, 59, 2, 0}, Local: []int32{0, 1, 1, 2, 1, 0, 3, 3}, Negatives: []int32{2, 3, 7, 6, 5, 6, 1, 4}}
	got := step(t, p, b, -0.5)
	want := step(t, q, b, -0.5)
	if math.Abs(got-want) > 1e-5*math.Abs(want) {
		t.Errorf("loss %g, want %g", got, want)
	}
	for i, x := range p.Parameters() {
		exact := op.Data[float64](q.Parameters()[i].Grad)
		for j, v := range op.Data[float32](x.Grad) {
			if math.Abs(float64(v)-exact[j]) > 1e-4*(1+math.Abs(exact[j])) {
				t.Fatalf("gradient of %s[%d] is %g, want %g", x.Name, j, v, exact[j])
			}
		}
	}
	if err := p.Diagnose(); err != nil {
		t.Errorf("a finite model is diagnosed with %v", err)
	}
	op.Data[float32](p.Parameters()[0].Value)[7] = float32(math.NaN())
	if err := p.Diagnose(); err == nil || !strings.Contains(err.Error(), "0.weight is not finite") {
		t.Errorf("a NaN is diagnosed with %v", err)
	}
}

// The position of a point does not depend on what is projected with it, nor on
// the number of cores.
func TestProjectionOneByOne(t *testing.T) {
	const rows, in = 1100, 37
	x := to32(normals(rows*in, 1))
	for name, network := range map[string]model.Mapper{
		"float32":   newMLP[float32](t, in, []int{100, 33}, 3, 1),
		"float64":   newMLP[float64](t, in, []int{100, 33}, 3, 1),
		"landmarks": landmarks(t, in, 300, 100),
	} {
		t.Run(name, func(t *testing.T) {
			_, out := network.Size()
			project := func(x []float32) []float32 {
				dst := make([]float32, len(x)/in*out)
				must(t, network.ProjectTo(dst, x))
				return dst
			}
			all := project(x)
			for _, i := range []int{0, 1, 5, 11, 12, 13, 500, 1023, 1024, 1099} {
				if got := project(x[i*in : (i+1)*in]); !slices.Equal(got, all[out*i:out*i+out]) {
					t.Errorf("point %d alone is at %v, among others at %v", i, got, all[out*i:out*i+out])
				}
			}
			if got := project(x[3*in : 77*in]); !slices.Equal(got, all[3*out:77*out]) {
				t.Error("a part of the points is projected otherwise than all")
			}
			for _, procs := range []int{1, 3} {
				func() {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					if !slices.Equal(project(x), all) {
						t.Errorf("other positions on %d cores", procs)
					}
				}()
			}
		})
	}
}

func description() *model.Description {
	return &model.Description{
		Preprocessing: &model.Preprocessing{Width: 5, Scaler: &data.Scaler{Kind: data.ScaleUnit, Divisor: 255}},
		Training: model.FitInfo{
			Objective: op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5, Scale: 0.5},
			LogConst:  -1.5, Negatives: 5, Neighbors: 15, LR: 1, Clip: 4,
		},
		Labels: []string{"cat", "dog"}, Config: "seed: 1\n", Version: "v1",
	}
}

// A saved network comes back with its bits and its description.
func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	x := to32(normals(40*5, 1))
	for name, network := range map[string]interface {
		model.Mapper
		Save(string, *model.Description) error
	}{
		"float32":   newMLP[float32](t, 5, nil, 2, 1),
		"float64":   newMLP[float64](t, 5, nil, 2, 1),
		"no hidden": newMLP[float32](t, 5, []int{}, 2, 1),
		"landmarks": landmarks(t, 5, 20, 12),
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			must(t, network.Save(path, d))
			s := load(t, path)
			if s.FromPyTorch || s.Training != d.Training || !slices.Equal(s.Labels, d.Labels) || s.Config != d.Config || s.Version != d.Version ||
				s.Preprocessing.Width != 5 || s.Preprocessing.Scaler.Divisor != 255 {
				t.Errorf("description %+v", s.Description)
			}
			want, got := make([]float32, 80), make([]float32, 80)
			must(t, errors.Join(network.ProjectTo(want, x), s.Network.ProjectTo(got, x)))
			if !slices.Equal(got, want) {
				t.Error("the loaded network projects otherwise")
			}
		})
	}
	t.Run("table", func(t *testing.T) {
		e := newEmbedding(t, []float32{1, 2, 3, 4, 5, 6}, 2, op.ContrastiveOptions{})
		must(t, e.Save(path, description()))
		s := load(t, path)
		if s.Network != nil || s.N != 3 || s.D != 2 || !slices.Equal(s.Table, []float32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("table %+v", s)
		}
	})
	t.Run("points", func(t *testing.T) {
		m := &data.Matrix{N: 2, D: 2, X: []float32{1, 2, 3, 4}}
		must(t, model.SavePoints(path, m))
		got, err := model.LoadPoints(path)
		if err != nil || got.N != 2 || got.D != 2 || !slices.Equal(got.X, m.X) {
			t.Errorf("points %+v, error %v", got, err)
		}
		if _, err := model.Load(path); !errors.Is(err, model.ErrFile) {
			t.Errorf("points load as a model: %v", err)
		}
		for _, c := range []*data.CSR{{Start: []int{0, 1, 1, 3}, Column: []int32{1, 0, 4}, Value: []float32{3, 4, 5}}, {Start: []int{0, 0}}} {
			sparse := &data.Matrix{N: len(c.Start) - 1, D: 5, CSR: c}
			must(t, model.SavePoints(path, sparse))
			got, err := model.LoadPoints(path)
			if err != nil || got.D != 5 || !slices.Equal(got.CSR.Start, c.Start) || !slices.Equal(got.CSR.Column, c.Column) || !slices.Equal(got.CSR.Value, c.Value) {
				t.Errorf("sparse points %+v, error %v", got, err)
			}
			table := newEmbedding(t, slices.Repeat([]float32{1, 2}, sparse.N), 2, op.ContrastiveOptions{})
			must(t, table.Save(path, &model.Description{Points: sparse}))
			if s := load(t, path); s.Points.N != sparse.N || s.Points.D != 5 || !slices.Equal(s.Points.CSR.Value, c.Value) {
				t.Errorf("sparse points %+v in the model", s.Points)
			}
		}
	})
}

// A file that PyTorch's safetensors writes of the state of a module of linear
// layers, whatever they are named in front of the number.
func TestLoadForeign(t *testing.T) {
	dir := t.TempDir()
	own := newMLP[float32](t, 3, []int{4}, 2, 5)
	path := filepath.Join(dir, "own")
	must(t, own.Save(path, nil))
	saved, err := safetensors.ReadFile(path)
	must(t, err)
	x := to32(normals(30, 1))
	want := make([]float32, 20)
	must(t, own.ProjectTo(want, x))
	f := &safetensors.File{Metadata: map[string]string{"format": "pt"}, Tensors: map[string]safetensors.Tensor{}}
	for name, t := range saved.Tensors {
		f.Tensors["layers."+strings.Replace(name, "2.", "10.", 1)] = t
	}
	path = filepath.Join(dir, "foreign")
	must(t, f.WriteFile(path))
	s := load(t, path)
	got := make([]float32, 20)
	must(t, s.Network.ProjectTo(got, x))
	if !s.FromPyTorch || !slices.Equal(got, want) {
		t.Errorf("foreign %v, positions %v, want %v", s.FromPyTorch, got, want)
	}
}

func TestLoadRefuses(t *testing.T) {
	w := func(out, in int) safetensors.Tensor { return safetensors.New(make([]float32, out*in), out, in) }
	b := func(out int) safetensors.Tensor { return safetensors.New(make([]float32, out), out) }
	nan := w(2, 3)
	for i := range nan.Data {
		nan.Data[i] = 0xff
	}
	type tensors = map[string]safetensors.Tensor
	for name, tc := range map[string]struct {
		tensors tensors
		want    string
	}{
		"convolution":   {tensors{"conv1.weight": safetensors.New(make([]float32, 9), 1, 1, 3, 3), "conv1.bias": b(1)}, `tensor "conv1.weight": got the shape [1 1 3 3], want [1 3 3 3]`},
		"other tensors": {tensors{"0.weight": w(2, 3), "0.bias": b(2), "bn.running_mean": b(2)}, `"bn.running_mean" belongs to another architecture`},
		"no number":     {tensors{"fc.weight": w(2, 3), "fc.bias": b(2)}, `"fc.weight" belongs to another architecture`},
		"no bias":       {tensors{"0.weight": w(2, 3)}, `no "0.bias"`},
		"no weight":     {tensors{"0.bias": b(2)}, `"0.bias" belongs to another architecture`},
		"no chain":      {tensors{"0.weight": w(2, 3), "0.bias": b(2), "2.weight": w(2, 5), "2.bias": b(2)}, "layer 2: got an input of 5 values, want 2 as layer 0 gives"},
		"two prefixes":  {tensors{"a.0.weight": w(3, 3), "a.0.bias": b(3), "b.2.weight": w(2, 3), "b.2.bias": b(2)}, "belongs to another architecture"},
		"integers":      {tensors{"0.weight": safetensors.New(make([]int32, 6), 2, 3), "0.bias": safetensors.New(make([]int32, 2), 2)}, "weights: got the type I32, want F32 or F64"},
		"mixed":         {tensors{"0.weight": w(2, 3), "0.bias": safetensors.New(make([]float64, 2), 2)}, "layer 0: got another type, want F32 as of the first"},
		"not a number":  {tensors{"0.weight": nan, "0.bias": b(2)}, "layer 0: value 0: got NaN"},
		"nothing":       {tensors{}, "it has no layers"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			must(t, (&safetensors.File{Tensors: tc.tensors}).WriteFile(path))
			_, err := model.Load(path)
			if !errors.Is(err, model.ErrFile) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Files with a right checksum, but contents that Save does not write.
func TestLoadRefusesSealed(t *testing.T) {
	dir := t.TempDir()
	network, table, points := filepath.Join(dir, "network"), filepath.Join(dir, "table"), filepath.Join(dir, "points")
	e := newEmbedding(t, []float32{1, 2, 3, 4}, 2, op.ContrastiveOptions{})
	must(t, errors.Join(newMLP[float32](t, 5, nil, 2, 1).Save(network, description()), e.Save(table, description()),
		model.SavePoints(points, &data.Matrix{N: 2, D: 1, X: []float32{1, 2}})))
	set := func(key, value string) func(f *safetensors.File) {
		return func(f *safetensors.File) { f.Metadata[key] = value }
	}
	nan := []float32{1, float32(math.NaN()), 3, 4}
	sparse := func(width string, counts, columns []int32, values []float32) func(f *safetensors.File) {
		return func(f *safetensors.File) {
			f.Metadata["points"] = `{"width":` + width + `}`
			f.Tensors["points.counts"], f.Tensors["points.columns"] = safetensors.New(counts, len(counts)), safetensors.New(columns, len(columns))
			f.Tensors["points.values"] = safetensors.New(values, len(values))
		}
	}
	for name, tc := range map[string]struct {
		path   string
		kind   string
		format int
		change func(f *safetensors.File)
		want   string
	}{
		"kind":           {network, "model", 2, set("architecture", `{"kind":"resnet50","dtype":"float32"}`), `it has the architecture "resnet50", which this version of cne does not know; use the version that wrote it`},
		"another kind":   {network, "model", 2, set("architecture", `{"kind":"resnet18","widths":[4,16,8],"dtype":"float32"}`), `no tensor "conv1.weight"`},
		"activation":     {network, "model", 2, set("architecture", `{"kind":"mlp","activation":"tanh","dtype":"float32"}`), `with the activation "tanh"`},
		"activations":    {network, "model", 2, set("architecture", `{"kind":"mlp","widths":[5,100,100,2],"activations":["relu","sigmoid","none"],"dtype":"float32"}`), `with the activation "relu, sigmoid, none"`},
		"activations of": {network, "model", 2, set("architecture", `{"kind":"mlp","widths":[5,100,100,2],"activations":["relu","none"],"dtype":"float32"}`), `with the activation "relu, none"`},
		"unknown field":  {network, "model", 2, set("architecture", `{"kind":"mlp","activation":"relu","normalisation":"layer"}`), "architecture: json: unknown field \"normalisation\""},
		"no kind":        {network, "model", 2, set("architecture", `null`), `it has the architecture "mlp" with the activation "", which this version of cne does not know; use the version that wrote it`},
		"widths":         {network, "model", 2, set("architecture", `{"kind":"mlp","widths":[5,100,2],"activation":"relu","dtype":"float32"}`), "widths of the layers: got [5 100 100 100 2], want [5 100 2] as described"},
		"images":         {network, "model", 2, set("images", `{"size":0,"std":[1,1,1]}`), "images: got 0 pixels a side, means [0 0 0] and standard deviations [1 1 1], want 1 to 4096 pixels, means within ±1e6 and deviations of 1e-6 to 1e6"},
		"images, std":    {network, "model", 2, set("images", `{"size":8,"std":[1,0,1]}`), "standard deviations [1 0 1]"},
		"training":       {network, "model", 2, set("training", `{"negatives":1125899906842624}`), "training: got"},
		"negative":       {table, "model", 2, set("training", `{"neighbors":-1}`), "training: got"},
		"loss":           {network, "model", 2, set("training", `{"objective":{"loss":"hinge","metric":"euclidean","clamp":0}}`), `no loss is named "hinge"`},
		"preprocessing":  {network, "model", 2, set("preprocessing", `{"width":5,"scaler":{"kind":"unit"}}`), "divisor of the scaler: got 0"},
		"other width":    {network, "model", 2, set("preprocessing", `{"width":4}`), "preprocessing: got points of 4 values, want 5 for the network"},
		"huge width":     {network, "model", 2, set("preprocessing", `{"width":4611686018427387904}`), "preprocessing: got points of 4611686018427387904 values, want 5 for the network"},
		"newer":          {network, "model", 3, func(*safetensors.File) {}, "a newer version of cne wrote the file"},
		"a checkpoint":   {network, "checkpoint", 1, func(*safetensors.File) {}, "wrong kind of file"},
		"table size":     {table, "model", 2, set("architecture", `{"kind":"table","points":3,"dim":2,"dtype":"float32"}`), "a table of shape [2 2]"},
		"second tensor":  {table, "model", 2, func(f *safetensors.File) { f.Tensors["more"] = safetensors.New([]float32{1}, 1) }, "got 2 tensors and a table of shape [2 2], want 2 points in 2 dimensions as described"},
		"table with NaN": {table, "model", 2, func(f *safetensors.File) { f.Tensors["weight"] = safetensors.New(nan, 2, 2) }, "value 1: got NaN"},
		"points, NaN":    {points, "points", 2, func(f *safetensors.File) { f.Tensors["points"] = safetensors.New(nan, 4, 1) }, "value 1: got NaN"},
		"points, shape":  {points, "points", 2, func(f *safetensors.File) { f.Tensors["points"] = safetensors.New(nan[2:], 2) }, "shape: got [2], want [points, values]"},
		"sparse, width":  {points, "points", 2, sparse("4611686018427387904", []int32{1}, []int32{1}, nan[:1]), "want at most"},
		"sparse, NaN":    {points, "points", 2, sparse("3", []int32{2}, []int32{0, 1}, nan[:2]), "value 1: got NaN"},
		"sparse, counts": {points, "points", 2, sparse("3", []int32{2, -1}, []int32{1}, nan[:1]), "Start is not in ascending order"},
		"sparse, few":    {points, "points", 2, sparse("3", []int32{2}, []int32{1}, nan[:1]), "contradict each other"},
		"sparse, column": {points, "points", 2, sparse("3", []int32{1}, []int32{3}, nan[:1]), "not in ascending order from 0 to 2"},
		"sparse, none":   {points, "points", 2, sparse("0", nil, nil, nil), "want at least one row and one column"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := safetensors.ReadFile(tc.path)
			must(t, err)
			tc.change(f)
			f.Seal(tc.kind, tc.format)
			path := filepath.Join(t.TempDir(), "f")
			must(t, f.WriteFile(path))
			if tc.path == points {
				_, err = model.LoadPoints(path)
			} else {
				_, err = model.Load(path)
			}
			if !errors.Is(err, model.ErrFile) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// What a file says of its tensors' shapes does not make Load allocate.
func TestLoadAllocatesWithinBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	header := `{"0.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"0.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]},` +
		`"2.weight":{"dtype":"X","shape":[134217728,1],"data_offsets":[8,12]},"2.bias":{"dtype":"X","shape":[134217728],"data_offsets":[12,16]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	must(t, os.WriteFile(path, append(file, make([]byte, 16)...), 0o666))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := model.Load(path); !errors.Is(err, model.ErrFile) {
		t.Errorf("error %v", err)
	}
	runtime.ReadMemStats(&after)
	if size := after.TotalAlloc - before.TotalAlloc; size > 1<<20 {
		t.Errorf("%d bytes allocated", size)
	}
}

// Whatever byte of a model file is damaged, it is refused, and so is every
// shorter file.
func TestLoadRefusesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must(t, newMLP[float32](t, 3, []int{2}, 2, 1).Save(path, description()))
	good, err := os.ReadFile(path)
	must(t, err)
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		must(t, os.WriteFile(path, bad, 0o666))
		if _, err := model.Load(path); !errors.Is(err, model.ErrFile) {
			t.Errorf("byte %d damaged: %v", i, err)
		}
		must(t, os.WriteFile(path, good[:i], 0o666))
		if _, err := model.Load(path); !errors.Is(err, model.ErrFile) {
			t.Errorf("cut off at %d: %v", i, err)
		}
	}
}

func TestNewMLPRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		in     int
		hidden []int
		out    int
		want   string
	}{
		"no input":  {0, nil, 2, "width of a layer: got 0, want 1 or more"},
		"no hidden": {3, []int{4, 0}, 2, "width of a layer: got 0, want 1 or more"},
		"no output": {3, nil, -1, "width of a layer: got -1, want 1 or more"},
		"too large": {1 << 20, []int{1 << 20}, 2, "widths of the layers: got [1048576 1048576 2], want fewer weights"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := model.NewMLP[float32](tc.in, tc.hidden, tc.out, 1); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := model.NewParametric(newMLP[float32](t, 3, nil, 2, 1), make([]float32, 7), op.ContrastiveOptions{}); err == nil {
		t.Error("7 values were taken for points of 3")
	}
	if err := newMLP[float32](t, 3, nil, 2, 1).ProjectTo(make([]float32, 3), make([]float32, 3)); err == nil {
		t.Error("3 values were taken for a position of 2")
	}
}
