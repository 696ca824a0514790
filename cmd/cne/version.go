package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// developmentVersion is the version of a program that was not built from a
// released module.
const developmentVersion = "0.1.0-dev"

// Version returns the version of the program: that of the module if it was
// installed as a release, and otherwise a constant with the commit appended
// where the build recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return developmentVersion
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	// Besides releases, a module can have the version "(devel)", and a pseudo
	// version that only spells the commit.
	if v := info.Main.Version; strings.HasPrefix(v, "v") && !strings.HasPrefix(v, "v0.0.0-") {
		return strings.TrimPrefix(v, "v")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	v := developmentVersion
	if revision := settings["vcs.revision"]; revision != "" {
		v += "+" + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			v += ".dirty"
		}
	}
	return v
}

func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "cne %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
