package cne_test

import (
	"errors"
	"testing"

	"cne"
	"cne/data"
)

// A start of its own is for a table without given positions.
func TestStartErrors(t *testing.T) {
	const n = 400
	for name, o := range map[string]cne.Options{
		"unknown":            {Init: -1},
		"diffusion, network": {Init: cne.InitDiffusion, Hidden: []int{3}}, "diffusion, start": {Init: cne.InitDiffusion, Start: data.NewMatrix(n, 2)},
		"multilevel, network": {Init: cne.InitMultilevel, Hidden: []int{3}}, "multilevel, start": {Init: cne.InitMultilevel, Start: data.NewMatrix(n, 2)},
	} {
		if err := o.Check(n); !errors.Is(err, cne.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
