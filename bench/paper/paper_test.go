package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file into a new folder, and returns the folder.
func write(t *testing.T, name, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return folder
}

func spectrumIn(t *testing.T, text string) string { return write(t, "spectrum.json", text) }

func metricsIn(t *testing.T, lines ...string) string {
	return write(t, "metrics.jsonl", strings.Join(lines, "\n")+"\n")
}

// draw runs a command that draws a picture as well, and returns its table and picture.
func draw(t *testing.T, args ...string) (table, picture string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "picture.svg")
	var stdout bytes.Buffer
	if err := run(t.Context(), append([]string{args[0], "-o", file}, args[1:]...), &stdout); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 {
		t.Fatalf("there is no picture: %v", err)
	}
	return stdout.String(), string(text)
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
	named     = `{"axis": "zbar", "embeddings": [
{"value": "1e6", "z_bar": 1e6, "folder": "zbar=1e6", "knn_recall": 0.9},
{"value": "1e7", "z_bar": 1e7, "folder": "zbar=1e7", "knn_recall": 0.9}]}`
	// In another order than the stops, as a shell gives them.
	first = `{"embeddings": [
{"path": "f/zbar=1e7/embedding.npy", "against": {"knn_recall": 0.3, "spearman": 0.5}},
{"path": "f/zbar=1e6/embedding.npy", "against": {"knn_recall": 0.1, "spearman": 0.7}}]}`
	second = `{"embeddings": [
{"path": "g/zbar=1e6/embedding.npy", "against": {"knn_recall": 0.3, "spearman": 0.7}},
{"path": "g/zbar=1e7/embedding.npy", "against": {"knn_recall": 0.3}}]}`
)

// evaluationIn writes what cne evaluate --against gives, and returns its path.
func evaluationIn(t *testing.T, text string) string {
	return filepath.Join(write(t, "against.json", text), "against.json")
}

