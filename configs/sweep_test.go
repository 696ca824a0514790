package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cne/internal/kind"
)

// writeSweep writes a file and returns its path, which is relative.
func writeSweep(t testing.TB, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"sub/sweep.yaml": text, "sub/base.yaml": "train: {epochs: 7}"} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	return "sub/sweep.yaml"
}

func TestReadSweep(t *testing.T) {
	for name, x := range map[string]struct {
		text   string
		output string
		runs   []string
		epochs int // of the last run
	}{
		"product": {
			"config: base.yaml\nset: {graph.k: 3}\naxes:\n  loss.name: [neg, nc]\n  seed: [4, 5]", "runs/sweep",
			[]string{"loss.name=neg seed=4", "loss.name=neg seed=5", "loss.name=nc seed=4", "loss.name=nc seed=5"},
			7,
		},
		"listed": {
			"output: there\nruns: [{loss.name: neg, loss.s: 0.5}, {loss.name: nc}]", "there",
			[]string{"loss.name=neg loss.s=0.5", "loss.name=nc"},
			138,
		},
		"listed, with axes": {
			"runs: [{loss.name: umap}, {}]\naxes: {seed: [1, 2]}", "runs/sweep",
			[]string{"loss.name=umap seed=1", "loss.name=umap seed=2", "seed=1", "seed=2"}, 300,
		},
		"lists and mappings": {
			"axes:\n  train.phases: [[{epochs: 3, s: 1}], []]\n  data.path: [[a, b], '1 2']", "runs/sweep",
			[]string{"train.phases=[{epochs: 3, s: 1}] data.path=[a, b]", "train.phases=[{epochs: 3, s: 1}] data.path=1 2",
				"train.phases=[] data.path=[a, b]", "train.phases=[] data.path=1 2"}, 300,
		},
		"pretraining": {
			"command: simclr pretrain\nset: {train.epochs: 20}\naxes: {loss.negatives: [2, full]}", "runs/sweep",
			[]string{"loss.negatives=2", "loss.negatives=full"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := need(ReadSweep(t.Context(), writeSweep(t, x.text), nil))(t)
			if s.Output != x.output || len(s.Runs) != len(x.runs) {
				t.Fatalf("%d runs in %s", len(s.Runs), s.Output)
			}
			for i, want := range x.runs {
				if got := s.Describe(i); got != want {
					t.Errorf("run %d: %s, want %s", i, got, want)
				}
			}
			c, _, err := Train.Load(&Sources{File: s.Config, Settings: s.Runs[len(s.Runs)-1]})
			if s.Command == Pretrain.Command() {
				return
			}
			if err != nil || c.Embed.Epochs != x.epochs || c.Output.Dir != fmt.Sprintf("%s/%02d", x.output, len(x.runs)-1) {
				t.Errorf("the last run has %d epochs in %s, %v", c.Embed.Epochs, c.Output.Dir, err)
			}
		})
	}
}

// A run that was begun with another configuration is refused, unless it differs in what
// may differ between machines.
func TestSweepHasChanged(t *testing.T) {
	const before = "axes: {seed: [1, 2]}"
	for now, want := range map[string]string{
		before:                                "",
		"set: {device.name: cpu}\n" + before:  "",
		"set: {log.format: json}\n" + before:  "",
		"set: {train.epochs: 900}\n" + before: "sweep.yaml: train.epochs: got 900 for run 01 in runs/sweep, want 300 as before, or another output",
		"set: {data.path: a.npy}\n" + before:  "data.path: got",
		"axes: {seed: [1, 3]}":                "seed: got 3 for run 01 in runs/sweep, want 2",
		"axes: {seed: [1, 2, 3]}":             "",
	} {
		s := need(ReadSweep(t.Context(), writeSweep(t, before), nil))(t)
		c := loaded(Train.Load(&Sources{Settings: s.Runs[1]}))(t)
		path := writeSweep(t, now)
		must(t, os.MkdirAll(s.RunDir(1), 0o777))
		f, err := os.Create(s.RunDir(1) + "/config.yaml")
		must(t, errors.Join(err, Train.Write(f, c), f.Close()))
		if _, err := ReadSweep(t.Context(), path, nil); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", now, err, want)
		}
	}
}

