package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeEvaluation writes what cne evaluate --against gives, and returns its path.
func writeEvaluation(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "against.json")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	named = `{"axis": "zbar", "embeddings": [
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

func TestAgainst(t *testing.T) {
	a, b := writeEvaluation(t, first), writeEvaluation(t, second)
	picture := filepath.Join(t.TempDir(), "against.svg")
	var stdout bytes.Buffer
	args := []string{"-o", picture, "-against", "t-SNE=" + a + "," + b, "-against", "UMAP=" + b + "," + b, "n=" + write(t, named) + "," + write(t, named)}
	if err := run(args, &stdout); err != nil {
		t.Fatal(err)
	}
	want := `| zbar | | runs | kNN recall against t-SNE | Spearman against t-SNE | kNN recall against UMAP | Spearman against UMAP |
|---|---|---|---|---|---|---|
| 1e6 | n | 2 | 0.20 ± 0.14 | 0.7000 | 0.3000 | 0.7000 |
| 1e7 | n | 2 | 0.3000 | 0.5000 | 0.3000 | – |
`
	if stdout.String() != want {
		t.Errorf("table\n%swant\n%s", stdout.String(), want)
	}
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kNN recall against t-SNE", "Spearman against UMAP"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
}

func TestAgainstRefuses(t *testing.T) {
	folder, good := write(t, named), writeEvaluation(t, first)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no name":      {[]string{"-against", good, "n=" + folder}, "is not of the form NAME=FILE"},
		"empty":        {[]string{"-against", "", "n=" + folder}, "it is empty"},
		"no file":      {[]string{"-against", "t-SNE=" + folder + "/none", "n=" + folder}, "give a file that cne evaluate --against has written"},
		"not JSON":     {[]string{"-against", "t-SNE=" + writeEvaluation(t, "x"), "n=" + folder}, "is not what cne evaluate -o writes"},
		"too few":      {[]string{"-against", "t-SNE=" + good, "n=" + folder + "," + folder}, "t-SNE has 1 files, but n 2 folders"},
		"two groups":   {[]string{"-against", "t-SNE=" + good, "n=" + folder, "m=" + folder}, "give one NAME=FOLDER,... with -against"},
		"not compared": {[]string{"-against", "t-SNE=" + writeEvaluation(t, strings.ReplaceAll(first, `"against"`, `"other"`)), "n=" + folder}, "does not compare zbar=1e6/embedding.npy with another"},
		"one is missing": {[]string{"-against", "t-SNE=" + writeEvaluation(t, strings.Replace(first, "1e7", "1e8", 1)), "n=" + folder},
			"does not compare zbar=1e7/embedding.npy with another"},
	} {
		if err := run(tt.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}
