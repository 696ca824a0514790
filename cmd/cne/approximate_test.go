package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cne/internal/rng"
	"cne/internal/rundir"
)

// TestApproximateGraph trains on approximate neighbours, of which the run and its
// evaluation tell how good they are, also when they come from the cache; exact ones
// are then searched anew.
func TestApproximateGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	var text strings.Builder
	s := rng.New(1, rng.Init)
	for range 700 {
		for l := range 12 {
			if l > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, "%.4f", s.Normal())
		}
		text.WriteByte('\n')
	}
	writeTestFile(t, "points.csv", text.String())
	train := func(search string, more ...string) (stdout, stderr string, m rundir.Metrics) {
		t.Helper()
		args := append([]string{"train", "--set", "data.path=points.csv", "--set", "graph.search=" + search, "--set", "graph.k=5", "--set", "quality.k=5",
			"--epochs", "2", "-o", "run", "--force"}, more...)
		code, stdout, stderr := runCne(t.Context(), args...)
		if code != 0 {
			t.Fatal(stderr)
		}
		if err := json.Unmarshal([]byte(fileText(t, "run/metrics.json")), &m); err != nil {
			t.Fatal(err)
		}
		return stdout, stderr, m
	}
	for range 2 { // the second time from the cache
		stdout, stderr, m := train("approximate")
		if m.GraphRecall == nil || !(m.GraphRecall.Share > 0.9 && m.GraphRecall.Share <= 1) {
			t.Fatalf("metrics.json says %+v", m.GraphRecall)
		}
		if !strings.Contains(stdout, "approximate neighbours, of which "+m.GraphRecall.String()) {
			t.Errorf("the run does not tell how good the graph is: %s", stdout)
		}
		if cached := strings.Contains(stderr, "come from the cache"); !cached && !strings.Contains(stderr, "approximate, on the CPU") {
			t.Errorf("the search is not announced: %s", stderr)
		}
	}
	e := evaluated(t, "run")
	if e.GraphRecall == nil || !(e.GraphRecall.Share > 0.9) {
		t.Errorf("the evaluation says %+v", e.GraphRecall)
	}
	if _, stdout, _ := runCne(t.Context(), "evaluate", "run"); !strings.Contains(stdout, "approximate neighbours, of which 0.9") && !strings.Contains(stdout, "approximate neighbours, of which 1.0") {
		t.Errorf("evaluate prints %s", stdout)
	}
	stdout, stderr, m := train("exact")
	if m.GraphRecall != nil || strings.Contains(stdout, "approximate") || strings.Contains(stderr, "come from the cache") {
		t.Errorf("after an exact search there are %+v, %s%s", m.GraphRecall, stdout, stderr)
	}
}
