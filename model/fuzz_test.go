package model_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"cne/data"
	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
)

// FuzzLoad changes the contents of model files behind a right checksum:
// whatever they say, they are loaded or refused.
func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	network := newMLP[float32](f, 2, []int{2}, 1, 1)
	table := newEmbedding(f, []float32{1, 2}, 1, op.ContrastiveOptions{})
	resNet := newResNet[float32](f, model.ResNetOptions{Width: 1, Hidden: 2, Out: 1}, 1)
	path := filepath.Join(dir, "f")
	sparse := func(path string, d *model.Description) error {
		d.Points = &data.Matrix{N: 2, D: 3, CSR: &data.CSR{Start: []int{0, 2, 3}, Column: []int32{0, 2, 1}, Value: []float32{1, 2, 3}}}
		return table.Save(path, d)
	}
	for _, save := range []func(string, *model.Description) error{network.Save, table.Save, sparse, resNet.Save} {
		must(f, save(path, description()))
		text, err := os.ReadFile(path)
		must(f, err)
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text []byte, seal bool) {
		path := filepath.Join(t.TempDir(), "f")
		file, err := safetensors.Read(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return // safetensors has a fuzz test of its own
		}
		if seal {
			if file.Metadata == nil {
				file.Metadata = map[string]string{}
			}
			file.Seal("model", 2)
		}
		if err := file.WriteFile(path); err != nil {
			return
		}
		s, err := model.Load(path)
		if err != nil {
			if !errors.Is(err, model.ErrFile) {
				t.Errorf("error %v is not ErrFile", err)
			}
			return
		}
		if s.ResNet != nil {
			if err := s.ResNet.RepresentTo(make([]float32, s.ResNet.Width()), make([]float32, 3*4*4), 4, 4); err != nil {
				t.Errorf("a network of widths %+v does not represent: %v", s.ResNet.Options(), err)
			}
			return
		}
		if s.Network == nil {
			if s.Points != nil && (s.Points.Check() != nil || s.Points.N != s.N) {
				t.Errorf("points %+v for %d positions", s.Points, s.N)
			}
			if len(s.Table) != s.N*s.D || s.N < 1 || s.D < 1 {
				t.Errorf("a table of %d values for %d×%d", len(s.Table), s.N, s.D)
			}
			return
		}
		in, out := s.Network.Size()
		if err := s.Network.ProjectTo(make([]float32, out), make([]float32, in)); err != nil {
			t.Errorf("a network from %d to %d does not project: %v", in, out, err)
		}
	})
}
