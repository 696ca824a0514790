package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cne/internal/atomicfile"
)

// runFiles are the files that a run writes into its folder. config.yaml marks
// the folder as that of a run: it is written first and removed last. The cache
// is not among them, so that it outlives the run.
var runFiles = slices.Concat([]string{
	recordsFile,
	metricsFile,
	"embedding.npy",
	"embedding.csv",
	"embedding.png",
	"embedding.svg",
	htmlFile,
	evaluationFile,
	pixelsFile,
	modelFile,
	pointsFile,
	checkpointFile,
	previousFile,
	"holdout.npy",
	"holdout.csv",
	heldRowsFile,
	rowsFile,
	"snapshots/epoch-*.npy",
	eventFiles + "*",
	"curves.svg",
	"animation.gif",
	"animation.html",
	spectrumTable,
	spectrumFigures,
	spectrumStrip,
	spectrumCurves,
	spectrumExplorer,
}, stopFiles(), []string{
	graphFile,
	"config.yaml",
})

// stopFolders are the names of the folders in which a spectrum has its
// embeddings.
var stopFolders = []string{"s=*", "zbar=*", "m=*"}

// stopFiles returns the files that a spectrum writes into those.
func stopFiles() []string {
	var files []string
	for _, folder := range stopFolders {
		for _, name := range []string{"embedding.npy", "embedding.csv", "embedding.png", htmlFile, rowsFile, metricsFile, "config.yaml"} {
			files = append(files, folder+"/"+name)
		}
	}
	return files
}

// lateFiles are those of runFiles that are made when a run has ended.
var lateFiles = []string{
	metricsFile, "holdout.npy", "holdout.csv", heldRowsFile, rowsFile, "embedding.png", "curves.png", "curves.svg", "animation.gif",
	"animation.html", htmlFile, evaluationFile,
}

// What a run saves of its model and its state.
const (
	modelFile      = "model.safetensors"
	pointsFile     = "training_points.safetensors"
	checkpointFile = "checkpoint.safetensors"
	previousFile   = "checkpoint.previous.safetensors"

	// recordsFile holds the records of the epochs, metricsFile the figures of
	// the finished run.
	recordsFile = "metrics.jsonl"
	metricsFile = "metrics.json"

	// rowsFile says which rows of the input the points of the embedding are.
	rowsFile = "rows.csv"
	// heldRowsFile says which were held out, if a share of them was.
	heldRowsFile = "holdout_rows.csv"

	// evaluationFile says how good a representation of images is.
	evaluationFile = "evaluation.json"
	pixelsFile     = "evaluation-pixels.json" // and pixels, to compare with
)

// errRunExists is the cause of openRunDir's refusal of a folder that holds a
// run.
var errRunExists = errors.New("the folder holds the files of another run")

// A runDir is the folder of one run.
type runDir struct {
	path string
	old  []string // files of an earlier run, which this one replaces
	// damaged are checkpoints that cannot be read.
	damaged []string
	// readOnly is the folder of a run that is looked at.
	readOnly bool
}

// openRunDir returns the run folder at a path, and makes it if it is missing.
// A folder with any of the files that a run writes is refused (errRunExists),
// unless force is given: then begin removes those files, and no others. They
// stay, whatever force says, if there is no config.yaml written by this
// program beside them, because then they are somebody else's. So they do if
// one of them is an input of the new run.
func openRunDir(path string, force bool, inputs ...string) (*runDir, error) {
	d := &runDir{path: path}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("the run folder %s is a file; choose another output.dir", path)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("cannot make the run folder %s (%w); choose another output.dir", path, err)
	}
	existing, err := d.existing()
	if err != nil {
		return nil, err
	}
	if len(existing) > 0 {
		ours, err := d.writtenByUs()
		switch {
		case err != nil:
			return nil, err
		case !ours:
			return nil, fmt.Errorf("the folder %s holds a file %s that a run would overwrite, and no config.yaml written by cne; choose another output.dir", path, existing[0])
		case !force:
			return nil, fmt.Errorf("%w: %s; choose another output.dir, or give --force to replace them", errRunExists, path)
		}
	}
	if err := d.probe(); err != nil {
		return nil, err
	}
	d.old = existing
	for _, name := range existing {
		for _, input := range inputs {
			if sameFile(d.Path(name), input) {
				return nil, fmt.Errorf("%s is an input of this run and would be replaced by its results; choose another output.dir", input)
			}
		}
	}
	return d, nil
}

