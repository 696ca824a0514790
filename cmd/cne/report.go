package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"cne/configs"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/quality"
	"cne/internal/rng"
	"cne/internal/rundir"
	"cne/internal/version"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// Metrics is the content of metrics.json: how good an embedding is, and what
// it took. What was not asked for, or is not defined for the run, is left out.
type Metrics struct {
	Figures
	// Holdout is about the points that were held out.
	Holdout *HoldoutMetrics `json:"holdout,omitempty"`
	// Z is NC-t-SNE's learnt constant times n(n−1), to compare with the
	// partition function.
	Z     *float64 `json:"z,omitempty"`
	Loss  float64  `json:"loss"` // of the last epoch, per edge
	N     int      `json:"n"`
	Edges int      `json:"edges"` // directed

	Epochs       int     `json:"epochs"`
	Seconds      Seconds `json:"seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	Device       string  `json:"device"` // on which it was trained, at the end
	Seed         uint64  `json:"seed"`
	Version      string  `json:"version"`
}

// Figures say how good an embedding is.
type Figures struct {
	KNNRecall         *float64 `json:"knn_recall,omitempty"` // of quality.k neighbours
	Spearman          *float64 `json:"spearman,omitempty"`   // of distances
	PartitionFunction *float64 `json:"partition_function,omitempty"`
	KL                *float64 `json:"kl,omitempty"`       // between graph and embedding, in nats
	Accuracy          *float64 `json:"accuracy,omitempty"` // of a kNN classifier
}

// HoldoutMetrics says how well points that were not trained on are placed.
type HoldoutMetrics struct {
	N int `json:"n"`
	// Accuracy is that of a kNN classifier (k = 10) of the training points'
	// positions.
	Accuracy *float64 `json:"accuracy,omitempty"`
	// KNNRecall is the share of a point's quality.k nearest training points
	// that are among the nearest in the embedding.
	KNNRecall *float64 `json:"knn_recall,omitempty"`
}

// Seconds says where the time of a run went. PCA and Graph are next to nothing
// when they come from the cache. Of a run that was resumed, Optimize and Total
// count the epochs before that, and the others the last process alone.
type Seconds struct {
	Load     float64 `json:"load"`
	PCA      float64 `json:"pca"`
	Graph    float64 `json:"graph"`
	Optimize float64 `json:"optimize"`
	Project  float64 `json:"project,omitempty"` // of held-out points
	Quality  float64 `json:"quality"`
	Total    float64 `json:"total"`
}

// The classifier behind Metrics.Accuracy: the 10 nearest of a random six
// sevenths of the points vote on each of the rest (60 000 and 10 000 of
// MNIST).
const (
	accuracyK    = 10
	accuracyTest = 1.0 / 7
)

// report measures the embedding and writes metrics.json.
func (t *training) report(ctx context.Context, embedding, held *data.Matrix, start time.Time) (*Metrics, error) {
	measuring := time.Now()
	m := t.metrics(embedding)
	_, err := await(ctx, func() (struct{}, error) {
		err := t.measure(embedding, m)
		if err != nil || held == nil {
			return struct{}{}, err
		}
		m.Holdout, err = t.measureHeld(embedding, held)
		return struct{}{}, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted while the quality was measured; the embedding is in %s", t.dir.Path("embedding.npy"))
		}
		return nil, err
	}
	m.Seconds = Seconds{
		Load: t.load.Seconds(), PCA: t.near.pcaTime.Seconds(), Graph: t.near.graphTime.Seconds(),
		Optimize: t.result.Elapsed.Seconds(), Project: t.projectTime.Seconds(), Quality: time.Since(measuring).Seconds(), Total: time.Since(start).Seconds(),
	}
	if t.from != nil {
		m.Seconds.Total += (t.from.Progress.Elapsed + t.from.Progress.ElapsedSince).Seconds()
	}
	m.PeakRSSBytes = peakRSS()
	return m, t.dir.WriteJSON(rundir.MetricsFile, m)
}

// metrics returns what training tells of an embedding.
func (t *training) metrics(embedding *data.Matrix) *Metrics {
	m := &Metrics{
		Loss: t.result.Loss, N: embedding.N, Edges: t.result.Edges, Epochs: t.result.Epochs,
		Device: nameOf(t.device), Seed: t.config.Seed, Version: version.String(),
	}
	if t.config.Loss.Name == op.NC {
		z := train.Spectrum{N: embedding.N}.Z(t.result.LogZ)
		m.Z = &z
	}
	return m
}

// measure fills in what the configuration asks for.
func (t *training) measure(embedding *data.Matrix, m *Metrics) error {
	q := &t.config.Quality
	y := yardstick{on: t.device, points: t.near.points, graph: t.near.graph, quality: q, seed: t.config.Seed}
	var found *neighbors.Neighbors
	if q.Recall {
		var err error
		y.nearest = t.near.nearest.Nearest(q.K)
		if found, err = neighbors.KNNOn(t.device, embedding, q.K); err != nil {
			return err
		}
	}
	return y.measure(embedding, found, t.in.points.Labels, &m.Figures)
}

// A yardstick is what embeddings are measured by. What is nil is not there, and
// what needs it is left out.
type yardstick struct {
	on      *model.Device        // where it is measured
	points  *data.Matrix         // the space in which neighbours are near
	nearest *neighbors.Neighbors // quality.k of each of them
	graph   *neighbors.Graph
	quality *configs.Quality
	seed    uint64
}

// measure fills in what quality asks for. found are the quality.k nearest
// neighbours in the embedding, nil if their recall is not asked for; labels may
// be nil.
func (y *yardstick) measure(embedding *data.Matrix, found *neighbors.Neighbors, labels *data.Labels, m *Figures) error {
	q := y.quality
	if q.Recall && y.nearest != nil {
		recall, err := quality.KNNRecall(y.nearest.Index, found.Index, q.K)
		if err != nil {
			return err
		}
		m.KNNRecall = &recall
	}
	if q.Spearman > 0 && y.points != nil {
		var err error
		if m.Spearman, err = correlation(y.on, y.points, embedding, q.Spearman, y.seed); err != nil {
			return err
		}
	}
	if q.Partition || q.KL {
		z, err := quality.PartitionFunctionOn(y.on, embedding.X, embedding.D)
		if err != nil {
			return err
		}
		if q.Partition {
			m.PartitionFunction = &z
		}
		if q.KL && y.graph != nil {
			if m.KL, err = divergence(y.graph, embedding, z); err != nil {
				return err
			}
		}
	}
	if q.Accuracy && labels != nil {
		return measureAccuracy(y.on, embedding, labels, y.seed, m)
	}
	return nil
}

// correlation returns the rank correlation of the distances between a sample of
// the points in x and in y, or nil if all distances of one are equal, or the
// points too few.
func correlation(on *model.Device, x, y *data.Matrix, sample int, seed uint64) (*float64, error) {
	if y.N <= 2 {
		return nil, nil
	}
	rho, err := quality.SpearmanOn(on, x, y, sample, rng.New(seed, rng.Sample))
	if errors.Is(err, quality.ErrUndefined) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &rho, nil
}

// divergence returns the Kullback–Leibler divergence between the graph and the
// embedding, or nil if there are no edges, or if all points are so far from each
// other that the partition function is 0 in single precision.
func divergence(graph *neighbors.Graph, embedding *data.Matrix, partition float64) (*float64, error) {
	if graph.Edges() == 0 || partition == 0 {
		return nil, nil
	}
	heads, tails := graph.EdgeList()
	kl, err := quality.KL(heads, tails, embedding.X, embedding.D, partition)
	if err != nil {
		return nil, err
	}
	return &kl, nil
}

// measureAccuracy looks at the points that have a label. It leaves the figure
// out if labels are quantities, or the points too few.
func measureAccuracy(on *model.Device, embedding *data.Matrix, labels *data.Labels, seed uint64, m *Figures) error {
	rows, known := knownLabels(labels)
	test := int(accuracyTest * float64(len(rows)))
	if test == 0 || len(rows)-test <= accuracyK || !known.Categorical() {
		return nil
	}
	labelled := embedding
	if len(rows) < embedding.N {
		labelled = data.NewMatrix(len(rows), embedding.D)
		for k, i := range rows {
			copy(labelled.Row(k), embedding.Row(i))
		}
	}
	accuracy, err := quality.KNNAccuracyOn(on, labelled, known.Class, accuracyK, accuracyTest, rng.New(seed, rng.Split))
	if err != nil {
		return err
	}
	m.Accuracy = &accuracy
	return nil
}

// measureHeld measures how the held-out points lie among the training points.
func (t *training) measureHeld(embedding, held *data.Matrix) (*HoldoutMetrics, error) {
	q := &t.config.Quality
	m := &HoldoutMetrics{N: held.N}
	if q.Recall && t.near.nearest != nil {
		points, err := t.heldPoints(&data.Preprocessing{PCA: t.near.pca})
		if err != nil {
			return nil, err
		}
		near, err := neighbors.SearchOn(t.device, t.near.points, points, q.K)
		if err != nil {
			return nil, err
		}
		found, err := neighbors.SearchOn(t.device, embedding, held, q.K)
		if err != nil {
			return nil, err
		}
		recall, err := quality.HeldOutRecall(near.Index, found.Index, q.K, embedding.N)
		if err != nil {
			return nil, err
		}
		m.KNNRecall = &recall
	}
	if q.Accuracy && t.in.points.Labels != nil && t.in.held.Labels != nil {
		return m, measureHeldAccuracy(t.Log, t.device, embedding, held, t.in.points.Labels, t.in.held.Labels, m)
	}
	return m, nil
}

// measureHeldAccuracy looks at the points that have a label.
func measureHeldAccuracy(log *slog.Logger, on *model.Device, embedding, held *data.Matrix, labels, heldLabels *data.Labels, m *HoldoutMetrics) error {
	if _, known := knownLabels(labels); !known.Categorical() {
		return nil
	}
	rows, known := knownLabels(joinLabels(labels, heldLabels))
	n := len(labels.Class)
	var train, test data.Matrix
	train.D, test.D = embedding.D, held.D
	var trainClass, testClass []int32
	for k, i := range rows {
		if i < n {
			train.X = append(train.X, embedding.Row(i)...)
			train.N++
			trainClass = append(trainClass, known.Class[k])
		} else {
			test.X = append(test.X, held.Row(i-n)...)
			test.N++
			testClass = append(testClass, known.Class[k])
		}
	}
	if train.N < accuracyK || test.N == 0 {
		return nil
	}
	if !slices.ContainsFunc(testClass, func(c int32) bool { return slices.Contains(trainClass, c) }) {
		log.Warn("no label of the held-out points occurs among the training points; their accuracy is left out")
		return nil
	}
	accuracy, err := quality.HeldOutAccuracyOn(on, &train, trainClass, &test, testClass, accuracyK)
	if err != nil {
		return err
	}
	m.Accuracy = &accuracy
	return nil
}

// joinLabels returns the labels of several sets of points as those of one.
func joinLabels(labels ...*data.Labels) *data.Labels {
	var names []string
	for _, l := range labels {
		for _, c := range l.Class {
			names = append(names, l.Names[c])
		}
	}
	return data.NewLabels(names)
}

// print writes the figures as a table.
func (t *training) print(w io.Writer, m *Metrics) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	optional := func(name, format string, value *float64, more ...any) {
		if value != nil {
			row(name, format, append([]any{*value}, more...)...)
		}
	}
	if t.config.Output.Plot {
		row("picture", "%s", t.dir.Path("embedding.png"))
	}
	if t.config.Output.HTML {
		row("page", "%s", t.dir.Path(rundir.PageFile))
	}
	row("embedding", "%s", t.dir.Path("embedding.npy"))
	row("points", "%d, joined by %d directed edges", m.N, m.Edges)
	optional("kNN recall", "%.4f (k = %d)", m.KNNRecall, t.config.Quality.K)
	optional("Spearman correlation", "%.3f", m.Spearman)
	optional("partition function", "%.3g", m.PartitionFunction)
	optional("KL divergence", "%.4g", m.KL)
	optional("learnt Z", "%.3g", m.Z)
	optional("kNN accuracy", "%.4f (k = %d)", m.Accuracy, accuracyK)
	if h := m.Holdout; h != nil {
		row("held out", "%d points", h.N)
		optional("  kNN accuracy", "%.4f (k = %d)", h.Accuracy, accuracyK)
		optional("  kNN recall", "%.4f (k = %d)", h.KNNRecall, t.config.Quality.K)
	}
	row("loss", "%.5g per edge after %d epochs", m.Loss, m.Epochs)
	s := m.Seconds
	row("seconds", "%.1f (load %.1f, PCA %.1f, graph %.1f, optimisation %.1f, quality %.1f)", s.Total, s.Load, s.PCA, s.Graph, s.Optimize, s.Quality)
	row("memory", "%.0f MB at most", float64(m.PeakRSSBytes)/1e6)
	return table.Flush()
}
