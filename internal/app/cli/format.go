package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// formatNote is the annotation of a root command with the form in which one of its
// commands reports.
const formatNote = "cne/log-format"

// NewReporter returns what reports on a command's stderr in a format, in which ErrorFormat
// then has the error with which the command ends.
func NewReporter(cmd *cobra.Command, format string) *Reporter {
	root := cmd.Root()
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[formatNote] = format
	return newReporter(cmd.ErrOrStderr(), format, Quiet(cmd))
}

// ErrorFormat returns the form, text or json, of the error with which a command line
// ends. A command that got as far as to report has set it. Otherwise the command line
// may be one that cannot even be parsed, so that its words are searched for the form,
// and last the environment.
func ErrorFormat(root *cobra.Command, args []string) string {
	if format, ok := root.Annotations[formatNote]; ok {
		return format
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	line := " " + strings.Join(args, " ") + " "
	for _, words := range []string{"--log-format=", "--log-format ", "--set log.format=", "--set=log.format=", "-s log.format=", "-slog.format=", "-s=log.format="} {
		if strings.Contains(line, " "+words+"json ") {
			return "json"
		}
	}
	if os.Getenv("CNE_LOG_FORMAT") == "json" {
		return "json"
	}
	return "text"
}