// reopenRunDir returns the folder of a run that is to go on.
func reopenRunDir(path string) (*runDir, error) {
	d := &runDir{path: path}
	ours, err := d.writtenByUs()
	if err != nil {
		return nil, err
	}
	if !ours {
		return nil, fmt.Errorf("the folder %s holds no config.yaml written by cne, so that there is no run in it to be resumed", path)
	}
	return d, d.probe()
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// begin removes the files of the earlier run and takes the folder for this
// one: of two runs that found it free, the second is told.
func (d *runDir) begin() error {
	if err := d.remove(d.old); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Path("config.yaml"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s, where one has begun meanwhile; choose another output.dir", errRunExists, d.path)
	}
	if err != nil {
		return fmt.Errorf("cannot write in the run folder: %w", err)
	}
	return f.Close()
}

// removeStale removes what a process that was killed has left unfinished. The
// folder must be locked.
func (d *runDir) removeStale() error {
	folders := []string{"", "snapshots"}
	for _, pattern := range stopFolders {
		stops, err := d.matches("", pattern)
		if err != nil {
			return err
		}
		folders = append(folders, stops...)
	}
	for _, folder := range folders {
		if err := atomicfile.RemoveStale(d.Path(folder), 0); err != nil {
			return fmt.Errorf("cannot remove a file that was left unfinished: %w", err)
		}
	}
	return nil
}

// clear removes the files that a run has written, so that the folder is free
// for another.
func (d *runDir) clear() error {
	existing, err := d.existing()
	if err != nil {
		return err
	}
	return d.remove(existing)
}

func (d *runDir) remove(names []string) error {
	for _, name := range names {
		if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a file of the run: %w", err)
		}
		if folder := filepath.Dir(filepath.FromSlash(name)); folder != "." {
			_ = os.Remove(d.Path(folder)) // which fails if there is something in it still
		}
	}
	return nil
}

// Path returns the path of a file in the folder.
func (d *runDir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// WriteFile writes a file of the folder, which takes its name only when it is
// complete: an error leaves the old file, or none. Folders in the name are
// made. The writer that write gets is buffered.
func (d *runDir) WriteFile(name string, write func(w io.Writer) error) error {
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := atomicfile.Write(path, write); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// existing returns the names of the files that the folder has of runFiles, in
// their order.
func (d *runDir) existing() ([]string, error) {
	var found []string
	for _, pattern := range runFiles {
		folder, base := path.Split(pattern)
		folders := []string{""}
		if folder != "" {
			var err error
			if folders, err = d.matches("", strings.TrimSuffix(folder, "/")); err != nil {
				return nil, err
			}
		}
		for _, folder := range folders {
			files, err := d.matches(folder, base)
			if err != nil {
				return nil, err
			}
			found = append(found, files...)
		}
	}
	return found, nil
}

// matches returns the names, from the run folder on, of what one of its folders
// ("" for itself) holds under names of that pattern.
func (d *runDir) matches(folder, pattern string) ([]string, error) {
	entries, err := os.ReadDir(d.Path(folder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the run folder: %w", err)
	}
	var found []string
	for _, e := range entries {
		if ok, _ := path.Match(pattern, e.Name()); ok {
			found = append(found, path.Join(folder, e.Name()))
		}
	}
	return found, nil
}

// writtenByUs tells whether the folder's config.yaml is one of this program.
func (d *runDir) writtenByUs() (bool, error) {
	f, err := os.Open(d.Path("config.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the run folder: %w", err)
	}
	defer f.Close()
	start := make([]byte, len(configHeader))
	if _, err := io.ReadFull(f, start); err == io.EOF {
		return true, nil // a run was killed as it began
	} else if err != nil {
		return false, nil // too short, or a folder of that name
	}
	return string(start) == configHeader, nil
}

// otherCommand returns the command that a config.yaml names in its first line, as
// write writes it, if that is not the schema's; else "".
func (v *vocabulary) otherCommand(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1000)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	for _, other := range vocabularies() {
		if other != v && strings.Contains(line, "; "+other.command+" ") {
			return other.command, nil
		}
	}
	return "", nil
}

// probe finds out whether files can be written before a run spends hours on
// what to write.
func (d *runDir) probe() error {
	f, err := os.CreateTemp(d.path, ".cne-*.tmp")
	if err != nil {
		return fmt.Errorf("cannot write in the run folder %s (%w); choose another output.dir", d.path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
