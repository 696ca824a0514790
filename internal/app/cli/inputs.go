package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/text"
)

// pathKey is the key that the arguments of a command which trains set.
const pathKey = "data.path"

// inputSource is what a Setting of the arguments says where it comes from.
const inputSource = "INPUT"

// Inputs accepts a command line with the paths of the points, or without any.
func Inputs[C any](s *configs.Schema[C]) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		for _, arg := range args {
			key, _, setting := strings.Cut(arg, "=")
			_, err := os.Stat(arg)
			switch {
			case arg == "":
				return errors.New("an argument is empty; name a file, or leave it out")
			case setting && s.Has(key) && errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("there is no file %s; did you mean --set %s?", text.Quote(arg), text.Printable(arg))
			}
		}
		return nil
	}
}

// InputSources returns where the configuration of a command comes from that has the
// flags of AddSourceFlags and, as its arguments, the paths of the points. These come
// before what the environment and a file say; Replaced tells what they replace.
func InputSources(cmd *cobra.Command, args []string) (configs.Sources, error) {
	from, err := Sources(cmd)
	if err != nil || len(args) == 0 {
		return from, err
	}
	if i := slices.IndexFunc(from.Settings, func(s configs.Setting) bool { return s.Key == pathKey }); i >= 0 {
		return from, Usage(cmd, fmt.Errorf("the points are given twice, as the argument %s and with %s; keep one of them", text.Quote(args[0]), from.Settings[i].Source))
	}
	from.Settings = append(from.Settings, configs.PathsSetting(inputSource, pathKey, args))
	return from, nil
}

// NoteReplaced notes which file or variable names points in whose place the arguments
// are taken, if one does. The sources are those of InputSources.
func NoteReplaced[C any](s *configs.Schema[C], log *slog.Logger, from configs.Sources) {
	n := len(from.Settings)
	if n == 0 || from.Settings[n-1].Source != inputSource {
		return
	}
	from.Settings = from.Settings[:n-1]
	// What is wrong without the arguments need not be so with them.
	if _, origins, err := s.Load(from); err == nil && !origins.IsDefault(pathKey) {
		log.Info("the points are those of the command line, in place of "+pathKey, "of", origins[pathKey])
	}
}
