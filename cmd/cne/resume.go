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

// reopen opens the folder of a run that is to go on, and finds out where. The
// configuration is that in the folder, or the one given with --config, with the
// environment and the flags on top; it must not differ from the one the run was
// begun with in what the result depends on. No other process opens the folder
// until unlock is called.
func (r *runState[C]) reopen(cmd *cobra.Command, folder string) (unlock func(), err error) {
	if folder == "" {
		return nil, &usageError{cmd.CommandPath(), errors.New("--resume needs the folder of a run")}
	}
	path := filepath.Join(folder, "config.yaml")
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, fmt.Errorf("there is no run in %s to be resumed; start one with %q", folder, r.schema.command)
	}
	if r.dir, err = reopenRunDir(folder); err != nil {
		return nil, err
	}
	if other, err := r.schema.otherCommand(path); err != nil {
		return nil, err
	} else if other != "" {
		return nil, fmt.Errorf("the run in %s is one of %q, which %q cannot resume", folder, other, r.schema.command)
	}
	if at, err := filepath.Abs(folder); err == nil && isSpectrum(filepath.Dir(at)) != nil {
		return nil, fmt.Errorf("%s is an embedding of a spectrum and no run to be resumed; begin one with \"%s --config %s\" and a folder of its own", folder, r.schema.command, path)
	}
	if unlock, err = r.dir.lock(); err != nil {
		return nil, err
	}
	r.resumed = true
	if r.from, err = r.dir.latest(); err == nil {
		r.config, err = r.resumedConfig(cmd, folder, path)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// resumedConfig returns the configuration of a run to be resumed, checked.
func (r *runState[C]) resumedConfig(cmd *cobra.Command, folder, path string) (*C, error) {
	from, err := configSources(cmd)
	if err != nil {
		return nil, err
	}
	if from.file == "" {
		from.file = path
	}
	c, origins, err := r.schema.load(from)
	if err != nil {
		return nil, err
	}
	if o := origins["output.dir"]; strings.HasPrefix(o, "-") && !sameFile(*r.schema.common(c).dir, folder) {
		return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--resume %s continues in that folder, but %s says %s; leave it out", folder, o, *r.schema.common(c).dir)}
	}
	*r.schema.common(c).dir = folder
	begun, err := r.begunWith(path)
	if err != nil {
		return nil, fmt.Errorf("the run in %s cannot be resumed: %w", folder, err)
	}
	if changed := r.schema.differences(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was begun with %s; leave that as it was, or start another run", folder, strings.Join(changed, ", and with "))
	}
	if problem := r.schema.cannotExtend(begun, c); problem != "" {
		return nil, fmt.Errorf("the run in %s %s; start another run", folder, problem)
	}
	return c, nil
}

// begunWith returns the configuration in the checkpoint, or in config.yaml if
// there is none.
func (r *runState[C]) begunWith(path string) (*C, error) {
	if r.from == nil {
		c, _, err := r.schema.load(sources{file: path})
		return c, err
	}
	return r.schema.parse("the configuration in the checkpoint", []byte(r.from.Notes[configNote]))
}

// differences lists in words the keys that must not change and have.
func (s *schema[C]) differences(begun, now *C, origins Origins) []string {
	before := map[string]any{}
	for k, v := range fields(*begun) {
		before[k] = v
	}
	var list []string
	for k, v := range fields(*now) {
		if !reflect.DeepEqual(before[k], v) && !s.changeable(k, before[k], v) {
			list = append(list, fmt.Sprintf("%s %s, not %s (%s)", k, inline(before[k]), inline(v), origins[k]))
		}
	}
	return list
}

// changeable tells whether the value of a key may become another. Files may
// have moved, but a share of the points is not a file; epochs may be added.
func (s *schema[C]) changeable(key string, before, now any) bool {
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
	return slices.Contains(s.mayChange, key) || slices.Contains(s.mayChange, section)
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
	pointsNote = "points" // identifies the points, or images,
	heldNote   = "held"   // those held out,
	graphNote  = "graph"  // and the graph
)

// identify returns what tells the data of the run from others.
func (t *training) identify() []identity {
	held := ""
	if t.in.held != nil {
		held = pointsKey(t.in.held.Points)
	}
	return []identity{
		{pointsNote, "points of data.path", t.near.pointsKey},
		{heldNote, "points of data.holdout", held},
		{graphNote, "edges of the graph", t.near.graphKey()},
	}
}
