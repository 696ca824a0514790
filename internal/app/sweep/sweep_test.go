//go:build unix

package sweep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cne/configs"
	"cne/internal/app/rundir"
)

// program stands in for cne: it notes what it is asked for, says something, and fails for
// seeds from 10 on. Its run gives figures that the seed decides.
const program = `#!/bin/sh
echo "$*" >>calls
for a; do case $a in output.dir=*) dir=${a#output.dir=} ;; seed=*) seed=${a#seed=} ;; esac; done
[ "$3" != --resume ] || seed=0
echo "working" >&2
[ "$seed" -lt 10 ] || { echo "cne: it failed" >&2; exit 1; }
mkdir -p "$dir"
echo "{\"kl\": 1.$seed, \"holdout\": {\"accuracy\": 0.2$seed}, \"seed\": $seed, \"n\": 31084544, \"seconds\": {\"total\": $$}, \"peak_rss_bytes\": $$, \"device\": \"cpu\"}" >"$dir/metrics.json"
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o777)); err != nil {
		t.Fatal(err)
	}
}

// open returns the sweep that a file describes, in the working folder.
func open(t *testing.T, text string) *Sweep {
	t.Helper()
	write(t, "s.yaml", "output: out\n"+text)
	write(t, "program", program)
	described, err := configs.ReadSweep(t.Context(), "s.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Sweep{Sweep: described, Program: "./program", Flags: []string{"--quiet=true"}, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler)}
}

// calls returns the program's calls since the last time.
func calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("calls")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove("calls")
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// All runs are carried out, each once. A failure is told with its last line and keeps no
// other from being tried; it is tried again, and what was interrupted continues.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {graph.k: [3, 4], seed: [1, 10]}")
	if err := s.Report(io.Discard); err == nil || err.Error() != "no run of the sweep in out has succeeded" {
		t.Error(err)
	}
	want := "2 of 4 runs have failed: 01 (graph.k=3 seed=10): it failed; 03 (graph.k=4 seed=10): it failed"
	if _, err := s.Run(t.Context(), 0, 4); err == nil || err.Error() != want {
		t.Fatalf("%v\nwant %s", err, want)
	}
	asked := calls(t)
	if len(asked) != 4 || asked[2] != "train --quiet=true --set graph.k=4 --set seed=1 --set graph.cache=out/cache --set output.dir=out/02" {
		t.Fatalf("%q", asked)
	}
	// 01 had begun; 03 had not, and begins again.
	c, _, err := configs.Train.Load(&configs.Sources{})
	var config bytes.Buffer
	if err := errors.Join(err, configs.Train.Write(&config, c)); err != nil {
		t.Fatal(err)
	}
	write(t, "out/01/"+rundir.ConfigFile, config.String())
	if _, err := s.Run(t.Context(), 0, 4); err == nil || !strings.HasPrefix(err.Error(), "1 of 4 runs have failed: 03 ") {
		t.Error(err)
	}
	if asked = calls(t); len(asked) != 2 || asked[0] != "train --quiet=true --resume out/01 --set graph.k=3 --set seed=10 --set graph.cache=out/cache --set output.dir=out/01" || !strings.Contains(asked[1], "seed=10") {
		t.Errorf("%q", asked)
	}
	if _, err := s.Run(t.Context(), 0, 1); err != nil || len(calls(t)) > 0 {
		t.Errorf("a run that has succeeded is carried out: %v", err)
	}
	var printed bytes.Buffer
	if err := s.Report(&printed); err != nil || printed.String() != "out/report.csv\n" {
		t.Errorf("%q, %v", &printed, err)
	}
	// Over two seeds, and of one: 1.05 ± √(2 · .05²).
	for name, want := range map[string]string{
		"report-by-seed": "run,graph.k,seed,holdout.accuracy,kl,n\n00,3,1,0.21,1.1,31084544\n01,3,10,0.2,1,31084544\n02,4,1,0.21,1.1,31084544\n",
		"report":         "graph.k,n_runs,holdout.accuracy,holdout.accuracy.sd,kl,kl.sd,n,n.sd\n3,2,0.205,0.00707,1.05,0.0707,31084544,0\n4,1,0.21,,1.1,,31084544,\n",
	} {
		if table, err := os.ReadFile("out/" + name + ".csv"); string(table) != want || err != nil {
			t.Errorf("%s\nwant %s (%v)", table, want, err)
		}
	}
	write(t, "out/02/metrics.json", "{")
	if err := s.Report(io.Discard); err == nil || !strings.Contains(err.Error(), "the figures of the run in out/02 cannot be read") {
		t.Error(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Run(ctx, 0, 4); err == nil || err.Error() != `interrupted; "cne sweep s.yaml" continues` || len(calls(t)) > 0 {
		t.Error(err)
	}
	s.Program = "./none"
	if _, err := s.Run(t.Context(), 3, 4); err == nil || !strings.Contains(err.Error(), "./none: no such file") {
		t.Error(err)
	}
}

// A run's last line is its error, also in JSON, and also if stderr is closed.
func TestRunSays(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {seed: [1]}")
	reader, unread := io.Pipe()
	_ = reader.Close()
	s.Stderr = unread
	for script, want := range map[string]string{
		"echo a >&2; printf 'cne: it failed\\n\\n' >&2; exit 1":          "it failed",
		`echo '{"level":"ERROR","msg":"cannot open \"a\""}' >&2; exit 1`: `cannot open "a"`,
		"exit 3": "exit status 3",
		"head -c 200000 /dev/zero | tr '\\0' x >&2; printf '\\nlast' >&2; exit 1": "last",
		"echo a >&2": "",
	} {
		write(t, "program", "#!/bin/sh\n"+script)
		_, err := s.Run(t.Context(), 0, 1)
		_ = os.Remove("out/00.done")
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != "1 of 1 runs have failed: 00 (seed=1): "+want) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	said := lastLine{to: io.Discard}
	for range 1000 {
		_, _ = said.Write(make([]byte, 1000))
	}
	if cap(said.line) > 1<<20 {
		t.Errorf("%d bytes of a line are kept", cap(said.line))
	}
}

// Several processes on one sweep carry each run out once, and whoever ends last knows that
// no other is at work.
func TestRunTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "axes: {seed: [0, 1, 2, 3, 4, 5, 6, 7]}")
	var all sync.WaitGroup
	var complete atomic.Int32
	for range 4 {
		all.Go(func() {
			elsewhere, err := s.Run(t.Context(), 0, 8)
			if err != nil {
				t.Error(err)
			} else if elsewhere == 0 {
				complete.Add(1)
			}
		})
	}
	all.Wait()
	asked := calls(t)
	slices.Sort(asked)
	if len(asked) != 8 || len(slices.Compact(asked)) != 8 || complete.Load() == 0 {
		t.Errorf("%q, %d", asked, complete.Load())
	}
	// A run that another sweep is at work on is left to it; one that saves its state
	// without its sweep is waited for.
	for left, lock := range []func() (func(), error){
		rundir.NewDir("out/05").Lock,
		func() (func(), error) { return rundir.LockFile("out/05.lock") },
	} {
		unlock, err := lock()
		if err := errors.Join(err, os.RemoveAll("out/05.done")); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			time.AfterFunc(300*time.Millisecond, unlock)
		}
		if elsewhere, err := s.Run(t.Context(), 0, 8); err != nil || elsewhere != left || len(calls(t)) != 1-left {
			t.Errorf("%d, %v", elsewhere, err)
		}
		if left > 0 {
			unlock()
		}
	}
	// A reader may lock a successful run.
	unlock, err := rundir.NewDir("out/04").Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if elsewhere, err := s.Run(t.Context(), 0, 5); err != nil || elsewhere != 0 {
		t.Errorf("%d, %v", elsewhere, err)
	}
}