func TestSpectra(t *testing.T) {
	a, b := spectrumIn(t, one), spectrumIn(t, two)
	table, picture := draw(t, "spectra", "a="+a+","+b, "b="+a)
	for _, want := range []string{
		"| s | | runs | partition function | kNN recall | Spearman correlation | KL divergence |\n",
		"| 0 | a | 2 | (2.0 ± 1.4)e6 | 0.30 ± 0.14 | 0.3000 | – |\n",
		"| 0 | b | 1 | 1.000e+06 | 0.2000 | 0.3000 | – |\n",
		"| 1 | a | 2 | 3.000e+06 | 0.1000 | 0.4000 | – |\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	for _, want := range []string{">a<", ">b<", "partition function", "kNN recall"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
}

func TestSpectraAgainst(t *testing.T) {
	a, b, n := evaluationIn(t, first), evaluationIn(t, second), spectrumIn(t, named)
	table, picture := draw(t, "spectra", "-against", "t-SNE="+a+","+b, "-against", "UMAP="+b+","+b, "n="+n+","+n)
	want := `| zbar | | runs | kNN recall against t-SNE | Spearman against t-SNE | kNN recall against UMAP | Spearman against UMAP |
|---|---|---|---|---|---|---|
| 1e6 | n | 2 | 0.20 ± 0.14 | 0.7000 | 0.3000 | 0.7000 |
| 1e7 | n | 2 | 0.3000 | 0.5000 | 0.3000 | – |
`
	if table != want {
		t.Errorf("table\n%swant\n%s", table, want)
	}
	for _, want := range []string{"kNN recall against t-SNE", "Spearman against UMAP"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
}

// The axis shows all stops.
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
			g, err := readGroup("a=" + spectrumIn(t, text))
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
	draw(t, "spectra", "a="+spectrumIn(t, small)+","+spectrumIn(t, large))
}

func TestBatches(t *testing.T) {
	folder := filepath.Join(t.TempDir(), `[a] \b*`) // no pattern
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"09-1": `{"epochs": 20, "seconds": {"optimize": 1}}`,
		"09-2": `{"epochs": 20, "seconds": {"optimize": 8}}`,
		"09-3": `{"epochs": 20, "seconds": {"optimize": 2}}`,
		"10-1": `{"epochs": 50, "seconds": {"optimize": 1}}`,
		"10-2": `{"epochs": 50, "seconds": {"optimize": 3}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	table, _ := draw(t, "batches", folder)
	want := "| batch | optimisation of 750 epochs, s |\n|---|---|\n| 2^9 | 75.0 |\n| 2^10 | 30.0 |\n"
	if table != want {
		t.Errorf("table\n%swant\n%s", table, want)
	}
}

func TestRatio(t *testing.T) {
	nc := metricsIn(t, `{"epoch": 1, "phase": 0, "loss": 2, "z": 8}`, `{"epoch": 2, "phase": 0, "loss": 1, "z": 4, "partition_function": 2}`,
		`{"epoch": 3, "phase": 0, "loss": 0.5, "z": 2e7, "partition_function": 5e6}`)
	infonc := metricsIn(t, `{"epoch": 1, "phase": 0, "loss": 2}`, `{"epoch": 2, "phase": 0, "loss": 1, "partition_function": 2}`)
	table, _ := draw(t, "ratio", "-infonc", "other="+infonc, "table="+nc)
	want := "| run | epochs | loss | partition function | Z | partition function / Z |\n|---|---|---|---|---|---|\n" +
		"| other | 2 | 1.000 | 2.000 | – | – |\n| table | 3 | 0.5000 | 5.000e+06 | 2.000e+07 | 0.250 |\n"
	if table != want {
		t.Errorf("table\n%swant\n%s", table, want)
	}
}

// The terms agree with Sec. 5 and 6 of the paper, for q = 1/(1+d²) and c = 1.
func TestTerms(t *testing.T) {
	table, _ := draw(t, "terms")
	rows := 0
	for line := range strings.Lines(table) {
		var d float64
		var got [4]float64
		if n, _ := fmt.Sscanf(line, "| %f | %f | %f | %f | %f |", &d, &got[0], &got[1], &got[2], &got[3]); n != 5 {
			continue
		}
		rows++
		s := d * d
		for i, want := range [4]float64{math.Log(1 + s), math.Log(2 + s), math.Log((1 + s) / s), math.Log((2 + s) / (1 + s))} {
			if math.Abs(got[i]-want) > 6e-5 {
				t.Errorf("at distance %g term %d is %g, want %g", d, i, got[i], want)
			}
		}
	}
	if rows != 12 {
		t.Errorf("the table has %d rows, want 12:\n%s", rows, table)
	}
}

// Corollary 2 of the paper, read off the program's own table.
func TestToy(t *testing.T) {
	table, _ := draw(t, "toy")
	rows := 0
	for line := range strings.Lines(table) {
		var z, partition float64
		if n, _ := fmt.Sscanf(line, "| %f | %f |", &z, &partition); n != 2 {
			continue
		}
		rows++
		if want := min(z, 6); math.Abs(partition/want-1) > 0.01 {
			t.Errorf("at Z̄ = %v the partition function is %v, want %v", z, partition, want)
		}
	}
	if rows != 20 {
		t.Errorf("the table has %d rows, want 20:\n%s", rows, table)
	}
}

func TestRefuses(t *testing.T) {
	good, other, n := spectrumIn(t, one), spectrumIn(t, elsewhere), spectrumIn(t, named)
	against := evaluationIn(t, first)
	neg := metricsIn(t, `{"epoch": 1, "phase": 0, "loss": 2, "partition_function": 2}`)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "give the figure first"},
		{[]string{"fig1"}, "give the figure first"},
		{[]string{"batches"}, "give the folder"},
		{[]string{"batches", filepath.Join(neg, "nowhere")}, "no such file"},
		{[]string{"batches", t.TempDir()}, "measure first"},
		{[]string{"batches", write(t, "a-b.json", "{}")}, "is not named POWER-ROUND.json"},
		{[]string{"batches", write(t, "09.json", "{}")}, "is not named POWER-ROUND.json"},
		{[]string{"batches", write(t, "99-1.json", "{}")}, "is not named POWER-ROUND.json"},
		{[]string{"batches", write(t, "09-1-old.json", "{}")}, "is not named POWER-ROUND.json"},
		{[]string{"batches", write(t, "09-1.json", "{}")}, "09-1.json holds no metrics"},
		{[]string{"batches", write(t, "09-1.json", "x")}, "09-1.json holds no metrics"},
		{[]string{"ratio"}, "at least one NAME=FOLDER"},
		{[]string{"ratio", "folder"}, "is not of the form NAME=FOLDER"},
		{[]string{"ratio", "a=" + filepath.Join(neg, "nowhere")}, "cannot be read"},
		{[]string{"ratio", "a=" + neg}, "has no record of both"},
		{[]string{"spectra"}, "give at least one NAME=FOLDER"},
		{[]string{"spectra", good}, "is not of the form NAME=FOLDER"},
		{[]string{"spectra", "a=" + t.TempDir()}, "give the folder of a finished spectrum"},
		{[]string{"spectra", "a=" + spectrumIn(t, "x")}, "is not what cne spectrum writes"},
		{[]string{"spectra", "a=" + spectrumIn(t, "{}")}, "is not what cne spectrum writes"},
		{[]string{"spectra", "a=" + good + "," + other}, "is not at the values of the others named a"},
		{[]string{"spectra", "a=" + good, "b=" + other}, "a and b are not at the same values"},
		{[]string{"spectra", "-against", against, "n=" + n}, "is not of the form NAME=FILE"},
		{[]string{"spectra", "-against", "", "n=" + n}, "is not of the form NAME=FILE"},
		{[]string{"spectra", "-against", "t-SNE=" + n + "/none", "n=" + n}, "give a file that cne evaluate --against has written"},
		{[]string{"spectra", "-against", "t-SNE=" + evaluationIn(t, "x"), "n=" + n}, "is not what cne evaluate -o writes"},
		{[]string{"spectra", "-against", "t-SNE=" + against, "n=" + n + "," + n}, "t-SNE has 1 files, but n 2 folders"},
		{[]string{"spectra", "-against", "t-SNE=" + against, "n=" + n, "m=" + n}, "give one NAME=FOLDER,... with -against"},
		{[]string{"spectra", "-against", "t-SNE=" + evaluationIn(t, strings.ReplaceAll(first, `"against"`, `"other"`)), "n=" + n},
			"does not compare zbar=1e6/embedding.npy with another"},
		{[]string{"spectra", "-against", "t-SNE=" + evaluationIn(t, strings.Replace(first, "1e7", "1e8", 1)), "n=" + n},
			"does not compare zbar=1e7/embedding.npy with another"},
		{[]string{"terms", "more"}, "it takes flags only"},
		{[]string{"terms", "-o", "terms.gif"}, "terms.gif"},
		{[]string{"toy", "more"}, "it takes flags only"},
		{[]string{"toy", "-epochs", "0"}, "toy: "},
		{[]string{"toy", "-lr", "-1"}, "toy: "},
	} {
		if err := run(t.Context(), tt.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.args, err, tt.want)
		}
	}
}
