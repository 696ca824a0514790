package configs

import (
	"runtime/debug"
	"strings"
)

// development is the version of a program that was not built from a released
// module.
const development = "0.1.0-dev"

// Version returns the version of the program, which files that it writes carry: the module's if it was installed as a
// release, and otherwise a constant, with the commit appended if the build recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return development
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	// A module can also have the version "(devel)", and a pseudo version that only spells
	// the commit.
	if v := info.Main.Version; strings.HasPrefix(v, "v") && !strings.HasPrefix(v, "v0.0.0-") {
		return strings.TrimPrefix(v, "v")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	v := development
	if revision := settings["vcs.revision"]; revision != "" {
		v += "+" + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			v += ".dirty"
		}
	}
	return v
}
