package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No command replaces what it reads, or a file of a run, unasked: neither under the
// file's own name nor through a link, nor in a folder that is read.
func TestOutputsReplaceNoInput(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 60, 3)
	must := func(args ...string) {
		t.Helper()
		if code, _, stderr := runCne(t.Context(), args...); code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	must("train", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--epochs", "2",
		"--set", "model.kind=mlp", "--set", "model.hidden=[4]", "--set", "output.snapshots=1", "-o", "run")
	for _, name := range []string{"labels.svg", "labels.json", "labels.npy", "labels.png", "labels.csv"} {
		writeTestFile(t, name, strings.Repeat("a\n", 60))
	}
	writeImages(t, "photos", 8, 6, 2)
	photos, err := filepath.Glob("photos/*/*/*.png")
	if err != nil || len(photos) == 0 {
		t.Fatalf("no images (%v)", err)
	}
	photo := photos[0]
	for link, target := range map[string]string{
		"metrics.json": "run/metrics.json", "positions.npy": "run/embedding.npy", "profile.csv": "points.csv",
		"page.html": "run/embedding.html", "photo.png": photo, "elsewhere": "run",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	writeTestFile(t, "run/mine.npy", "mine")
	evaluate := []string{"evaluate", "run", "-o"}
	project := []string{"project", "--model", "run", "points.csv", "--drop", "kind", "-o"}
	views := []string{"simclr", "views", "--set", "data.path=photos", "--set", "data.size=8", "--set", "views.size=8", "-o"}
	for _, tt := range []struct {
		command []string
		output  string
		refused string // "" if the file is written
	}{
		{evaluate, "run/metrics.json", "a file of the run in"},
		{evaluate, "metrics.json", "a file of the run in"},
		{evaluate, "elsewhere/metrics.json", "a file of the run in"},
		{evaluate, "run/spectrum.json", "a file of the run in"}, // which a run of that command would take for its own
		{evaluate, "run/mine.json", ""},
		{evaluate, "run/evaluation.json", ""},
		{evaluate, "run/evaluation.json", "a file of the run in"}, // now that there is one
		{append([]string{"evaluate", "run", "--labels", "labels.json"}, "-o"), "labels.json", "labels.json would be replaced"},
		{project, "run/embedding.npy", "a file of the run in"},
		{project, "positions.npy", "a file of the run in"},
		{project, "run/snapshots/epoch-0001.npy", "a file of the run in"},
		{project, "points.csv", "points.csv would be replaced"},
		{project, "profile.csv", "points.csv would be replaced"},
		{project, "run/mine.npy", ""},
		{append(project, "new.npy", "--plot"), "run/embedding.png", "a file of the run in"},
		{views, photo, "photos is read"},
		{views, "photo.png", "photos is read"},
		{views, "photos/new.png", ""},
		{[]string{"plot", "run/embedding.csv", "--labels", "labels.svg", "-o"}, "labels.svg", "labels.svg would be replaced"},
		{[]string{"plot", "run/embedding.csv", "--html", "-o"}, "page.html", ""},
		{[]string{"plot", "points.csv", "-o"}, "run/embedding.png", "a file of the run in"},
		{[]string{"plot", "run", "-o"}, "run/embedding.png", ""},
		{[]string{"plot", "run", "-o"}, "run/embedding.svg", ""},
		{[]string{"plot", "--metrics", "run", "-o"}, "run/curves.png", ""},
		{[]string{"plot", "--animate", "run", "-o"}, "run/animation.gif", ""},
		{[]string{"train", "--set", "data.path=points.csv", "-o", "other", "--cpuprofile"}, "points.csv", "points.csv would be replaced"},
		{[]string{"train", "--set", "data.path=points.csv", "-o", "other", "--cpuprofile"}, "profile.csv", "points.csv would be replaced"},
		{[]string{"spectrum", "--set", "data.path=points.csv", "-o", "other", "--cpuprofile"}, "run/graph.npz", "a file of the run in"},
		{[]string{"simclr", "pretrain", "--set", "data.path=photos", "-o", "other", "--cpuprofile"}, photo, "photos is read"},
	} {
		args := append(append([]string(nil), tt.command...), tt.output)
		before, errBefore := os.ReadFile(tt.output)
		code, _, stderr := runCne(t.Context(), args...)
		after, errAfter := os.ReadFile(tt.output)
		if tt.refused == "" {
			if code != exitOK || errAfter != nil {
				t.Errorf("cne %s: exit code %d, %v, stderr %q", strings.Join(args, " "), code, errAfter, stderr)
			}
			continue
		}
		if code != exitFailure || !strings.Contains(stderr, tt.refused) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("cne %s: exit code %d, stderr %q, want %q", strings.Join(args, " "), code, stderr, tt.refused)
		}
		if string(before) != string(after) || (errBefore == nil) != (errAfter == nil) {
			t.Errorf("cne %s has changed the file", strings.Join(args, " "))
		}
	}
	for _, folder := range []string{"other", "new.npy"} {
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s is left behind", folder)
		}
	}
}
