package model_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cne/data"
	"cne/data/pca"
	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
)

// Numbers of the preprocessing are tensors, however wide points are. Files that have them in
// the metadata, as the first versions wrote them, give the same model.
func TestSaveWide(t *testing.T) {
	const d, k = 5000, 3
	wide := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1 / float64(i+3)
		}
		return x
	}
	describe := func() *model.Description {
		desc := description()
		desc.Preprocessing = &model.Preprocessing{
			Width: d, Fill: to32(wide(d)),
			Scaler: &data.Scaler{Kind: data.ScaleStandard, Offset: wide(d), Mean: wide(d), SD: wide(d)},
			PCA:    &pca.PCA{K: k, D: d, Mean: wide(d), Axes: wide(k * d), Variance: wide(k), TotalVariance: 2},
		}
		return desc
	}
	dir := t.TempDir()
	path, changed := filepath.Join(dir, "new"), filepath.Join(dir, "changed")
	want, network := describe(), newMLP[float32](t, k, nil, 2, 1)
	must(t, network.Save(path, want))
	if !reflect.DeepEqual(want, describe()) {
		t.Error("Save changes the description")
	}
	content, err := os.ReadFile(path)
	must(t, err)
	if header := binary.LittleEndian.Uint64(content); header > 4000 {
		t.Errorf("the header has %d bytes", header)
	}
	got, err := model.Load(path)
	must(t, err)
	if !reflect.DeepEqual(got.Preprocessing, want.Preprocessing) || !reflect.DeepEqual(got.Training, want.Training) {
		t.Error("got another description")
	}

	e := newEmbedding(t, []float32{1, 2, 3, 4}, 2, op.ContrastiveOptions{})
	must(t, e.Save(path, want))
	for name, x := range map[string]safetensors.Tensor{
		`tensor "preprocessing.pca.mean": value 1: got NaN, want a finite number`: safetensors.New([]float64{1, math.NaN()}, 2),
		`tensor "preprocessing.pca.mean": wrong element type`:                     safetensors.New([]float32{1}, 1),
		`got 1 values in Mean`: safetensors.New([]float64{1}, 1),
	} {
		f, err := safetensors.ReadFile(path)
		must(t, err)
		f.Tensors["preprocessing.pca.mean"] = x
		f.Seal("model", 2)
		must(t, f.WriteFile(changed))
		if _, err := model.Load(changed); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}
