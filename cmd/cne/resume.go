package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/rundir"
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
	contents, command, err := rundir.Inspect(folder)
	if err != nil {
		return nil, err
	}
	if contents == rundir.NoRun || contents == rundir.Begun {
		return nil, fmt.Errorf("there is no run in %s to be resumed; start one with %q", folder, r.schema.Command())
	}
	if r.dir, err = rundir.Reopen(folder); err != nil {
		return nil, err
	}
	if command != "" && command != r.schema.Command() {
		return nil, fmt.Errorf("the run in %s is one of %q, which %q cannot resume", folder, command, r.schema.Command())
	}
	path := filepath.Join(folder, rundir.ConfigFile)
	if at, err := filepath.Abs(folder); err == nil && rundir.RefuseSpectrum(filepath.Dir(at)) != nil {
		return nil, fmt.Errorf("%s is an embedding of a spectrum and no run to be resumed; begin one with \"%s --config %s\" and a folder of its own", folder, r.schema.Command(), path)
	}
	if unlock, err = r.dir.Lock(); err != nil {
		return nil, err
	}
	r.resumed = true
	if r.from, err = r.dir.LastCheckpoint(); err == nil {
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
	if from.File == "" {
		from.File = path
	}
	c, origins, err := r.schema.Load(from)
	if err != nil {
		return nil, err
	}
	if o := origins["output.dir"]; strings.HasPrefix(o, "-") && !rundir.SameFile(*r.schema.Common(c).Dir, folder) {
		return nil, &usageError{cmd.CommandPath(), fmt.Errorf("--resume %s continues in that folder, but %s says %s; leave it out", folder, o, *r.schema.Common(c).Dir)}
	}
	*r.schema.Common(c).Dir = folder
	begun, err := r.begunWith(path)
	if err != nil {
		return nil, fmt.Errorf("the run in %s cannot be resumed: %w", folder, err)
	}
	if changed := r.schema.Violations(begun, c, origins); len(changed) > 0 {
		return nil, fmt.Errorf("the run in %s was begun with %s; leave that as it was, or start another run", folder, strings.Join(changed, ", and with "))
	}
	if problem := r.schema.CannotExtend(begun, c); problem != "" {
		return nil, fmt.Errorf("the run in %s %s; start another run", folder, problem)
	}
	return c, nil
}

// begunWith returns the configuration in the checkpoint, or in config.yaml if
// there is none.
func (r *runState[C]) begunWith(path string) (*C, error) {
	if r.from == nil {
		c, _, err := r.schema.Load(configs.Sources{File: path})
		return c, err
	}
	return r.schema.Parse("the configuration in the checkpoint", []byte(r.from.Notes[configNote]))
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
