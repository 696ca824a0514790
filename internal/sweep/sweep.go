package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cne/configs"
	"cne/internal/atomicfile"
	"cne/internal/process"
	"cne/internal/rundir"
	"cne/internal/text"
)

// The files of a sweep.
const (
	recordFile   = "sweep.json"
	statusFolder = "status"
)

// A Sweep is a description whose runs are carried out.
type Sweep struct {
	*configs.Sweep
	// Program is the path of cne, and Flags are what every run is given besides its
	// configuration.
	Program string
	Flags   []string
	Log     *slog.Logger
	Stderr  io.Writer // what runs say
}

// A Status is how a run has ended.
type Status struct {
	Done    bool    `json:"done"`
	Error   string  `json:"error,omitempty"` // the last line that it said, if it has failed
	Seconds float64 `json:"seconds"`         // of the last process that worked on it
}

// Summary tells how many runs of a sweep there are of each kind.
type Summary struct {
	Done, Failed, Elsewhere, Left int
	Failures                      []string // the run and what it said
}

// Open takes the folder of the sweep for it, or finds that it is. A folder of another
// sweep, or of this one before it was changed, is refused.
func (s *Sweep) Open() error {
	path := filepath.Join(s.Output, recordFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := s.begin(path); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the record of the sweep (%w); choose another output for %s", err, s.Path)
	}
	before := new(configs.SweepRecord)
	if err := json.Unmarshal(content, before); err != nil {
		return fmt.Errorf("%s is no record of a sweep (%w); choose another output for %s", path, err, s.Path)
	}
	if changed := s.Changed(before); changed != "" {
		return fmt.Errorf("%s has changed since the sweep in %s was begun: %s; leave that as it was, or choose another output", s.Path, s.Output, changed)
	}
	return nil
}

// begin writes the record, unless another process does so at this moment.
func (s *Sweep) begin(path string) error {
	entries, err := os.ReadDir(s.Output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot use the folder of the sweep: %w", err)
	}
	for _, e := range entries {
		if temporary, _ := filepath.Match(atomicfile.Pattern, e.Name()); !temporary && e.Name() != recordFile {
			return fmt.Errorf("the folder %s holds other things (%s) and no sweep; choose another output for %s", s.Output, text.Quote(e.Name()), s.Path)
		}
	}
	if err := os.MkdirAll(s.Output, 0o777); err != nil {
		return fmt.Errorf("cannot make the folder of the sweep: %w", err)
	}
	err = atomicfile.Create(path, func(w io.Writer) error { return rundir.EncodeJSON(w, s.Record()) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot begin the sweep: %w", err)
	}
	return nil
}

// CarryOut carries out all runs that are not done, reports on those that are when no other
// process is at work on any, and prints the names of the report's files. The error is also
// that of runs that have failed.
func (s *Sweep) CarryOut(ctx context.Context, stdout io.Writer) error {
	sum, err := s.Run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; \"cne sweep %s\" goes on", text.Printable(s.Path))
		}
		return err
	}
	if sum.Elsewhere > 0 {
		s.Log.Info("other processes are at work on runs; --report reports on all when they have ended", "runs", sum.Elsewhere)
	} else if sum.Done > 0 {
		if err := s.PrintReport(ctx, stdout); err != nil {
			return err
		}
	}
	return sum.Err()
}

// CarryOutOne is Only, whose error is also that of the run.
func (s *Sweep) CarryOutOne(ctx context.Context, run int) error {
	status, err := s.Only(ctx, run)
	if err == nil && status != nil && !status.Done {
		err = fmt.Errorf("run %s has failed: %s", s.RunName(run), status.Error)
	}
	return err
}

// PrintReport is Report, and prints the names of the files.
func (s *Sweep) PrintReport(ctx context.Context, stdout io.Writer) error {
	files, err := s.Report(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s\n", text.Escape(s.Output), strings.Join(files, ", "))
	return err
}

// Run carries out all runs that are not done yet, in their order. One that was
// interrupted goes on, and one that fails does not keep others from being tried. Runs on
// which other processes are at work are left to them. When ctx ends, the run that is at
// work saves its state, and Run returns ctx's error.
func (s *Sweep) Run(ctx context.Context) (*Summary, error) {
	for i := range s.Runs {
		if _, err := s.Only(ctx, i); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			return nil, err
		}
	}
	return s.Summary()
}

// Only carries out a run that is not done yet, and that no other process is at work on,
// and returns how it has ended; nil if it is another's. Errors are about the sweep, not
// the run.
func (s *Sweep) Only(ctx context.Context, run int) (*Status, error) {
	status, err := s.status(run)
	if err != nil || status.Done {
		return status, err
	}
	if err := os.MkdirAll(filepath.Join(s.Output, statusFolder), 0o777); err != nil {
		return nil, fmt.Errorf("cannot write the status of a run: %w", err)
	}
	unlock, err := rundir.LockFile(s.statusPath(run, ".lock"))
	if errors.Is(err, rundir.ErrLocked) {
		s.Log.Info("another process is at work on a run", "run", s.RunName(run))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock a run: %w", err)
	}
	defer unlock()
	if status, err = s.status(run); err != nil || status.Done { // meanwhile
		return status, err
	}
	if s.outlives(run) {
		s.Log.Info("a process of an earlier sweep is still at work on a run", "run", s.RunName(run))
		return nil, nil
	}
	s.Log.Info("a run of the sweep", "run", s.RunName(run), "of", len(s.Runs), "with", s.Describe(run))
	status, err = s.carryOut(ctx, run)
	if err != nil {
		return nil, err
	}
	return status, rundir.At(s.Output).WriteJSON(statusFolder+"/"+s.RunName(run)+".json", status)
}

