// Command summarise puts the figures of several runs of cne into one table.
//
//	go run ./scripts/summarise FOLDER [NAME...]
//
// It reads metrics.json in every folder directly below FOLDER and prints, as
// Markdown, a row for each configuration, or for those whose NAME is given: the
// mean of every figure over its runs and, from two runs on, the standard deviation
// of the sample (divisor runs − 1). Runs of one configuration are told by their names: those that
// differ only in a last part -SEED, where SEED is the seed of the run. Folders
// without metrics.json, such as that of an interrupted run, are left out, and
// said so on standard error.
//
// The runs may be of cne train or of cne simclr pretrain, which have tables of
// their own. It neither starts runs nor judges them; scripts/results starts those
// of docs/results.md, and the scripts in scripts/paper those of the paper.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "summarise:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("give the folder that holds the run folders, and perhaps names of runs")
	}
	groups, skipped, err := readRuns(args[0], args[1:])
	if err != nil {
		return err
	}
	for _, name := range skipped {
		fmt.Fprintf(stderr, "summarise: %s has no metrics.json and is left out\n", name)
	}
	return writeTable(stdout, groups)
}
