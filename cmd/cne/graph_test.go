package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
)

// reweigh writes a graph's file again, with other weights.
func reweigh(t *testing.T, from, to string, weight func(e int) float32) {
	t.Helper()
	old, err := zip.OpenReader(from)
	must(t, err)
	defer old.Close()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range old.File {
		r, err := f.Open()
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		if f.Name == "data.npy" {
			values := content[bytes.IndexByte(content, '\n')+1:]
			for e := range len(values) / 4 {
				binary.LittleEndian.PutUint32(values[4*e:], math.Float32bits(weight(e)))
			}
		}
		w, err := z.Create(f.Name)
		must(t, err)
		_, err = w.Write(content)
		must(t, err)
	}
	must(t, z.Close())
	writeTestFile(t, to, b.String())
}

// The weights of a graph of one's own take no part, which is said of unequal ones, unless
// edges are to be drawn by them; those that are no finite numbers are refused.
func TestGraphWeights(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTable(t, "x.csv", 60, "", "01234", 0)
	trainTable(t, "--set", "data.path=x.csv")
	want := readText(t, "run/embedding.npy")
	const warning = "warning: graph.file has edges of different weights, which count as equal"
	for name, weight := range map[string]func(e int) float32{
		"ones":    func(int) float32 { return 1 },
		"halves":  func(int) float32 { return 0.5 },
		"unequal": func(e int) float32 { return float32(e%1001) - 500.5 },
	} {
		reweigh(t, "run/graph.npz", "g.npz", weight)
		stderr := trainTable(t, "--set", "data.path=x.csv", "--set", "graph.file=g.npz", "-o", "own")
		if got := readText(t, "own/embedding.npy"); got != want {
			t.Errorf("%s: the embedding is another", name)
		}
		if n := strings.Count(stderr, warning); n != map[bool]int{true: 1}[name == "unequal"] {
			t.Errorf("%s: %d warnings in %q", name, n, stderr)
		}
		stderr = trainTable(t, "--set", "data.path=x.csv", "--set", "graph.file=g.npz", "--set", "graph.weights=sample", "-o", "drawn")
		if got := readText(t, "drawn/embedding.npy"); (got != want) != (name == "unequal") || strings.Contains(stderr, "equal weights") == (name == "unequal") {
			t.Errorf("%s: drawn by weight, the embedding is another: %t, %q", name, got != want, stderr)
		}
		if _, _, stderr := evaluateRun(t, "run/embedding.npy", "--graph", "g.npz"); strings.Contains(stderr, warning) != (name == "unequal") {
			t.Errorf("%s: cne evaluate says %q", name, stderr)
		}
	}
	trainTable(t, "--set", "data.path=x.csv", "--set", "graph.weights=sample", "-o", "umap")
	trainTable(t, "--set", "data.path=x.csv", "--set", "graph.weights=sample", "--set", "graph.file=umap/graph.npz", "-o", "same")
	if got := readText(t, "umap/embedding.npy"); got == want || got != readText(t, "same/embedding.npy") {
		t.Errorf("drawn by UMAP's weights: as without them: %t, or otherwise than by those of the run's graph.npz", got == want)
	}
	for fault, v := range map[string]float64{"is NaN or infinite": math.NaN(), "NaN or infinite": math.Inf(1), "entries other than 0": 0} {
		reweigh(t, "run/graph.npz", "g.npz", func(e int) float32 {
			if v == 0 || e == 7 {
				return float32(v)
			}
			return 1
		})
		code, _, stderr := runCne(t.Context(), "train", "--set", "data.path=x.csv", "--set", "graph.file=g.npz", "-o", "no")
		if code != 1 || !strings.Contains(stderr, "g.npz") || !strings.Contains(stderr, fault) {
			t.Errorf("weight %v: exit code %d, %q", v, code, stderr)
		}
	}
}
