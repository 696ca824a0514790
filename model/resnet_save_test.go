package model_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
)

// represented returns the representations that a network has of the golden
// images.
func represented[T op.Float](t *testing.T, g goldenResNet, n *model.ResNet[T]) []T {
	t.Helper()
	x, shape := g.tensor("x")
	h := make([]T, shape[0]*n.Width())
	must(t, n.RepresentTo(h, converted[T](x), shape[2], shape[3]))
	return h
}

// A saved ResNet comes back with its bits, its running statistics and its
// description.
func TestSaveAndLoadResNet(t *testing.T) {
	g := readGoldenResNet(t)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	d := &model.Description{
		Images:   &model.ImageInput{Size: 8, Mean: [3]float64{0.1, 0.2, 0.3}, Std: [3]float64{1, 2, 3}},
		Training: description().Training, Labels: []string{"cat"}, Config: "seed: 1\n", Version: "v1",
	}
	check := func(t *testing.T) *model.ResNet[float32] {
		t.Helper()
		s := load(t, path)
		if s.FromPyTorch || s.Network != nil || s.ResNet == nil || *s.Images != *d.Images || s.Training != d.Training ||
			!slices.Equal(s.Labels, d.Labels) || s.Config != d.Config || s.Version != d.Version {
			t.Errorf("loaded %+v", s)
		}
		if got, want := s.ResNet.Options(), (model.ResNetOptions{Width: 4, Hidden: 16, Out: 8}); got != want {
			t.Errorf("widths %+v, want %+v", got, want)
		}
		return s.ResNet
	}
	single := goldenNet[float32](g)
	must(t, single.Save(path, d))
	got := check(t)
	for name, a := range single.Tensors() {
		if !slices.Equal(op.Data[float32](got.Tensors()[name]), op.Data[float32](a)) {
			t.Errorf("another %s", name)
		}
	}
	if !slices.Equal(represented(t, g, got), represented(t, g, single)) {
		t.Error("the loaded network represents otherwise")
	}
	must(t, goldenNet[float64](g).Save(path, d))
	if !slices.Equal(represented(t, g, check(t)), represented(t, g, single)) {
		t.Error("the network saved in float64 represents otherwise")
	}
}

// Whether a network is small is told by its tensors.
func TestSaveAndLoadSmallResNet(t *testing.T) {
	want := newResNet[float32](t, model.ResNetOptions{Small: true, Width: 2, Hidden: 3, Out: 2}, 1)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must(t, want.Save(path, &model.Description{}))
	got := load(t, path).ResNet
	if got.Options() != want.Options() || got.Width() != 8 {
		t.Fatalf("loaded %+v with representations of %d, want %+v and 8", got.Options(), got.Width(), want.Options())
	}
	x, a, b := make([]float32, 3*9*9), make([]float32, 8), make([]float32, 8)
	for i := range x {
		x[i] = float32(i % 7)
	}
	must(t, errors.Join(got.RepresentTo(a, x, 9, 9), want.RepresentTo(b, x, 9, 9)))
	if !slices.Equal(a, b) {
		t.Errorf("the loaded network represents an image by %v, want %v", a, b)
	}
}

// stateOf returns the golden network after its training pass as a file that
// PyTorch's safetensors writes of a module's state.
func stateOf(g goldenResNet) *safetensors.File {
	f := &safetensors.File{Metadata: map[string]string{"format": "pt"}, Tensors: map[string]safetensors.Tensor{}}
	for name, v := range g.file.Tensors {
		if name, ok := strings.CutPrefix(name, "param."); ok {
			f.Tensors[name] = v
			if after, ok := g.file.Tensors["after."+name]; ok {
				f.Tensors[name] = after
			}
			if module, ok := strings.CutSuffix(name, ".running_mean"); ok {
				f.Tensors[module+".num_batches_tracked"] = safetensors.New([]int64{7})
			}
		}
	}
	return f
}

