package cne_test

import (
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
	"cne/train/quality"
)

// A huge pull gives the principal components, or the positions to pull towards, wherever the
// points start, and some of it in between; every preset's way of training takes one.
func TestPull(t *testing.T) {
	m := clusters(120, 6)
	components, err := initial.Components(t.Context(), m, 2)
	must(t, err)
	other := data.NewMatrix(m.N, 2)
	for i := range m.N {
		other.Row(i)[0], other.Row(i)[1] = float32(i%3)+1e3, float32(i%5)
	}
	unlike := func(positions, towards *data.Matrix) float64 {
		_, disparity, err := quality.Align(positions.Clone(), towards, false)
		must(t, err)
		return disparity
	}
	for name, change := range map[string]func(*cne.Options){
		"paper":      func(*cne.Options) {},
		"auto":       func(o *cne.Options) { *o = cne.PresetAuto.Apply(*o, m.N, nil) },
		"random":     func(o *cne.Options) { o.Init = cne.InitRandom },
		"diffusion":  func(o *cne.Options) { o.Init, o.Loss, o.Float64 = cne.InitDiffusion, op.NC, true },
		"multilevel": func(o *cne.Options) { o.Init, o.Loss, o.Negatives = cne.InitMultilevel, op.InfoNC, train.Full },
		"given":      func(o *cne.Options) { o.Init, o.Start = cne.InitGiven, other.Clone() },
		"towards":    func(o *cne.Options) { o.Towards = other },
	} {
		share := func(pull float64) float64 {
			o := cne.Options{Pull: pull, Epochs: 60}
			change(&o)
			if pull == 0 {
				o.Towards = nil
			}
			e := embed(t, m, o)
			if name == "towards" {
				return unlike(e.Positions, other)
			}
			return unlike(e.Positions, components)
		}
		if none, some, huge := share(0), share(0.1), share(1e6); !(some < none && huge < 1e-6) {
			t.Errorf("%s: the disparity is %g without a pull, %g with one, and %g with a huge one", name, none, some, huge)
		}
	}
	// New points are placed as always, and Towards is not changed.
	before := slices.Clone(other.X)
	e := embed(t, m, cne.Options{Pull: 0.2, Towards: other, Epochs: 60})
	same(t, "Towards has changed", other.X, before)
	same(t, "points are projected elsewhere", project(t, e, m).X, e.Positions.X)
}

// The embeddings of a spectrum with a pull in the last phase are those of separate runs,
// wherever they start, also towards given positions.
func TestSpectrumOfPulls(t *testing.T) {
	m := clusters(90, 5)
	other := data.NewMatrix(m.N, 2)
	for i := range m.N {
		other.Row(i)[0], other.Row(i)[1] = float32(i%3), float32(i%7)
	}
	last := []cne.Phase{
		{Spectrum: train.FromS(0), Pull: new(0.3)}, {Spectrum: train.FromS(1), Pull: new(0.1)}, {Spectrum: train.FromS(0.5), Pull: new(0.3)},
	}
	for name, o := range map[string]cne.Options{
		"random": {Init: cne.InitRandom}, "diffusion": {Init: cne.InitDiffusion}, "given": {Init: cne.InitGiven, Start: other},
		"towards": {Towards: other},
	} {
		o.Neighbors, o.Epochs = 5, 9
		h, err := cne.Prepare(t.Context(), &data.Dataset{Points: m}, cne.Options{Neighbors: 5})
		must(t, err)
		got, err := h.Spectrum(t.Context(), last, o)
		must(t, err)
		each, _ := o.SpectrumOptions(last)
		for i, e := range got {
			same(t, name, e.Positions.X, embed(t, m, each[i]).Positions.X)
		}
	}
}
