package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/app/cli"
	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/model"
)

func evaluateCmd() *cobra.Command {
	var a evaluationRun
	cmd := &cobra.Command{
		Use:   "evaluate EMBEDDING…",
		Short: "Measure how good embeddings are",
		Long: `Measure embeddings of the same points, made by cne or another program, and print
the scores side by side. EMBEDDING is an array (.npy), a table (.csv, .tsv), or
a run folder; files may be compressed with gzip. With --join the files are the
parts of one embedding, one below the other.

A run folder says what the data are and how their graph is made; for other files
--data or --config says so. --against compares with one more embedding of the
same points, and needs no data.

Compared with the data (with their principal components if neighbours are
searched among these: graph.pca):
  kNN recall       share of a point's quality.k nearest neighbours in the data
                   that are among its quality.k nearest in the embedding
  trustworthiness  1 if all quality.k nearest in the embedding are among the
                   quality.k nearest in the data, about 0.5 by chance
  Spearman         rank correlation of the distances between a sample of points
                   (quality.spearman_sample)
  density correlation
                   between the logarithms of the mean squared distances to the
                   quality.k nearest
With labels:
  kNN accuracy     of a 10-nearest-neighbour classifier in the embedding, tested
                   on a random seventh of the points
For the embedding and the graph, with the Cauchy similarity: the partition
function and the KL divergence.

All scores but Spearman's are exact up to 100 000 points. Above, a random sample
(quality.sample) is measured against all points, with standard errors.

Scores that lack data, labels or a graph are left out. All runs must have the
same points and graph; the first gives k.`,
		Example: `  cne evaluate runs/mnist10k
  cne evaluate runs/s0 runs/s1 tsne.npy
  cne evaluate umap.npy --data points.npy --labels labels.txt -o umap.json
  cne evaluate mine.npy --against theirs.npy
  cne evaluate --join part1.npy part2.npy --data points.npy`,
		Args: cli.AtLeastOne("the file with the embedding, or the run folder"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer kind.Catch(&err)
			a.inputs = args
			kind.Check(cli.Usage(cmd, cli.CheckEnding("--output", a.output, ".json")))
			from := kind.Got(cli.Sources(cmd))
			kind.Check(cli.ConfigError(cmd, from, a.configure(from)))
			a.Reporter = cli.NewReporter(cmd, a.config.Log.Format)
			a.device = kind.Got(openDevice(a.Log, a.config.Device))
			return errors.Join(a.run(cmd.Context(), cmd.OutOrStdout()), a.device.Close())
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"npy", "csv", "tsv", "gz"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	given := cli.AddSourceFlags(configs.Train, cmd, "YAML `file` to use instead of the configuration of the run")
	flags := cmd.Flags()
	cli.AddKeyFlag(cmd, given, "data", "", "data.path", "`path` of the points; repeatable")
	cli.AddKeyFlag(cmd, given, "labels", "", "data.labels", "`file` with a label per point, or FILE:COLUMN of a table; repeatable")
	cli.AddKeyFlag(cmd, given, "drop-text", "", "data.drop_text", "leave out columns that are not numbers")
	cli.AddKeyFlag(cmd, given, "graph", "", "graph.file", "`file` with the graph of the points, .npz")
	cli.AddKeyFlag(cmd, given, "seed", "", "seed", "`seed` of all random numbers")
	flags.BoolVar(&a.join, "join", false, "the files are the parts of one embedding, in this order")
	flags.StringVar(&a.against, "against", "", "also compare with this embedding, a `file` or run folder")
	flags.BoolVar(&a.json, "json", false, "print JSON instead of a table")
	flags.StringVarP(&a.output, "output", "o", "", "also write the scores to this `file`, .json")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt))
	cli.MustComplete(cmd, "graph", cobra.FixedCompletions([]string{"npz"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

// evaluationRun is one run of cne evaluate.
type evaluationRun struct {
	*cli.Reporter
	inputs          []string
	against, output string
	json, join      bool

	config  *configs.Config
	origins configs.Origins
	device  *model.Device
	// dataKnown reports whether the configuration names the data of the embeddings. folder
	// is the run of the configuration, or "".
	dataKnown bool
	folder    string
	runs      []string // the inputs that are runs
	// asTrained reports whether only a run's own configuration says what its points and
	// their graph are.
	asTrained bool
}

// configure loads the configuration of the data and the graph from the given file, or
// else from the first run, with the flags on top.
func (a *evaluationRun) configure(from configs.Sources) (err error) {
	defer kind.Catch(&err)
	for _, input := range a.inputs {
		if kind.Got(isRun(input)) {
			a.runs = append(a.runs, input)
		}
	}
	ofTheRun := from.File == "" && len(a.runs) > 0
	if ofTheRun {
		a.folder, from.File = a.runs[0], filepath.Join(a.runs[0], rundir.ConfigFile)
	}
	c, origins, err := configs.Train.Load(&from)
	kind.Check(err)
	a.config, a.origins = c, origins
	a.dataKnown = !origins.IsDefault("data.path")
	if ofTheRun && origins["data.path"] != "--data" {
		own, ownOrigins, err := configs.Train.Load(&configs.Sources{File: from.File})
		kind.Check(err)
		if own.Embed.Seed != c.Embed.Seed && c.DrawsPoints() {
			return fmt.Errorf("%s: got seed %d, want %d as in the run in %s", origins["seed"], c.Embed.Seed, own.Embed.Seed, a.folder)
		}
		for _, run := range a.runs[1:] {
			kind.Check(a.checkSameData(run, from))
		}
		a.asTrained = !slices.ContainsFunc(configs.Train.Compare(own, c), func(d configs.Difference) bool {
			return aboutPoints(d.Key, c) && !aboutLabels(d.Key)
		})
		// Other labels replace the run's, whose column is no coordinate.
		switch same := slices.Equal(c.Data.Labels, own.Data.Labels); {
		case c.Data.LabelColumn != own.Data.LabelColumn && same:
			c.Data.Labels = nil
		case c.Data.LabelColumn == own.Data.LabelColumn && !same:
			c.Data.LabelColumn = ""
		}
		rundir.LocateInputs(a.folder, own, ownOrigins)
		if column := own.Data.Reading().LabelColumn; column != "" && len(own.Data.Path) > 0 && !file.IsCells(own.Data.Path[0]) {
			c.Data.Drop, c.Data.DropText = append(c.Data.Drop, column), true // other text was left out, too
		}
	}
	if ofTheRun {
		rundir.LocateInputs(a.folder, c, origins)
	}
	// Everything is measured, whatever the run measured itself.
	c.Quality.MeasureAll()
	if a.folder == "" {
		c.Graph.Cache = configs.Cache{}
	}
	if !a.dataKnown && a.against == "" && c.Graph.File == "" {
		kind.Got(os.Stat(a.inputs[0]))
		return fmt.Errorf("%s: got an embedding without its points, want --data, --against or --graph", a.inputs[0])
	}
	return nil
}

// isRun reports whether a path is the folder of a run of cne train.
func isRun(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return false, nil // reading it reports the error
	}
	contents, command, err := rundir.Inspect(path)
	if err != nil || contents != rundir.Run {
		return false, err
	}
	if command == configs.Spectrum.Command() {
		err = rundir.RefuseSpectrum(path)
	}
	if err == nil && command != "" && command != configs.Train.Command() {
		err = fmt.Errorf("%s: got a run of %q, want one of %q; \"cne simclr evaluate %[1]s\" measures its features", path, command, configs.Train.Command())
	}
	return err == nil, err
}

// checkSameData returns an error if a further run has other data, or another graph, than
// the first.
func (a *evaluationRun) checkSameData(run string, from configs.Sources) error {
	from.File = filepath.Join(run, rundir.ConfigFile)
	c, _, err := configs.Train.Load(&from)
	if err != nil {
		return err
	}
	for _, d := range configs.Train.Compare(a.config, c) {
		same := aboutLabels(d.Key) && !c.DrawsPoints() ||
			d.Key == "data.names" && slices.Equal(a.config.Data.Reading().Drop, c.Data.Reading().Drop)
		if aboutPoints(d.Key, c) && !same {
			return fmt.Errorf("%s: got %s %s, want %s as in %s; --data measures all by the same points",
				run, d.Key, d.Second, d.First, a.folder)
		}
	}
	return nil
}

// aboutPoints reports whether a key of a configuration determines the points or their
// graph.
func aboutPoints(key string, c *configs.Config) bool {
	section, name, _ := strings.Cut(key, ".")
	// No score depends on weights of edges.
	free := section == "graph" && slices.Contains([]string{"cache", "weighted_sampling", "density"}, name)
	return section == "data" || section == "graph" && !free || key == "seed" && c.DrawsPoints()
}

// aboutLabels reports whether a key has files of labels. They change the points only if
// these are drawn.
func aboutLabels(key string) bool { return key == "data.labels" || key == "data.holdout_labels" }

// checkTrainedOn compares points and graph with the ones that a run was trained on. A
// difference is an error if they come from the run's own configuration, and otherwise a
// warning. An empty key is not compared.
func (a *evaluationRun) checkTrainedOn(points, graph string) error {
	for _, run := range a.runs {
		trainedPoints, trainedGraph := rundir.DataKeys(run)
		what, key, path := "points", "data.path", strings.Join(a.config.Data.Path, ", ")
		switch {
		case points != "" && trainedPoints != "" && points != trainedPoints:
		case graph != "" && trainedGraph != "" && graph != trainedGraph:
			what, key, path = "edges", "graph.file", a.config.Graph.File
		default:
			continue
		}
		if a.asTrained {
			return fmt.Errorf("the %s of %s (%s) are not those that the run in %s was trained on; --data or --graph names others", what, key, path, run)
		}
		a.Log.Warn("a run is measured by other "+what+" than it was trained on", "run", run)
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
}

// openCandidate reads an embedding, from several files if it comes in parts.
func (a *evaluationRun) openCandidate(ctx context.Context, paths ...string) (_ *candidate, err error) {
	defer kind.Catch(&err)
	path := paths[0]
	if kind.Got(isRun(path)) && len(paths) == 1 {
		paths = []string{rundir.TrainedFile(path)}
	}
	var o file.Options
	if !a.dataKnown {
		o.Labels = a.config.Data.Reading().Labels
	}
	files, set, err := rundir.OpenEmbedding(ctx, paths, o)
	kind.Check(err)
	points.WarnOfCounts(a.Log, set.Points, func(string) string { return "leave it out of the file, or name the coordinates x and y" })
	s := &candidate{path: path, file: files[0], positions: set.Points, labels: set.Labels}
	if len(paths) > 1 {
		s.path = fmt.Sprintf("%s and %d more", path, len(paths)-1)
		s.file = s.path
	}
	return s, nil
}

func (a *evaluationRun) run(ctx context.Context, stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	if a.output != "" {
		inputs := append(append(a.config.Inputs(), a.inputs...), a.against)
		kind.Check((cli.Output{Flag: "--output", Path: a.output}).Check(inputs...))
	}
	e, err := ctxio.Await(ctx, func() (*report.Evaluation, error) { return a.evaluate(ctx) })
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	kind.Check(err)
	if a.output != "" {
		kind.Check(rundir.WriteFile(a.output, func(w io.Writer) error { return rundir.EncodeJSON(w, e) }))
	}
	if a.json {
		return rundir.EncodeJSON(stdout, e)
	}
	return e.Print(stdout)
}
