// Package sweep carries out the runs of a sweep, each in a process of its own, and makes a
// table of what they gave.
//
// What a sweep is stands in configs.Sweep. Its folder holds
//
//	00, 01, …   the folders of the runs
//	00.done     a run has succeeded
//	00.lock     by which one process at a time is at work on a run
//	cache       principal components and neighbours, which the runs share (rundir.Cache)
//	report.csv  the figures of all runs
//
// The runs are the same however many processes made them, and however often they were
// interrupted.
package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"cne/configs"
	"cne/internal/rundir"
	"cne/internal/text"
)

const reportFile = "report.csv"

// A Sweep is a description whose runs are carried out.
type Sweep struct {
	*configs.Sweep
	Program string    // path of cne
	Flags   []string  // what every run is given besides its configuration
	Jobs    int       // how many runs are at work at once
	Stderr  io.Writer // what runs say; several write at once
	Log     *slog.Logger
}

// Run carries out the runs from one number on and before another that have not succeeded.
// Interrupted ones continue, and those on which other processes are at work are left to
// them. A run that fails does not keep others from being tried: the error is that of all.
// When ctx ends, runs save their state.
func (s *Sweep) Run(ctx context.Context, from, to int) error {
	failures := make([]string, to-from)
	var atWork sync.WaitGroup
	slots := make(chan bool, s.Jobs)
	for run := from; run < to; run++ {
		slots <- true
		atWork.Go(func() {
			if err := s.carryOut(ctx, run); err != nil {
				failures[run-from] = fmt.Sprintf("%s (%s): %v", s.RunName(run), s.Describe(run), err)
			}
			<-slots
		})
	}
	atWork.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; \"cne sweep %s\" continues", text.Printable(s.Path))
	}
	failures = slices.DeleteFunc(failures, func(failure string) bool { return failure == "" })
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d runs have failed: %s", len(failures), to-from, strings.Join(failures, "; "))
	}
	return nil
}

// done reports whether a run has succeeded.
func (s *Sweep) done(run int) bool {
	_, err := os.Stat(s.RunDir(run) + ".done")
	return err == nil
}

// attributes are those of the processes of runs, where the system has them.
var attributes *syscall.SysProcAttr

// carryOut carries out a run that has not succeeded. Its error is what the run says last.
func (s *Sweep) carryOut(ctx context.Context, run int) error {
	if err := os.MkdirAll(s.Output, 0o777); err != nil {
		return fmt.Errorf("cannot make the folder of the sweep: %w", err)
	}
	unlock, err := rundir.LockFile(s.RunDir(run) + ".lock")
	if errors.Is(err, rundir.ErrLocked) {
		s.Log.Info("another process is at work on a run", "run", s.RunName(run))
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot lock a run: %w", err)
	}
	defer unlock()
	args, err := s.arguments(run)
	if err != nil || s.done(run) || ctx.Err() != nil {
		return err
	}
	s.Log.Info("a run of the sweep", "run", s.RunName(run), "of", len(s.Runs), "with", s.Describe(run))
	cmd := exec.CommandContext(ctx, s.Program, args...)
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(&said, s.Stderr)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = attributes
	if err := cmd.Run(); err != nil {
		line := strings.TrimSpace(said.String())
		line = strings.TrimPrefix(line[strings.LastIndexByte(line, '\n')+1:], "cne: ")
		return errors.New(text.Message(cmp.Or(line, err.Error())))
	}
	return os.WriteFile(s.RunDir(run)+".done", nil, 0o666)
}

// arguments returns those of the program that begins a run, or continues it.
func (s *Sweep) arguments(run int) ([]string, error) {
	args := append(strings.Fields(s.Command)[1:], s.Flags...)
	contents, _, err := rundir.Inspect(s.RunDir(run))
	if contents == rundir.Run {
		return append(args, "--resume", s.RunDir(run)), nil
	}
	if s.Config != "" {
		args = append(args, "--config", s.Config)
	}
	for _, x := range s.Runs[run] {
		args = append(args, "--set", x.Key+"="+x.Value)
	}
	return args, err
}

// Report writes a table of what the runs that have succeeded gave: for each the values of
// the keys that are varied, and the numbers in its metrics.json, under names such as
// "accuracy" and "holdout.accuracy". It prints the path.
func (s *Sweep) Report(stdout io.Writer) error {
	figures := make([]map[string]string, len(s.Runs))
	all := map[string]string{}
	for run := range s.Runs {
		if !s.done(run) {
			continue
		}
		var metrics map[string]any
		content, err := os.ReadFile(filepath.Join(s.RunDir(run), rundir.MetricsFile))
		if err == nil {
			err = json.Unmarshal(content, &metrics)
		}
		if err != nil {
			return fmt.Errorf("the figures of the run in %s cannot be read: %w", s.RunDir(run), err)
		}
		figures[run] = map[string]string{}
		addNumbers(figures[run], "", metrics)
		maps.Copy(all, figures[run])
	}
	if len(all) == 0 {
		return fmt.Errorf("no run of the sweep in %s has succeeded, so there is nothing to report", s.Output)
	}
	delete(all, "seed") // which stands with what is varied, or is the same
	names := slices.Sorted(maps.Keys(all))
	err := rundir.At(s.Output).WriteFile(reportFile, func(w io.Writer) error {
		table := csv.NewWriter(w)
		_ = table.Write(slices.Concat([]string{"run"}, s.Varied, names)) // Flush finds the error
		for run, f := range figures {
			row := []string{s.RunName(run)}
			for _, key := range s.Varied {
				row = append(row, s.Value(run, key))
			}
			for _, name := range names {
				row = append(row, f[name])
			}
			if f != nil {
				_ = table.Write(row)
			}
		}
		table.Flush()
		return table.Error()
	})
	if err == nil {
		_, err = fmt.Fprintln(stdout, text.Escape(filepath.Join(s.Output, reportFile)))
	}
	return err
}

// addNumbers adds the numbers of a JSON object, before whose keys a name stands.
func addNumbers(figures map[string]string, before string, object map[string]any) {
	for key, v := range object {
		switch v := v.(type) {
		case float64:
			figures[before+key] = strconv.FormatFloat(v, 'g', -1, 64)
		case map[string]any:
			addNumbers(figures, before+key+".", v)
		}
	}
}
