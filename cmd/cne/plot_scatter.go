package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"cne/configs"
	"cne/data"
	"cne/internal/plot"
)

// drawStrip draws several embeddings side by side, with one legend.
func (p *plotting) drawStrip(ctx context.Context) error {
	strip := &plot.Strip{Columns: p.columns}
	var labels []*data.Labels
	points := 0
	for i, input := range p.inputs {
		file, err := embeddingFile(input)
		if err != nil {
			return err
		}
		if err := differ(file, p.output); err != nil {
			return err
		}
		set, err := openEmbedding(file, p.data)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		title := filepath.Base(data.TrimEnding(input))
		if len(p.titles) > 0 {
			title = p.titles[i]
		}
		strip.Panels = append(strip.Panels, &plot.Scatter{Embedding: set.Points, Title: title, PointSize: p.plot.PointSize})
		labels = append(labels, orMissing(set.Labels, set.Points.N))
		points += set.Points.N
	}
	// A class has one colour in all of them.
	all := scatterOf(&data.Matrix{N: points}, data.JoinLabels(labels...), configs.Plot{})
	first := 0
	for _, panel := range strip.Panels {
		end := first + panel.Embedding.N
		panel.ClassNames = all.ClassNames
		if all.Classes != nil {
			panel.Classes = all.Classes[first:end]
		}
		if all.Values != nil {
			panel.Values = all.Values[first:end]
		}
		first = end
	}
	return strip.Save(p.output)
}

// checkStrip finds faults of the command line for several embeddings.
func (p *plotting) checkStrip() error {
	n := len(p.inputs)
	switch {
	case p.output == "":
		return fmt.Errorf("%d embeddings need --output, the file for their picture", n)
	case len(p.titles) > 0 && len(p.titles) != n:
		return fmt.Errorf("--title is given %d times for %d embeddings; give one for each, in their order, or none", len(p.titles), n)
	case p.plot.WidthCM != 0 || p.plot.HeightCM != 0:
		return fmt.Errorf("--width and --height are about a single embedding, but there are %d; leave them out", n)
	}
	return nil
}

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
	rows, known := labels.Known()
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
		joined = data.JoinLabels(orMissing(labels, embedding.N), orMissing(heldLabels, held.N))
	}
	s := scatterOf(both, joined, p)
	s.HeldOut = make([]bool, both.N)
	for i := embedding.N; i < both.N; i++ {
		s.HeldOut[i] = true
	}
	return s
}
