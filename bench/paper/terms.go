package main

import (
	"context"
	"fmt"

	"cne/internal/plot"
	"cne/model/op"
)

// drawn are the losses that terms draws, Neg-t-SNE at the paper's default Z̄ = |X|/m.
var drawn = []op.Loss{op.UMAP, op.Neg}

// terms draws the two terms of Neg-t-SNE's and UMAP's loss, attraction and repulsion,
// by the distance of a pair in the embedding: UMAP's repulsion diverges where points
// meet, Neg-t-SNE's does not.
func terms(_ context.Context, _ []string) (string, *plot.Curves, error) {
	panels := []plot.Panel{{Title: "Attraction", XLabel: "distance", YLabel: "loss"}, {Title: "Repulsion", XLabel: "distance", YLabel: "loss"}}
	for _, l := range drawn {
		for i := range panels {
			panels[i].Series = append(panels[i].Series, plot.Series{Name: l.Info().Title})
		}
	}
	table := "| distance |"
	for _, panel := range panels {
		for _, l := range drawn {
			table += fmt.Sprintf(" %s, %s |", panel.Title, l.Info().Title)
		}
	}
	table += "\n|---|---|---|---|---|\n"
	const steps = 500
	for step := 1; step <= steps; step++ {
		d := 5 * float64(step) / steps
		row := fmt.Sprintf("| %.2f |", d)
		q, rest := 1/(1+d*d), d*d/(1+d*d)
		for i := range panels {
			for j, l := range drawn {
				of := []func(q, rest, c float64) op.PairLoss{l.Info().Positive, l.Info().Negative}[i]
				s, term := &panels[i].Series[j], of(q, rest, 1).Loss
				s.X, s.Y = append(s.X, d), append(s.Y, term)
				row += fmt.Sprintf(" %.4f |", term)
			}
		}
		if step == 1 || step == 10 || step%50 == 0 {
			table += row + "\n"
		}
	}
	return table, &plot.Curves{Panels: panels}, nil
}
