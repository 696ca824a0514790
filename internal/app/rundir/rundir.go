// Package rundir manages the folders of runs: their files, checkpoints and locks. No run
// overwrites files of another run or of others, and no two processes work in one folder.
package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"cne/data/file"
	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/text"
	"cne/model"
)

// ErrExists means that a folder already holds a run.
var ErrExists = errors.New("the folder holds the files of another run")

// ErrLocked means that a file is already locked, by another process or by this one.
var ErrLocked = errors.New("locked by another")

// A Dir is the folder of one run.
type Dir struct {
	path     string
	old      []string // files of an earlier run, which this one replaces
	damaged  []string // checkpoints that cannot be read
	made     []string // folders that Open has made, the innermost first
	readOnly bool
}

// NewDir returns the folder at a path. It need not exist.
func NewDir(path string) *Dir { return &Dir{path: path} }

// OpenReadOnly returns the folder of a run for reading only. Its Cache keeps nothing.
func OpenReadOnly(path string) *Dir { return &Dir{path: path, readOnly: true} }

// Open returns the run folder at a path, and makes it if it is missing. If the folder has
// any file that a run writes, the error is ErrExists, unless the only such file is an
// empty configuration. With force, Begin later removes these files, and no others.
// Even with force it is an error if the folder has no config.yaml of this program,
// because the files may belong to another program, or if one of them is an input of the
// new run.
func Open(path string, force bool, inputs ...string) (*Dir, error) {
	d := NewDir(path)
	var err error
	if d.old, err = d.replaced(force, inputs); err != nil {
		return nil, err
	}
	d.made = missingFolders(path)
	if err := os.MkdirAll(path, 0o777); err != nil {
		d.RemoveEmpty()
		return nil, fmt.Errorf("cannot make the run folder %s: %w", path, err)
	}
	if err := d.probe(); err != nil {
		d.RemoveEmpty()
		return nil, err
	}
	return d, nil
}

// missingFolders returns which of a folder and its parents do not exist, the innermost
// first.
func missingFolders(path string) []string {
	var missing []string
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return missing
		}
		missing = append(missing, path)
	}
}

// RemoveEmpty removes the folder and its parents that Open made, if they are empty. It is
// called for a run that is refused before it begins.
func (d *Dir) RemoveEmpty() {
	for _, path := range d.made {
		_ = os.Remove(path) // a folder with anything in it stays
	}
}

// Begin removes the files of the earlier run and claims the folder for this run. write
// writes its config.yaml. If two runs found the folder free, the second one gets an
// error.
func (d *Dir) Begin(write func(w io.Writer) error) (err error) {
	defer kind.Catch(&err)
	kind.Check(d.Remove(d.old...))
	err = atomicfile.Create(d.Path(ConfigFile), write)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s, where one has begun meanwhile", ErrExists, d.path)
	}
	kind.Checkf(err, "cannot write in the run folder %s: %w", d.path, err)
	return nil
}

// Lock keeps other processes of the program out of the folder until unlock is called or
// this process ends, even if it is killed. The error is ErrLocked if another process
// works there. Where the file system has no locks it does nothing.
func (d *Dir) Lock() (unlock func(), err error) {
	unlock, err = lockFolder(d.path)
	switch {
	case errors.Is(err, ErrLocked):
		return nil, kind.Errorf(ErrLocked, "another cne process uses the run folder %s", d.path)
	case err != nil:
		return nil, fmt.Errorf("cannot open the run folder: %w", err)
	}
	return unlock, nil
}

// Clear removes the files that a run has written, so the folder is free
// for another.
func (d *Dir) Clear() error {
	existing, err := d.existing()
	if err != nil {
		return err
	}
	return d.Remove(existing...)
}

// Remove removes files of the folder, which need not exist.
func (d *Dir) Remove(names ...string) error {
	for _, name := range names {
		if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a file of the run: %w", err)
		}
		if folder := filepath.Dir(filepath.FromSlash(name)); folder != "." {
			atomicfile.RemoveAbandoned(d.Path(folder))
			_ = os.Remove(d.Path(folder)) // fails if something is still in it
		}
	}
	return nil
}

