package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// nearest checks that the neighbours on a page are the nearest of the points that were
// trained on. row tells which row of m a point of the page is.
func nearest(t *testing.T, name string, p *htmlPage, m *data.Matrix, k int, row func(i int) int, trained func(i int) bool) {
	t.Helper()
	if p.Neighbors != k || len(p.near) != k*p.N {
		t.Fatalf("%s: %d neighbours of each of %d points, %d in all, want %d", name, p.Neighbors, p.N, len(p.near), k)
	}
	for i := range p.N {
		distance := func(j int) float64 {
			sum := 0.0
			for c, v := range m.Row(row(i)) {
				sum += math.Pow(float64(v-m.Row(row(j))[c]), 2)
			}
			return sum
		}
		var want []float64
		for j := range p.N {
			if j != i && trained(i) && trained(j) {
				want = append(want, distance(j))
			}
		}
		slices.Sort(want)
		for r, j := range p.near[k*i : k*i+k] {
			if !trained(i) {
				if j != p.N {
					t.Fatalf("%s: row %d, which was not trained on, has the neighbour %d", name, i, j)
				}
				continue
			}
			if j == i || j >= p.N || !trained(j) || math.Abs(distance(j)-want[r]) > 1e-3*want[r] {
				t.Fatalf("%s: neighbour %d of row %d is row %d, at another distance than the nearest, or held out", name, r, i, j)
			}
		}
	}
}

// A page has the nearest neighbours among the points that its run was trained on, in the
// rows of the page, whichever way it was made.
func TestNeighborsOnPages(t *testing.T) {
	t.Chdir(t.TempDir())
	writeIDX(t, 120)
	m := data.NewMatrix(120, 12)
	for i, v := range []byte(readText(t, "images.idx")[16:]) {
		m.X[i] = float32(v)
	}
	same, all := func(i int) int { return i }, func(int) bool { return true }
	train := func(dir string, settings ...string) *htmlPage {
		t.Helper()
		_, stderr := mustRun(t, slices.Concat([]string{"train", "images.idx", "--html", "--epochs", "2", "-o", dir}, set("graph.k=5", "quality.k=5", "data.scale=unit", "train.batch_size=64", "output.plot=false"), set(settings...))...)
		if strings.Contains(stderr, "nearest neighbours on the page") {
			t.Error(stderr)
		}
		return readPage(t, dir+"/embedding.html")
	}
	again := func(dir string) *htmlPage {
		t.Helper()
		mustRun(t, "plot", dir, "--html", "-o", "again.html")
		return readPage(t, "again.html")
	}
	nearest(t, "trained", train("run"), m, 5, same, all)
	nearest(t, "plotted", again("run"), m, 5, same, all)

	p := train("held", "data.holdout=0.25")
	trained := func(i int) bool { return !p.held[i] }
	nearest(t, "held out", p, m, 5, same, trained)
	nearest(t, "held out and plotted", again("held"), m, 5, same, trained)

	p = train("thin", "data.labels=labels.txt", "data.imbalance=linear")
	rows := rowsIn(t, "thin/rows.csv")
	nearest(t, "thinned out", p, m, 5, func(i int) int { return rows[i] }, all)
	nearest(t, "thinned out and plotted", again("thin"), m, 5, func(i int) int { return rows[i] }, all)

	p = train("sample", "data.sample=80")
	rows = rowsIn(t, "sample/sample_rows.csv")
	nearest(t, "a sample", p, m, 5, func(i int) int { return rows[i] }, all)
	nearest(t, "a sample and the rest", again("sample"), m, 5, same, func(i int) bool { return slices.Contains(rows, i) })

	nearest(t, "shared", train("sharing", "graph.cache=shared"), m, 5, same, all)
	nearest(t, "shared and plotted", again("sharing"), m, 5, same, all)

	mustRun(t, slices.Concat([]string{"spectrum", "images.idx", "--html", "--epochs", "2", "-o", "sweep", "--s", "0,1"}, set("graph.k=5", "quality.k=5", "data.scale=unit", "train.batch_size=64", "output.plot=false"))...)
	nearest(t, "a spectrum", readPage(t, "sweep/explorer.html"), m, 5, same, all)
	nearest(t, "one of its embeddings", readPage(t, "sweep/s=0/embedding.html"), m, 5, same, all)
	nearest(t, "plotted of a spectrum", again("sweep/s=0"), m, 5, same, all)

	// Neighbours that were not searched, and those that no file has.
	if p := train("given", "graph.file=run/graph.npz", "quality.recall=false"); p.Neighbors != 0 {
		t.Errorf("%d neighbours that were not searched", p.Neighbors)
	}
	must(t, os.Remove("sample/cache.safetensors"))
	if p := again("sample"); p.Neighbors != 0 {
		t.Errorf("%d neighbours that no file has", p.Neighbors)
	}
	mustRun(t, "plot", "run/embedding.npy", "--html", "-o", "again.html")
	if p := readPage(t, "again.html"); p.Neighbors != 0 {
		t.Errorf("an array has %d neighbours", p.Neighbors)
	}
}

// Names keep the line breaks that a table has in its cells.
func TestNamesOfSeveralLinesOnPages(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "id,a,b,c,kind,age\n\"first\r\nsecond\n\nlast\",1,2,3,ant,1\n"
	for i := range 20 {
		table += fmt.Sprintf("%d,%d,%d,%d,bee,2\n", i, i%7, i%5, i%3)
	}
	writeTestFile(t, "t.csv", table)
	succeed(t, ofTable("t.csv", "run", "--html")...)
	succeed(t, "plot", "run/embedding.csv", "--html", "--names", "run/embedding.csv:name", "-o", "again.html")
	for _, path := range []string{"run/embedding.html", "again.html"} {
		if p := readPage(t, path); len(p.names) != 21 || p.names[0] != "first\nsecond\n\nlast" || p.names[1] != "0" {
			t.Errorf("%s: names %q", path, p.names)
		}
	}
}