// A folder that holds other things, and no lock file, does not belong to a sweep.
func TestSweepOutput(t *testing.T) {
	for files, want := range map[string]string{
		"":                                     "",
		"out/00/x out/00.done out/cache/x":     "",
		"out/00.lock out/report.csv out/a.png": "",
		"out/100.lock out/a.lock":              "",
		"out/00/x out/report.csv":              `sub/sweep.yaml: output: got out, which holds "report.csv", want a new folder or a sweep's`,
		"out/a.lock":                           `sub/sweep.yaml: output: got out, which holds "a.lock", want a new folder or a sweep's`,
		"out":                                  `sub/sweep.yaml: output: got "out", want a folder (`,
	} {
		path := writeSweep(t, "output: out\naxes: {seed: [1, 2]}")
		for _, name := range strings.Fields(files) {
			must(t, os.MkdirAll(filepath.Dir(name), 0o777))
			must(t, os.WriteFile(name, nil, 0o666))
		}
		if _, err := ReadSweep(t.Context(), path, nil); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", files, err, want)
		}
	}
}

// badSweeps are files with the sentence that each must give.
var badSweeps = []struct{ text, want string }{
	{"", "sweep.yaml: got no runs"},
	{"[1]", `sub/sweep.yaml:1: the file: got a list, want a mapping of keys, such as {seed: 1}`},
	{"a: [", "sweep.yaml:1: invalid YAML: did not find expected node content"},
	{"{}", `sweep.yaml: got no runs, want axes, such as "axes: {seed: [0, 1, 2]}", or runs`},
	{"axis: {seed: [1]}", `sub/sweep.yaml:1: axis: unknown key, want command, config, set, output, axes or runs; keys of runs go below set or axes`},
	{"axes: [1]", `sub/sweep.yaml:1: axes: got a list, want a mapping of keys, such as {seed: 1}`},
	{"axes: {seed: []}", "sweep.yaml: got no runs"},
	{"axes: {sed: [1]}", `sub/sweep.yaml:1: sed: unknown key; did you mean seed?`},
	{"axes:\n  seed:\n  - 1\n  - x", `sub/sweep.yaml:4: seed: got "x", want a whole number of at least 0`},
	{"axes: {seed: [1], seed: [2]}", `sub/sweep.yaml:1: seed: given twice, first in line 1`},
	{"runs: []", "sweep.yaml: got no runs"},
	{"runs: [1]", `sub/sweep.yaml:1: a run: got 1, want a mapping of keys, such as {seed: 1}`},
	{"axes: {seed: [0, 1, 1]}", "sweep.yaml: the runs 01 (seed=1) and 02 (seed=1) are equal"},
	{"runs: [{seed: 1}, {loss.name: infonc, seed: 1}]", "sweep.yaml: the runs 00 (seed=1) and 01 (seed=1 loss.name=infonc) are equal"},
	{"runs: [{}, {loss.name: infonc}]", "sweep.yaml: the runs 00 (no key) and 01 (loss.name=infonc) are equal"},
	{"axes: {output.dir: [a, b]}", `sub/sweep.yaml:1: output.dir: set by the sweep itself; leave it out`},
	{"axes: {train: [{epochs: 1}]}", `sub/sweep.yaml:1: train: got a section, want one of its keys, such as train.epochs`},
	{"command: evaluate\naxes: {seed: [1]}", `sub/sweep.yaml: command: got "cne evaluate", want train or simclr pretrain`},
	{"command: simclr pretrain\naxes: {graph.k: [1, 2]}", `sub/sweep.yaml:2: graph.k: a key of "cne train", not of "cne simclr pretrain"`},
	{"config: [3]\naxes: {seed: [1]}", `sub/sweep.yaml:1: config: got a list, want text`},
	{"axes: {seed: [08, 010, 8]}", "sweep.yaml: the runs 00 (seed=08) and 02 (seed=8) are equal"},
	{"config: none.yaml\naxes: {seed: [1]}", "cannot read the configuration: open sub/none.yaml"},
	{"axes: {loss.name: [nc], loss.s: [0, 1]}", "sweep.yaml:1: loss.s"},
	{"axes: {seed: [" + strings.Repeat("1,", 1000) + "], graph.k: [" + strings.Repeat("1,", 1000) + "]}", "sweep.yaml: got more than 100000 runs, want at most as many; make several sweeps"},
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
		defer kind.Catch(new(error)) // most texts are refused
		s := parseSweep("sweep.yaml", []byte(text))
		if len(s.Runs) == 0 || len(s.Runs) > mostRuns {
			t.Fatalf("%d runs", len(s.Runs))
		}
	})
}
