package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cne/internal/app/rundir"
)

// An Output is a file for results that a command line names.
type Output struct {
	Flag string // its flag, such as --output
	Path string
	// Runs are the folders of the runs that it shows. Files that cne makes of a finished run
	// (rundir.Regenerable) may be replaced there.
	Runs []string
}

// Check returns an error if the file cannot be written, or would replace an input, a file
// in an input folder, or a file of a run. Inputs that do not exist are ignored. Links are
// followed.
func (o Output) Check(inputs ...string) error {
	folder := filepath.Dir(o.Path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: got %s, but there is no folder %s", o.Flag, o.Path, folder)
	}
	info, err := os.Stat(o.Path)
	exists := err == nil
	if exists && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: got %s, want a regular file", o.Flag, o.Path)
	}
	if err := o.checkRuns(exists); err != nil || !exists {
		return err
	}
	for _, input := range inputs {
		if rundir.SameFile(input, o.Path) {
			return fmt.Errorf("%s would be replaced by the results (%s)", input, o.Flag)
		}
		if inside, err := o.isInside(input); err != nil {
			return err
		} else if inside {
			return fmt.Errorf("%s would be replaced by the results (%s), but %s is read", o.Path, o.Flag, input)
		}
	}
	return nil
}

// checkRuns returns an error for a file of a run.
func (o Output) checkRuns(exists bool) error {
	run, name, err := rundir.RunOf(o.Path)
	if err != nil || run == "" {
		return err
	}
	shown := slices.ContainsFunc(o.Runs, func(r string) bool { return rundir.SameFile(r, run) })
	if rundir.Regenerable(name) && (shown || !exists) {
		return nil
	}
	return fmt.Errorf("%s: got %s, a file of the run in %s", o.Flag, o.Path, run)
}

// isInside reports whether the file lies in a folder, at any depth, that is not a run
// folder: other files may be written to run folders.
func (o Output) isInside(folder string) (bool, error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return false, nil
	}
	if contents, _, err := rundir.Inspect(folder); err != nil || contents == rundir.Run {
		return false, err
	}
	file, err := filepath.EvalSymlinks(o.Path)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	for err == nil && file != filepath.Dir(file) {
		if file = filepath.Dir(file); rundir.SameFile(file, folder) {
			return true, nil
		}
	}
	return false, err
}
