package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withProgram returns a runner whose program is a script.
func withProgram(t *testing.T, script string) *runner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &runner{limit: 20 * time.Second, seed: 1}
	if err := r.prepare(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.root) })
	return r
}

// try makes one trial, in a folder with a file x.csv.
func try(t *testing.T, r *runner, do func(w *world)) verdict {
	t.Helper()
	return r.one(context.Background(), trial{"test/" + t.Name(), func(w *world) {
		w.text("x.csv", "1,2\n3,4\n")
		do(w)
	}})
}

// What a bad program does is found, each time by the check that is made for it.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	ok := func(w *world) { w.ok("cne train") }
	refused := func(w *world) { w.refused("cne train", "x.csv") }
	for _, tc := range []struct {
		name, program string
		do            func(w *world)
		fault         string
	}{
		{"panic", "echo 'panic: runtime error: index out of range' >&2; exit 2", func(w *world) { w.misused("cne train", "") }, `"panic" on stderr`},
		{"stack on stdout", "echo 'goroutine 1 [running]:'", ok, `"goroutine " on stdout`},
		{"internal error", "echo 'cne: internal error: x.csv' >&2; exit 1", refused, `"internal error" on stderr`},
		{"fatal", "echo 'fatal error: out of memory' >&2; exit 2", ok, `"fatal error" on stderr`},
		{"other code", "echo 'cne: x.csv' >&2; exit 3", refused, "exit code 3"},
		{"killed", "kill -9 $$", ok, "exit code 137"},
		{"wrong usage as failure", "echo 'cne: x.csv' >&2; exit 1", func(w *world) { w.misused("cne train", "") }, "exit code 1, not 2"},
		{"success", "exit 0", refused, "exit code 0, not 1"},
		{"failure", "echo 'cne: x.csv' >&2; exit 1", ok, "exit code 1: cne: x.csv"},
		{"complaint with success", "echo 'cne: x.csv' >&2", ok, "complained"},
		{"silence", "exit 1", refused, "does not begin with cne"},
		{"two lines", "echo 'cne: x.csv is bad' >&2; echo 'cne: very' >&2; exit 1", refused, "2 lines"},
		{"broken line", "printf 'cne: x\\n.csv\\n' >&2; exit 1", refused, "does not begin with cne"},
		{"other words", "echo 'cne: no' >&2; exit 1", refused, "does not match"},
		{"control character", "printf 'cne: x.csv \\033[2J\\n' >&2; exit 1", refused, "control character"},
		{"direction", "printf 'cne: x.csv \\u202e\\n' >&2; exit 1", refused, "control character"},
		{"bytes", "printf 'cne: x.csv \\xff\\n' >&2; exit 1", refused, "UTF-8"},
		{"long line", "printf 'cne: x.csv %2000s\\n' y >&2; exit 1", refused, "characters on stderr"},
		{"broken JSON", "echo '{\"x.csv\": ' >&2; exit 1", refused, "JSON"},
		{"lost input", "rm x.csv", ok, "x.csv is lost"},
		{"changed input", "echo 5,6 >> x.csv", ok, "x.csv has changed"},
		{"input with other rights", "chmod 600 x.csv", func(w *world) { w.asRoot = true; w.ok("cne train") }, "x.csv has changed"},
		{"input replaced by a link", "mv x.csv out.csv; ln -s out.csv x.csv", ok, "x.csv has changed"},
		{"file nobody asked for", "echo 1 > y.csv", ok, "has made y.csv"},
		{"temporary file", "mkdir run; echo 1 > run/.cne-12.tmp", ok, "temporary file run/.cne-12.tmp"},
		{"refused with a trace", "mkdir run; echo 'cne: x.csv' >&2; exit 1", refused, "has made run"},
		{"refused with a change", "echo 2 > run.txt; echo 'cne: x.csv' >&2; exit 1", func(w *world) { w.text("run.txt", "1"); w.refused("cne train", "") }, "run.txt has changed"},
		{"silently different", "echo $RANDOM$RANDOM > \"$2\"", func(w *world) { w.ok("cne -o run1 && cne -o run2"); w.same("run1", "run2") }, "differ"},
		{"always the same", "echo 1 > \"$2\"", func(w *world) { w.ok("cne -o run1 && cne -o run2"); w.differ("run1", "run2") }, "are the same"},
		{"nothing written", "exit 0", func(w *world) { w.ok("cne train"); w.read("run/embedding.npy") }, "missing"},
		{"empty result", "touch run", func(w *world) { w.ok("cne train"); w.have("run") }, "missing or empty"},
		{"nothing said", "exit 0", func(w *world) { w.says("cne train", "header") }, "nothing on stderr"},
		{"no command", "exit 0", func(*world) {}, "has run no command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v := try(t, withProgram(t, tc.program), tc.do)
			if !strings.Contains(v.fault, tc.fault) {
				t.Errorf("the fault is %q, want one with %q", v.fault, tc.fault)
			}
		})
	}
}

// What a good program does is no fault.
func TestSoundProgramPasses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, program string
		do            func(w *world)
	}{
		{"success", "mkdir -p run; echo 1 > run/a; echo reading >&2", func(w *world) { w.ok("cne train") }},
		{"refusal", "echo reading >&2; echo 'cne: x.csv is bad' >&2; exit 1", func(w *world) { w.refused("cne train", "x.csv") }},
		{"refusal in JSON", "echo '{\"msg\": \"x.csv\"}' >&2; exit 1", func(w *world) { w.refused("cne train", "x.csv") }},
		{"cache of a refused run", "mkdir run; echo 1 > run/cache.safetensors; echo 'cne: x.csv' >&2; exit 1", func(w *world) { w.refused("cne train", "x.csv") }},
		{"partial results", "mkdir run; echo 1 > run/a; echo 'cne: interrupted' >&2; exit 1", func(w *world) { w.breaks("cne train", "interrupted") }},
		{"killed, and tidied by the next", "[ -e run ] && { rm run/.cne-1.tmp; exit 0; }; mkdir run; echo 1 > run/.cne-1.tmp; kill -9 $$", func(w *world) {
			w.run("cne train", effects{codes: []int{137}})
			w.ok("cne train")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if v := try(t, withProgram(t, tc.program), tc.do); v.fault != "" {
				t.Error(v.fault)
			}
		})
	}
}

