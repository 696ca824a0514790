package rundir

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
)

// beganIn begins the last line of a run's config.yaml. The run's working folder follows
// in quotes. Its paths are relative to this folder.
const beganIn = "# Relative paths count from "

// ConfigWriter returns a function that calls write and appends the line with the current
// folder.
func ConfigWriter(write func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		err := write(w)
		if from, unknown := os.Getwd(); err == nil && unknown == nil { // otherwise nothing is relative to it
			_, err = fmt.Fprintf(w, "\n%s%q\n", beganIn, from)
		}
		return err
	}
}

// workingFolder returns the working folder of a run, "" if unknown. For an embedding of a
// spectrum, the spectrum's folder has it.
func workingFolder(run string) string {
	for _, folder := range []string{run, filepath.Join(run, "..")} {
		text, err := os.ReadFile(filepath.Join(folder, ConfigFile))
		if err != nil {
			continue
		}
		at := bytes.LastIndex(text, []byte("\n"+beganIn))
		if at < 0 {
			continue
		}
		quoted, _, _ := strings.Cut(string(text[at+1+len(beganIn):]), "\n")
		if from, err := strconv.Unquote(quoted); err == nil {
			return from
		}
	}
	return ""
}

// LocatePaths changes the relative paths of a run, which may be in names of columns (see
// file.SplitColumn). A path that does not exist from the current folder becomes relative
// to the run's working folder.
func LocatePaths(run string, paths []string) []string {
	from := workingFolder(run)
	if from == "" || len(paths) == 0 {
		return paths
	}
	found := func(path string) bool {
		of, _ := file.SplitColumn(path)
		return of != "" || exists(path)
	}
	located := make([]string, len(paths))
	for i, path := range paths {
		located[i] = path
		if filepath.IsAbs(path) || found(path) {
			continue
		}
		if there := filepath.Join(from, path); found(there) {
			located[i] = there
		}
	}
	return located
}

func exists(path string) bool {
	_, err := file.Stat(path)
	return err == nil
}

// LocateInputs is LocatePaths for the inputs in a configuration whose origin is the
// config.yaml of a run.
func LocateInputs(run string, c *configs.Config, origins configs.Origins) {
	c.EachInput(func(key string, paths []string) []string {
		if !strings.HasPrefix(origins[key], filepath.Join(run, ConfigFile)+":") {
			return paths
		}
		return LocatePaths(run, paths)
	})
}

// DataKeys returns the keys of a run's training points, or images, and of its graph: see
// PointsKey, ImagesKey and GraphKey. They come from its metrics or, if the run has not
// ended, from its last checkpoint; "" if neither has them.
func DataKeys(run string) (points, graph string) {
	if m := ReadMetrics(run); m.PointsKey != "" {
		return m.PointsKey, m.GraphKey
	}
	if c, err := NewDir(run).LastCheckpoint(); err == nil && c != nil {
		return c.Notes[PointsNote], c.Notes[GraphNote]
	}
	return "", ""
}

// ReadGraph reads the graph.file of c for n points, which may be nil, and warns of what users
// may not expect. The graph has weights only if edges are drawn by them. It takes graph.k
// neighbours of each point. If graph.k has its default, it takes all, and sets graph.k in c
// to their number.
func ReadGraph(ctx context.Context, log *slog.Logger, c *configs.Config, origins configs.Origins, n int,
	points *data.Dataset) (*neighbors.Graph, error) {
	path, weighted, k := c.Graph.File, c.Embed.SampleEdges, math.MaxInt
	kGiven := !origins.IsDefault("graph.k")
	if kGiven {
		k = c.Embed.Neighbors
	}
	g, most, err := neighbors.ReadNearest(ctx, path, k, weighted, func(g *neighbors.Graph) (bool, error) {
		are, why, err := neighbors.AreDistances(ctx, g, points, c.Embed.GraphMetric.Angular())
		switch {
		case are:
			level, use := slog.LevelInfo, ""
			if why == neighbors.ExceedOne {
				level = slog.LevelWarn // the points do not say so
			}
			if weighted {
				use = ", and get UMAP's weights"
			}
			log.Log(ctx, level, "the values of graph.file "+why+"; they are taken for distances"+use+"; weights are at most 1, and larger for nearer points")
		case why != neighbors.AllEqual:
			log.Info("the values of graph.file " + why + "; they are taken for weights")
		}
		return are, err
	})
	switch {
	case errors.Is(err, zip.ErrFormat):
		return nil, fmt.Errorf("graph.file: %s: got no .npz or .npy file, or a damaged one, want a matrix by scipy.sparse.save_npz, or an array of neighbours", path)
	case err != nil:
		return nil, fmt.Errorf("graph.file cannot be used: %w", err)
	case g.N != n:
		return nil, fmt.Errorf("graph.file: %s: got %d points, want %d as in the data", path, g.N, n)
	case g.Edges() == 0:
		return nil, fmt.Errorf("graph.file: %s: got no entries other than 0, want at least one edge", path)
	}
	if most == 0 && strings.HasPrefix(origins["graph.k"], "--") {
		log.Warn("graph.file holds weights, so graph.k only says by how many neighbours new points are placed")
	} else if most > k {
		log.Info("graph.file has more neighbours than graph.k; the first of each point count", "neighbours", most, "k", k)
	} else if most > 0 && !kGiven {
		c.Embed.Neighbors = min(most, n-1)
	}
	switch {
	case weighted && g.Weights == nil:
		log.Warn("the edges of graph.file have equal weights, so graph.weighted_sampling has no effect")
	case !weighted && g.Weights != nil:
		log.Warn("graph.file has edges of different weights, which count as equal; graph.weighted_sampling=true draws them in proportion")
		g.Weights = nil
	}
	if c.Embed.Density > 0 && strings.HasPrefix(origins["graph.density"], "--") { // configurations of runs have the preset's
		log.Warn("graph.density has no effect on graph.file, whose edges have their own weights")
	}
	if !g.Symmetric() {
		log.Warn("graph.file holds a directed graph, which is used as it is; in Python, g.maximum(g.T) makes it symmetric")
	}
	touched := make([]bool, g.N)
	for i := range g.N {
		for _, j := range g.Tails(i) {
			touched[i], touched[j] = true, true
		}
	}
	if alone := len(slices.DeleteFunc(touched, func(t bool) bool { return t })); alone > 0 {
		log.Warn("points without an edge in graph.file stay where they start", "points", alone, "of", g.N)
	}
	return g, nil
}
