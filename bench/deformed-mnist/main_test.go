package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

func TestFiles(t *testing.T) {
	read := func(args ...string) (points, labels []byte, set *data.Dataset) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "new", "folder")
		if err := run(t.Context(), append(args, out), io.Discard); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(out, "*"))
		if err != nil || len(files) != 2 {
			t.Fatalf("files %q, %v", files, err)
		}
		if strings.HasSuffix(files[1], "points.npy") {
			files[0], files[1] = files[1], files[0]
		}
		set, err = file.Read(t.Context(), files[:1], file.Options{Labels: []string{filepath.Join(out, "labels.npy")}})
		if err != nil {
			t.Fatal(err)
		}
		points, err = os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		labels, err = os.ReadFile(filepath.Join(out, "labels.npy"))
		if err != nil {
			t.Fatal(err)
		}
		return points, labels, set
	}
	const n = 2_100 // more than a block
	points, labels, set := read("2100", "2")
	if set.Points.N != n || set.Points.D != 784 || len(set.Labels.Names) != 10 {
		t.Errorf("%d×%d points of %d classes, want %d×784 of 10", set.Points.N, set.Points.D, len(set.Labels.Names), n)
	}
	var most float32
	for _, v := range set.Points.X {
		most = max(most, v)
	}
	if most != 255 {
		t.Errorf("the brightest pixel is %g", most)
	}
	few, fewLabels, _ := read("7", "2")
	if at := len(few) - 7*784; !bytes.Equal(few[at:], points[len(points)-n*784:][:7*784]) {
		t.Error("seven images are not the first of more")
	}
	if !bytes.Equal(fewLabels[len(fewLabels)-7:], labels[len(labels)-n:][:7]) {
		t.Error("seven labels are not the first of more")
	}

	reduced, sameLabels, set := read("-pca", "3", "2100", "2")
	if !bytes.Equal(sameLabels, labels) {
		t.Error("the principal components have other labels than the images")
	}
	if set.Points.N != n || set.Points.D != 3 {
		t.Errorf("%d×%d components, want %d×3", set.Points.N, set.Points.D, n)
	}
	before := math.Inf(1)
	for j := range 3 {
		var sum float64
		for i := range n {
			sum += float64(set.Points.Row(i)[j]) * float64(set.Points.Row(i)[j])
		}
		if sum >= before || sum < n {
			t.Errorf("component %d has the variance %g after %g, want less, and more than 1", j, sum/n, before/n)
		}
		before = sum
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if again, _, _ := read("-pca", "3", "2100", "2"); !bytes.Equal(again, reduced) {
		t.Error("one core makes other components")
	}
}

func TestFaults(t *testing.T) {
	cells := filepath.Join("..", "..", "data", "file", "testdata", "petals.csv")
	for _, c := range []struct {
		args, want string
	}{
		{"", "want three"},
		{"10 1", "want three"},
		{"0 1 OUT", `got "0", want a whole number of at least 1`},
		{"1e6 1 OUT", `got "1e6"`},
		{"10 -1 OUT", "seed: got"}, // flags stand before arguments
		{"10 x OUT", "seed: got"},
		{"-pca 11 10 1 OUT", "want 1 to 10"},
		{"-pca -1 10 1 OUT", "want 1 to 10"},
		{"-images nowhere 10 1 OUT", "nowhere"},
		{"-images " + cells + " 10 1 OUT", "cannot be read"},
		{"10 1 " + cells, "cannot be made"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		err := run(t.Context(), strings.Fields(strings.ReplaceAll(c.args, "OUT", out)), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
			continue
		}
		if _, err := os.Stat(filepath.Join(out, "labels.npy")); err == nil {
			t.Errorf("%q left labels", c.args)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := t.TempDir()
	if err := run(ctx, []string{"10", "1", out}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("an interrupted run left %v, %v", left, err)
	}
}
