// Package sweep executes the runs of a sweep, each in its own process, and makes a table
// of their results.
//
// See configs.Sweep for the description of a sweep. Its folder holds
//
//	00, 01, …   the folders of the runs
//	00.done     a run has succeeded
//	00.lock     locked by the process that executes a run
//	cache       principal components and neighbours, which the runs share (rundir.Cache)
//	report.csv  the figures of the runs that have succeeded; over seeds if they differ in these
//
// The results do not depend on the number of processes or on interruptions.
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
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"cne/configs"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

const reportFile = "report.csv"

// A Sweep executes the runs of a description.
type Sweep struct {
	*configs.Sweep
	Program string    // path of cne
	Flags   []string  // for every run, in addition to its configuration
	Stderr  io.Writer // what runs say
	Log     *slog.Logger
}

// Run executes the runs from ≤ run < to that have not succeeded. Interrupted runs
// continue. After a failure the other runs are still tried; the error names all failures.
// Runs locked by other processes are left to them, and elsewhere is their number. When
// ctx ends, the current run saves its state.
func (s *Sweep) Run(ctx context.Context, from, to int) (elsewhere int, err error) {
	failures, locked := []string(nil), []int(nil)
	for run := from; run < to; run++ {
		if err := s.execute(ctx, run); errors.Is(err, rundir.ErrLocked) {
			locked = append(locked, run)
		} else if err != nil {
			failures = append(failures, fmt.Sprintf("%s (%s): %v", s.RunName(run), s.Describe(run), err))
		}
	}
	locked = slices.DeleteFunc(locked, s.done) // the process that ends last then reports
	if ctx.Err() != nil {
		return len(locked), fmt.Errorf("interrupted; \"cne sweep %s\" continues", text.Printable(s.Path))
	}
	if len(locked) > 0 {
		s.Log.Info("other processes work on runs of this sweep; use --report when they have ended", "runs", len(locked))
	}
	if len(failures) > 0 {
		return len(locked), fmt.Errorf("%d of %d runs have failed: %s", len(failures), to-from, strings.Join(failures, "; "))
	}
	return len(locked), nil
}

// done reports whether a run has succeeded.
func (s *Sweep) done(run int) bool {
	_, err := os.Stat(s.RunDir(run) + ".done")
	return err == nil
}

// attributes are the attributes of the processes of runs, on systems that have them.
var attributes *syscall.SysProcAttr