// A temporary file that a killed command left is a fault once another has succeeded.
func TestTemporaryFilesHaveToGo(t *testing.T) {
	t.Parallel()
	v := try(t, withProgram(t, "[ -e run ] && exit 0; mkdir run; echo 1 > run/.cne-1.tmp; kill -9 $$"), func(w *world) {
		w.run("cne train", effects{codes: []int{137}})
		w.ok("cne train")
	})
	if !strings.Contains(v.fault, "temporary file") {
		t.Errorf("the fault is %q", v.fault)
	}
}

// A command that hangs is ended, with all that it has started.
func TestHangsAreFound(t *testing.T) {
	t.Parallel()
	r := withProgram(t, "sleep 300 & sleep 300")
	r.limit = 300 * time.Millisecond
	begun := time.Now()
	v := try(t, r, func(w *world) { w.ok("cne train") })
	if !strings.Contains(v.fault, "stuck") || time.Since(begun) > 10*time.Second {
		t.Errorf("the fault is %q, after %v", v.fault, time.Since(begun))
	}
}

// An undisturbed run is made once, and what differs from it is found.
func TestBase(t *testing.T) {
	t.Parallel()
	r := withProgram(t, `mkdir -p run; if [ -e z.csv ]; then echo 2; else echo 1; fi > run/a; echo '{"loss": 1, "seconds": '$RANDOM'}' > run/m.json`)
	compare := func(w *world) {
		dir, _ := w.base("base", func(u *world) { u.text("x.csv", "1,2\n3,4\n") }, "cne train")
		w.ok("cne train")
		w.sameRun(dir, []string{"run/a", "run/m.json"})
	}
	if v := try(t, r, compare); v.fault != "" {
		t.Error(v.fault)
	}
	v := try(t, r, func(w *world) {
		w.text("z.csv", "")
		compare(w)
	})
	if !strings.Contains(v.fault, "run/a is not that of an undisturbed run") {
		t.Errorf("the fault is %q", v.fault)
	}
	if len(r.bases) != 1 {
		t.Errorf("there are %d undisturbed runs, not 1", len(r.bases))
	}
}

// The report names what failed with its command, and what was skipped with the reason;
// the number of failures becomes the exit code.
func TestReport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(path, []byte("#!/bin/bash\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	failed, err := (&runner{limit: time.Minute}).all(context.Background(), path, []trial{
		{"a/bad", func(w *world) { w.ok("cne boil") }},
		{"a/skipped", func(w *world) { w.skip("there is no moon") }},
		{"a/good", func(w *world) { w.run("cne fry", effects{codes: []int{3}}) }},
	}, 2, false, &out)
	if err != nil || failed != 1 {
		t.Errorf("%d failed, %v", failed, err)
	}
	for _, want := range []string{"FAILED a/bad: exit code 3", "$ cne boil", "skipped a/skipped: there is no moon", "3 hostile trials, 1 failed, 1 skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "fry") {
		t.Errorf("the report names what did not fail:\n%s", &out)
	}
}

// The names of trials are their own, patterns choose among them, and there are enough.
func TestTrials(t *testing.T) {
	t.Parallel()
	all, err := choose(trials(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Errorf("there are %d trials", len(all))
	}
	some, err := choose(all, "^graph/")
	if err != nil || len(some) == 0 || len(some) == len(all) {
		t.Errorf("%d of %d trials are of graphs, %v", len(some), len(all), err)
	}
	if _, err := choose(all, "^nothing$"); err == nil {
		t.Error("a pattern that matches nothing is no error")
	}
	if _, err := choose(append(all[:1:1], all[0]), ""); err == nil {
		t.Error("two trials of one name are no error")
	}
}

// The files that the harness writes are the same each time, and are what they seem.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := blobs(7, 3)
	if !bytes.Equal(p.npy(), blobs(7, 3).npy()) {
		t.Error("points differ from one time to the next")
	}
	if b := p.npy(); len(b) != 128+4*21 || !bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (7, 3), }")) {
		t.Errorf("the array begins with %q and has %d bytes", b[:80], len(b))
	}
	if got, want := string(idx(8, []byte{1, 2}, 2)), "\x00\x00\x08\x01\x00\x00\x00\x02\x01\x02"; got != want {
		t.Errorf("the IDX file is %q, not %q", got, want)
	}
	if got := string(table{{1.5, -2}}.csv(",", "\n", "a", "b")); got != "a,b\n1.5,-2\n" {
		t.Errorf("the table is %q", got)
	}
	if got := timeless([]byte(`{"loss": 1, "seconds": 3, "peak_rss_bytes": 7}`)); string(got) != "{\"loss\":1}\n" {
		t.Errorf("without time the record is %q", got)
	}
}

// The exact graph of four points on a line: of 0, 1, 3 and 7, each with its nearest.
func TestExactGraph(t *testing.T) {
	t.Parallel()
	got := exactGraph(table{{0}, {1}, {3}, {7}}, 1)
	want := "map[[0 1]:true [1 0]:true [1 2]:true [2 1]:true [2 3]:true [3 2]:true]"
	if fmt.Sprint(got) != want {
		t.Errorf("the graph is %v, not %s", got, want)
	}
}
