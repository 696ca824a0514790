package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func TestFollow(t *testing.T) {
	const log = `{"level":"INFO","msg":"read the points","points":3}
{"level":"INFO","msg":"computing principal components","from":784,"to":50}
{"level":"WARN","msg":"all alike"}
{"level":"INFO","msg":"searching the nearest neighbours"}
{"level":"INFO","msg":"computing the initial positions","from":"groups of neighbours"}
{"level":"INFO","msg":"training starts"}
{"level":"INFO","msg":"epoch"}
panic: not JSON
{"level":"INFO","msg":"training ends"}
`
	var got []string
	var stderr bytes.Buffer
	follow(strings.NewReader(log), func(phase string) { got = append(got, phase) }, &stderr)
	if !reflect.DeepEqual(got, phases[1:]) {
		t.Errorf("phases %q, want %q", got, phases[1:])
	}
	if s := stderr.String(); !strings.Contains(s, "all alike") || !strings.Contains(s, "panic: not JSON") || strings.Contains(s, "epoch") {
		t.Errorf("passed on: %q", s)
	}
}

func TestRow(t *testing.T) {
	r := &result{peak: map[string]int64{"load": 3e6, "graph": 1.25e9}}
	const metrics = `{"n": 10000, "graph_recall": 0.98765, "accuracy": 0.9, "peak_rss_bytes": 1300000000,
		"seconds": {"load": 0.1, "pca": 0.2, "graph": 3, "start": 0.1, "optimize": 4, "quality": 0.4, "total": 8}}`
	if err := json.Unmarshal([]byte(metrics), r); err != nil {
		t.Fatal(err)
	}
	const want = "| 10000 | 0.1 s, 3 MB | 0.2 s | 3.0 s, 1250 MB | 0.1 s | 4.0 s | 0.6 s | 8.0 s, 1300 MB | 0.9877 | 0.9000 |"
	if got := r.row(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if strings.Count(want, "|") != strings.Count(heading, "|")/2 {
		t.Error("the row has other columns than the heading")
	}
}

// A watch sees what this process holds in a phase, and forgets it in the next.
func TestWatch(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is known only on Linux")
	}
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("this kernel does not forget what a process held")
	}
	w := watch{process: os.Getpid(), peak: map[string]int64{}}
	w.begin("small")
	w.begin("large")
	held := bytes.Repeat([]byte{1}, 256<<20)
	w.begin("after")
	w.look()
	if runtime.KeepAlive(held); w.peak["large"] < 256<<20 || w.peak["small"] >= w.peak["large"] {
		t.Errorf("peaks %v, want one of 256 MiB", w.peak)
	}
}

func TestFaults(t *testing.T) {
	for args, want := range map[string]string{"1e6": `"1e6" is no number`, "10": `"10" is no number`, "1000": "run this in the folder bench"} {
		t.Chdir(t.TempDir())
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// A table of two sizes, with stand-ins for the programs: data are made once, and cne
// gets them, the configuration and a folder. (CI runs the programs themselves.)
func TestTable(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the stand-ins are shell scripts")
	}
	programs, out := t.TempDir(), filepath.Join(t.TempDir(), "growth")
	for name, script := range map[string]string{
		"deformed-mnist": `echo "made $*" >&2
			for folder do :; done # the last
			mkdir -p "$folder" && >"$folder/labels.npy"`,
		"cne": `for folder do :; done
			mkdir "$folder" && printf %s "$*" >"$folder/arguments"
			echo '{"level":"WARN","msg":"all alike"}' >&2
			echo '{"level":"INFO","msg":"training starts"}' >&2
			echo '{"n": 5, "accuracy": 0.5, "seconds": {"load": 1, "graph": 2, "optimize": 3, "total": 7}}' >"$folder/metrics.json"`,
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(out, "images-2000")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "labels.npy"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	g := grower{programs: programs, out: out, config: "some.yaml", images: true, stderr: &stderr}
	if err := g.table(t.Context(), []string{"1000", "2000"}, &stdout); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	const row = "| 5 | 1.0 s | 0.0 s | 2.0 s | 0.0 s | 3.0 s | 1.0 s | 7.0 s |  | 0.5000 |\n"
	if got := regexp.MustCompile(`, \d+ MB`).ReplaceAllString(stdout.String(), ""); got != heading+row+row {
		t.Errorf("printed %s", &stdout)
	}
	if got := stderr.String(); strings.Count(got, "all alike") != 2 || strings.Count(got, "made ") != 1 ||
		!strings.Contains(got, "made 1000 1 "+filepath.Join(out, "images-1000")+"\n") {
		t.Errorf("the programs said %s", got)
	}
	got, err := os.ReadFile(filepath.Join(folder, "run", "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"train --force ", " --config some.yaml ", " data.path=" + filepath.Join(folder, "images.npy") + " ",
		" data.labels=" + filepath.Join(folder, "labels.npy") + " ", " --output " + filepath.Join(folder, "run")} {
		if !strings.Contains(string(got), want) {
			t.Errorf("cne was called with %q, without %q", got, want)
		}
	}
}
