package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cne/internal/console"
	"cne/internal/rundir"
	"cne/internal/text"
)

// AddReportFlags gives a root command, and with it all, the flags that Reporter and
// LogFormat read.
func AddReportFlags(root *cobra.Command) {
	root.PersistentFlags().String("log-format", "", "`form` of progress and messages on stderr: text or json (same as --set log.format=…)")
	root.PersistentFlags().BoolP("quiet", "q", false, "no progress, and no messages but warnings and errors")
}

// Reporter returns what reports on a command's stderr in a format.
func Reporter(cmd *cobra.Command, format string) *console.Reporter {
	return console.NewReporter(cmd.ErrOrStderr(), format, Quiet(cmd))
}

// Quiet tells whether --quiet was given to a command.
func Quiet(cmd *cobra.Command) bool {
	quiet, err := cmd.Flags().GetBool("quiet")
	return err == nil && quiet
}

// LogFormat returns the form of messages of a command without a configuration.
func LogFormat(cmd *cobra.Command) (string, error) {
	f := cmd.Flags().Lookup("log-format")
	if f == nil || !f.Changed {
		return "text", nil
	}
	if format := f.Value.String(); format == "text" || format == "json" {
		return format, nil
	}
	return "", Usage(cmd, fmt.Errorf("--log-format is %s, but must be text or json", text.Quote(f.Value.String())))
}

// Profile has a CPU profile written to the file of --cpuprofile, if that is given,
// until stop is called.
func Profile(cmd *cobra.Command) (stop func(), err error) {
	path, err := cmd.Flags().GetString("cpuprofile")
	if err != nil || path == "" {
		return func() {}, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// CheckEnding returns an error unless the file that a flag names has one of the
// endings.
func CheckEnding(flag, path string, endings ...string) error {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return fmt.Errorf("%s is %s, but must end in %s", flag, text.Quote(path), strings.Join(endings, " or "))
}

// CheckOutput finds what would keep the file that a flag names from being
// written, and whether it would replace an input, before any work is done.
func CheckOutput(flag, path string, inputs ...string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is %s, but there is no folder %s; make it, or choose another file", flag, path, folder)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %s, which is not a regular file; choose another", flag, path)
	}
	for _, input := range inputs {
		if rundir.SameFile(input, path) {
			return fmt.Errorf("%s would be replaced by the results (%s); choose another file for them", input, flag)
		}
	}
	return nil
}
