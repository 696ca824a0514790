package main

import (
	"context"
	"errors"
	"fmt"

	"cne/internal/plot"
	"cne/model/op"
	"cne/train/quality"
)

// drawn are the losses that terms draws, Neg-t-SNE at the paper's default Z̄ = |X|/m.
var drawn = []struct {
	name string
	p    quality.Discriminator
}{{"UMAP", quality.Discriminator{Loss: op.UMAP, C: 1}}, {"Neg-t-SNE", quality.Discriminator{Loss: op.Neg, C: 1}}}

// terms draws the two terms of Neg-t-SNE's and UMAP's loss, attraction and repulsion,
// by the distance of a pair in the embedding: UMAP's repulsion diverges where points
// meet, Neg-t-SNE's does not.
func terms(ctx context.Context, _ []string) (string, *plot.Curves, error) {
	panels := []plot.Panel{{Title: "Attraction", XLabel: "distance", YLabel: "loss"}, {Title: "Repulsion", XLabel: "distance", YLabel: "loss"}}
	for _, l := range drawn {
		for i := range panels {
			panels[i].Series = append(panels[i].Series, plot.Series{Name: l.name})
		}
	}
	table := "| distance |"
	for _, panel := range panels {
		for _, l := range drawn {
			table += fmt.Sprintf(" %s, %s |", panel.Title, l.name)
		}
	}
	table += "\n|---|---|---|---|---|\n"
	const steps = 500
	for step := 1; step <= steps; step++ {
		d := 5 * float64(step) / steps
		row := fmt.Sprintf("| %.2f |", d)
		terms, err := termsAt(ctx, d)
		if err != nil {
			return "", nil, err
		}
		for i := range panels {
			for j := range drawn {
				s := &panels[i].Series[j]
				s.X, s.Y = append(s.X, d), append(s.Y, terms[i][j])
				row += fmt.Sprintf(" %.4f |", terms[i][j])
			}
		}
		if step == 1 || step == 10 || step%50 == 0 {
			table += row + "\n"
		}
	}
	return table, &plot.Curves{Panels: panels}, nil
}

// termsAt returns the attraction and the repulsion of each loss for a pair at a distance.
func termsAt(ctx context.Context, d float64) (terms [2][]float64, err error) {
	var p []quality.Discriminator
	for _, l := range drawn {
		p = append(p, l.p)
	}
	// For two points that are each other's neighbours, the loss per edge is the attraction
	// plus m times the repulsion.
	of := func(m int) []float64 {
		sum, failed := quality.ExpectedLosses(ctx, []int32{0, 1}, []int32{1, 0}, []float64{0, d}, 1, m, 0, p, nil)
		err = errors.Join(err, failed)
		return sum
	}
	one, two := of(1), of(2)
	if err != nil {
		return terms, err
	}
	for j := range p {
		terms[0], terms[1] = append(terms[0], 2*one[j]-two[j]), append(terms[1], two[j]-one[j])
	}
	return terms, nil
}
