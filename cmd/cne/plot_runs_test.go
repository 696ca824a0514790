package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shortRuns trains two runs with snapshots and quality, below the current
// folder.
func shortRuns(t *testing.T) {
	t.Helper()
	writePoints(t, "points.csv", 300, 6)
	for _, loss := range []string{"neg", "nc"} {
		args := short("--set", "loss.name="+loss, "--set", "output.metrics_every=2", "--set", "output.snapshots=3", "-o", filepath.Join("runs", loss))
		mustRun(t, args...)
	}
}

// plotTexts runs cne plot and returns the texts of the SVG that it names.
func plotTexts(t *testing.T, args ...string) []string {
	t.Helper()
	code, stdout, stderr := runCne(t.Context(), append([]string{"plot"}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("cne plot %v: exit code %d: %s", args, code, stderr)
	}
	svg := readText(t, strings.TrimSpace(stdout))
	if !strings.HasPrefix(svg, "<?xml") {
		t.Fatalf("%s is no SVG", stdout)
	}
	shown := strings.Split(svg, "</text>")
	for i, s := range shown {
		shown[i] = s[strings.LastIndexByte(s, '>')+1:]
	}
	return shown
}

func TestPlotMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	shortRuns(t)
	for name, tc := range map[string]struct {
		args       string
		has, lacks []string
	}{
		"two":      {"runs/neg runs/nc", []string{"loss = neg", "loss = nc", "Loss", "Partition function (dashed: learnt Z)", "KL divergence", "epoch", "nats", "per edge", "Learning rate"}, []string{"accuracy", "phase 2"}},
		"one":      {"runs/neg --title Title", []string{"Title", "Loss", "Partition function", "KL divergence"}, []string{"neg"}},
		"nc":       {"runs/nc", []string{"Partition function (dashed: learnt Z)"}, []string{"nc"}},
		"files":    {"runs/neg/metrics.jsonl runs/nc/metrics.jsonl", []string{filepath.FromSlash("runs/neg/metrics.jsonl"), filepath.FromSlash("runs/nc/metrics.jsonl")}, nil},
		"thrice":   {"runs/nc runs/neg runs/nc/.", []string{filepath.FromSlash("runs/nc"), "neg"}, []string{"nc"}},
		"only Z":   {"z.jsonl", []string{"Learnt Z", "Loss"}, []string{"KL divergence"}},
		"phases":   {"phases.jsonl", []string{"phase 2", "phase 3"}, nil},
		"accuracy": {"images.jsonl", []string{"kNN accuracy of the representation", "of at most 2000 test images", "Loss", "per image"}, []string{"Partition function", "Learning rate"}},
		"going on": {"going.jsonl", []string{"Loss"}, nil},
	} {
		writeTestFile(t, "z.jsonl", `{"epoch":1,"loss":2,"z":40}`+"\n"+`{"epoch":2,"loss":1,"z":30}`+"\n")
		writeTestFile(t, "phases.jsonl", `{"epoch":1,"phase":0,"loss":2}`+"\n"+`{"epoch":2,"phase":1,"loss":1}`+"\n"+`{"epoch":3,"phase":2,"loss":1}`+"\n")
		writeTestFile(t, "images.jsonl", `{"epoch":1,"loss":-2,"accuracy":0.5,"images_per_second":9}`+"\n")
		writeTestFile(t, "going.jsonl", `{"epoch":1,"loss":2}`+"\n"+`{"epoch":2,"lo`)
		got := plotTexts(t, append(strings.Fields(tc.args), "--metrics", "-o", "curves.svg")...)
		for _, want := range tc.has {
			if !slices.Contains(got, want) {
				t.Errorf("%s: the picture lacks %q: %q", name, want, got)
			}
		}
		for _, other := range tc.lacks {
			if slices.Contains(got, other) {
				t.Errorf("%s: the picture has %q", name, other)
			}
		}
	}
}
