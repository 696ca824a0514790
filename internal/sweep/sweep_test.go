//go:build unix

package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cne/configs"
	"cne/internal/rundir"
)

// program stands in for cne: it notes what it is asked for, says something, and fails for
// seeds from 10 on. Its run gives figures that the seed decides.
const program = `#!/bin/sh
echo "$*" >>calls
for a; do case $a in output.dir=*) dir=${a#output.dir=} ;; seed=*) seed=${a#seed=} ;; esac; done
[ -n "$dir" ] || { for dir; do :; done; seed=0; }
echo "working" >&2
[ "$seed" -lt 10 ] || { echo "cne: it failed" >&2; exit 1; }
mkdir -p "$dir"
echo "{\"kl\": 1.$seed, \"knn_recall\": 0.5, \"kl_error\": 0.$seed, \"holdout\": {\"accuracy\": 0.2$seed}, \"seed\": $seed, \"seconds\": {\"total\": 3}}" >"$dir/metrics.json"
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}

// open returns the sweep that a file describes, in a folder of the test's own.
func open(t *testing.T, text string) *Sweep {
	t.Helper()
	write(t, "s.yaml", "output: out\n"+text)
	write(t, "program", program)
	described, err := configs.ReadSweep(t.Context(), "s.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Sweep{Sweep: described, Program: "./program", Flags: []string{"--quiet"}, Log: slog.New(slog.DiscardHandler), Stderr: io.Discard}
}

// calls returns what the program was asked for, and forgets it.
func calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("calls")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove("calls")
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(s string) bool { return s == "" })
}

// beginRun makes a folder that of a run that has begun.
func beginRun(t *testing.T, dir string) {
	t.Helper()
	c, _, err := configs.Train.Load(configs.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := configs.Train.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, rundir.ConfigFile), b.String())
}

// All runs are carried out in their order, each once. A failure is told with its last line
// and keeps no other from being tried; it is tried again, and what was interrupted goes on.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {graph.k: [3, 4], seed: [1, 10]}")
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	sum, err := s.Run(t.Context())
	if err != nil || sum.Done != 2 || sum.Failed != 2 || sum.Left+sum.Elsewhere != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if want := "2 of 4 runs have failed: 01 (graph.k=3 seed=10): it failed; 03 (graph.k=4 seed=10): it failed"; sum.Err().Error() != want {
		t.Errorf("%v\nwant %s", sum.Err(), want)
	}
	asked := calls(t)
	if len(asked) != 4 || asked[2] != "train --quiet --set graph.k=4 --set seed=1 --set graph.cache=out/cache --set output.dir=out/02" {
		t.Fatalf("%q", asked)
	}
	// 01 had begun; 03 had not, and begins again.
	beginRun(t, "out/01")
	if sum, err = s.Run(t.Context()); err != nil || sum.Done != 3 || sum.Failed != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if asked = calls(t); len(asked) != 2 || asked[0] != "train --quiet --resume out/01" || !strings.Contains(asked[1], "seed=10") {
		t.Errorf("%q", asked)
	}
	if err := s.CarryOutOne(t.Context(), 0); err != nil || len(calls(t)) > 0 {
		t.Errorf("a run that is done is carried out: %v", err)
	}
	if err := s.CarryOutOne(t.Context(), 3); err == nil || err.Error() != "run 03 has failed: it failed" {
		t.Error(err)
	}
	// A context that has ended carries nothing out, and says nothing of the run.
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if status, err := s.status(3); err != nil || status.Error != "it failed" {
		t.Errorf("%+v, %v", status, err)
	}
}

// Several processes on one sweep carry each run out once between them.
func TestRunTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {seed: [0, 1, 2, 3, 4, 5, 6, 7]}")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			mine := *s
			if err := mine.Open(); err != nil {
				t.Error(err)
			}
			if _, err := mine.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	asked := calls(t)
	slices.Sort(asked)
	if len(asked) != 8 || len(slices.Compact(asked)) != 8 {
		t.Errorf("%q", asked)
	}
	// A run that another is at work on is left to it, and counted so.
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Remove("out/status/05.json"))
	unlock, err := rundir.LockFile("out/status/05.lock")
	must(err)
	sum, err := s.Run(t.Context())
	if err != nil || sum.Elsewhere != 1 || sum.Done != 7 || len(calls(t)) > 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	unlock()
	// So is one whose sweep was killed, and whose process goes on.
	unlock, err = rundir.At("out/05").Lock()
	must(err)
	if sum, err = s.Run(t.Context()); err != nil || sum.Elsewhere != 1 || len(calls(t)) > 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	unlock()
}

func TestOpenRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		prepare func(t *testing.T)
		want    string
	}{
		"other things":    {func(t *testing.T) { write(t, "out/mine.txt", "") }, `the folder out holds other things ("mine.txt") and no sweep; choose another output for s.yaml`},
		"a file":          {func(t *testing.T) { write(t, "out", "") }, "cannot read the record of the sweep (open out/sweep.json: not a directory); choose another output for s.yaml"},
		"no record":       {func(t *testing.T) { write(t, "out/sweep.json", "[") }, "out/sweep.json is no record of a sweep"},
		"changed":         {func(t *testing.T) { must(t, open(t, "axes: {seed: [1, 3]}").Open()) }, "s.yaml has changed since the sweep in out was begun: seed of run 01 was 3 and is now 2; leave that as it was, or choose another output"},
		"an empty record": {func(t *testing.T) { write(t, "out/sweep.json", "{}") }, `its command was "" and is now "cne train"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			x.prepare(t)
			if err := open(t, "axes: {seed: [1, 2]}").Open(); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v\nwant %s", err, x.want)
			}
		})
	}
	t.Chdir(t.TempDir())
	s := open(t, "axes: {seed: [1, 2]}")
	must(t, s.Open())
	write(t, "out/status/00.json", "[")
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "out/status/00.json is no status of a run") || !strings.Contains(err.Error(), "remove it, and the run is looked at again") {
		t.Error(err)
	}
	s.Program = "./none"
	must(t, os.Remove("out/status/00.json"))
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot start a run") {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The report has the runs' figures, means and deviations over seeds, and curves along axes
// of numbers.
func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {graph.k: [3, 4], loss.name: [neg, nc], seed: [1, 3, 12]}")
	must(t, s.Open())
	if _, err := s.Report(t.Context()); err == nil || err.Error() != "no run of the sweep in out is done, so that there is nothing to report" {
		t.Error(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	must(t, s.PrintReport(t.Context(), &printed))
	if got := printed.String(); got != "out: report.csv, report-times.csv, report.md, report-graph.k.png\n" {
		t.Errorf("%q", got)
	}
	text := func(name string) string {
		content, err := os.ReadFile("out/" + name)
		must(t, err)
		return string(content)
	}
	table := strings.Split(text("report.csv"), "\n")
	if table[0] != "run,graph.k,loss.name,seed,kl,knn_recall,kl_error,holdout.accuracy" || table[2] != "01,3,neg,3,1.3,0.5,0.3,0.23" || len(table) != 1+8+1 {
		t.Errorf("%q", table)
	}
	if got := strings.Split(text("report-times.csv"), "\n")[1]; got != "00,3,neg,1,3" {
		t.Errorf("%q", got)
	}
	// What is the same everywhere, and errors of others, are left out.
	want := fmt.Sprintf("| graph.k | loss.name | runs | kl | holdout.accuracy |\n| --- | --- | --- | --- | --- |\n| 3 | neg | 2 | 1.2 ± %.2g | 0.22 ± %.2g |\n", math.Sqrt(0.02), math.Sqrt(0.0002))
	if got := text("report.md"); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "differ in their seed alone.\n") {
		t.Errorf("%s\nwant %s", got, want)
	}
	// A run whose figures are damaged is named.
	write(t, "out/06/metrics.json", "{")
	if _, err := s.Report(t.Context()); err == nil || !strings.Contains(err.Error(), "out/06/metrics.json is not what a run writes") {
		t.Error(err)
	}
}

func TestNumbersIn(t *testing.T) {
	const text = `{"b": 1, "a": {"x": [2, {"y": -3e2}], "s": "4", "n": null}, "t": true}`
	got, err := numbersIn(json.NewDecoder(strings.NewReader(text)), "")
	want := []figure{{"b", 1}, {"a.x.0", 2}, {"a.x.1.y", -300}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for n := range text {
		if _, err := numbersIn(json.NewDecoder(strings.NewReader(text[:n])), ""); err == nil {
			t.Errorf("%q is accepted", text[:n])
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"one\ntwo\n":                         "two",
		"one\ncne: two\n\n \n":               "two",
		"one\ntwo":                           "two",
		`{"level":"ERROR","msg":"it fails"}`: "it fails",
		strings.Repeat("x", 3*longestLine):   strings.Repeat("x", longestLine),
	} {
		for _, piece := range []int{1, 3, 1 << 20} {
			var all bytes.Buffer
			l := &lastLine{w: &all}
			for rest := []byte(text); len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := l.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got := l.String(); all.String() != text || !strings.HasPrefix(got, want[:min(len(want), 40)]) || want == "" && got != "" {
				t.Errorf("%.40q in pieces of %d: %.40q", text, piece, got)
			}
		}
	}
}
