package main

import (
	"errors"
	"fmt"
	"io/fs"
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
// lie. The checkpoint knows the points, those held out and the graph by their
// contents; labels take no part in training.
var mayChange = []string{
	"output", "plot", "log", "quality", "checkpoint", "train.log_every",
	"data.path", "data.labels", "data.holdout_labels",
}

// reopen opens the folder of a run that is to go on, and finds out where. The
// configuration is that in the folder, or the one given with --config, with the
// environment and the flags on top; it must not differ from the one the run was
// begun with in what the result depends on. No other process opens the folder
// until unlock is called.
func (t *training) reopen(cmd *cobra.Command, folder string) (unlock func(), err error) {
	if folder == "" {
		return nil, &usageError{cmd.CommandPath(), errors.New("--resume needs the folder of a run")}
	}
	path := filepath.Join(folder, "config.yaml")
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, fmt.Errorf("there is no run in %s to be resumed; start one with \"cne train\"", folder)
	}
	if t.dir, err = reopenRunDir(folder); err != nil {
		return nil, err
	}
	if unlock, err = t.dir.lock(); err != nil {
		return nil, err
	}
	t.resumed = true
	if t.from, err = t.dir.latest(); err == nil {
		t.config, err = t.resumedConfig(cmd, folder, path)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// resumedConfig returns the configuration of a run to be resumed, checked.
func (t *training) resumedConfig(cmd *cobra.Command, folder, path string) (*Config, error) {
	from, err := configSources(cmd)
	if err != nil {
		return nil, err
	}
	if from.file == "" {
		from.file = path
	}
	c, origins, err := trainSchema.load(from)
	if err != nil {
		return nil, err
	}
	if o := origins["output.dir"]; strings.HasPrefix(o, "-") && !sameFile(c.Output.Dir, folder) {
		return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--resume %s continues in that folder, but %s says %s; leave it out", folder, o, c.Output.Dir)}
	}
	c.Output.Dir = folder
	begun, err := t.begunWith(path)
	if err != nil {
		return nil, fmt.Errorf("the run in %s cannot be resumed: %w", folder, err)
	}
	if changed := differences(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was begun with %s; leave that as it was, or start another run", folder, strings.Join(changed, ", and with "))
	}
	if c.Train.Epochs > begun.Train.Epochs && c.Train.EarlyExaggeration != "none" {
		return nil, fmt.Errorf("the run in %s cannot be given more epochs than %d, since its early exaggeration is a share of them; start another run", folder, begun.Train.Epochs)
	}
	return c, nil
}

// begunWith returns the configuration in the checkpoint, or in config.yaml if
// there is none.
func (t *training) begunWith(path string) (*Config, error) {
	if t.from == nil {
		c, _, err := trainSchema.load(sources{file: path})
		return c, err
	}
	return trainSchema.parse("the configuration in the checkpoint", []byte(t.from.Notes[configNote]))
}

// differences lists in words the keys that must not change and have.
func differences(begun, now *Config, origins Origins) []string {
	before := map[string]any{}
	for k, v := range fields(*begun) {
		before[k] = v
	}
	var list []string
	for k, v := range fields(*now) {
		if !reflect.DeepEqual(before[k], v) && !changeable(k, before[k], v) {
			list = append(list, fmt.Sprintf("%s %s, not %s (%s)", k, inline(before[k]), inline(v), origins[k]))
		}
	}
	return list
}

// changeable tells whether the value of a key may become another. Files may
// have moved, but a share of the points is not a file; epochs may be added.
func changeable(key string, before, now any) bool {
	section, _, _ := strings.Cut(key, ".")
	switch key {
	case "train.epochs":
		a, okA := before.(int)
		b, okB := now.(int)
		return okA && okB && b > a
	case "graph.file":
		return before != nil && now != nil
	case "data.holdout":
		a, okA := before.(Holdout)
		b, okB := now.(Holdout)
		return okA && okB && a.Share == b.Share
	}
	return slices.Contains(mayChange, key) || slices.Contains(mayChange, section)
}

// latest returns the last checkpoint in the folder that can be read, nil if
// there is none. It notes the damaged ones.
func (d *runDir) latest() (*train.Checkpoint, error) {
	var damaged error
	for _, name := range []string{checkpointFile, previousFile} {
		c, err := train.ReadCheckpoint(d.Path(name))
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, train.ErrCheckpoint):
			d.damaged = append(d.damaged, d.Path(name))
			if damaged == nil {
				damaged = err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the checkpoint cannot be read: %w", err)
		}
	}
	if damaged != nil {
		return nil, fmt.Errorf("%w; to start the run from the beginning, remove %s", damaged, strings.Join(d.damaged, " and "))
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
	configNote = "config" // the configuration of the run
	pointsNote = "points" // identifies the points,
	heldNote   = "held"   // those held out,
	graphNote  = "graph"  // and the graph
)

// identify returns the notes of the run's checkpoints.
func (t *training) identify() (map[string]string, error) {
	config, err := t.configText()
	if err != nil {
		return nil, err
	}
	notes := map[string]string{configNote: config, pointsNote: t.near.pointsKey, graphNote: t.near.graphKey()}
	if t.in.held != nil {
		notes[heldNote] = pointsKey(t.in.held.Points)
	}
	return notes, nil
}

// checkNotes compares a checkpoint's data with those of the run.
func checkNotes(c *train.Checkpoint, notes map[string]string) error {
	for _, x := range []struct{ note, what string }{
		{pointsNote, "points of data.path"}, {heldNote, "points of data.holdout"}, {graphNote, "edges of the graph"},
	} {
		if c.Notes[x.note] != notes[x.note] {
			return fmt.Errorf("the %s are not those that the run was begun with; a run can only be resumed on the same data", x.what)
		}
	}
	return nil
}
