package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"cne/model"
)

// The files of a run.
const (
	// ConfigFile marks a folder as a run's.
	ConfigFile = "config.yaml"

	ModelFile      = model.RunFile
	PointsFile     = model.PointsFile
	checkpointFile = "checkpoint.safetensors"
	previousFile   = "checkpoint.previous.safetensors"

	// RecordsFile holds the records of the epochs, MetricsFile the figures of
	// the finished run.
	RecordsFile = "metrics.jsonl"
	MetricsFile = "metrics.json"

	// RowsFile has the rows of the input that are the points of the embedding.
	RowsFile = "rows.csv"
	// SampleName is the prefix of the files with the positions of the training points of a
	// run with data.sample. SampleRowsFile is the file with their rows in the input.
	SampleName     = "sample"
	SampleRowsFile = "sample_rows.csv"
	// NamesFile has the names of the points, if they have some.
	NamesFile = "names.csv"
	// HeldRowsFile has the held-out rows, if a share of the points was held out.
	HeldRowsFile = "holdout_rows.csv"

	// PageFile is the explorer of the embedding.
	PageFile = "embedding.html"

	// EvaluationFile has the evaluation of a representation of images.
	EvaluationFile = "evaluation.json"
	PixelsFile     = "evaluation-pixels.json" // and pixels, to compare with

	// CacheFile keeps principal components and neighbours from one run to the
	// next in the same folder; GraphFile is the graph for other programs, and for
	// graph.file of other runs.
	CacheFile = "cache.safetensors"
	GraphFile = "graph.npz"

	// Files of a spectrum about all its embeddings.
	SpectrumTable    = "spectrum.csv"
	SpectrumTimes    = "spectrum-times.csv"
	SpectrumFigures  = "spectrum.json"
	SpectrumStrip    = "spectrum.png"
	SpectrumCurves   = "curves.png"
	SpectrumExplorer = "explorer.html"

	// Snapshots is the folder of the embeddings during training (see SnapshotName).
	Snapshots = "snapshots"

	// eventFiles is the prefix of TensorBoard's files; the time of their creation
	// follows, in seconds since 1970.
	eventFiles = "events.out.tfevents."
)

// runFiles are the files that a run writes into its folder. config.yaml marks
// the folder as a run's: it is written first and removed last. The cache
// is not among them, so it outlives the run.
var runFiles = slices.Concat(
	[]string{RecordsFile, MetricsFile}, positionFiles("embedding"), []string{"embedding.png", "embedding.svg", "embedding.pdf", PageFile},
	[]string{EvaluationFile, PixelsFile, ModelFile, PointsFile, checkpointFile, previousFile},
	positionFiles("holdout"), []string{HeldRowsFile}, positionFiles(SampleName), []string{SampleRowsFile, RowsFile, NamesFile},
	[]string{Snapshots + "/epoch-*.npy", eventFiles + "*", "curves.svg"},
	[]string{SpectrumTable, SpectrumTimes, SpectrumFigures, SpectrumStrip, SpectrumCurves, SpectrumExplorer},
	sweepFiles(), []string{GraphFile, ConfigFile})

// positionFiles returns the files with the positions of points.
func positionFiles(name string) []string {
	return []string{name + ".npy", name + ".csv", name + ".parquet"}
}

// sweepFolders match the folders of a spectrum's embeddings.
var sweepFolders = []string{"s=*", "zbar=*", "m=*"}

// sweepFiles returns the files that a spectrum writes into its folders.
func sweepFiles() []string {
	var files []string
	for _, folder := range sweepFolders {
		for _, name := range append(positionFiles("embedding"), "embedding.png", PageFile, RowsFile,
			NamesFile, MetricsFile, ConfigFile, checkpointFile, previousFile) {
			files = append(files, folder+"/"+name)
		}
	}
	return files
}

// regenerableFiles are the runFiles that cne plot and cne simclr evaluate make of a finished
// run, as often as they are asked to.
var regenerableFiles = []string{"embedding.png", "embedding.svg", "embedding.pdf", PageFile, "curves.png", "curves.svg", "curves.pdf", EvaluationFile, PixelsFile}

// Regenerable reports whether a run's file can be made again from the rest of its folder:
// a picture, a page, or an evaluation.
func Regenerable(name string) bool { return slices.Contains(regenerableFiles, path.Base(name)) }

// RunOf returns the run folder of the file at a path, which need not exist, and the
// file's name there; run is "" if there is none. A link belongs to the run folder that it
// is in, or else to its target's.
func RunOf(file string) (run, name string, err error) {
	paths := []string{file}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		paths = append(paths, target)
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		paths = append(paths, filepath.Join(folder, filepath.Base(file)))
	}
	for _, full := range paths {
		if full, err = filepath.Abs(full); err != nil {
			return "", "", err
		}
		folder := filepath.Dir(full)
		for _, candidate := range []string{folder, filepath.Dir(folder)} {
			contents, _, err := Inspect(candidate)
			if errors.Is(err, fs.ErrPermission) {
				continue // cne can read its own folders
			}
			if err != nil {
				return "", "", err
			}
			name, err := filepath.Rel(candidate, full)
			if err != nil {
				return "", "", err
			}
			name = filepath.ToSlash(name)
			if (contents == Run || contents == Incomplete) && isRunFile(name) {
				return candidate, name, nil
			}
		}
	}
	return "", "", nil
}

// isRunFile reports whether a run writes a file of that name.
func isRunFile(name string) bool {
	return name == CacheFile || slices.ContainsFunc(runFiles, func(pattern string) bool {
		match, _ := path.Match(pattern, name)
		return match
	})
}

// lateFiles are the runFiles that are made when a run has ended.
var lateFiles = append(positionFiles("holdout"), MetricsFile, HeldRowsFile, RowsFile, NamesFile, "embedding.png",
	"curves.png", "curves.svg", PageFile, EvaluationFile)

// SnapshotName returns the name of the embedding after an epoch, in the folder
// Snapshots.
func SnapshotName(epoch int) string { return fmt.Sprintf("epoch-%04d.npy", epoch) }

// CreateEvents creates a file for TensorBoard. TensorBoard reads all files of a folder in
// the order of their names, so the file of a continued run gets a later time than the
// earlier files.
func (d *Dir) CreateEvents(now time.Time) (*os.File, error) {
	for seconds := now.Unix(); ; seconds++ {
		f, err := os.OpenFile(d.Path(fmt.Sprintf("%s%010d.cne", eventFiles, seconds)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write the TensorBoard events: %w", err)
		}
		return f, nil
	}
}
