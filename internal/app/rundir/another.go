package rundir

import (
	"cmp"
	"errors"
	"fmt"

	"cne/configs"
)

// Another sets output.dir for a run without one: the default folder, or the first free
// one with -2, -3, … appended. If it finds a finished run with a checkpoint, begun with
// the same command line, that differs only in what is drawn or written, this run completes
// that folder, and finished is true. If the same run is unfinished, Another returns an
// error. A folder that is named must be free or hold such a finished run. Another sets the
// number of points of a finished run in given, the sources of c, because a preset may
// depend on it.
func Another[C any](s *configs.Schema[C], c *C, given *configs.Sources, command string, named bool) (finished bool, err error) {
	common := s.Common(c)
	first := *common.Dir
	for i := 2; ; i++ {
		taken := Check(*common.Dir, false, common.Inputs...)
		if !errors.Is(taken, ErrExists) {
			return false, taken
		}
		d := NewDir(*common.Dir)
		line, _ := d.CommandLine() // another one if it cannot be read, as below
		begun, _, err := s.Load(&configs.Sources{File: d.Path(ConfigFile)})
		now, from := c, *given
		if err == nil {
			from.Points = cmp.Or(readMetrics(d.Path(MetricsFile)).N, readMetrics(d.Path(SpectrumFigures)).N)
			now, _, err = s.Load(&from)
		}
		switch {
		case err != nil || line != command || !s.SameEmbedding(begun, now):
		case !exists(d.Path(MetricsFile)) && !exists(d.Path(SpectrumFigures)):
			return false,
				fmt.Errorf("the same run in %s is not finished; \"%s --resume %[1]s\" continues it, --force begins it again", d.Root(), s.Command())
		case d.hasCheckpoint():
			given.Points = from.Points
			return true, nil
		case named:
			return false,
				fmt.Errorf("the same run in %s is finished, but its checkpoints are gone; --output takes another folder, --force begins it again", d.Root())
		}
		if named {
			return false, taken
		}
		*common.Dir = fmt.Sprintf("%s-%d", first, i)
	}
}
