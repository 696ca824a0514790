// Command paper draws figures of the paper from runs of cne, or from the losses
// themselves, and prints what it draws as a Markdown table.
//
//	go run ./paper FIGURE [-o PICTURE] [ARGUMENT]...
//
// The scripts in the same folder make the runs. "go run ./paper FIGURE -help" says
// what a figure takes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"cne/internal/plot"
)

// A drawing makes a table and curves of arguments.
type drawing func(ctx context.Context, args []string) (table string, c *plot.Curves, err error)

// A command draws one kind of figure. Its usage begins with its arguments, or with a line
// break if it takes none. define declares its own flags, and returns what draws
// once they are parsed.
type command struct {
	name, usage string
	define      func(*flag.FlagSet) drawing
}

// plain is a command without flags.
func plain(draw drawing) func(*flag.FlagSet) drawing {
	return func(*flag.FlagSet) drawing { return draw }
}

var commands = []command{
	{"batches", "FOLDER\nhow long a run takes by the size of its batches (Figure S6)", plain(batches)},
	{"ratio", "NAME=FOLDER...\nthe partition function divided by NC-t-SNE's learnt Z, by epoch (Figure S9)", ratio},
	{"spectra", "NAME=FOLDER[,FOLDER...]...\nspectra at the same values, the folders of one NAME being runs with different seeds (Figures 1i and S4)", spectra},
	{"terms", "\nattraction and repulsion of Neg-t-SNE and UMAP by the distance of a pair (Figure S7)", plain(terms)},
	{"toy", "\nthe partition function of three equidistant points by Z̄ (Figure S5)", toy},
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "paper:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	for _, c := range commands {
		if len(args) == 0 || args[0] != c.name {
			continue
		}
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		flags.Usage = func() {
			fmt.Fprintf(flags.Output(), "usage: go run ./paper %s [FLAG]... %s\n", c.name, c.usage)
			flags.PrintDefaults()
		}
		picture := flags.String("o", "", "picture, a `file` that ends in .png or .svg; none is drawn without it")
		make := c.define(flags)
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if strings.HasPrefix(c.usage, "\n") && flags.NArg() > 0 {
			return fmt.Errorf("%s: it takes flags only, but got %q", c.name, flags.Arg(0))
		}
		table, curves, err := make(ctx, flags.Args())
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if _, err := io.WriteString(stdout, table); err != nil || *picture == "" {
			return err
		}
		return curves.Save(*picture)
	}
	return errors.New("give the figure first: batches, ratio, spectra, terms or toy")
}