// Root returns the path of the folder, as it was given.
func (d *Dir) Root() string { return d.path }

// Path returns the path of a file in the folder.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// WriteFile writes a file of the folder. The file appears under its name only when it is
// complete; after an error the old file, if any, remains. Folders in the name are made.
// The writer that write gets is buffered.
func (d *Dir) WriteFile(name string, write func(w io.Writer) error) error {
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return WriteFile(path, write)
}

// WriteFile is WriteFile of a file anywhere, in a folder that exists.
func WriteFile(path string, write func(w io.Writer) error) error {
	if err := atomicfile.Write(path, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// WriteJSON writes a value to a file of the folder.
func (d *Dir) WriteJSON(name string, v any) error {
	return d.WriteFile(name, func(w io.Writer) error { return EncodeJSON(w, v) })
}

// EncodeJSON writes a value with indentation, and without characters that control a
// terminal.
func EncodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(text.JSONWriter{Writer: w})
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// existing returns the runFiles that are in the folder, in their order.
func (d *Dir) existing() (found []string, err error) {
	if _, err := os.ReadDir(d.path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cannot read the run folder: %w", err)
	}
	for _, pattern := range runFiles {
		files, _ := fs.Glob(os.DirFS(d.path), pattern) // the patterns are valid
		found = append(found, files...)
	}
	return found, nil
}

// probe checks that files can be written, before a run spends hours on computing them.
func (d *Dir) probe() error {
	f, err := os.CreateTemp(d.path, ".cne-*.tmp")
	if err != nil {
		return fmt.Errorf("cannot write in the run folder %s: %w", d.path, err)
	}
	closed := f.Close() // first, since Windows removes no open file
	err = os.Remove(f.Name())
	if errors.Is(err, fs.ErrNotExist) { // another process has removed it as abandoned
		err = nil
	}
	return errors.Join(closed, err)
}

// Check returns the error that Open would return for a new run in the folder at a path,
// or an error if it cannot write there. It leaves and changes nothing. It is called
// before the inputs are read, because reading may take long.
func Check(path string, force bool, inputs ...string) error {
	if _, err := NewDir(path).replaced(force, inputs); err != nil {
		return err
	}
	missing := missingFolders(path)
	if len(missing) == 0 {
		return NewDir(path).probe()
	}
	there, fault := filepath.Dir(missing[len(missing)-1]), new(fs.PathError)
	err := NewDir(there).probe()
	if errors.As(err, &fault) {
		err = fmt.Errorf("cannot write in the run folder %s: it cannot be made in %s: %w", path, there, fault.Err)
	}
	return err
}

// replaced returns the files of an earlier run that a new one replaces, or an error if it
// must not.
func (d *Dir) replaced(force bool, inputs []string) ([]string, error) {
	if info, err := os.Stat(d.path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("the run folder %s is a file", d.path)
	}
	existing, err := d.existing()
	if err != nil || len(existing) == 0 {
		return nil, err
	}
	contents, _, err := Inspect(d.path)
	switch {
	case err != nil:
		return nil, err
	case contents == NoRun && slices.Equal(existing, []string{ConfigFile}):
		// The run has only claimed the folder and has no results.
	case contents != Run:
		return nil, fmt.Errorf("the folder %s holds a file %s that a run would overwrite, and no config.yaml written by cne", d.path, existing[0])
	case !force:
		return nil, fmt.Errorf("%w: %s; --resume continues it, --force replaces it", ErrExists, d.path)
	}
	for _, name := range existing {
		for _, input := range inputs {
			if file.SameFile(d.Path(name), input) {
				return nil, fmt.Errorf("%s is an input of this run and would be replaced by its results", input)
			}
		}
	}
	return existing, nil
}

// The files of a run.
const (
	// ConfigFile marks a folder as a run's.
	ConfigFile = "config.yaml"

	ModelFile      = model.RunFile
	PointsFile     = model.PointsFile
	checkpointFile = "checkpoint.safetensors"
	previousFile   = "checkpoint.previous.safetensors"
	// LearningFile has the state of a network that learns the map, until it has learnt it.
	LearningFile = "learning.safetensors"

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
	SpectrumFigures  = "spectrum.json"
	SpectrumStrip    = "spectrum.png"
	SpectrumCurves   = "curves.png"
	SpectrumExplorer = "explorer.html"

	// Snapshots is the folder of the embeddings during training: epoch-NNNN.npy.
	Snapshots = "snapshots"

	// eventFiles is the prefix of TensorBoard's files; the time of their creation
	// follows, in seconds since 1970.
	eventFiles = "events.out.tfevents."
)

// runFiles are the files that a run writes into its folder. config.yaml marks
// the folder as a run's: it is written first and removed last. The cache
// is not among them, so it outlives the run.
var runFiles = slices.Concat(
	[]string{RecordsFile, MetricsFile}, positionFiles("embedding"), pictures,
	[]string{EvaluationFile, PixelsFile, ModelFile, PointsFile, checkpointFile, previousFile, LearningFile},
	positionFiles("holdout"), []string{HeldRowsFile}, positionFiles(SampleName), []string{SampleRowsFile, RowsFile, NamesFile},
	[]string{Snapshots + "/epoch-*.npy", eventFiles + "*"},
	[]string{SpectrumTable, SpectrumFigures, SpectrumStrip, SpectrumExplorer},
	sweepFiles(), []string{GraphFile, ConfigFile})

// pictures are the runFiles that cne plot makes of a run, as often as it is asked to.
var pictures = []string{"embedding.png", "embedding.svg", "embedding.pdf", PageFile, SpectrumCurves, "curves.svg", "curves.pdf"}

// positionFiles returns the files with the positions of points.
func positionFiles(name string) []string {
	return []string{name + ".npy", name + ".csv"}
}

// sweepFiles returns the files that a spectrum writes into the folders of its embeddings.
func sweepFiles() []string {
	var files []string
	for _, folder := range []string{"s=*", "zbar=*", "m=*"} {
		for _, name := range slices.Concat(positionFiles("embedding"), pictures,
			[]string{RowsFile, NamesFile, MetricsFile, ConfigFile, checkpointFile, previousFile}) {
			files = append(files, folder+"/"+name)
		}
	}
	return files
}

// Regenerable reports whether a run's file can be made again from the rest of its folder:
// a picture, a page, or an evaluation by cne simclr evaluate.
func Regenerable(name string) bool {
	name = path.Base(name)
	return slices.Contains(pictures, name) || name == EvaluationFile || name == PixelsFile
}

// RunOf returns the run folder of the file at a path, which need not exist, and the
// file's name there; run is "" if there is none. A link belongs to the run folder that it
// is in, or else to its target's.
func RunOf(file string) (run, name string, err error) {
	defer kind.Catch(&err)
	paths := []string{file}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		paths = append(paths, target)
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		paths = append(paths, filepath.Join(folder, filepath.Base(file)))
	}
	for _, full := range paths {
		full = kind.Got(filepath.Abs(full))
		folder := filepath.Dir(full)
		for _, candidate := range []string{folder, filepath.Dir(folder)} {
			contents, _, err := Inspect(candidate)
			if errors.Is(err, fs.ErrPermission) {
				continue // cne can read its own folders
			}
			kind.Check(err)
			name := kind.Got(filepath.Rel(candidate, full))
			name = filepath.ToSlash(name)
			if contents == Run && isRunFile(name) {
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
var lateFiles = slices.Concat(positionFiles("holdout"), pictures,
	[]string{MetricsFile, HeldRowsFile, RowsFile, NamesFile, EvaluationFile, LearningFile})

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
