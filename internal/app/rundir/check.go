package rundir

import (
	"fmt"
	"os"
	"slices"
)

// Check says why a new run cannot have the folder at a path, as Open does, without
// making or changing anything: before the inputs are read, which may take long.
func Check(path string, force bool, inputs ...string) error {
	_, err := NewDir(path).replaced(force, inputs)
	return err
}

// replaced returns the files of an earlier run that a new one replaces, or why it must
// not.
func (d *Dir) replaced(force bool, inputs []string) ([]string, error) {
	if info, err := os.Stat(d.path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("the run folder %s is a file; choose another output.dir", d.path)
	}
	existing, err := d.existing()
	if err != nil || len(existing) == 0 {
		return nil, err
	}
	contents, _, err := Inspect(d.path)
	switch {
	case err != nil:
		return nil, err
	case contents != Run && contents != Incomplete:
		return nil, fmt.Errorf("the folder %s holds a file %s that a run would overwrite, and no config.yaml written by cne; choose another output.dir", d.path, existing[0])
	case contents == Incomplete && slices.Equal(existing, []string{ConfigFile}):
		// It was never more than a beginning.
	case !force:
		return nil, fmt.Errorf("%w: %s; choose another output.dir, or give --force to replace them, or --resume to go on with it", ErrExists, d.path)
	}
	for _, name := range existing {
		for _, input := range inputs {
			if SameFile(d.Path(name), input) {
				return nil, fmt.Errorf("%s is an input of this run and would be replaced by its results; choose another output.dir", input)
			}
		}
	}
	return existing, nil
}