// A PyTorch checkpoint gives the representations that PyTorch gives.
func TestLoadForeignResNet(t *testing.T) {
	g := readGoldenResNet(t)
	path := filepath.Join(t.TempDir(), "f")
	for name, convert := range map[string]func(safetensors.Tensor) safetensors.Tensor{
		"float64": func(v safetensors.Tensor) safetensors.Tensor { return v },
		"float32": func(v safetensors.Tensor) safetensors.Tensor {
			x, err := v.Float64s()
			if err != nil {
				return v // the number of batches
			}
			return safetensors.New(to32(x), v.Shape...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := stateOf(g)
			for name, v := range f.Tensors {
				f.Tensors[name] = convert(v)
			}
			must(t, f.WriteFile(path))
			s := load(t, path)
			if !s.FromPyTorch || s.ResNet == nil || s.Images != nil {
				t.Fatalf("loaded %+v", s)
			}
			want, _ := g.tensor("eval.h")
			compareTo(t, "eval.h", represented(t, g, s.ResNet), want, 1e-4)
		})
	}
}

func TestLoadRefusesResNet(t *testing.T) {
	g := readGoldenResNet(t)
	set := func(name string, v safetensors.Tensor) func(*safetensors.File) {
		return func(f *safetensors.File) { f.Tensors[name] = v }
	}
	remove := func(name string) func(*safetensors.File) {
		return func(f *safetensors.File) { delete(f.Tensors, name) }
	}
	floats := func(v float32, shape ...int) safetensors.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return safetensors.New(slices.Repeat([]float32{v}, n), shape...)
	}
	for name, tc := range map[string]struct {
		change func(*safetensors.File)
		want   string
	}{
		"no norm":           {remove("layer2.0.bn1.running_var"), `no tensor "layer2.0.bn1.running_var"`},
		"no head":           {remove("fc1.weight"), `no tensor "fc1.weight"`},
		"no last stage":     {remove("layer4.1.conv2.weight"), `no tensor "layer4.1.conv2.weight"`},
		"large stem":        {set("conv1.weight", floats(1, 4, 3, 7, 7)), `tensor "conv1.weight": got the shape [4 3 7 7], want [4 3 3 3]`},
		"flat stem":         {set("conv1.weight", floats(1, 108)), `tensor "conv1.weight": got the shape [108], want [108 3 3 3]`},
		"no channel":        {set("conv1.weight", floats(1, 0, 3, 3, 3)), `tensor "layer4.1.conv2.weight": got the shape [32 32 3 3], want [0 0 3 3]`},
		"narrow block":      {set("layer1.1.conv2.weight", floats(1, 4, 3, 3, 3)), `tensor "layer1.1.conv2.weight": got the shape [4 3 3 3], want [4 4 3 3]`},
		"another head":      {set("fc2.weight", floats(1, 8, 17)), `tensor "fc2.weight": got the shape [8 17], want [8 16]`},
		"third layer":       {set("fc3.weight", floats(1, 8, 8)), `"fc3.weight" belongs to another architecture`},
		"integers":          {set("layer1.0.conv1.weight", safetensors.New(make([]int32, 144), 4, 4, 3, 3)), `tensor "layer1.0.conv1.weight": got the type I32, want F32 or F64`},
		"not a number":      {set("fc1.bias", floats(float32(math.NaN()), 16)), `tensor "fc1.bias": value 0: got NaN`},
		"too large":         {set("fc1.bias", safetensors.New(slices.Repeat([]float64{1e300}, 16), 16)), `tensor "fc1.bias": value 0: got +Inf`},
		"negative variance": {set("bn1.running_var", floats(-1, 4)), `tensor "bn1.running_var": got a variance of -1, want 0 or more`},
		"other widths": {func(f *safetensors.File) {
			f.Metadata["architecture"] = `{"kind":"resnet18","widths":[4,16,9],"dtype":"float64"}`
			f.Metadata["training"], f.Metadata["labels"] = "{}", "null"
			f.Seal("model", 2)
		}, "widths: got [4 16 8], want [4 16 9] as described"},
	} {
		t.Run(name, func(t *testing.T) {
			f := stateOf(g)
			tc.change(f)
			path := filepath.Join(t.TempDir(), "f")
			must(t, f.WriteFile(path))
			_, err := model.Load(path)
			if !errors.Is(err, model.ErrFile) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
