package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/internal/rundir"
	"cne/train/quality"
)

// Of more points than are all counted, a run writes and prints estimates with errors,
// cne evaluate and cne spectrum the same ones, and with quality.points=0 there are none.
func TestMoreThanExactPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("measures more than 100 000 points")
	}
	t.Chdir(t.TempDir())
	const n = quality.ExactPoints + 1
	writePoints(t, "points.csv", n, 3)
	flags := []string{"--epochs", "1", "--set", "train.batch_size=4096", "--set", "output.plot=false", "--set", "output.metrics_every=1",
		"--set", "quality.spearman=100", "--set", "quality.points=500"}
	code, stdout, stderr := runCne(t.Context(), short(flags...)...)
	if code != 0 {
		t.Fatal(stderr)
	}
	run := readMetrics(t, "run/metrics.json")
	keys := []string{"knn_recall", "partition_function", "kl", "accuracy"}
	rows := []string{"kNN recall", "partition function", "KL divergence", "kNN accuracy"}
	for i, key := range keys {
		if v, ok := run[key+"_error"].(float64); !ok || !(v > 0) {
			t.Errorf("%s_error is %v", key, run[key+"_error"])
		}
		if line := lineWith(stdout, rows[i]); !strings.Contains(line, " ± ") {
			t.Errorf("%s is printed as %q", key, line)
		}
	}
	text, err := os.ReadFile("run/metrics.jsonl")
	var record map[string]any
	if err != nil || json.Unmarshal(text, &record) != nil || record["partition_function"] != run["partition_function"] || record["kl"] != run["kl"] {
		t.Errorf("metrics.jsonl has %s, metrics.json %v (%v)", text, run, err)
	}

	f := evaluated(t, "run", "--against", "run").Embeddings[0]
	for key, got := range map[string]*float64{
		"knn_recall": f.KNNRecall, "partition_function": f.PartitionFunction, "kl": f.KL, "accuracy": f.Accuracy,
		"knn_recall_error": f.KNNRecallError, "partition_function_error": f.PartitionFunctionError, "kl_error": f.KLError, "accuracy_error": f.AccuracyError,
	} {
		if got == nil || *got != run[key] {
			t.Errorf("%s is %v, but %v in metrics.json", key, got, run[key])
		}
	}
	if f.TrustworthinessError == nil || f.Against.KNNRecallError == nil || f.Against.KNNRecall != 1 {
		t.Errorf("%+v", f)
	}

	code, stdout, stderr = runCne(t.Context(), append(append([]string{"spectrum", "--s", "0"}, short(flags...)[1:]...), "--epochs", "2", "-o", "spectrum")...)
	if code != 0 {
		t.Fatal(stderr)
	}
	file, err := os.Open("spectrum/" + rundir.SpectrumTable)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	table, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		column := slices.Index(table[0], key+"_error")
		if column < 1 || table[0][column-1] != key {
			t.Errorf("spectrum.csv has %v", table[0])
			continue
		}
		if v, err := strconv.ParseFloat(table[1][column], 64); err != nil || !(v > 0) {
			t.Errorf("%s_error is %q", key, table[1][column])
		}
	}
	if strings.Count(stdout, " ± ") != len(keys) {
		t.Errorf("printed: %s", stdout)
	}

	// All are counted.
	exactly := append(short(flags...), "--force", "--set", "quality.points=0", "--set", "quality.kl=false", "--set", "quality.accuracy=false", "--set", "quality.partition=false", "--set", "output.metrics_every=0")
	if code, stdout, stderr = runCne(t.Context(), exactly...); code != 0 {
		t.Fatal(stderr)
	}
	exact := readMetrics(t, "run/metrics.json")
	if off := exact["knn_recall"].(float64) - run["knn_recall"].(float64); exact["knn_recall_error"] != nil || strings.Contains(stdout, "±") || off*off > 16*run["knn_recall_error"].(float64)*run["knn_recall_error"].(float64) {
		t.Errorf("recall of all points %v ± %v, of a sample %v ± %v", exact["knn_recall"], exact["knn_recall_error"], run["knn_recall"], run["knn_recall_error"])
	}
}

// lineWith returns the line of a text that begins with some words.
func lineWith(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, words) {
			return line
		}
	}
	return ""
}
