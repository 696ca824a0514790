// Command terms draws the two terms of Neg-t-SNE's and UMAP's loss, attraction and
// repulsion, against the distance of a pair in the embedding, as Figure S7 of the paper
// does: UMAP's repulsion diverges where points meet, Neg-t-SNE's does not.
//
//	go run ./scripts/paper/terms -o figS7.png
//
// The terms are those of the losses that cne evaluate computes, Neg-t-SNE's at the
// paper's default Z̄ = |X|/m.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"cne/internal/plot"
	"cne/train/quality"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "terms:", err)
		os.Exit(1)
	}
}

// losses are those that are drawn.
var losses = []struct {
	name string
	p    quality.Discriminator
}{{"UMAP", quality.UMAP()}, {"Neg-t-SNE", quality.Neg(1)}}

// run is the program without its process.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("terms", flag.ContinueOnError)
	picture := flags.String("o", "", "picture, a `file` that ends in .png or .svg; none is drawn without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("it takes flags only, but got %q", flags.Arg(0))
	}
	panels := []plot.Panel{{Title: "Attraction", XLabel: "distance", YLabel: "loss"}, {Title: "Repulsion", XLabel: "distance", YLabel: "loss"}}
	for _, l := range losses {
		for i := range panels {
			panels[i].Series = append(panels[i].Series, plot.Series{Name: l.name})
		}
	}
	table := "| distance |"
	for _, panel := range panels {
		for _, l := range losses {
			table += fmt.Sprintf(" %s, %s |", panel.Title, l.name)
		}
	}
	table += "\n|---|---|---|---|---|\n"
	const steps = 500
	for step := 1; step <= steps; step++ {
		d := 5 * float64(step) / steps
		row := fmt.Sprintf("| %.2f |", d)
		terms, err := at(ctx, d)
		if err != nil {
			return err
		}
		for i := range panels {
			for j := range losses {
				s := &panels[i].Series[j]
				s.X, s.Y = append(s.X, d), append(s.Y, terms[i][j])
				row += fmt.Sprintf(" %.4f |", terms[i][j])
			}
		}
		if step == 1 || step == 10 || step%50 == 0 {
			table += row + "\n"
		}
	}
	if _, err := io.WriteString(stdout, table); err != nil || *picture == "" {
		return err
	}
	return (&plot.Curves{Panels: panels}).Save(*picture)
}

// at returns the attraction and the repulsion of each loss for a pair at a distance.
func at(ctx context.Context, d float64) (terms [2][]float64, err error) {
	var p []quality.Discriminator
	for _, l := range losses {
		p = append(p, l.p)
	}
	// Of two points that are each other's neighbours, the loss per edge is the
	// attraction and m times the repulsion.
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
