package main

import (
	"math"
	"slices"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/plot"
)

// scatterOf returns the picture of an embedding. Labels, which may be nil,
// colour the points as classes or on a continuous scale; points whose label is
// missing are grey.
func scatterOf(embedding *data.Matrix, labels *data.Labels, p configs.Plot) *plot.Scatter {
	s := &plot.Scatter{
		Embedding: embedding,
		Title:     p.Title,
		PointSize: p.PointSize,
		Width:     p.WidthCM / centimetres,
		Height:    p.HeightCM / centimetres,
	}
	if labels == nil {
		return s
	}
	rows, known := knownLabels(labels)
	switch {
	case len(rows) == 0:
	case known.Categorical():
		s.Classes = slices.Repeat([]int32{-1}, embedding.N)
		for k, i := range rows {
			s.Classes[i] = known.Class[k]
		}
		s.ClassNames = known.Names
	default:
		s.Values = slices.Repeat([]float64{math.NaN()}, embedding.N)
		for k, i := range rows {
			s.Values[i] = known.Value[k]
		}
	}
	return s
}

// knownLabels returns the points that have a label, and their labels alone:
// an empty field in a column of ages shall not make words of the others.
func knownLabels(labels *data.Labels) (rows []int, known *data.Labels) {
	missing := make([]bool, len(labels.Names))
	for c, name := range labels.Names {
		missing[c] = name == "" || strings.EqualFold(name, "nan")
	}
	for i, c := range labels.Class {
		if !missing[c] {
			rows = append(rows, i)
		}
	}
	if len(rows) == len(labels.Class) {
		return rows, labels
	}
	names := make([]string, len(rows))
	for k, i := range rows {
		names[k] = labels.Names[labels.Class[i]]
	}
	return rows, data.NewLabels(names)
}

// orMissing returns labels, or for nil those of n points whose label is missing.
func orMissing(l *data.Labels, n int) *data.Labels {
	if l != nil {
		return l
	}
	return &data.Labels{Class: make([]int32, n), Names: []string{""}}
}

// scatterOfBoth returns the picture of the training points with those that
// were held out among them. Either may be without labels.
func scatterOfBoth(embedding, held *data.Matrix, labels, heldLabels *data.Labels, p configs.Plot) *plot.Scatter {
	both := data.NewMatrix(embedding.N+held.N, embedding.D)
	copy(both.X, embedding.X)
	copy(both.X[len(embedding.X):], held.X)
	var joined *data.Labels
	if labels != nil || heldLabels != nil {
		joined = joinLabels(orMissing(labels, embedding.N), orMissing(heldLabels, held.N))
	}
	s := scatterOf(both, joined, p)
	s.HeldOut = make([]bool, both.N)
	for i := embedding.N; i < both.N; i++ {
		s.HeldOut[i] = true
	}
	return s
}
