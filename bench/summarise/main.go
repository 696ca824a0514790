// Command summarise puts the figures of several runs of cne into one table.
//
//	go run ./summarise FOLDER [NAME...]
//
// It reads metrics.json in every folder directly below FOLDER and prints, as Markdown, a
// row for each configuration, or for those whose NAME is given: the mean of every figure
// over its runs and, from two runs on, the standard deviation of the sample (divisor runs −
// 1). Runs of one configuration have names that differ only in a last part -SEED, the seed
// of the run. Folders without metrics.json, such as an interrupted run's, are left out,
// with a note on standard error.
//
// bench/results makes the runs of docs/results.md, and the scripts in bench/paper the
// runs of the paper.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/internal/app/rundir"
	"cne/train/quality"
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

// Metrics are the fields of the metrics.json of cne train. Figures that a run lacks are nil.
type Metrics struct {
	rundir.Metrics
	Loss *float64 `json:"loss"`
}

// A Group is the runs of one configuration.
type Group struct {
	Name string
	Runs []Metrics // at least one
}

var (
	// errNoRuns is the cause when a folder holds no finished run.
	errNoRuns = errors.New("no folder in it has a metrics.json")
	// errMetrics is the cause when a metrics.json is not one of cne's.
	errMetrics = errors.New("not the metrics of a run")
)

// readRuns reads the runs in the folders directly below root, in the order of their names;
// with names, only these runs, and in that order. skipped are the paths of unfinished runs.
func readRuns(root string, names []string) (groups []Group, skipped []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the folder of runs: %w", err)
	}
	index := map[string]int{}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if info, err := os.Stat(path); err != nil || !info.IsDir() { // a link to a folder is one
			continue
		}
		wanted := func(name string) bool { return strings.HasPrefix(e.Name(), name+"-") }
		if len(names) > 0 && !slices.ContainsFunc(names, wanted) {
			continue
		}
		m, err := readMetrics(filepath.Join(path, "metrics.json"))
		if errors.Is(err, fs.ErrNotExist) {
			skipped = append(skipped, path)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		name := strings.TrimSuffix(e.Name(), "-"+strconv.FormatUint(m.Seed, 10))
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		i, ok := index[name]
		if !ok {
			i = len(groups)
			index[name] = i
			groups = append(groups, Group{Name: name})
		}
		groups[i].Runs = append(groups[i].Runs, *m)
	}
	for _, name := range names {
		if _, ok := index[name]; !ok {
			return nil, nil, fmt.Errorf("%s: %w named %s-SEED; give names of finished runs", root, errNoRuns, name)
		}
	}
	if len(names) > 0 {
		slices.SortStableFunc(groups, func(a, b Group) int {
			return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
		})
	}
	if len(groups) == 0 {
		return nil, nil, fmt.Errorf("%s: %w; give the folder that holds the run folders", root, errNoRuns)
	}
	return groups, skipped, nil
}

// readMetrics reads one metrics.json. A file that is not one of a finished run
// gives errMetrics.
func readMetrics(path string) (*Metrics, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseMetrics(text)
	if err != nil {
		err = fmt.Errorf("%s: %w; remove the run's folder and run it again", path, err)
	}
	return m, err
}

func parseMetrics(text []byte) (*Metrics, error) {
	m := new(Metrics)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%w (%w)", errMetrics, err)
	}
	if m.Holdout == nil {
		m.Holdout = new(quality.HeldOutFigures)
	}
	for _, c := range []struct {
		key string
		ok  bool
	}{
		{"n", m.N > 0}, {"edges", m.Edges > 0}, {"epochs", m.Epochs > 0},
		{"seconds", m.Seconds.Total > 0}, {"version", m.Version != ""}, {"loss", m.Loss != nil},
	} {
		if !c.ok {
			return nil, fmt.Errorf("%w (it says nothing of %s)", errMetrics, c.key)
		}
	}
	return m, nil
}
