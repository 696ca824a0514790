package rundir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne/configs"
	"cne/data/file"
	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/train"
)

// Resume opens the folder of a run to continue, and returns its checkpoint, or nil if the
// run starts from the beginning. The configuration is the folder's, unless given names a
// file, with the environment and the settings of given on top. It must agree with the
// run's original configuration in everything that affects the result. The folder is
// locked until unlock is called.
func Resume[C any](s *configs.Schema[C], folder string, given configs.Sources) (d *Dir, c *C, from *train.Checkpoint,
	unlock func(), err error) {
	defer kind.Catch(&err)
	checkRun(s, folder, fmt.Errorf("there is no run in %s to resume", folder))
	kind.Check(RefuseStop(folder))
	d = NewDir(folder)
	kind.Check(d.probe())
	unlock = kind.Got(d.Lock())
	if from, err = d.LastCheckpoint(); err == nil {
		c, err = resumedConfig(s, folder, given, from)
	}
	if err != nil {
		unlock()
		return nil, nil, nil, nil, err
	}
	return d, c, from, unlock, nil
}

// checkRun fails, as kind.Need does, if a folder holds no run of the schema's command. missing
// is the error for a folder without any run; nil for the one for other folders.
func checkRun[C any](s *configs.Schema[C], folder string, missing error) {
	contents, command, err := Inspect(folder)
	switch {
	case err != nil:
	case contents == NoRun && missing != nil:
		err = missing
	case contents != Run:
		err = fmt.Errorf("%s: got a folder without a config.yaml written by cne, want a run of %q", folder, s.Command())
	case command != "" && command != s.Command():
		err = fmt.Errorf("%s: got a run of %q, want one of %q", folder, command, s.Command())
	}
	kind.Check(err)
}

// resumedConfig returns the configuration of a run to be resumed, checked.
func resumedConfig[C any](s *configs.Schema[C], folder string, given configs.Sources, from *train.Checkpoint) (_ *C, err error) {
	defer kind.Catch(&err)
	given.File = cmp.Or(given.File, filepath.Join(folder, ConfigFile))
	c, origins, err := s.Load(&given)
	kind.Check(err)
	dir := s.Common(c).Dir
	if o := origins["output.dir"]; strings.HasPrefix(o, "-") && !file.SameFile(*dir, folder) {
		return nil, &configs.Error{Source: o, Problem: fmt.Sprintf("got %s with --resume %s, which continues in that folder", *dir, folder)}
	}
	*dir = folder
	var begun *C
	if from == nil {
		begun, _, err = s.Load(&configs.Sources{File: filepath.Join(folder, ConfigFile)})
	} else {
		begun, err = s.Parse("the configuration in the checkpoint", []byte(from.Notes[ConfigNote]))
	}
	kind.Checkf(err, "the run in %s cannot be resumed: %w", folder, err)
	if changed := s.LockedChanges(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was begun with %s", folder, strings.Join(changed, ", and with "))
	}
	if problem := s.WhyNotLonger(begun, c); problem != "" {
		return nil, fmt.Errorf("the run in %s %s", folder, problem)
	}
	return c, nil
}

// ConfigOf returns the configuration of a run of the schema's command, as Resume does,
// for a command that reads its results. It ignores keys that may change, and differences
// that look removes: look gets the run's original configuration and the returned one.
func ConfigOf[C any](s *configs.Schema[C], folder string, given configs.Sources, look func(begun, now *C)) (_ *C, err error) {
	defer kind.Catch(&err)
	checkRun(s, folder, nil)
	begun, _, err := s.Load(&configs.Sources{File: filepath.Join(folder, ConfigFile)})
	kind.Check(err)
	given.File = cmp.Or(given.File, filepath.Join(folder, ConfigFile))
	c, origins, err := s.Load(&given)
	kind.Check(err)
	look(begun, c)
	if changed := s.LockedChanges(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was made with %s", folder, strings.Join(changed, ", and with "))
	}
	return c, nil
}

// A Fingerprint identifies a run's data in its checkpoints.
type Fingerprint struct {
	Note  string // its key
	What  string // in words
	Value string // "" if there is nothing
}

// Notes of a checkpoint.
const (
	ConfigNote  = "config"  // the configuration of the run
	PointsNote  = "points"  // the points, or images
	HeldNote    = "held"    // the held-out points
	RowsNote    = "rows"    // the training points among all
	GraphNote   = "graph"   // the graph
	TowardsNote = "towards" // the positions of loss.towards
)

