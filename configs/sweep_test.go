package configs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeSweep writes a file and returns its path, which is relative.
func writeSweep(t testing.TB, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"sub/sweep.yaml": text, "sub/base.yaml": "train: {epochs: 7}"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return "sub/sweep.yaml"
}

func TestReadSweep(t *testing.T) {
	for name, x := range map[string]struct {
		text   string
		output string
		runs   []string
		check  map[string]string // of the last run
	}{
		"product": {
			"config: base.yaml\nset: {graph.k: 3}\naxes:\n  loss.name: [neg, nc]\n  seed: [4, 5]", "runs/sweep",
			[]string{"loss.name=neg seed=4", "loss.name=neg seed=5", "loss.name=nc seed=4", "loss.name=nc seed=5"},
			map[string]string{"train.epochs": "7", "graph.k": "3", "seed": "5"},
		},
		"listed": {
			"output: there\nruns: [{loss.name: neg, loss.s: 0.5}, {loss.name: nc}]", "there",
			[]string{"loss.name=neg loss.s=0.5", "loss.name=nc loss.s=null"},
			map[string]string{"train.epochs": "750"},
		},
		"listed, with axes": {
			"runs: [{loss.name: umap}, {}]\naxes: {seed: [1, 2]}", "runs/sweep",
			[]string{"loss.name=umap seed=1", "loss.name=umap seed=2", "loss.name=neg seed=1", "loss.name=neg seed=2"}, nil,
		},
		"lists and mappings": {
			"axes:\n  train.phases: [[{epochs: 3, s: 1}], []]\n  data.path: [[a, b], '1 2']", "runs/sweep",
			[]string{"train.phases=[{epochs: 3, s: 1.0}] data.path=[a, b]", "train.phases=[{epochs: 3, s: 1.0}] data.path=[1 2]",
				"train.phases=[] data.path=[a, b]", "train.phases=[] data.path=[1 2]"}, nil,
		},
		"pretraining": {
			"command: simclr pretrain\nset: {train.epochs: 20}\naxes: {loss.negatives: [2, full]}", "runs/sweep",
			[]string{"loss.negatives=2", "loss.negatives=full"}, map[string]string{"train.epochs": "20"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadSweep(t.Context(), writeSweep(t, x.text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Output != x.output || len(s.Runs) != len(x.runs) {
				t.Fatalf("%d runs in %s", len(s.Runs), s.Output)
			}
			for i, want := range x.runs {
				if got := s.Describe(i); got != want {
					t.Errorf("run %d: %s, want %s", i, got, want)
				}
			}
			last := s.Runs[len(s.Runs)-1]
			for k, want := range x.check {
				if last.Values[k] != want {
					t.Errorf("%s is %s, want %s", k, last.Values[k], want)
				}
			}
			// The settings give the run, too, and its folder.
			if dir := last.Settings[len(last.Settings)-1].Value; dir != fmt.Sprintf("%s/%02d", x.output, len(x.runs)-1) {
				t.Errorf("the last run is in %s", dir)
			}
			record := s.Record()
			text, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			read := new(SweepRecord)
			if err := json.Unmarshal(text, read); err != nil || s.Changed(read) != "" {
				t.Errorf("changed: %s (%v)", s.Changed(read), err)
			}
			for k := range record.Runs[0] {
				if _, common := record.Common[k]; common {
					t.Errorf("%s is of all runs and of one", k)
				}
			}
		})
	}
}

func TestSweepHasChanged(t *testing.T) {
	const before = "axes: {seed: [1, 2]}"
	for now, want := range map[string]string{
		before:                                "",
		"set: {device.name: cpu}\n" + before:  "",
		"set: {train.epochs: 3}\n" + before:   "train.epochs of run 00 was 750 and is now 3",
		"axes: {seed: [1, 3]}":                "seed of run 01 was 2 and is now 3",
		"axes: {seed: [1, 2, 3]}":             "it had 2 runs and has now 3",
		"command: simclr pretrain\n" + before: `its command was "cne train" and is now "cne simclr pretrain"`,
	} {
		old, err := ReadSweep(t.Context(), writeSweep(t, before), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ReadSweep(t.Context(), writeSweep(t, now), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Changed(old.Record()); got != want {
			t.Errorf("%s: %s, want %s", now, got, want)
		}
	}
}

// badSweeps are files with the sentence that each must give.
var badSweeps = []struct{ text, want string }{
	{"", `sweep.yaml: the file is empty; give axes, such as "axes: {seed: [0, 1, 2]}", or runs`},
	{"[1]", "sweep.yaml:1: a sweep has keys such as axes, but the file holds a list"},
	{"a: [", "sweep.yaml:1: this is not valid YAML: did not find expected node content"},
	{"{}", `sweep.yaml:1: the file names no runs; give axes, such as "axes: {seed: [0, 1, 2]}", or runs`},
	{"axis: {seed: [1]}", "sweep.yaml:1: axis is not a key of a sweep; did you mean axes?"},
	{"train: {epochs: 3}\naxes: {seed: [1]}", "sweep.yaml:1: train is a key of the runs; write it below set, for all, or below axes, with a list of values"},
	{"axes: [1]", "sweep.yaml:1: axes is a list, but must be a mapping of keys, such as {seed: 1}"},
	{"axes: {seed: 1}", "sweep.yaml:1: axes: seed is 1, but must be a list of values, such as [0, 1, 2]"},
	{"axes: {seed: []}", "sweep.yaml:1: axes: seed is an empty list; give at least one value, or leave the axis out"},
	{"axes: {sed: [1]}", "sweep.yaml:1: sed is not a key; did you mean seed?"},
	{"axes:\n  seed:\n  - 1\n  - x", `sweep.yaml:4: seed is "x", but must be a whole number of at least 0`},
	{"axes: {seed: [1, 1]}", "sweep.yaml: the runs 00 (seed=1) and 01 (seed=1) are the same; keep one of them"},
	{"runs: [{seed: 1}, {loss.name: neg, seed: 1}]", "sweep.yaml: the runs 00 (seed=1 loss.name=neg) and 01 (seed=1 loss.name=neg) are the same; keep one of them"},
	{"axes: {seed: [1]}\nruns: [{seed: 2}]", "sweep.yaml:2: seed is both among axes and in runs; keep it in one of them"},
	{"set: {seed: 1}\naxes: {seed: [1, 2]}", "sweep.yaml:1: seed is set for all runs, but they differ in it; keep it in one place"},
	{"axes: {seed: [1], seed: [2]}", "sweep.yaml:1: seed is given twice, first in line 1; keep one of them"},
	{"runs: []", "sweep.yaml:1: runs is an empty list, but must be a list of runs, such as [{seed: 1}, {seed: 2}]"},
	{"runs: [1]", "sweep.yaml:1: runs: item 1 is 1, but must be a mapping of keys, such as {seed: 1}"},
	{"axes: {output.dir: [a, b]}", "sweep.yaml:1: output.dir is set by the sweep itself, whose runs and their cache are in its output; leave it out"},
	{"axes: {train: [{epochs: 1}]}", "sweep.yaml:1: train is a section; write its keys with a full stop, such as train.epochs"},
	{"command: evaluate\naxes: {seed: [1]}", `sweep.yaml:1: command is "evaluate", but must be train or simclr pretrain`},
	{"command: simclr pretrain\naxes: {graph.k: [1, 2]}", `sweep.yaml:2: graph.k is a key of "cne train", but this is a configuration of "cne simclr pretrain"`},
	{"config: 3\naxes: {seed: [1]}", "sweep.yaml:1: config is 3, but must be the path of a configuration"},
	{"config: none.yaml\naxes: {seed: [1]}", "cannot read the configuration: open sub/none.yaml"},
	{"axes: {loss.name: [nc], loss.s: [0, 1]}", "sweep.yaml:1: loss.s"},
	{"axes: {seed: [" + strings.Repeat("1,", 1000) + "], graph.k: [" + strings.Repeat("1,", 1000) + "]}", "sweep.yaml: these are more than 100000 runs; make several sweeps of them"},
}

func TestBadSweeps(t *testing.T) {
	for _, x := range badSweeps {
		_, err := ReadSweep(t.Context(), writeSweep(t, x.text), nil)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.60q:\n got %v\nwant %s", x.text, err, x.want)
		}
	}
}

func FuzzReadSweep(f *testing.F) {
	for _, x := range badSweeps {
		f.Add(x.text)
	}
	f.Add("runs: [{loss.name: umap}, {}]\naxes: {seed: [1, 2]}")
	f.Add("a: &a {seed: 1}\nruns: [*a, *a]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSweep("sweep.yaml", []byte(text))
		if err != nil {
			return
		}
		if len(s.Runs) == 0 || len(s.Runs) > mostRuns {
			t.Fatalf("%d runs", len(s.Runs))
		}
	})
}
