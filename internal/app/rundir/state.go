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
	"strings"

	"cne/configs"
	"cne/internal/atomicfile"
	"cne/train"
)

// Contents is what a folder holds.
type Contents int

const (
	// NoRun is a folder without a config.yaml, or no folder.
	NoRun Contents = iota
	// Incomplete is a run folder whose config.yaml is empty or cut off, because the run was
	// killed as it began, or the disk was full.
	Incomplete
	// Run is a run folder.
	Run
	// NotOurs has a config.yaml that this program has not written.
	NotOurs
)

// largestConfig is far above the size of a config.yaml, in bytes.
const largestConfig = 1 << 20

// Inspect returns what a folder holds, and for a Run the command that began it, such as
// "cne train", or "" if this version does not know the command.
func Inspect(folder string) (Contents, string, error) {
	path := filepath.Join(folder, ConfigFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return NoRun, "", nil
	}
	if err != nil {
		return NoRun, "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > largestConfig {
		return NotOurs, "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return NoRun, "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	switch {
	case len(text) == 0:
		return Incomplete, "", nil
	case !strings.HasPrefix(line, configs.Header):
		return NotOurs, "", nil
	case configs.CutOff(text):
		return Incomplete, configs.CommandOf(line), nil
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
// are left to removeDamaged.
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

// removeDamaged removes the checkpoints that LastCheckpoint could not read, with
// a warning about each.
func (d *Dir) removeDamaged(log *slog.Logger) error {
	for _, path := range d.damaged {
		log.Warn("a checkpoint is damaged; continuing from the one before", "file", path)
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("cannot remove the damaged checkpoint: %w", err)
		}
	}
	return nil
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
