package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// write10X writes a folder of 10x with cells of three kinds, from the first one
// given by from on, whose kinds they are by turns. Genes 0 to 29 tell them
// apart, and ten more are in every cell.
func write10X(t *testing.T, folder string, from, cells int) {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o777))
	var entries, barcodes, features strings.Builder
	n := 0
	for i := range cells {
		for g := range 40 {
			draw := ((from+i)*7919 + g*104729) % 1000
			v := 1 + draw%5
			switch {
			case g >= 30:
			case g%3 == (from+i)%3 && draw < 800:
				v += 4
			case draw >= 200:
				continue
			}
			n++
			fmt.Fprintf(&entries, "%d %d %d\n", g+1, i+1, v)
		}
		fmt.Fprintf(&barcodes, "cell-%d\n", from+i)
	}
	for g := range 40 {
		fmt.Fprintf(&features, "ENSG%d\tgene%d\tGene Expression\n", g, g)
	}
	writeTestFile(t, folder+"/matrix.mtx", fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer general\n%%\n40 %d %d\n%s", cells, n, entries.String()))
	writeTestFile(t, folder+"/barcodes.tsv", barcodes.String())
	writeTestFile(t, folder+"/features.tsv", features.String())
	var kinds strings.Builder
	for i := range cells {
		fmt.Fprintln(&kinds, animal(from+i))
	}
	writeTestFile(t, folder+".txt", kinds.String())
}

func countsRun(more ...string) []string {
	return append([]string{"train", "--set", "data.path=cells", "--set", "data.labels=cells.txt", "--set", "data.genes=20", "--set", "graph.k=5",
		"--set", "train.batch_size=64", "--epochs", "20", "-o", "run"}, more...)
}

// Counts become points, and so do those that are held out, by either model; new
// ones are placed as they are.
func TestCounts(t *testing.T) {
	mlp := []string{"--set", "model.kind=mlp", "--set", "model.hidden=[20]", "--set", "train.lr=0.02"}
	for name, flags := range map[string][]string{
		"table":          {"--set", "data.holdout=held", "--set", "data.holdout_labels=held.txt", "--set", "model.keep_data=true"},
		"mlp":            append(mlp, "--set", "data.holdout=held", "--set", "data.holdout_labels=held.txt"),
		"mlp, PCA":       append(mlp, "--set", "data.holdout=held", "--set", "data.holdout_labels=held.txt", "--set", "model.input=pca", "--set", "graph.pca=10", "--set", "data.scale=standard"),
		"table, a share": {"--set", "data.holdout=0.2", "--set", "data.imbalance=linear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write10X(t, "cells", 0, 240)
			write10X(t, "held", 240, 60)
			code, _, stderr := runCne(t.Context(), countsRun(flags...)...)
			if code != 0 || !strings.Contains(stderr, "made points of the counts genes=20 of=40 median_library_size=") || !strings.Contains(stderr, "width=20") {
				t.Fatal(code, stderr)
			}
			if held := heldMetrics(t); held["accuracy"].(float64) < 0.9 {
				t.Errorf("metrics %v", held)
			}
			if strings.Contains(name, "share") {
				if rows := len(rowsIn(t, "run/rows.csv")) + len(rowsIn(t, "run/holdout_rows.csv")); rows != 80+53+26 {
					t.Errorf("%d rows", rows)
				}
				return
			}
			code, stdout, stderr := runCne(t.Context(), "project", "-m", "run", "held", "-o", "again.npy")
			if code != 0 || readText(t, "again.npy") != readText(t, "run/holdout.npy") || !strings.Contains(stdout, "60 points placed") {
				t.Errorf("exit code %d, %s; or other positions", code, stderr)
			}
			// The file alone has no names, and the same genes.
			code, _, stderr = runCne(t.Context(), "project", "-m", "run", "held/matrix.mtx", "-o", "file.npy")
			if code != 0 || readText(t, "file.npy") != readText(t, "run/holdout.npy") {
				t.Errorf("exit code %d, %s; or other positions", code, stderr)
			}
		})
	}
}

// Cells without counts are told of, and so are genes that are too few.
func TestCountsWarns(t *testing.T) {
	t.Chdir(t.TempDir())
	write10X(t, "cells", 0, 60)
	text := strings.Replace(readText(t, "cells/matrix.mtx"), "40 60 ", "40 62 ", 1)
	writeTestFile(t, "cells/matrix.mtx", text)
	writeTestFile(t, "cells/barcodes.tsv", readText(t, "cells/barcodes.tsv")+"a\nb\n")
	code, _, stderr := runCne(t.Context(), countsRun("--set", "data.labels=[]", "--set", "data.genes=500", "--epochs", "1")...)
	if code != 0 || !strings.Contains(stderr, "cells without counts have become zeros cells=2") || !strings.Contains(stderr, "fewer genes vary enough than data.genes asks for") {
		t.Error(code, stderr)
	}
}

