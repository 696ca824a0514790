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

// Evaluation is what cne evaluate writes.
type Evaluation struct {
	Data  string `json:"data,omitempty"`  // their name
	N     int    `json:"n"`               // points
	Edges int    `json:"edges,omitempty"` // directed
	// K is how many neighbours kNN recall and trustworthiness are about, and
	// AccuracyK how many vote for accuracy.
	K         int `json:"k"`
	AccuracyK int `json:"accuracy_k"`
	// Negatives, ZBar and Rho are the constants of the losses.
	Negatives  int                `json:"negatives"`
	ZBar       *float64           `json:"z_bar,omitempty"`
	Rho        float64            `json:"rho"`
	Against    string             `json:"against,omitempty"`
	Embeddings []EvaluatedFigures `json:"embeddings"` // in the order of the command line
	*rundir.GraphRecall
	Seconds EvaluationSeconds `json:"seconds"`
	Version string            `json:"version"`
}

// EvaluatedFigures are those of one embedding. What cannot be measured, or is
// not defined, is left out.
type EvaluatedFigures struct {
	Path string `json:"path"`
	Dim  int    `json:"dim"`
	quality.Figures
	Against *Comparison `json:"against,omitempty"`
}

// Comparison says how alike two embeddings are.
type Comparison struct {
	KNNRecall      float64  `json:"knn_recall"` // of each point's neighbours in one among those in the other
	KNNRecallError *float64 `json:"knn_recall_error,omitempty"`
	Spearman       *float64 `json:"spearman,omitempty"` // of the distances in both
}

// EvaluationSeconds says where the time went, in sums over the embeddings.
type EvaluationSeconds struct {
	Prepare         float64 `json:"prepare"` // reading, principal components and graph
	Figures         float64 `json:"figures"` // all but these:
	Trustworthiness float64 `json:"trustworthiness,omitempty"`
	Losses          float64 `json:"losses,omitempty"`
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
	estimate := func(name, format string, value func(f *EvaluatedFigures) (v, standardError *float64)) {
		row(name, func(f *EvaluatedFigures) string {
			if v, standardError := value(f); v != nil {
				return fmt.Sprintf(format, *v) + PlusMinus(standardError)
			}
			return ""
		})
	}
	number := func(name, format string, value func(f *EvaluatedFigures) *float64) {
		estimate(name, format, func(f *EvaluatedFigures) (v, standardError *float64) { return value(f), nil })
	}
	loss := func(name string, value func(l *quality.Losses) (v, standardError *float64)) {
		estimate(name, "%.5g", func(f *EvaluatedFigures) (v, standardError *float64) {
			if f.Losses == nil {
				return nil, nil
			}
			return value(f.Losses)
		})
	}
	row("", func(f *EvaluatedFigures) string { return text.Printable(f.Path) })
	row("coordinates", func(f *EvaluatedFigures) string { return strconv.Itoa(f.Dim) })
	k := fmt.Sprintf(" (k = %d)", e.K)
	estimate("kNN recall"+k, "%.4f", func(f *EvaluatedFigures) (v, e *float64) { return f.KNNRecall, f.KNNRecallError })
	estimate("trustworthiness"+k, "%.4f", func(f *EvaluatedFigures) (v, e *float64) { return f.Trustworthiness, f.TrustworthinessError })
	number("Spearman correlation", "%.3f", func(f *EvaluatedFigures) *float64 { return f.Spearman })
	estimate(fmt.Sprintf("kNN accuracy (k = %d)", e.AccuracyK), "%.4f", func(f *EvaluatedFigures) (v, e *float64) { return f.Accuracy, f.AccuracyError })
	estimate("partition function", "%.4g", func(f *EvaluatedFigures) (v, e *float64) { return f.PartitionFunction, f.PartitionFunctionError })
	estimate("KL divergence", "%.4g", func(f *EvaluatedFigures) (v, e *float64) { return f.KL, f.KLError })
	loss("Neg-t-SNE loss, c = 1", func(l *quality.Losses) (v, e *float64) { return &l.Neg, l.NegError })
	if e.ZBar != nil {
		loss(fmt.Sprintf("Neg-t-SNE loss, Z̄ = %.4g", *e.ZBar), func(l *quality.Losses) (v, e *float64) { return l.NegZBar, l.NegZBarError })
	}
	loss("NC-t-SNE loss, Z = partition function", func(l *quality.Losses) (v, e *float64) { return l.NC, l.NCError })
	loss("NC-t-SNE loss, learnt Z", func(l *quality.Losses) (v, e *float64) { return l.NCLearntZ, l.NCLearntZError })
	infonc := "InfoNC-t-SNE loss"
	if e.Rho != 1 {
		infonc += fmt.Sprintf(", ρ = %.4g", e.Rho)
	}
	loss(infonc, func(l *quality.Losses) (v, e *float64) { return &l.InfoNC, &l.InfoNCError })
	loss("UMAP loss", func(l *quality.Losses) (v, e *float64) { return &l.UMAP, l.UMAPError })
	estimate("against "+text.Printable(e.Against)+": kNN recall"+k, "%.4f", func(f *EvaluatedFigures) (v, standardError *float64) {
		if f.Against == nil {
			return nil, nil
		}
		return &f.Against.KNNRecall, f.Against.KNNRecallError
	})
	number("against "+text.Printable(e.Against)+": Spearman", "%.3f", func(f *EvaluatedFigures) *float64 {
		if f.Against == nil {
			return nil
		}
		return f.Against.Spearman
	})
	if err := table.Flush(); err != nil {
		return err
	}
	if e.Edges > 0 {
		negatives := "1 negative"
		if e.Negatives > 1 {
			negatives = fmt.Sprintf("%d negatives", e.Negatives)
		}
		if _, err := fmt.Fprintf(w, "%d points, %d directed edges, %s per edge\n", e.N, e.Edges, negatives); err != nil || e.GraphRecall == nil {
			return err
		}
		_, err := fmt.Fprintf(w, "approximate neighbours, of which %s\n", e.GraphRecall)
		return err
	}
	_, err := fmt.Fprintf(w, "%d points\n", e.N)
	return err
}
