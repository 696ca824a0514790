package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "spectrum.json"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return folder
}

const (
	one = `{"axis": "s", "embeddings": [
{"value": "0", "z_bar": 1e6, "partition_function": 1e6, "knn_recall": 0.2, "spearman": 0.3},
{"value": "1", "z_bar": 1e7, "partition_function": 3e6, "knn_recall": 0.1, "spearman": 0.4}]}`
	two = `{"axis": "s", "embeddings": [
{"value": "0", "z_bar": 1e6, "partition_function": 3e6, "knn_recall": 0.4, "spearman": 0.3},
{"value": "1", "z_bar": 1e7, "partition_function": 3e6, "knn_recall": 0.1, "spearman": 0.4}]}`
	elsewhere = `{"axis": "s", "embeddings": [{"value": "0"}, {"value": "2"}]}`
	negatives = `{"axis": "m", "embeddings": [{"value": "5", "knn_recall": 0.1, "partition_function": 5}, {"value": "full", "knn_recall": 0.4, "partition_function": 4}]}`
)

func TestTable(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "curves.svg")
	var stdout bytes.Buffer
	if err := run([]string{"-o", picture, "a=" + write(t, one) + "," + write(t, two), "b=" + write(t, one)}, &stdout); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| s | | runs | partition function | kNN recall | Spearman correlation | KL divergence |\n",
		"| 0 | a | 2 | (2.0 ± 1.4)e6 | 0.30 ± 0.14 | 0.3000 | – |\n",
		"| 0 | b | 1 | 1.000e+06 | 0.2000 | 0.3000 | – |\n",
		"| 1 | a | 2 | 3.000e+06 | 0.1000 | 0.4000 | – |\n",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, stdout.String())
		}
	}
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">a<", ">b<", "partition function", "kNN recall"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
}

// Stops stand where the axis can show all of them.
func TestAxis(t *testing.T) {
	for name, tt := range map[string]struct {
		texts       []string
		label       string
		logarithmic bool
		x           []float64
	}{
		"Z̄":           {[]string{one, two}, "Z̄", true, []float64{1e6, 1e7}},
		"a word":       {[]string{negatives}, "m: 5, full", false, []float64{1, 2}},
		"values":       {[]string{elsewhere}, "s", false, []float64{0, 2}},
		"some have Z̄": {[]string{one, `{"axis": "s", "embeddings": [{"value": "0", "z_bar": 1e6}, {"value": "1"}]}`}, "s", false, []float64{0, 1}},
	} {
		var groups []group
		for _, text := range tt.texts {
			g, err := readGroup("a=" + write(t, text))
			if err != nil {
				t.Fatal(err)
			}
			groups = append(groups, g)
		}
		place, label, logarithmic := abscissa(groups)
		if label != tt.label || logarithmic != tt.logarithmic {
			t.Errorf("%s: axis %q, logarithmic: %v", name, label, logarithmic)
		}
		for i, want := range tt.x {
			if got := place(&groups[0].runs[0], i); got != want {
				t.Errorf("%s: stop %d stands at %v, want %v", name, i, got, want)
			}
		}
	}
}

// A deviation as large as the mean has no bar on a logarithmic axis, and does
// not keep the picture from being drawn.
func TestLargeDeviation(t *testing.T) {
	small := `{"axis": "s", "embeddings": [{"value": "0", "partition_function": 1}, {"value": "1", "partition_function": 5}]}`
	large := `{"axis": "s", "embeddings": [{"value": "0", "partition_function": 1e9}, {"value": "1", "partition_function": 6}]}`
	picture := filepath.Join(t.TempDir(), "curves.png")
	if err := run([]string{"-o", picture, "a=" + write(t, small) + "," + write(t, large)}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
}

func TestRefuses(t *testing.T) {
	good := write(t, one)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "give at least one NAME=FOLDER"},
		"no name":        {[]string{good}, "is not of the form NAME=FOLDER"},
		"no spectrum":    {[]string{"a=" + t.TempDir()}, "give the folder of a finished spectrum"},
		"not JSON":       {[]string{"a=" + write(t, "x")}, "is not what cne spectrum writes"},
		"empty":          {[]string{"a=" + write(t, "{}")}, "is not what cne spectrum writes"},
		"other values":   {[]string{"a=" + good + "," + write(t, elsewhere)}, "is not at the values of the others named a"},
		"other spectrum": {[]string{"a=" + good, "b=" + write(t, elsewhere)}, "a and b are not at the same values"},
	} {
		if err := run(tt.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