// So they are by cne spectrum, and nobody looks for images among them.
func TestCountsSpectrum(t *testing.T) {
	t.Chdir(t.TempDir())
	write10X(t, "cells", 0, 60)
	code, _, stderr := runCne(t.Context(), append(append([]string{"spectrum"}, countsRun("--set", "data.genes=500", "--epochs", "3")[1:]...), "--s", "0")...)
	if code != 0 || !strings.Contains(stderr, "made points of the counts genes=") || !strings.Contains(stderr, "fewer genes vary enough than data.genes asks for") || strings.Contains(stderr, "images") {
		t.Error(code, stderr)
	}
}

func TestCountsRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	write10X(t, "cells", 0, 60)
	write10X(t, "held", 60, 20)
	write10X(t, "renamed", 60, 20)
	writeTestFile(t, "renamed/features.tsv", strings.ReplaceAll(readText(t, "held/features.tsv"), "ENSG", "ENSM"))
	write10X(t, "damaged", 0, 20)
	writeTestFile(t, "damaged/matrix.mtx", readText(t, "damaged/matrix.mtx")+"1 1 1\n")
	writeClusters(t, "points.csv", 0, 60, animal)
	mlp := []string{"--set", "model.kind=mlp", "--set", "model.hidden=[5]", "--epochs", "1"}
	if code, _, stderr := runCne(t.Context(), countsRun(mlp...)...); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := runCne(t.Context(), holdoutRun(append(mlp, "-o", "other")...)...); code != 0 {
		t.Fatal(stderr)
	}
	run := func(more ...string) []string { return countsRun(append(more, "-o", "new", "--quiet")...) }
	project := func(model string, more ...string) []string {
		return append([]string{"project", "-m", model, "-o", "new.npy"}, more...)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"missing":              {run("--set", "data.path=[cells, gone]"), "gone: no such file or directory); check the path (data.path)"},
		"missing labels":       {run("--set", "data.labels=gone.txt"), "gone.txt: no such file or directory (data.labels)"},
		"labels":               {run("--set", "data.labels=held.txt"), "there are 20 labels for 60 points"},
		"label column":         {run("--set", "data.labels=[]", "--set", "data.label_column=1"), "cells: a label column or columns to drop are set, but this is a matrix of counts"},
		"damaged":              {run("--set", "data.path=damaged"), "damaged/matrix.mtx: there are more entries than the"},
		"points beside counts": {run("--set", "data.path=[cells, points.csv]"), "points.csv: the file does not begin with %%MatrixMarket"},
		"held: points":         {run("--set", "data.holdout=points.csv"), "points.csv: the file does not begin with %%MatrixMarket"},
		"held: other genes":    {run("--set", "data.holdout=renamed"), "data.holdout: of the 20 genes that the model was trained on, the counts lack 20, such as \"ENSG"},
		"held: missing":        {run("--set", "data.holdout=gone"), "gone: no such file or directory); check the path (data.holdout)"},
		"held: counts":         {holdoutRun("--set", "data.holdout=held", "-o", "new", "--quiet"), "held: the folder holds a sparse matrix (Matrix Market), which is read as counts of genes in cells and is not wanted here"},
		"few cells":            {run("--set", "data.path=damaged/x.mtx", "--set", "data.labels=[]"), "damaged/x.mtx: no gene was seen in at least 10 of the 2 cells"},
		"zeros":                {run("--set", "data.path=damaged/zeros.mtx", "--set", "data.labels=[]"), "damaged/zeros.mtx: no count of the 2 genes in 2 cells is above 0; give the counts as they were measured"},

		"project: counts":       {project("other", "held"), "held holds counts of single-cell sequencing, but the model was not trained on counts"},
		"project: points":       {project("run", "points.csv"), "points.csv: the file does not begin with %%MatrixMarket"},
		"project: other genes":  {project("run", "renamed"), "renamed: of the 20 genes that the model was trained on, the counts lack 20"},
		"project: label column": {project("run", "held", "--label-column", "1"), "held: a label column or columns to drop are set"},
	} {
		t.Run(name, func(t *testing.T) {
			writeTestFile(t, "damaged/x.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n2 2 1\n")
			writeTestFile(t, "damaged/zeros.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 0\n2 2 0\n")
			code, stdout, stderr := runCne(t.Context(), tc.args...)
			if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, stderr %q, want %q", code, stderr, tc.want)
			}
		})
	}
}
