package main

import (
	"strings"
	"testing"
)

// A constant that was not learnt is not called so.
func TestReportOfZ(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 5)
	for setting, want := range map[string]string{"loss.learn_z=true": "\nlearnt Z ", "train.lr_z=0": "\nfixed Z ", "loss.learn_z=false": "\nfixed Z "} {
		stdout, _ := mustRun(t, short("--force", "--set", "loss.name=nc", "--set", setting)...)
		if !strings.Contains(stdout, want) {
			t.Errorf("%s: %s\nhas no %q", setting, stdout, want)
		}
	}
}
