package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"cne/bench/figures"
	"cne/internal/app/rundir"
	"cne/train/quality"
)

// A column is a figure of the table. It is left out if no run has the figure.
type column struct {
	head  string
	value func(*Metrics) *float64 // nil: the run has none
}

var columns = figureColumns()

func figureColumns() (all []column) {
	for _, f := range quality.Table() {
		of := func(m *Metrics) *float64 { v, _ := f.Of(&m.Figures); return v }
		all = append(all, column{head: f.Heading(), value: of})
	}
	return append(all,
		column{head: "learnt Z", value: func(m *Metrics) *float64 { return m.Z }},
		column{head: "loss per edge", value: func(m *Metrics) *float64 { return m.Loss }},
		column{head: "held-out recall", value: func(m *Metrics) *float64 { return m.Holdout.KNNRecall }},
		column{head: "held-out accuracy", value: func(m *Metrics) *float64 { return m.Holdout.Accuracy }},
		column{head: "optimisation, s", value: func(m *Metrics) *float64 { return &m.Seconds.Optimize }},
	)
}

// deviations says what ± is; the paper's are NumPy's.
const deviations = "Mean ± standard deviation of the sample over the runs of a row; NumPy's, of the population, is √(1−1/n) times this for n runs (0.82 for 3). "

// writeTable writes a row for each group, and below what the runs have in common.
func writeTable(w io.Writer, groups []Group) error {
	columns := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(groups, func(g Group) bool { return len(c.values(g.Runs)) > 0 })
	})
	var b bytes.Buffer
	b.WriteString("| run | runs |")
	for _, c := range columns {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "| %s | %d |", g.Name, len(g.Runs))
		for _, c := range columns {
			b.WriteString(" " + figures.MeanText(c.values(g.Runs)) + " |")
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	var most rundir.Seconds
	var memory int64
	said := map[string]string{}
	for _, g := range groups {
		for i := range g.Runs {
			m := &g.Runs[i]
			// Only the first of several runs that share a graph has computed it: a mean
			// would say nothing.
			most.Load, most.PCA = max(most.Load, m.Seconds.Load), max(most.PCA, m.Seconds.PCA)
			most.Graph, most.Quality = max(most.Graph, m.Seconds.Graph), max(most.Quality, m.Seconds.Quality)
			memory = max(memory, m.PeakRSSBytes)
			said["points"] = join(said["points"], strconv.Itoa(m.N))
			said["directed edges"] = join(said["directed edges"], strconv.Itoa(m.Edges))
			said["epochs"] = join(said["epochs"], strconv.Itoa(m.Epochs))
			said["cne"] = join(said["cne"], m.Version)
		}
	}
	fmt.Fprintf(&b, "%sPoints: %s; directed edges: %s; epochs: %s; cne %s. Beside the optimisation, a run spent at most %.1f s on reading, %.1f s on principal components, %.1f s on the graph and %.1f s on these figures. Memory: %.0f MB at most.\n",
		deviations, said["points"], said["directed edges"], said["epochs"], said["cne"], most.Load, most.PCA, most.Graph, most.Quality, float64(memory)/1e6)
	_, err := w.Write(b.Bytes())
	return err
}

// values returns the figure for the runs that have it.
func (c *column) values(runs []Metrics) []float64 {
	var x []float64
	for i := range runs {
		if v := c.value(&runs[i]); v != nil {
			x = append(x, *v)
		}
	}
	return x
}

// join appends a value to a list of different ones.
func join(list, value string) string {
	if list == "" {
		return value
	}
	if slices.Contains(strings.Split(list, ", "), value) {
		return list
	}
	return list + ", " + value
}
