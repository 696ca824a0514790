package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/internal/app/rundir"
	"cne/internal/plot"
)

// epochs of the runs in the paper.
const epochs = 750

// batches shows how long a run takes by the size of its batches. Its folder holds the
// metrics.json of runs under the names POWER-ROUND.json: POWER is the logarithm of the
// size to base 2, ROUND counts runs of one size. The median over the rounds counts,
// brought to 750 epochs.
func batches(_ context.Context, args []string) (string, *plot.Curves, error) {
	if len(args) != 1 {
		return "", nil, errors.New("give the folder with the metrics of the runs")
	}
	seconds, err := readSeconds(args[0])
	if err != nil {
		return "", nil, err
	}
	series := plot.Series{Marker: true}
	table := fmt.Sprintf("| batch | optimisation of %d epochs, s |\n|---|---|\n", epochs)
	for _, power := range slices.Sorted(maps.Keys(seconds)) {
		sorted := slices.Sorted(slices.Values(seconds[power]))
		s := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2 // the median
		series.X, series.Y = append(series.X, float64(int(1)<<power)), append(series.Y, s)
		table += fmt.Sprintf("| 2^%d | %.1f |\n", power, s)
	}
	return table, &plot.Curves{Panels: []plot.Panel{{
		XLabel: "batch size", YLabel: fmt.Sprintf("seconds for %d epochs", epochs), LogX: true, LogY: true, Series: []plot.Series{series},
	}}}, nil
}

// readSeconds returns the seconds that the runs' optimisation would take for all
// epochs, by the logarithm of the batch size.
func readSeconds(folder string) (map[int][]float64, error) {
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
		var m rundir.Metrics
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
