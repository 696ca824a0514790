package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/rundir"
	"cne/internal/explorer"
	"cne/internal/plot"
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
	c := Curves([]*rundir.Records{r}, []string{path}, configs.Plot{})
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

func TestScatter(t *testing.T) {
	m := &data.Matrix{N: 4, D: 2, X: make([]float32, 8)}
	nan := math.NaN()
	for _, tc := range []struct {
		name    string
		labels  []string
		classes []int32
		names   []string
		values  []float64
	}{
		{"none", nil, nil, nil, nil},
		{"words", []string{"b", "a", "b", "c"}, []int32{1, 0, 1, 2}, []string{"a", "b", "c"}, nil},
		{"digits", []string{"7", "3", "7", "3"}, []int32{1, 0, 1, 0}, []string{"3", "7"}, nil},
		{"numbers", []string{"1.5", "3", "3", "2"}, nil, nil, []float64{1.5, 3, 3, 2}},
		{"some words are missing", []string{"b", "", "a", "NaN"}, []int32{1, -1, 0, -1}, []string{"a", "b"}, nil},
		{"a digit is missing", []string{"7", "", "7", "7"}, []int32{0, -1, 0, 0}, []string{"7"}, nil},
		{"some numbers are missing", []string{"0.5", "", "1.5", "nan"}, nil, nil, []float64{0.5, nan, 1.5, nan}},
		{"all are missing", []string{"", "", "nan", ""}, nil, nil, nil},
	} {
		var labels *data.Labels
		if tc.labels != nil {
			labels = data.NewLabels(tc.labels)
		}
		s := Scatter(m, labels, configs.Plot{PointSize: 3, Title: "title", WidthCM: 25.4, HeightCM: 12.7})
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !slices.Equal(s.Classes, tc.classes) || !slices.Equal(s.ClassNames, tc.names) || !slices.EqualFunc(s.Values, tc.values, same) {
			t.Errorf("%s: classes %v of %q, values %v", tc.name, s.Classes, s.ClassNames, s.Values)
		}
		if s.Embedding != m || s.PointSize != 3 || s.Title != "title" || math.Abs(s.Width-10) > 1e-9 || math.Abs(s.Height-5) > 1e-9 {
			t.Errorf("%s: %+v", tc.name, *s)
		}
		if err := s.Write(io.Discard, "svg"); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
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
	c := configs.Config{Data: configs.Data{Path: []string{"images.idx"}, Holdout: &configs.Holdout{Paths: []string{"points.csv"}}}}
	if images, err := allImages(t.Context(), &c); images != nil || err != nil {
		t.Errorf("images of some points: %v, %v", images, err)
	}
}

func TestInputOrder(t *testing.T) {
	s := &plot.Scatter{
		Embedding: &data.Matrix{N: 5, D: 1, X: []float32{0, 2, 3, 1, 4}},
		Classes:   []int32{0, 2, 3, 1, 4}, Values: []float64{0, 2, 3, 1, 4}, HeldOut: []bool{false, false, false, true, true},
	}
	InputOrder(s, []int{1, 4})
	for i := range 5 {
		if s.Embedding.X[i] != float32(i) || s.Classes[i] != int32(i) || s.Values[i] != float64(i) || s.HeldOut[i] != (i == 1 || i == 4) {
			t.Errorf("row %d: %v, %v, %v, %v", i, s.Embedding.X, s.Classes, s.Values, s.HeldOut)
		}
	}
}

// An estimate is shown with its standard error in the same format.
func TestFacts(t *testing.T) {
	z, recall, recallError, zError, kl := 1.2345e9, 0.10449, 0.00321, 3.6e6, 5.5
	for name, tc := range map[string]struct {
		of   quality.Figures
		want []explorer.Fact
	}{
		"some":    {quality.Figures{KNNRecall: &recall, PartitionFunction: &z}, []explorer.Fact{{Name: "kNN recall", Value: "0.104"}, {Name: "partition function", Value: "1.23e9"}}},
		"nothing": {},
		"estimates": {quality.Figures{KNNRecall: &recall, KNNRecallError: &recallError, PartitionFunction: &z, PartitionFunctionError: &zError, KL: &kl}, []explorer.Fact{
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
