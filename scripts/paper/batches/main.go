// Command batches shows how long a run takes by the size of its batches, as
// Figure S6 of the paper does.
//
//	go run ./scripts/paper/batches -o figS6.png FOLDER
//
// FOLDER holds the metrics.json of runs under the names POWER-ROUND.json: POWER
// is the logarithm of the size to base 2, ROUND counts runs of one size. The
// median over the rounds counts, brought to 750 epochs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/internal/plot"
	"cne/scripts/internal/summary"
)

// epochs of the runs in the paper.
const epochs = 750

func main() {
	if err := run(os.Args[1:], os.Stdout); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "batches:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("batches", flag.ContinueOnError)
	picture := flags.String("o", "", "picture, a `file` that ends in .png or .svg; none is drawn without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("give the folder with the metrics of the runs")
	}
	seconds, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	series := plot.Series{Marker: true}
	table := fmt.Sprintf("| batch | optimisation of %d epochs, s |\n|---|---|\n", epochs)
	for _, power := range slices.Sorted(maps.Keys(seconds)) {
		s := summary.Median(seconds[power])
		series.X, series.Y = append(series.X, float64(int(1)<<power)), append(series.Y, s)
		table += fmt.Sprintf("| 2^%d | %.1f |\n", power, s)
	}
	if _, err := io.WriteString(stdout, table); err != nil || *picture == "" {
		return err
	}
	c := plot.Curves{Panels: []plot.Panel{{
		XLabel: "batch size", YLabel: fmt.Sprintf("seconds for %d epochs", epochs), LogX: true, LogY: true, Series: []plot.Series{series},
	}}}
	return c.Save(*picture)
}

// read returns the seconds that the runs' optimisation would take for all
// epochs, by the logarithm of the batch size.
func read(folder string) (map[int][]float64, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("%w; give the folder with the metrics of the runs", err)
	}
	seconds := map[int][]float64{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		first, second, _ := strings.Cut(name, "-")
		power, err := strconv.Atoi(first)
		if _, wrong := strconv.Atoi(second); err != nil || wrong != nil || power < 1 || power > 40 {
			return nil, fmt.Errorf("%s is not named POWER-ROUND.json, with a POWER from 1 to 40; remove it", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var m struct {
			Epochs  int `json:"epochs"`
			Seconds struct {
				Optimize float64 `json:"optimize"`
			} `json:"seconds"`
		}
		if err := json.Unmarshal(text, &m); err != nil || m.Epochs < 1 || !(m.Seconds.Optimize > 0) {
			return nil, fmt.Errorf("%s holds no metrics of a run; remove it and measure again", file)
		}
		seconds[power] = append(seconds[power], m.Seconds.Optimize*epochs/float64(m.Epochs))
	}
	if len(seconds) == 0 {
		return nil, fmt.Errorf("%s holds no file named POWER-ROUND.json; measure first", folder)
	}
	return seconds, nil
}
