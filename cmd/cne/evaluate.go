package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/atomicfile"
	"cne/internal/finite"
	"cne/internal/rundir"
	"cne/internal/text"
	"cne/internal/version"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/quality"
)

func evaluateCmd() *cobra.Command {
	var a evaluationRun
	cmd := &cobra.Command{
		Use:   "evaluate EMBEDDING…",
		Short: "Measure how good embeddings are",
		Long: `Measure embeddings of the same points, made by this program or another, and
print the figures side by side. EMBEDDING is an array (.npy), a table (.csv or
.tsv), either of them also compressed with gzip, or a run folder. The folder of
a run says itself what the data are and how their graph is made; for other files
--data, or --config, does. --against compares with a further embedding of the
same points, such as one made elsewhere, and needs no data.

Measured against the data, which are the points between which the distances for
the graph are taken (principal components, if graph.pca says so):
  kNN recall       the share of a point's quality.k nearest neighbours that are
                   its nearest in the embedding, too
  trustworthiness  how near in the data the nearest in the embedding are; 1 if
                   none is outside the quality.k nearest, about 0.5 by chance
  Spearman         the rank correlation of the distances between a sample of
                   points (quality.spearman)
and, if there are labels,
  kNN accuracy     the share of points to which a vote of their 10 nearest in the
                   embedding gives the right label, of a seventh held out
Measured of the embedding and the graph, with the Cauchy similarity: the
partition function, the Kullback-Leibler divergence, and the losses per edge that
Neg-t-SNE, NC-t-SNE, InfoNC-t-SNE and UMAP expect if negatives are drawn
uniformly from all other points. That of InfoNC-t-SNE is estimated from random
draws; ± gives its standard error. All else is exact.

Figures for which something is missing are left out. Of several runs, all of the
same points and graph, the first says k and the constants of the losses.`,
		Example: `  cne evaluate runs/mnist10k
  cne evaluate runs/s0 runs/s1 tsne.npy
  cne evaluate umap.npy --data points.npy --labels labels.txt -o umap.json
  cne evaluate mine.npy --against theirs.npy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs an argument: the file with the embedding, or the run folder", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.inputs = args
			flags := cmd.Flags()
			a.withS, a.withZBar = flags.Changed("s"), flags.Changed("zbar")
			if err := a.check(flags.Changed("m")); err != nil {
				return &usageError{cmd.CommandPath(), err}
			}
			from, err := configSources(cmd)
			if err != nil {
				return err
			}
			if err := a.configure(from); err != nil {
				return err
			}
			a.reporter = newReporter(cmd.ErrOrStderr(), a.config.Log.Format, isQuiet(cmd))
			if a.device, err = openDevice(a.Log, a.config.Device); err != nil {
				return err
			}
			return errors.Join(a.run(cmd.Context(), cmd.OutOrStdout()), a.device.Close())
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "csv", "tsv", "gz"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	given := addSourceFlags(configs.Train, cmd, "configuration, a YAML `file`, in place of that of the run")
	flags := cmd.Flags()
	flags.StringArrayVar(&a.data, "data", nil, "`path` of the points (repeatable), same as --set data.path=…")
	flags.StringArrayVar(&a.labels, "labels", nil, "`file` with the labels, in the order of the points (repeatable), same as --set data.labels=…")
	flags.StringVar(&a.graph, "graph", "", "graph of the points, a `file` that ends in .npz, same as --set graph.file=…")
	flags.Var(&settingFlag{name: "--seed", key: "seed", list: given}, "seed", "seed of what is drawn, same as --set seed=`n`")
	flags.StringVar(&a.against, "against", "", "also compare with an embedding, a `file` or run folder")
	flags.Float64Var(&a.s, "s", 0, "`place` on the spectrum for the losses of Neg-t-SNE and InfoNC-t-SNE (default: that of the first run)")
	flags.Float64Var(&a.zBar, "zbar", 0, "normalisation `constant` for the loss of Neg-t-SNE (default: that of the first run)")
	flags.IntVar(&a.negatives, "m", 0, "`number` of negatives per edge for the losses (default: that of the first run)")
	flags.BoolVar(&a.json, "json", false, "print JSON in place of a table")
	flags.StringVarP(&a.output, "output", "o", "", "also write the figures to a `file` that ends in .json")
	mustComplete(cmd, "output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt))
	mustComplete(cmd, "graph", cobra.FixedCompletions([]string{"npz"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

// evaluationRun is one run of cne evaluate.
type evaluationRun struct {
	*reporter
	inputs          []string
	data, labels    []string
	graph           string
	against, output string
	json            bool
	s, zBar         float64
	withS, withZBar bool // whether they are given
	negatives       int  // 0: those of the configuration

	config *configs.Config
	device *model.Device
	// dataKnown says that the configuration names the data of the embeddings,
	// and folder the run that it is of; "" if it is of none.
	dataKnown bool
	folder    string
}

// farthest is how far out on the spectrum --s may be, and largestZBar how large
// --zbar, so that no constant overflows.
const (
	farthest    = 100
	largestZBar = 1e100
)

// check finds faults of the command line.
func (a *evaluationRun) check(withNegatives bool) error {
	switch {
	case a.withS && a.withZBar:
		return errors.New("--s and --zbar are both given; each is a place on the spectrum")
	case !finite.Is(a.s):
		return fmt.Errorf("--s is %v, but must be a finite number", a.s)
	case math.Abs(a.s) > farthest:
		return fmt.Errorf("--s is %v, too far out on the spectrum; give a number from -%d to %d", a.s, farthest, farthest)
	case a.withZBar && !(a.zBar > 0 && a.zBar <= largestZBar):
		return fmt.Errorf("--zbar is %v, but must be a number above 0 and at most %v", a.zBar, largestZBar)
	case withNegatives && a.negatives < 1:
		return fmt.Errorf("--m is %d, but must be at least 1", a.negatives)
	}
	if a.output != "" {
		return checkEnding("--output", a.output, ".json")
	}
	return nil
}

// configure finds out what the data are and how their graph is made: the file
// given says so, or else the first run, and flags may change it.
func (a *evaluationRun) configure(from configs.Sources) error {
	add := func(flag, key string, paths []string) error {
		if len(paths) == 0 {
			return nil
		}
		list, err := json.Marshal(paths)
		from.Settings = append(from.Settings, configs.Setting{Source: flag, Key: key, Value: string(list)})
		return err
	}
	if err := errors.Join(add("--data", "data.path", a.data), add("--labels", "data.labels", a.labels)); err != nil {
		return err
	}
	if a.graph != "" {
		from.Settings = append(from.Settings, configs.Setting{Source: "--graph", Key: "graph.file", Value: a.graph})
	}
	var runs []string
	for _, input := range a.inputs {
		if run, err := isRun(input); err != nil {
			return err
		} else if run {
			runs = append(runs, input)
		}
	}
	ofTheRun := from.File == "" && len(runs) > 0
	if ofTheRun {
		a.folder, from.File = runs[0], filepath.Join(runs[0], rundir.ConfigFile)
	}
	c, origins, err := configs.Train.Load(from)
	if err != nil {
		return err
	}
	a.config = c
	a.dataKnown = !origins.IsDefault("data.path")
	if ofTheRun && len(a.data) == 0 {
		own, _, err := configs.Train.Load(configs.Sources{File: from.File})
		if err != nil {
			return err
		}
		if own.Seed != c.Seed && c.DrawsPoints() {
			return fmt.Errorf("the run in %s has drawn its points with the seed %d, but %s says %d; leave that out", a.folder, own.Seed, origins["seed"], c.Seed)
		}
		for _, run := range runs[1:] {
			if err := a.checkSameData(run, from); err != nil {
				return err
			}
		}
	}
	// Everything is measured, whatever it was at the end of the run.
	q := &c.Quality
	q.Recall, q.Partition, q.KL, q.Accuracy = true, true, true, true
	if q.Spearman == 0 {
		q.Spearman = quality.DefaultSample
	}
	c.Model.Kind = "table" // the points themselves are needed by no network
	if a.folder == "" {
		c.Graph.Cache = false
	}
	if !a.dataKnown && a.against == "" && c.Graph.File == nil {
		return fmt.Errorf("nothing says what points %s shows; name them with --data, or give --against or --graph", a.inputs[0])
	}
	return nil
}

// isRun tells whether a path is that of the folder of a run of cne train.
func isRun(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return false, nil // reading it says what is wrong
	}
	contents, command, err := rundir.Inspect(path)
	if err != nil || contents != rundir.Run {
		return false, err
	}
	if command == configs.Spectrum.Command() {
		err = isSpectrum(path)
	}
	if err == nil && command != "" && command != configs.Train.Command() {
		err = fmt.Errorf("the run in %s is one of %q; give one of %q", path, command, configs.Train.Command())
	}
	return err == nil, err
}

// checkSameData refuses a further run on other data, or with another graph,
// than the first has.
func (a *evaluationRun) checkSameData(run string, from configs.Sources) error {
	from.File = filepath.Join(run, rundir.ConfigFile)
	c, _, err := configs.Train.Load(from)
	if err != nil {
		return err
	}
	for _, d := range configs.Train.Compare(a.config, c) {
		section, _, _ := strings.Cut(d.Key, ".")
		matters := section == "data" || section == "graph" && d.Key != "graph.cache" || d.Key == "seed" && c.DrawsPoints()
		if matters {
			return fmt.Errorf("the run in %s has %s %s, but that in %s has %s; evaluate embeddings of the same points, or say which with --data",
				run, d.Key, d.Second, a.folder, d.First)
		}
	}
	return nil
}

// A candidate is an embedding that is measured.
type candidate struct {
	path      string // as on the command line
	file      string
	positions *data.Matrix
	labels    *data.Labels // of its file; may be nil
	found     *neighbors.Neighbors
	z         *float64 // learnt by its run
}

// openCandidate reads an embedding.
func (a *evaluationRun) openCandidate(path string) (*candidate, error) {
	run, err := isRun(path)
	if err != nil {
		return nil, err
	}
	s := &candidate{path: path, file: filepath.Join(path, "embedding.npy")} // read faster than the table
	if _, err := os.Stat(s.file); !run || err != nil {
		if s.file, err = embeddingFile(path); err != nil {
			return nil, err
		}
	}
	var o data.Options
	if !a.dataKnown {
		o.Labels = a.labels
	}
	set, err := openEmbedding(s.file, o)
	if err != nil {
		return nil, err
	}
	s.positions, s.labels = set.Points, set.Labels
	if run {
		s.z, err = learntZ(filepath.Join(path, rundir.MetricsFile))
	}
	return s, err
}

// learntZ returns the constant in the metrics of a run, nil if it has none.
func learntZ(path string) (*float64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the run has not ended
	}
	if err != nil {
		return nil, fmt.Errorf("the metrics of the run cannot be read: %w", err)
	}
	var m struct{ Z *float64 }
	if err := json.Unmarshal(text, &m); err != nil || m.Z != nil && !(*m.Z > 0) {
		return nil, fmt.Errorf("%s is not what a run writes; give the embedding in the folder in place of the folder", path)
	}
	return m.Z, nil
}

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
	Seconds    EvaluationSeconds  `json:"seconds"`
	Version    string             `json:"version"`
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
	KNNRecall float64  `json:"knn_recall"`         // of each point's neighbours in one among those in the other
	Spearman  *float64 `json:"spearman,omitempty"` // of the distances in both
}

// EvaluationSeconds says where the time went, in sums over the embeddings.
type EvaluationSeconds struct {
	Prepare         float64 `json:"prepare"` // reading, principal components and graph
	Figures         float64 `json:"figures"` // all but these:
	Trustworthiness float64 `json:"trustworthiness,omitempty"`
	Losses          float64 `json:"losses,omitempty"`
	Against         float64 `json:"against,omitempty"`
}

// stopwatch adds the time since it was made to a sum.
func stopwatch(sum *float64) func() {
	start := time.Now()
	return func() { *sum += time.Since(start).Seconds() }
}

func (a *evaluationRun) run(ctx context.Context, stdout io.Writer) error {
	if a.output != "" {
		inputs := append(append(inputFiles(a.config), a.inputs...), a.against)
		if err := checkOutput("--output", a.output, inputs...); err != nil {
			return err
		}
	}
	e, err := await(ctx, func() (*Evaluation, error) { return a.evaluate(ctx) })
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	if err != nil {
		return err
	}
	if a.output != "" {
		if err := atomicfile.Write(a.output, func(w io.Writer) error { return encodeJSON(w, e) }); err != nil {
			return fmt.Errorf("cannot write %s: %w", a.output, err)
		}
	}
	if a.json {
		return encodeJSON(stdout, e)
	}
	return e.print(stdout)
}

// evaluate measures all embeddings.
func (a *evaluationRun) evaluate(ctx context.Context) (*Evaluation, error) {
	e := &Evaluation{K: a.config.Quality.K, AccuracyK: quality.AccuracyK, Against: a.against, Version: version.String()}
	stop := stopwatch(&e.Seconds.Prepare)
	var all []*candidate
	for _, path := range a.inputs {
		s, err := a.openCandidate(path)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	var other *candidate
	compared := all
	if a.against != "" {
		var err error
		if other, err = a.openCandidate(a.against); err != nil {
			return nil, err
		}
		compared = append(slices.Clone(all), other)
	}
	e.N = all[0].positions.N
	for _, s := range compared[1:] {
		if s.positions.N != e.N {
			return nil, fmt.Errorf("%s has %d points, but %s has %d; give embeddings of the same points", s.file, s.positions.N, all[0].file, e.N)
		}
	}
	if e.N < 2 {
		return nil, fmt.Errorf("%s has a single point, which has no neighbours; give an embedding of more", all[0].file)
	}
	if e.N <= e.K {
		return nil, fmt.Errorf("the %d points of %s do not have %d neighbours each; set quality.k below %d", e.N, all[0].file, e.K, e.N)
	}
	y, err := a.prepare(ctx, e, all[0])
	if err != nil {
		return nil, err
	}
	a.constants(e)
	y.Losses = quality.LossOptions{Negatives: e.Negatives, Rho: e.Rho, Clamp: a.config.Loss.Clamp}
	if e.ZBar != nil {
		y.Losses.ZBar = *e.ZBar
	}
	stop()

	for _, s := range compared {
		if s.found, err = neighbors.KNN(ctx, s.positions, e.K, neighbors.Options{Device: a.device}); err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		a.Log.Info("measuring", "embedding", s.path)
		f, err := a.measure(ctx, e, s, other, y)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.file, err)
		}
		e.Embeddings = append(e.Embeddings, *f)
	}
	return e, nil
}

// A reference is what embeddings are measured by.
type reference struct {
	points *data.Matrix // the space in which neighbours are near; nil if it is not known
	quality.Options
}

// prepare reads the data, if they are known, and makes what the embeddings are
// measured by; first is one of them.
func (a *evaluationRun) prepare(ctx context.Context, e *Evaluation, first *candidate) (*reference, error) {
	q := &a.config.Quality
	y := &reference{Options: quality.Options{K: q.K, Sample: q.Spearman, Seed: a.config.Seed, Device: a.device}}
	if !a.dataKnown {
		if a.config.Graph.File == nil {
			return y, nil
		}
		var err error
		if y.Graph, err = readGraph(*a.config.Graph.File, e.N); err != nil {
			return nil, err
		}
		e.Edges = y.Graph.Edges()
		return y, nil
	}
	in, err := readInputs(a.config)
	if err != nil {
		return nil, err
	}
	if n := in.points.Points.N; n != e.N {
		left := ""
		if in.held != nil && in.heldRows != nil {
			left = " once data.holdout has taken its share"
		}
		return nil, fmt.Errorf("%s has %d points, but the data %s have %d%s; give an embedding of these points, or their data with --data",
			first.file, e.N, strings.Join(a.config.Data.Path, ", "), n, left)
	}
	e.Data = in.points.Name
	near, err := prepare(ctx, a.config, rundir.View(a.folder), a.Log, a.device, in.points)
	if err != nil {
		return nil, err
	}
	y.points, y.Neighbors, y.Graph, y.Labels = near.points, near.nearest, near.graph, in.points.Labels
	e.Edges = y.Graph.Edges()
	return y, nil
}

// constants fills in those of the losses.
func (a *evaluationRun) constants(e *Evaluation) {
	stages := a.config.Stages()
	last, loss := stages[len(stages)-1], a.config.Loss.Name
	e.Negatives = a.negatives
	if e.Negatives == 0 {
		e.Negatives = int(last.Negatives)
		if last.Negatives == configs.Full {
			e.Negatives = 2*a.config.Train.BatchSize - 2
		}
	}
	if a.withS || a.withZBar {
		last.S, last.ZBar = nil, nil
		if a.withS {
			last.S = &a.s
		} else {
			fixed := configs.ZBar(a.zBar)
			last.ZBar = &fixed
		}
	}
	if last.S != nil && (a.withS || loss == op.Neg) {
		z := train.Normalization{N: e.N}.ZBar(*last.S)
		e.ZBar = &z
	}
	if last.ZBar != nil && *last.ZBar != configs.Uniform && (a.withZBar || loss == op.Neg) {
		z := float64(*last.ZBar)
		e.ZBar = &z
	}
	e.Rho = 1
	if last.S != nil && (a.withS || loss == op.InfoNC) {
		e.Rho = math.Pow(4, *last.S)
	}
}

// measure measures one embedding.
func (a *evaluationRun) measure(ctx context.Context, e *Evaluation, s, other *candidate, y *reference) (*EvaluatedFigures, error) {
	f := &EvaluatedFigures{Path: s.path, Dim: s.positions.D}
	o := y.Options
	if o.Labels == nil {
		o.Labels = s.labels
	}
	o.Found = s.found
	if s.z != nil {
		o.Losses.LearntZ = *s.z
	}
	o.Measured = func(m quality.Metric, took time.Duration) {
		switch seconds := took.Seconds(); m {
		case quality.MetricTrustworthiness:
			e.Seconds.Trustworthiness += seconds
		case quality.MetricLosses:
			e.Seconds.Losses += seconds
		default:
			e.Seconds.Figures += seconds
		}
	}
	figures, err := quality.Measure(ctx, y.points, s.positions, o)
	if err != nil {
		return nil, err
	}
	f.Figures = *figures
	if other != nil {
		defer stopwatch(&e.Seconds.Against)()
		// The other embedding takes the place of the data.
		alike, err := quality.Measure(ctx, other.positions, s.positions, quality.Options{
			K: o.K, Sample: o.Sample, Seed: o.Seed, Device: o.Device, Neighbors: other.found, Found: s.found,
			Skip: ^(quality.MetricRecall | quality.MetricSpearman),
		})
		if err != nil {
			return nil, err
		}
		f.Against = &Comparison{KNNRecall: *alike.KNNRecall, Spearman: alike.Spearman}
	}
	return f, nil
}

// print writes the figures as a table with a column for each embedding.
func (e *Evaluation) print(w io.Writer) error {
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
	number := func(name, format string, value func(f *EvaluatedFigures) *float64) {
		row(name, func(f *EvaluatedFigures) string {
			if v := value(f); v != nil {
				return fmt.Sprintf(format, *v)
			}
			return ""
		})
	}
	loss := func(name string, value func(l *quality.Losses) *float64) {
		number(name, "%.5g", func(f *EvaluatedFigures) *float64 {
			if f.Losses == nil {
				return nil
			}
			return value(f.Losses)
		})
	}
	row("", func(f *EvaluatedFigures) string { return text.Printable(f.Path) })
	row("coordinates", func(f *EvaluatedFigures) string { return strconv.Itoa(f.Dim) })
	k := fmt.Sprintf(" (k = %d)", e.K)
	number("kNN recall"+k, "%.4f", func(f *EvaluatedFigures) *float64 { return f.KNNRecall })
	number("trustworthiness"+k, "%.4f", func(f *EvaluatedFigures) *float64 { return f.Trustworthiness })
	number("Spearman correlation", "%.3f", func(f *EvaluatedFigures) *float64 { return f.Spearman })
	number(fmt.Sprintf("kNN accuracy (k = %d)", e.AccuracyK), "%.4f", func(f *EvaluatedFigures) *float64 { return f.Accuracy })
	number("partition function", "%.4g", func(f *EvaluatedFigures) *float64 { return f.PartitionFunction })
	number("KL divergence", "%.4g", func(f *EvaluatedFigures) *float64 { return f.KL })
	loss("Neg-t-SNE loss, c = 1", func(l *quality.Losses) *float64 { return &l.Neg })
	if e.ZBar != nil {
		loss(fmt.Sprintf("Neg-t-SNE loss, Z̄ = %.4g", *e.ZBar), func(l *quality.Losses) *float64 { return l.NegZBar })
	}
	loss("NC-t-SNE loss, Z = partition function", func(l *quality.Losses) *float64 { return l.NC })
	loss("NC-t-SNE loss, learnt Z", func(l *quality.Losses) *float64 { return l.NCLearntZ })
	infonc := "InfoNC-t-SNE loss"
	if e.Rho != 1 {
		infonc += fmt.Sprintf(", ρ = %.4g", e.Rho)
	}
	row(infonc, func(f *EvaluatedFigures) string {
		if f.Losses == nil {
			return ""
		}
		return fmt.Sprintf("%.5g ± %.1g", f.Losses.InfoNC, f.Losses.InfoNCError)
	})
	loss("UMAP loss", func(l *quality.Losses) *float64 { return &l.UMAP })
	number("against "+text.Printable(e.Against)+": kNN recall"+k, "%.4f", func(f *EvaluatedFigures) *float64 {
		if f.Against == nil {
			return nil
		}
		return &f.Against.KNNRecall
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
		_, err := fmt.Fprintf(w, "%d points, %d directed edges, %s per edge\n", e.N, e.Edges, negatives)
		return err
	}
	_, err := fmt.Fprintf(w, "%d points\n", e.N)
	return err
}
