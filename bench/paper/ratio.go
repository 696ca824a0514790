package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"cne/bench/figures"
	"cne/internal/app/rundir"
	"cne/internal/plot"
)

// ratio shows how far NC-t-SNE's learnt Z is from the partition function it estimates: the
// loss of runs, and the partition function divided by Z, by epoch. The runs are of cne
// train with the loss nc and output.metrics_every; those of -infonc, of which the loss is
// drawn beside them, have no Z. The table has their last epochs.
func ratio(flags *flag.FlagSet) drawing {
	var infonc []string
	flags.Func("infonc", "`NAME=FOLDER`: draw the loss of a run of InfoNC-t-SNE, too (repeatable)", func(arg string) error {
		infonc = append(infonc, arg)
		return nil
	})
	return func(ctx context.Context, args []string) (string, *plot.Curves, error) {
		if len(args) == 0 {
			return "", nil, errors.New("give at least one NAME=FOLDER")
		}
		table := "| run | epochs | loss | partition function | Z | partition function / Z |\n|---|---|---|---|---|---|\n"
		panels := []plot.Panel{{Title: "InfoNC-t-SNE", YLabel: "loss per edge"}, {Title: "NC-t-SNE", YLabel: "loss per edge"}, {Title: "NC-t-SNE", YLabel: "partition function / Z", LogY: true}}
		for i, arg := range slices.Concat(infonc, args) {
			loss, ratio, row, err := course(ctx, arg, i >= len(infonc))
			if err != nil {
				return "", nil, err
			}
			table += row
			if i < len(infonc) {
				panels[0].Series = append(panels[0].Series, loss)
			} else {
				panels[1].Series, panels[2].Series = append(panels[1].Series, loss), append(panels[2].Series, ratio)
			}
		}
		if len(infonc) == 0 {
			panels = panels[1:]
		}
		for i := range panels {
			panels[i].XLabel = "epoch"
		}
		return table, &plot.Curves{Panels: panels}, nil
	}
}

// course returns the curves of a run and its row of the table. A run that learns Z has the
// ratio as well.
func course(ctx context.Context, arg string, learns bool) (loss, ratio plot.Series, row string, err error) {
	name, folder, ok := strings.Cut(arg, "=")
	if !ok || name == "" || folder == "" {
		return loss, ratio, "", fmt.Errorf("%q is not of the form NAME=FOLDER", arg)
	}
	r, err := rundir.ReadRecords(ctx, folder)
	if err != nil {
		return loss, ratio, "", err
	}
	loss.Name, ratio.Name = name, name
	for i, epoch := range r.Epochs {
		l, partition, z := valueOf(r, "loss", i), valueOf(r, "partition_function", i), valueOf(r, "z", i)
		if !math.IsNaN(l) {
			loss.X, loss.Y = append(loss.X, epoch), append(loss.Y, l)
		}
		q := partition / z
		if q > 0 && !math.IsInf(q, 0) {
			ratio.X, ratio.Y = append(ratio.X, epoch), append(ratio.Y, q)
		}
		if !learns && partition > 0 || q > 0 {
			row = fmt.Sprintf("| %s | %g |", name, epoch)
			for j, x := range []float64{l, partition, z, q} {
				text := figures.Significant(x, 4-j/3)
				if math.IsNaN(x) {
					text = "–"
				}
				row += " " + text + " |"
			}
			row += "\n"
		}
	}
	if row == "" {
		return loss, ratio, "", fmt.Errorf("%s has no record of both partition function and Z; give a run of the loss nc with output.metrics_every", r.Path)
	}
	return loss, ratio, row, nil
}

// valueOf returns a value of the i-th record, NaN if it has none.
func valueOf(r *rundir.Records, name string, i int) float64 {
	if c := r.Curves[name]; c != nil {
		return c[i]
	}
	return math.NaN()
}
