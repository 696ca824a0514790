package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runText is a metrics.json with figures put in for RECALL and SEED.
const runText = `{"knn_recall": RECALL, "spearman": 0.34, "partition_function": 1.83e8, "kl": 5.082, "loss": 1.05,
"accuracy": 0.968, "n": 70000, "edges": 1499592, "epochs": 750,
"seconds": {"load": 1, "pca": 2, "graph": 3, "optimize": 30, "quality": 4, "total": 40},
"peak_rss_bytes": 300000000, "seed": SEED, "version": "0.1.0"}`

func writeRun(t *testing.T, root, name, text string) {
	t.Helper()
	folder := filepath.Join(root, name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "metrics.json"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func withFigures(recall, seed string) string {
	return strings.NewReplacer("RECALL", recall, "SEED", seed).Replace(runText)
}

// The figures of held-out points have columns where there are such points.
func TestTableOfHeldOut(t *testing.T) {
	root := t.TempDir()
	writeRun(t, root, "table-0", withFigures("0.1", "0"))
	writeRun(t, root, "mlp-0", strings.Replace(withFigures("0.1", "0"), `"loss"`, `"holdout": {"n": 9, "accuracy": 0.9, "knn_recall": 0.05}, "loss"`, 1))
	var stdout, stderr bytes.Buffer
	if err := run([]string{root}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| loss per edge | held-out recall | held-out accuracy | optimisation, s |", "| 1.050 | 0.05000 | 0.9000 | 30.00 |", "| 1.050 | – | – | 30.00 |"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &stdout)
		}
	}
}

func TestTable(t *testing.T) {
	root := t.TempDir()
	writeRun(t, root, "umap-0", withFigures("0.1080", "0"))
	writeRun(t, root, "umap-1", strings.Replace(withFigures("0.1090", "1"), `"graph": 3`, `"graph": 5`, 1))
	writeRun(t, root, "umap-2", strings.Replace(withFigures("0.1100", "2"), `"kl": 5.082`, `"kl": 5.087`, 1))
	writeRun(t, root, "infonce-m1-7", withFigures("null", "7"))
	writeRun(t, root, "nc-s1", strings.Replace(withFigures("0.11", "0"), `"kl": 5.082`, `"z": 4.02e7`, 1)) // no seed in its name
	if err := os.Mkdir(filepath.Join(root, "interrupted-0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "notes.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}

	var stdout, stderr bytes.Buffer
	if err := run([]string{root}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	want := `| run | runs | partition function | kNN recall | Spearman | KL divergence | kNN accuracy | learnt Z | loss per edge | optimisation, s |
|---|---|---|---|---|---|---|---|---|---|
| infonce-m1 | 1 | 1.830e+08 | – | 0.3400 | 5.082 | 0.9680 | – | 1.050 | 30.00 |
| nc-s1 | 1 | 1.830e+08 | 0.1100 | 0.3400 | – | 0.9680 | 4.020e+07 | 1.050 | 30.00 |
| umap | 3 | 1.830e+08 | 0.1090 ± 0.0010 | 0.3400 | 5.0837 ± 0.0029 | 0.9680 | – | 1.050 | 30.00 |

Mean ± standard deviation of the sample over the runs of a row; NumPy's, of the population, is √(1−1/n) times this for n runs (0.82 for 3). Points: 70000; directed edges: 1499592; epochs: 750; cne 0.1.0. Beside the optimisation, a run spent at most 1.0 s on reading, 2.0 s on principal components, 5.0 s on the graph and 4.0 s on these figures. Memory: 300 MB at most.
`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := stderr.String(), "summarise: "+filepath.Join(root, "interrupted-0")+" has no metrics.json and is left out\n"; got != want {
		t.Errorf("on standard error %q, want %q", got, want)
	}
}

// TestDifferentRuns has runs that do not have the same size: the line below the
// table says so.
func TestDifferentRuns(t *testing.T) {
	root := t.TempDir()
	writeRun(t, root, "a-0", withFigures("0.1", "0"))
	writeRun(t, root, "a-1", strings.Replace(withFigures("0.1", "1"), `"epochs": 750`, `"epochs": 7`, 1))
	var stdout bytes.Buffer
	if err := run([]string{root}, &stdout, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if want := "epochs: 750, 7;"; !strings.Contains(stdout.String(), want) {
		t.Errorf("%q is not in\n%s", want, stdout.String())
	}
}

// With names there is a row for each of them, in their order, and for no other.
func TestNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a-0", "a-1", "a-long-0", "b-0", "c-0"} {
		writeRun(t, root, name, withFigures("0.1", name[len(name)-1:]))
	}
	writeRun(t, root, "broken-0", "no metrics")
	if err := os.Mkdir(filepath.Join(root, "unfinished-0"), 0o777); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := run([]string{root, "b", "a"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(stdout.String()) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) > 2 {
			rows = append(rows, cells[0]+" "+cells[1])
		}
	}
	if want := []string{"| run runs", "| b 1", "| a 2"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if stderr.Len() > 0 {
		t.Errorf("it says %q of runs that were not asked for", stderr.String())
	}
	if err := run([]string{root, "a", "d"}, &bytes.Buffer{}, &stderr); !errors.Is(err, errNoRuns) || !strings.Contains(err.Error(), "d-SEED") {
		t.Errorf("error %v for a name without runs", err)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		cause            error
	}{
		{"cut off", `{"n": 3`, "metrics.json: not the metrics of a run (unexpected end of JSON input); remove the run's folder and run it again", errMetrics},
		{"empty", ``, "not the metrics of a run (unexpected end of JSON input)", errMetrics},
		{"a list", `[]`, "not the metrics of a run (json: cannot unmarshal array", errMetrics},
		{"no points", strings.Replace(withFigures("1", "0"), `"n": 70000`, `"n": 0`, 1), "(it says nothing of n)", errMetrics},
		{"no epochs", strings.Replace(withFigures("1", "0"), `"epochs": 750,`, ``, 1), "(it says nothing of epochs)", errMetrics},
		{"no loss", strings.Replace(withFigures("1", "0"), `"loss": 1.05,`, ``, 1), "(it says nothing of loss)", errMetrics},
		{"another file", `{}`, "(it says nothing of n)", errMetrics},
		{"negative seed", withFigures("1", "-1"), "not the metrics of a run (json: cannot unmarshal number -1", errMetrics},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			writeRun(t, root, "a-0", c.text)
			err := run([]string{root}, &bytes.Buffer{}, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.cause) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), filepath.Join("a-0", "metrics.json")) {
				t.Errorf("the error %q does not name the file", err)
			}
		})
	}
}