// execute executes a run that has not succeeded. Its error is the run's last line, or
// rundir.ErrLocked if another process is at work on it.
func (s *Sweep) execute(ctx context.Context, run int) (err error) {
	defer kind.Catch(&err)
	err = os.MkdirAll(s.Output, 0o777)
	kind.Checkf(err, "cannot make the folder of the sweep: %w", err)
	unlock, err := rundir.LockFile(s.RunDir(run) + ".lock")
	kind.Checkf(err, "cannot lock a run: %w", err)
	defer unlock()
	for !s.done(run) && ctx.Err() == nil { // wait: a run whose sweep was killed saves its state
		release, err := rundir.NewDir(s.RunDir(run)).Lock()
		if err == nil {
			release()
		}
		if !errors.Is(err, rundir.ErrLocked) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	args, err := s.arguments(run)
	if err != nil || s.done(run) || ctx.Err() != nil {
		return err
	}
	s.Log.Info("a run of the sweep", "run", s.RunName(run), "of", len(s.Runs), "with", s.Describe(run))
	cmd := exec.CommandContext(ctx, s.Program, args...)
	said := &lastLine{to: s.Stderr}
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = attributes
	if err := cmd.Run(); err != nil {
		var record struct{ Msg string }
		_ = json.Unmarshal(said.line, &record)
		line := strings.TrimPrefix(strings.TrimSpace(string(said.line)), "cne: ")
		return errors.New(text.Message(cmp.Or(record.Msg, line, err.Error())))
	}
	return os.WriteFile(s.RunDir(run)+".done", nil, 0o666)
}

// A lastLine forwards writes and keeps the last line that is not empty.
type lastLine struct {
	to   io.Writer
	line []byte
}

// Write never fails, so a run does not fail if its messages are not read.
func (l *lastLine) Write(p []byte) (int, error) {
	_, _ = l.to.Write(p)
	l.line = append(l.line, p...)
	end := bytes.LastIndexByte(bytes.TrimRight(l.line, " \r\n"), '\n')
	l.line = l.line[max(end+1, len(l.line)-1<<16):] // a line may never end
	return len(p), nil
}

// arguments returns the program's arguments to begin a run, or to continue it with keys
// that may change, such as the device.
func (s *Sweep) arguments(run int) ([]string, error) {
	args := append(strings.Fields(s.Command)[1:], s.Flags...)
	contents, _, err := rundir.Inspect(s.RunDir(run))
	if contents == rundir.Run {
		args = append(args, "--resume", s.RunDir(run))
	}
	if s.Config != "" {
		args = append(args, "--config", s.Config)
	}
	for _, x := range s.Runs[run] {
		args = append(args, "--set", x.Key+"="+x.Value)
	}
	return args, err
}

// Report writes a table of the runs that have succeeded and prints its path. A row has the
// varied keys and the numbers of metrics.json, under names such as "accuracy" and
// "holdout.accuracy". Times and memory are left out, because they differ between
// executions. If the runs differ in their seeds, this table is report-by-seed.csv, and
// report.csv has a row for each setting of the other keys: their number, n_runs, and each
// figure's mean and standard deviation ("accuracy.sd", of n − 1 degrees of freedom).
func (s *Sweep) Report(stdout io.Writer) (err error) {
	defer kind.Catch(&err)
	var runs []map[string]string
	all := map[string]string{}
	for run := range s.Runs {
		if !s.done(run) {
			continue
		}
		var metrics map[string]any
		content, err := os.ReadFile(filepath.Join(s.RunDir(run), rundir.MetricsFile))
		err = cmp.Or(err, json.Unmarshal(content, &metrics))
		kind.Checkf(err, "the figures of the run in %s cannot be read: %w", s.RunDir(run), err)
		f := map[string]string{"run": s.RunName(run)}
		addNumbers(f, "", metrics)
		addNumbers(all, "", metrics)
		maps.Copy(f, s.Values(run))
		runs = append(runs, f)
	}
	if runs == nil {
		return fmt.Errorf("no run of the sweep in %s has succeeded", s.Output)
	}
	// A seed is a varied key, or the same for all.
	maps.DeleteFunc(all, func(name, _ string) bool {
		return name == "seed" || name == "peak_rss_bytes" || strings.HasPrefix(name, "seconds.")
	})
	figures := slices.Sorted(maps.Keys(all))
	columns := slices.Concat([]string{"run"}, s.Varied, figures)
	if seed := slices.Index(s.Varied, "seed"); seed >= 0 {
		kind.Check(s.writeTable("report-by-seed.csv", columns, runs))
		others := slices.Delete(slices.Clone(s.Varied), seed, seed+1)
		columns = append(slices.Clone(others), "n_runs")
		for _, f := range figures {
			columns = append(columns, f, f+".sd")
		}
		runs = overSeeds(runs, others, figures)
	}
	err = s.writeTable(reportFile, columns, runs)
	if err == nil {
		_, err = fmt.Fprintln(stdout, text.Escape(filepath.Join(s.Output, reportFile)))
	}
	return err
}

// writeTable writes a row of the columns for each of rows.
func (s *Sweep) writeTable(name string, columns []string, rows []map[string]string) error {
	table := append([][]string{columns}, selection.Map(rows, func(r map[string]string) []string {
		return selection.Map(columns, func(column string) string { return r[column] })
	})...)
	return rundir.NewDir(s.Output).WriteFile(name, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(table) })
}

// overSeeds returns the means and standard deviations of the figures over the runs that
// agree in the keys, in the order of the first of these runs. A figure that one of the runs
// lacks has none.
func overSeeds(runs []map[string]string, keys, figures []string) (rows []map[string]string) {
	var settings []string
	alike := map[string][]map[string]string{} // runs by their setting
	for _, f := range runs {
		setting := ""
		for _, key := range keys {
			setting += strconv.Quote(f[key])
		}
		if alike[setting] == nil {
			settings = append(settings, setting)
		}
		alike[setting] = append(alike[setting], f)
	}
	for _, setting := range settings {
		same := alike[setting]
		row := map[string]string{"n_runs": strconv.Itoa(len(same))}
		for _, key := range keys {
			row[key] = same[0][key]
		}
		for _, name := range figures {
			var x []float64
			for _, f := range same {
				if v, err := strconv.ParseFloat(f[name], 64); err == nil {
					x = append(x, v)
				}
			}
			if len(x) < len(same) {
				continue
			}
			mean, deviation := stat.MeanStdDev(x, nil)
			row[name] = strconv.FormatFloat(mean, 'g', 10, 64)
			if len(x) > 1 {
				row[name+".sd"] = strconv.FormatFloat(deviation, 'g', 3, 64)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// addNumbers adds the numbers of a JSON object under its keys with a prefix.
func addNumbers(figures map[string]string, before string, object map[string]any) {
	for key, v := range object {
		switch v := v.(type) {
		case float64:
			figures[before+key] = strconv.FormatFloat(v, 'f', -1, 64)
		case map[string]any:
			addNumbers(figures, before+key+".", v)
		}
	}
}
