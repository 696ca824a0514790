package main

import (
	"context"
	"fmt"
	"path/filepath"

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
		title := filepath.Base(configs.TrimEnding(input))
		if len(p.titles) > 0 {
			title = p.titles[i]
		}
		strip.Panels = append(strip.Panels, &plot.Scatter{Embedding: set.Points, Title: title, PointSize: p.plot.PointSize})
		labels = append(labels, orMissing(set.Labels, set.Points.N))
		points += set.Points.N
	}
	// A class has one colour in all of them.
	all := scatterOf(&data.Matrix{N: points}, joinLabels(labels...), configs.Plot{})
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
