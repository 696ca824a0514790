package rundir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cne/configs"
)

// Contents says what a folder holds.
type Contents int

const (
	// NoRun is a folder without a config.yaml, or none.
	NoRun Contents = iota
	// Begun is that of a run which was killed as it began: config.yaml is empty.
	Begun
	// Run is that of a run.
	Run
	// Foreign has a config.yaml that this program has not written.
	Foreign
)

// Inspect tells what a folder holds, and of a Run the command that began it, such
// as "cne train"; "" if that is none of this version's.
func Inspect(folder string) (Contents, string, error) {
	f, err := os.Open(filepath.Join(folder, ConfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return NoRun, "", nil
	}
	if err != nil {
		return NoRun, "", fmt.Errorf("cannot read the run folder: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 1000)).ReadString('\n')
	switch {
	case line == "" && err == io.EOF:
		return Begun, "", nil
	case !strings.HasPrefix(line, configs.Header): // or a folder of that name
		return Foreign, "", nil
	}
	return Run, configs.CommandOf(line), nil
}