// carryOut runs the program. When ctx ends, so does that, and nothing is known of how.
func (s *Sweep) carryOut(ctx context.Context, run int) (*Status, error) {
	args, err := s.arguments(run)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Program, args...)
	last := &lastLine{w: s.Stderr}
	cmd.Stderr = last
	process.Separate(cmd)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a run: %w", err)
	}
	err = process.Wait(cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	status := &Status{Done: err == nil, Seconds: time.Since(begun).Seconds()}
	if err != nil {
		status.Error = last.String()
		if status.Error == "" {
			status.Error = err.Error()
		}
	}
	return status, nil
}

// arguments returns those of the program that begins a run, or goes on with it.
func (s *Sweep) arguments(run int) ([]string, error) {
	args := append(strings.Fields(s.Command)[1:], s.Flags...)
	dir := s.RunDir(run)
	contents, _, err := rundir.Inspect(dir)
	if err != nil {
		return nil, err
	}
	if contents == rundir.Run {
		return append(args, "--resume", dir), nil
	}
	if s.Config != "" {
		args = append(args, "--config", s.Config)
	}
	for _, x := range s.Runs[run].Settings {
		args = append(args, "--set", x.Key+"="+x.Value)
	}
	return args, nil
}

func (s *Sweep) statusPath(run int, ending string) string {
	return filepath.Join(s.Output, statusFolder, s.RunName(run)+ending)
}

// status returns how a run has ended; the zero value if it has not.
func (s *Sweep) status(run int) (*Status, error) {
	path := s.statusPath(run, ".json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Status{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the status of a run: %w", err)
	}
	status := new(Status)
	if err := json.Unmarshal(text, status); err != nil {
		return nil, fmt.Errorf("%s is no status of a run (%w); remove it, and the run is looked at again", path, err)
	}
	return status, nil
}

// Summary tells how the runs have ended so far.
func (s *Sweep) Summary() (*Summary, error) {
	sum := new(Summary)
	for i := range s.Runs {
		status, err := s.status(i)
		if err != nil {
			return nil, err
		}
		switch {
		case status.Done:
			sum.Done++
		case s.isLocked(i):
			sum.Elsewhere++
		case status.Error != "":
			sum.Failed++
			sum.Failures = append(sum.Failures, fmt.Sprintf("%s (%s): %s", s.RunName(i), s.Describe(i), status.Error))
		default:
			sum.Left++
		}
	}
	return sum, nil
}

// isLocked tells whether another process is at work on a run.
func (s *Sweep) isLocked(run int) bool {
	unlock, err := rundir.LockFile(s.statusPath(run, ".lock"))
	if err == nil {
		unlock()
	}
	return errors.Is(err, rundir.ErrLocked) || s.outlives(run)
}

// outlives tells whether a run is at work whose sweep was killed.
func (s *Sweep) outlives(run int) bool {
	unlock, err := rundir.At(s.RunDir(run)).Lock()
	if err == nil {
		unlock()
	}
	return errors.Is(err, rundir.ErrLocked)
}

// Err returns an error if there are runs that have failed, with all of them.
func (s *Summary) Err() error {
	if s.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d runs have failed: %s", s.Failed, s.Done+s.Failed+s.Elsewhere+s.Left, strings.Join(s.Failures, "; "))
}

// A lastLine passes on what is written, and keeps the last line that is not empty.
type lastLine struct {
	w    io.Writer
	line []byte
	next []byte // what has come of the line after that
}

// longestLine bounds what is kept of a line, in bytes.
const longestLine = 1 << 12

// Write never fails: a run need not end because nobody sees what it says.
func (l *lastLine) Write(p []byte) (int, error) {
	_, _ = l.w.Write(p)
	for rest := p; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		l.next = append(l.next, line[:min(len(line), longestLine-min(longestLine, len(l.next)))]...)
		if complete {
			if len(bytes.TrimSpace(l.next)) > 0 {
				l.line = append(l.line[:0], l.next...)
			}
			l.next = l.next[:0]
		}
		rest = after
	}
	return len(p), nil
}

// String returns the line, or the message if it is a record in JSON, without the name of
// the program, which begins errors.
func (l *lastLine) String() string {
	line := l.line
	if len(bytes.TrimSpace(l.next)) > 0 {
		line = l.next
	}
	var record struct{ Msg string }
	if json.Unmarshal(line, &record) == nil && record.Msg != "" {
		line = []byte(record.Msg)
	}
	return text.Message(strings.TrimPrefix(strings.TrimSpace(string(line)), "cne: "))
}
