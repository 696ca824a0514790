package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"cne/internal/app/rundir"
	"cne/internal/text"
	"cne/train/quality"
)

// Evaluation is the output of cne evaluate.
type Evaluation struct {
	Data  string `json:"data,omitempty"`  // their name
	N     int    `json:"n"`               // points
	Edges int    `json:"edges,omitempty"` // directed
	// K is the number of neighbours for kNN recall and trustworthiness, and AccuracyK the
	// number of neighbours that vote for accuracy.
	K         int `json:"k"`
	AccuracyK int `json:"accuracy_k"`
	// Components is the number of principal components that stand for the points; 0 for the
	// points themselves.
	Components int                `json:"components,omitempty"`
	Against    string             `json:"against,omitempty"`
	Embeddings []EvaluatedFigures `json:"embeddings"` // in the order of the command line
	*rundir.GraphRecall
	Seconds EvaluationSeconds `json:"seconds"`
	Version string            `json:"version"`
}

// EvaluatedFigures are the figures of one embedding. Figures that cannot be measured or
// are undefined are left out.
type EvaluatedFigures struct {
	Path string `json:"path"`
	Dim  int    `json:"dim"`
	quality.Figures
	// Against are the figures that compare it with another embedding.
	Against *quality.Figures `json:"against,omitempty"`
}

// EvaluationSeconds says where the time went, in sums over the embeddings.
type EvaluationSeconds struct {
	Prepare         float64 `json:"prepare"` // reading, principal components and graph
	Figures         float64 `json:"figures"` // all but these:
	Trustworthiness float64 `json:"trustworthiness,omitempty"`
	Against         float64 `json:"against,omitempty"`
}

// Print writes the figures as a table with a column for each embedding.
func (e *Evaluation) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(f *EvaluatedFigures) string) {
		cells, some := make([]string, len(e.Embeddings)), false
		for k := range e.Embeddings {
			cells[k] = cell(&e.Embeddings[k])
			some = some || cells[k] != ""
		}
		if some {
			fmt.Fprintf(table, "%s\t%s\n", name, strings.Join(cells, "\t"))
		}
	}
	estimate := func(name string, f quality.Figure, figures func(of *EvaluatedFigures) *quality.Figures) {
		row(name, func(of *EvaluatedFigures) string {
			if figures(of) == nil {
				return ""
			}
			v, standardError := f.Of(figures(of))
			if v == nil {
				return ""
			}
			return fmt.Sprintf(f.Format, *v) + quality.PlusMinus(standardError)
		})
	}
	row("", func(f *EvaluatedFigures) string { return text.Printable(f.Path) })
	row("coordinates", func(f *EvaluatedFigures) string { return strconv.Itoa(f.Dim) })
	for _, f := range quality.DisplayTable() {
		estimate(f.Title+f.OfNeighbors(e.K, e.Components)+f.Arrow(), f, func(of *EvaluatedFigures) *quality.Figures { return &of.Figures })
	}
	for _, f := range quality.DisplayTable() {
		estimate("against "+text.Printable(e.Against)+": "+f.Heading()+f.OfNeighbors(e.K, 0), f,
			func(of *EvaluatedFigures) *quality.Figures { return of.Against })
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if e.Edges > 0 {
		if _, err := fmt.Fprintf(w, "%d points, %d directed edges\n", e.N, e.Edges); err != nil || e.GraphRecall == nil {
			return err
		}
		_, err := fmt.Fprintf(w, "approximate neighbours: %s\n", e.GraphRecall)
		return err
	}
	_, err := fmt.Fprintf(w, "%d points\n", e.N)
	return err
}
