// Command ratio shows how far NC-t-SNE's learnt Z is from the partition function it
// estimates, as Figure S9 of the paper does: it draws the loss of runs, and the
// partition function divided by Z, against the epochs.
//
//	go run ./scripts/paper/ratio -o figS9.png NAME=FOLDER...
//
// The runs are of cne train with the loss nc and output.metrics_every, by which the
// partition function is measured meanwhile. What they end with is printed as Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"cne/internal/plot"
	"cne/internal/rundir"
	"cne/scripts/internal/summary"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "ratio:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("ratio", flag.ContinueOnError)
	picture := flags.String("o", "", "picture, a `file` that ends in .png or .svg; none is drawn without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("give at least one NAME=FOLDER")
	}
	loss := plot.Panel{Title: "Loss", XLabel: "epoch", YLabel: "per edge"}
	ratio := plot.Panel{Title: "Partition function / Z", XLabel: "epoch", LogY: true}
	table := "| run | epochs | partition function | Z | partition function / Z |\n|---|---|---|---|---|\n"
	for _, arg := range flags.Args() {
		name, folder, ok := strings.Cut(arg, "=")
		if !ok || name == "" || folder == "" {
			return fmt.Errorf("%q is not of the form NAME=FOLDER", arg)
		}
		r, err := rundir.ReadRecords(ctx, folder)
		if err != nil {
			return err
		}
		losses, ratios := plot.Series{Name: name}, plot.Series{Name: name}
		row := ""
		for i, epoch := range r.Epochs {
			if l := at(r, "loss", i); !math.IsNaN(l) {
				losses.X, losses.Y = append(losses.X, epoch), append(losses.Y, l)
			}
			partition, z := at(r, "partition_function", i), at(r, "z", i)
			if q := partition / z; q > 0 && !math.IsInf(q, 0) {
				ratios.X, ratios.Y = append(ratios.X, epoch), append(ratios.Y, q)
				row = fmt.Sprintf("| %s | %g | %s | %s | %s |\n", name, epoch, summary.Significant(partition, 4), summary.Significant(z, 4), summary.Significant(q, 3))
			}
		}
		if row == "" {
			return fmt.Errorf("%s has no record of both partition function and Z; give a run of the loss nc with output.metrics_every", r.Path)
		}
		table += row
		loss.Series, ratio.Series = append(loss.Series, losses), append(ratio.Series, ratios)
	}
	if _, err := io.WriteString(stdout, table); err != nil || *picture == "" {
		return err
	}
	return (&plot.Curves{Panels: []plot.Panel{loss, ratio}}).Save(*picture)
}

// at returns a value of the i-th record, NaN if it has none.
func at(r *rundir.Records, name string, i int) float64 {
	if c := r.Curves[name]; c != nil {
		return c[i]
	}
	return math.NaN()
}