// Notes returns the notes of a run's checkpoints: its configuration and the fingerprints
// of its data. It returns an error if from, the run's checkpoint, is not nil and has
// other fingerprints.
func Notes(from *train.Checkpoint, config string, data ...Fingerprint) (map[string]string, error) {
	notes := map[string]string{ConfigNote: config}
	for _, x := range data {
		if x.Value != "" {
			notes[x.Note] = x.Value
		}
		if from != nil && from.Notes[x.Note] != x.Value {
			return nil, fmt.Errorf("the %s are not those that the run was begun with", x.What)
		}
	}
	return notes, nil
}

// BeginAgain prepares the folder of a run that continues from a checkpoint to the given
// number of epochs, or begins again if from is nil. It removes damaged files, and files
// that will be older than the model.
func (d *Dir) BeginAgain(log *slog.Logger, from *train.Checkpoint, epochs int) error {
	if from == nil {
		log.Warn("there is no checkpoint in the run folder; the run begins again")
	}
	for _, path := range d.damaged {
		log.Warn("a checkpoint is damaged; continuing from the one before", "file", path)
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("cannot remove the damaged checkpoint: %w", err)
		}
	}
	if from != nil && from.Progress.Epochs == epochs {
		return nil
	}
	late := lateFiles
	if exists(d.Path(SampleRowsFile)) { // all points are placed when the run has ended
		late = slices.Concat(late, positionFiles("embedding"))
	}
	return d.Remove(late...)
}

// Another sets output.dir for a run without one: the default folder, or the first free
// one with -2, -3, … appended. If it finds a finished run with a checkpoint, begun with
// the same command line, that differs only in what is drawn or written, this run completes
// that folder, and finished is true. If the same run is unfinished, Another returns an
// error. A folder that is named must be free or hold such a finished run. Another sets the
// number of points of a finished run in given, the sources of c, because a preset may
// depend on it.
func Another[C any](s *configs.Schema[C], c *C, given *configs.Sources, command string, named bool) (finished bool, err error) {
	common := s.Common(c)
	first := *common.Dir
	for i := 2; ; i++ {
		taken := Check(*common.Dir, false, common.Inputs...)
		if !errors.Is(taken, ErrExists) {
			return false, taken
		}
		d := NewDir(*common.Dir)
		line, _ := d.CommandLine() // another one if it cannot be read, as below
		begun, _, err := s.Load(&configs.Sources{File: d.Path(ConfigFile)})
		now, from := c, *given
		if err == nil {
			from.Points = cmp.Or(readMetrics(d.Path(MetricsFile)).N, readMetrics(d.Path(SpectrumFigures)).N)
			now, _, err = s.Load(&from)
		}
		switch {
		case err != nil || line != command || !s.SameEmbedding(begun, now):
		case !exists(d.Path(MetricsFile)) && !exists(d.Path(SpectrumFigures)):
			return false,
				fmt.Errorf("the same run in %s is not finished; \"%s --resume %[1]s\" continues it, --force begins it again", d.Root(), s.Command())
		case d.hasCheckpoint():
			given.Points = from.Points
			return true, nil
		case named:
			return false,
				fmt.Errorf("the same run in %s is finished, but its checkpoints are gone; --output takes another folder, --force begins it again", d.Root())
		}
		if named {
			return false, taken
		}
		*common.Dir = fmt.Sprintf("%s-%d", first, i)
	}
}

// Contents is what a folder holds.
type Contents int

const (
	// NoRun is a folder without a config.yaml, or no folder. An empty config.yaml counts as
	// none unless there is a checkpoint: a run was killed as it claimed the folder.
	NoRun Contents = iota
	// Run is a run folder.
	Run
	// NotOurs has a config.yaml that this program has not written.
	NotOurs
)

// largestConfig is far above the size of a config.yaml, in bytes.
const largestConfig = 1 << 20

