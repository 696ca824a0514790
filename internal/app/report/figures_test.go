package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/rundir"
	"cne/train/quality"
)

// writeFile writes a file, and makes its folder.
func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// The curves are the records; what was measured every other epoch is joined.
func TestCurves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	writeFile(t, path, []byte(`{"epoch":1,"loss":100,"z":9}
{"epoch":2,"loss":10,"partition_function":50,"kl":3,"z":8}
{"epoch":3,"loss":1,"z":7}
{"epoch":4,"loss":1,"partition_function":5,"kl":2,"z":6}
`))
	r, err := rundir.ReadRecords(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c := Curves([]*rundir.Records{r}, []string{path}, cne.PictureOptions{})
	var got []string
	for _, p := range c.Panels {
		for _, s := range p.Series {
			got = append(got, fmt.Sprint(p.Title, p.LogY, s.Dashed, s.X, s.Y))
		}
	}
	want := []string{
		"Losstrue false [1 2 3 4] [100 10 1 1]",
		"Partition function (dashed: learnt Z)true false [2 4] [50 5]",
		"Partition function (dashed: learnt Z)true true [1 2 3 4] [9 8 7 6]",
		"KL divergencefalse false [2 4] [3 2]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("curves\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestImagesOf(t *testing.T) {
	imagesOf := func(ctx context.Context, paths []string) (*images.Set, error) {
		return allImages(ctx, &configs.Config{Data: configs.Data{Path: paths}})
	}
	t.Chdir(t.TempDir())
	writeFile(t, "images.idx", append([]byte{0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 4, 0, 0, 0, 3}, make([]byte, 12*20)...))
	m := data.NewMatrix(20, 12)
	for name, write := range map[string]func(io.Writer) error{
		"floats.npy": func(w io.Writer) error { return file.WriteNPY(w, m) },
		"points.csv": func(w io.Writer) error { return file.WriteCSV(w, m, nil, nil) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, b.Bytes())
	}
	for path, want := range map[string]int{"images.idx": 20, "points.csv": 0, "floats.npy": 0, "builtin:mnist10k": 10000} {
		images, err := imagesOf(t.Context(), []string{path})
		got := 0
		if images != nil {
			got = images.N
		}
		if err != nil || got != want {
			t.Errorf("%s: %d images, %v", path, got, err)
		}
	}
	// Counts are not images, even in a folder.
	writeFile(t, "cells/matrix.mtx", []byte("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 5\n"))
	for _, path := range []string{"cells", "cells/matrix.mtx"} {
		if images, err := imagesOf(t.Context(), []string{path}); images != nil || err != nil {
			t.Errorf("%s: images %v, %v", path, images, err)
		}
	}
	if images, err := imagesOf(t.Context(), []string{"images.idx", "images.idx"}); err != nil || images.N != 40 {
		t.Errorf("two files: %v, %v", images, err)
	}
	if _, err := imagesOf(t.Context(), []string{"gone.idx"}); err == nil {
		t.Error("a file that is not there has images")
	}
	c := configs.Config{Data: configs.Data{Path: []string{"images.idx"}, Holdout: configs.Holdout{Paths: []string{"points.csv"}}}}
	if images, err := allImages(t.Context(), &c); images != nil || err != nil {
		t.Errorf("images of some points: %v, %v", images, err)
	}
}

func TestInputOrder(t *testing.T) {
	m := Map{
		Positions: &data.Matrix{N: 5, D: 1, X: []float32{0, 2, 3, 1, 4}},
		Labels:    data.NewLabels([]string{"0", "2", "3", "1", "4"}), HeldOut: []bool{false, false, false, true, true},
	}
	m.InputOrder([]int{1, 4})
	for i := range 5 {
		if m.Positions.X[i] != float32(i) || m.Labels.Class[i] != int32(i) || m.Labels.Value[i] != float64(i) || m.HeldOut[i] != (i == 1 || i == 4) {
			t.Errorf("row %d: %v, %v, %v", i, m.Positions.X, m.Labels, m.HeldOut)
		}
	}
}

// An estimate is shown with its standard error in the same format.
func TestFacts(t *testing.T) {
	z, recall, recallError, zError, kl := 1.2345e9, 0.10449, 0.00321, 3.6e6, 5.5
	for name, tc := range map[string]struct {
		of   quality.Figures
		want []cne.Fact
	}{
		"some":    {quality.Figures{KNNRecall: &recall, PartitionFunction: &z}, []cne.Fact{{Name: "kNN recall", Value: "0.104"}, {Name: "partition function", Value: "1.23e9"}}},
		"nothing": {},
		"estimates": {quality.Figures{KNNRecall: &recall, KNNRecallError: &recallError, PartitionFunction: &z, PartitionFunctionError: &zError, KL: &kl}, []cne.Fact{
			{Name: "kNN recall", Value: "0.104 ± 0.003"}, {Name: "partition function", Value: "1.23e9 ± 4e+06"}, {Name: "KL divergence", Value: "5.500"},
		}},
	} {
		got := Facts(&tc.of, nil)
		for i := range got {
			if !strings.Contains(got[i].Meaning, "better") {
				t.Errorf("%s: %s is explained by %q", name, got[i].Name, got[i].Meaning)
			}
			got[i].Meaning = ""
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
