package configs

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "3fc1932aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
	for _, tc := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "1.2.3"},
		{"", nil, development},
		{"(devel)", []debug.BuildSetting{revision}, development + "+3fc1932aaaaa"},
		{"v0.0.0-20250101000000-3fc1932aaaaa+dirty", []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, development + "+3fc1932aaaaa.dirty"},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "r1"}}, development + "+r1"},
	} {
		info := &debug.BuildInfo{Settings: tc.settings}
		info.Main.Version = tc.version
		if got := versionOf(info); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.version, got, tc.want)
		}
	}
}