// Inspect returns what a folder holds, and for a Run the command that began it, such as
// "cne train", or "" if this version does not know the command.
func Inspect(folder string) (_ Contents, command string, err error) {
	defer kind.Catch(&err)
	path := filepath.Join(folder, ConfigFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return NoRun, "", nil
	}
	kind.Checkf(err, "cannot read the run folder: %w", err)
	if !info.Mode().IsRegular() || info.Size() > largestConfig {
		return NotOurs, "", nil
	}
	text, err := os.ReadFile(path)
	kind.Checkf(err, "cannot read the run folder: %w", err)
	line, _, _ := strings.Cut(string(text), "\n")
	switch {
	case len(text) == 0:
		return selection.If(OpenReadOnly(folder).hasCheckpoint(), Run, NoRun), "", nil
	case !strings.HasPrefix(line, configs.Header):
		return NotOurs, "", nil
	}
	return Run, configs.CommandOf(line), nil
}

// CommandLine returns the command line of the run in the folder, from its config.yaml, or
// "".
func (d *Dir) CommandLine() (string, error) {
	text, err := os.ReadFile(d.Path(ConfigFile))
	if err != nil {
		return "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return configs.CommandLine(line), nil
}

// LastCheckpoint returns the last readable checkpoint in the folder, or nil. Damaged ones
// are left to BeginAgain.
func (d *Dir) LastCheckpoint() (*train.Checkpoint, error) {
	var damaged error
	for _, name := range []string{checkpointFile, previousFile} {
		c, err := train.ReadCheckpoint(d.Path(name))
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, train.ErrCheckpoint):
			d.damaged, damaged = append(d.damaged, d.Path(name)), cmp.Or(damaged, err)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the checkpoint cannot be read: %w", err)
		}
	}
	if damaged != nil {
		return nil, fmt.Errorf("%w; to start the run from the beginning, remove %s", damaged, strings.Join(d.damaged, " and "))
	}
	return nil, nil
}

// hasCheckpoint reports whether the folder has a checkpoint, possibly damaged.
func (d *Dir) hasCheckpoint() bool {
	return exists(d.Path(checkpointFile)) || exists(d.Path(previousFile))
}

// KeepCheckpoint writes a checkpoint and keeps the one before it. It makes the folder.
func (d *Dir) KeepCheckpoint(c *train.Checkpoint) error {
	if err := os.MkdirAll(d.path, 0o777); err != nil {
		return fmt.Errorf("cannot write the checkpoint: %w", err)
	}
	if err := atomicfile.Rename(d.Path(checkpointFile), d.Path(previousFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot keep the checkpoint before: %w", err)
	}
	return c.WriteFile(d.Path(checkpointFile))
}

// OpenRecords opens metrics.jsonl for appending. If the run continues from a checkpoint
// (not nil), it keeps and returns the complete records up to there, and warns if there
// are fewer than one for each epoch.
func (d *Dir) OpenRecords(log *slog.Logger, from *train.Checkpoint) (f *os.File, kept []byte, err error) {
	path := d.Path(RecordsFile)
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if from == nil {
		flags |= os.O_TRUNC
	} else {
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("cannot read the metrics so far: %w", err)
		}
		kept = recordsUpTo(old, from.Progress.Epochs)
		if have, want := bytes.Count(kept, []byte("\n")), from.Progress.Epochs; have < want {
			log.Warn("metrics.jsonl lacks records of the run so far", "records", have, "of", want)
		}
		if err := d.WriteFile(RecordsFile, func(w io.Writer) error {
			_, err := w.Write(kept)
			return err
		}); err != nil {
			return nil, nil, err
		}
	}
	if f, err = os.OpenFile(path, flags, 0o666); err != nil {
		return nil, nil, fmt.Errorf("cannot write the metrics: %w", err)
	}
	return f, kept, nil
}

// KeepRecords removes the records after an epoch from metrics.jsonl, which may be open.
func (d *Dir) KeepRecords(epoch int) error {
	path := d.Path(RecordsFile)
	lines, err := os.ReadFile(path)
	if err == nil {
		err = os.Truncate(path, int64(len(recordsUpTo(lines, epoch))))
	}
	if err != nil {
		return fmt.Errorf("cannot shorten the metrics: %w", err)
	}
	return nil
}

// recordsUpTo returns the lines of metrics.jsonl up to an epoch.
func recordsUpTo(lines []byte, epoch int) []byte {
	var kept []byte
	for line := range bytes.Lines(lines) {
		var r struct {
			Epoch int `json:"epoch"`
		}
		if json.Unmarshal(line, &r) == nil && r.Epoch <= epoch && bytes.HasSuffix(line, []byte("\n")) {
			kept = append(kept, line...)
		}
	}
	return kept
}