func TestBadArguments(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		args  []string
		want  string
		cause error
	}{
		{nil, "give the folder that holds the run folders", nil},
		{[]string{filepath.Join(empty, "nowhere")}, "cannot read the folder of runs: ", fs.ErrNotExist},
		{[]string{empty}, empty + ": no folder in it has a metrics.json; give the folder that holds the run folders", errNoRuns},
	} {
		var stdout bytes.Buffer
		err := run(c.args, &stdout, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
		if stdout.Len() > 0 {
			t.Errorf("%q: printed %q", c.args, stdout.String())
		}
	}
}

// FuzzParseMetrics looks for texts that get through and cannot be shown.
func FuzzParseMetrics(f *testing.F) {
	f.Add([]byte(withFigures("0.1", "0")))
	f.Add([]byte(withFigures("1e308", "1")))
	f.Add([]byte(`{"n":1,"edges":1,"epochs":1,"loss":-1e-300,"seconds":{"total":5e-324},"version":"v"}`))
	f.Add([]byte(`{"seconds": 3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMetrics(text)
		if err != nil {
			if !errors.Is(err, errMetrics) {
				t.Errorf("error %v is not errMetrics", err)
			}
			return
		}
		var b bytes.Buffer
		if err := writeTable(&b, []Group{{"name", []Metrics{*m, *m}}}); err != nil {
			t.Fatal(err)
		}
		want := len(columns) + 3
		for _, c := range columns {
			if c.value(m) == nil {
				want--
			}
		}
		for _, line := range strings.SplitN(b.String(), "\n", 4)[:3] {
			if strings.Count(line, "|") != want {
				t.Errorf("%q does not have %d columns", line, want-1)
			}
		}
	})
}
