package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cne/train"
)

// mayChange are the keys, or sections, that a run may be resumed with other
// values of: what is written and measured of it, how often, and where its data
// lie, whose contents the checkpoint knows.
var mayChange = []string{
	"output", "plot", "log", "quality", "checkpoint", "train.log_every", "train.epochs",
	"data.path", "data.labels", "data.holdout_labels",
}

// loadResumed returns the configuration of a run to be resumed: that in its
// folder, or the one given with --config, with the environment and the flags
// on top. It must not differ from that in the folder in what the result
// depends on.
func loadResumed(cmd *cobra.Command, folder string) (*Config, error) {
	path := filepath.Join(folder, "config.yaml")
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, fmt.Errorf("there is no run in %s to be resumed; start one with \"cne train\"", folder)
	}
	begun, _, err := sources{file: path}.load()
	if err != nil {
		return nil, fmt.Errorf("the run in %s cannot be resumed: %w", folder, err)
	}
	s, err := configSources(cmd)
	if err != nil {
		return nil, err
	}
	if s.file == "" {
		s.file = path
	}
	c, origins, err := s.load()
	if err != nil {
		return nil, err
	}
	if o := origins["output.dir"]; filepath.Clean(c.Output.Dir) != filepath.Clean(folder) && strings.HasPrefix(o, "-") {
		return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--resume %s continues in that folder, but %s says %s; leave it out", folder, o, c.Output.Dir)}
	}
	c.Output.Dir = folder
	if changed := differences(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was begun with %s; leave that as it was, or start another run", folder, strings.Join(changed, ", and with "))
	}
	return c, nil
}

// differences lists in words the keys that must not change and have, and a
// number of epochs that has become smaller.
func differences(begun, now *Config, origins Origins) []string {
	before := map[string]any{}
	for k, v := range fields(*begun) {
		before[k] = v
	}
	var list []string
	for k, v := range fields(*now) {
		section, _, _ := strings.Cut(k, ".")
		if reflect.DeepEqual(before[k], v) {
			continue
		}
		if slices.Contains(mayChange, k) || slices.Contains(mayChange, section) {
			if k != "train.epochs" || now.Train.Epochs > begun.Train.Epochs {
				continue
			}
		}
		list = append(list, fmt.Sprintf("%s %s, not %s (%s)", k, inline(before[k]), inline(v), origins[k]))
	}
	return list
}

// latest returns the last checkpoint in the folder that can be read, nil if
// there is none. A damaged one is passed over with a warning if the one before
// is good.
func (d *runDir) latest(log *slog.Logger) (*train.Checkpoint, error) {
	var damaged error
	for _, name := range []string{checkpointFile, previousFile} {
		c, err := train.ReadCheckpoint(d.Path(name))
		switch {
		case err == nil:
			if damaged != nil {
				log.Warn("the last checkpoint cannot be read; going on from the one before", "reason", damaged)
			}
			return c, nil
		case errors.Is(err, fs.ErrNotExist):
		case damaged == nil:
			damaged = err
		}
	}
	if damaged != nil {
		return nil, fmt.Errorf("%w; to start the run from the beginning, remove that file", damaged)
	}
	return nil, nil
}

// keepCheckpoint writes a checkpoint and keeps the one before it.
func (d *runDir) keepCheckpoint(c *train.Checkpoint) error {
	if err := os.Rename(d.Path(checkpointFile), d.Path(previousFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot keep the checkpoint before: %w", err)
	}
	return c.WriteFile(d.Path(checkpointFile))
}

// Notes of a checkpoint.
const (
	pointsNote = "points" // identifies the points
	graphNote  = "graph"  // and the graph
)

// checkNotes compares a checkpoint's data with those of the run.
func checkNotes(c *train.Checkpoint, notes map[string]string) error {
	if c.Notes[pointsNote] != notes[pointsNote] {
		return errors.New("the points of data.path are not those that the run was begun with; a run can only be resumed on the same data")
	}
	if c.Notes[graphNote] != notes[graphNote] {
		return errors.New("the graph is not that which the run was begun with; a run can only be resumed on the same graph")
	}
	return nil
}
