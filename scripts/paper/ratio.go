package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/plot"
)

// ratio shows how far NC-t-SNE's learnt Z is from the partition function it estimates:
// the loss of runs, and the partition function divided by Z, by epoch. The runs are of
// cne train with the loss nc and output.metrics_every. The table has their last epochs.
func ratio(ctx context.Context, args []string) (string, *plot.Curves, error) {
	if len(args) == 0 {
		return "", nil, errors.New("give at least one NAME=FOLDER")
	}
	loss, ratio := plot.Panel{Title: "Loss", XLabel: "epoch", YLabel: "per edge"}, plot.Panel{Title: "Partition function / Z", XLabel: "epoch", LogY: true}
	table := "| run | epochs | partition function | Z | partition function / Z |\n|---|---|---|---|---|\n"
	for _, arg := range args {
		name, folder, ok := strings.Cut(arg, "=")
		if !ok || name == "" || folder == "" {
			return "", nil, fmt.Errorf("%q is not of the form NAME=FOLDER", arg)
		}
		r, err := rundir.ReadRecords(ctx, folder)
		if err != nil {
			return "", nil, err
		}
		losses, ratios := plot.Series{Name: name}, plot.Series{Name: name}
		row := ""
		for i, epoch := range r.Epochs {
			if l := valueOf(r, "loss", i); !math.IsNaN(l) {
				losses.X, losses.Y = append(losses.X, epoch), append(losses.Y, l)
			}
			partition, z := valueOf(r, "partition_function", i), valueOf(r, "z", i)
			if q := partition / z; q > 0 && !math.IsInf(q, 0) {
				ratios.X, ratios.Y = append(ratios.X, epoch), append(ratios.Y, q)
				row = fmt.Sprintf("| %s | %g | %s | %s | %s |\n", name, epoch, report.Significant(partition, 4), report.Significant(z, 4), report.Significant(q, 3))
			}
		}
		if row == "" {
			return "", nil, fmt.Errorf("%s has no record of both partition function and Z; give a run of the loss nc with output.metrics_every", r.Path)
		}
		table += row
		loss.Series, ratio.Series = append(loss.Series, losses), append(ratio.Series, ratios)
	}
	return table, &plot.Curves{Panels: []plot.Panel{loss, ratio}}, nil
}

// valueOf returns a value of the i-th record, NaN if it has none.
func valueOf(r *rundir.Records, name string, i int) float64 {
	if c := r.Curves[name]; c != nil {
		return c[i]
	}
	return math.NaN()
}
