package counts_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
)

// hdf5File returns a file that scripts/hdf5_test has written with h5py or anndata. All have
// the same counts.
func hdf5File(name string) string {
	return filepath.Join("../../internal/hdf5/testdata", name+".h5")
}

func TestCountsOfHDF5(t *testing.T) {
	first := need(counts.Open(t.Context(), []string{hdf5File("cells")}, file.Options{LabelColumn: "cell_type"}))(t)
	if first.Cells != 60 || first.Genes != 25 || len(first.Value) != 450 || first.CellNames[59] != "cell 59" ||
		first.GeneNames[24] != "G24" || first.OtherNames[24] != "ENSG00024" {
		t.Fatalf("got %d × %d, %d counts, names %q %q %q", first.Cells, first.Genes, len(first.Value), first.CellNames, first.GeneNames, first.OtherNames)
	}
	if labels := first.Labels.All(); !slices.Equal(labels[:3], []string{"T cell", "B cell", "größer"}) {
		t.Errorf("the labels are %q", labels)
	}
	for name, tc := range map[string]struct {
		o     file.Options
		gene  string
		other string
	}{
		"csc":         {file.Options{}, "ENSG00003", "G3"}, // a column repeats the identifiers
		"dense32":     {file.Options{}, "G3", "ENSG00003"},
		"scaled":      {file.Options{}, "G3", "ENSG00003"}, // raw/X
		"cells":       {file.Options{Layer: "counts"}, "G3", "ENSG00003"},
		"old10x":      {file.Options{}, "ENSG00003", "G3"},
		"new10x":      {file.Options{}, "ENSG00003", "G3"},
		"anndata-0.2": {file.Options{}, "G3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !counts.Is(hdf5File(name), tc.o) {
				t.Fatal("the file is not recognised")
			}
			c := need(counts.Open(t.Context(), []string{hdf5File(name)}, tc.o))(t)
			if !slices.Equal(c.Start, first.Start) || !slices.Equal(c.Column, first.Column) || !slices.Equal(c.Value, first.Value) {
				t.Error("the counts differ")
			}
			if c.GeneNames[3] != tc.gene || tc.other != "" && c.OtherNames[3] != tc.other {
				t.Errorf("the genes are %q %q", c.GeneNames, c.OtherNames)
			}
		})
	}
	c := need(counts.Open(t.Context(), []string{hdf5File("new10x")}, file.Options{Layer: "mm10"}))(t)
	if !slices.Equal(c.GeneNames, []string{"ENSG00020", "ENSG00021", "ENSG00022", "ENSG00023", "ENSG00024"}) {
		t.Errorf("the genes of a genome are %q", c.GeneNames)
	}
	for _, tc := range []struct {
		name string
		o    file.Options
	}{{"scaled", file.Options{Layer: "X"}}, {"cells", file.Options{Obsm: "X_pca"}}, {"kinds", file.Options{}}} {
		if counts.Is(hdf5File(tc.name), tc.o) {
			t.Errorf("%s, %+v are counts", tc.name, tc.o)
		}
	}
	_, err := counts.Open(t.Context(), []string{hdf5File("scaled")}, file.Options{Layer: "X"})
	wantError(t, err, data.ErrUnsupported, "/X: got values that are not whole numbers")
	_, err = file.Read(t.Context(), []string{hdf5File("cells")}, file.Options{Obsm: "pca"})
	wantError(t, err, data.ErrOption, `got "pca", want a member of /obsm, which has X_pca`)
	_, err = counts.Open(t.Context(), []string{hdf5File("new10x")}, file.Options{Layer: "mm11"})
	wantError(t, err, data.ErrOption, `got "mm11", want a genome of the file, such as`)
}

// Columns of obs and genes are read as text, and missing values are empty.
func TestColumnsOfHDF5(t *testing.T) {
	names := []string{"obs_names", "cell_type", "word", "n", "f", "ok", "maybe", "maybes"}
	columns := need(file.ReadColumns(t.Context(), []string{hdf5File("cells")}, names, file.Options{}))(t)
	for row, want := range map[int]string{0: "cell 0 T cell w0 0 0 True  ", 1: "cell 1 B cell w1 1 0.01694915254237288 False 1 False", 7: "cell 7 B cell w2 7 0.11864406779661017 False  "} {
		var got []string
		for _, c := range columns {
			got = append(got, c[row])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("row %d is %q, want %q", row, s, want)
		}
	}
	old := need(file.ReadColumns(t.Context(), []string{hdf5File("anndata-0.2")}, []string{"obs_names", "type", "n_genes"}, file.Options{}))(t)
	if old[0][4] != "cell4" || old[1][4] != "b" || old[2][4] != "0" {
		t.Errorf("an old file has %q %q %q", old[0][4], old[1][4], old[2][4])
	}
	// The genes of cells and of 10x are the same, by name and identifier.
	byName := need(file.ReadColumns(t.Context(), []string{hdf5File("cells")}, []string{"G7"}, file.Options{}))(t)
	byID := need(file.ReadColumns(t.Context(), []string{hdf5File("csc")}, []string{"ENSG00007"}, file.Options{}))(t)
	// Next to antibodies, genes are normalised to their own library size.
	byID = append(byID, need(file.ReadColumns(t.Context(), []string{hdf5File("new10x")}, []string{"ENSG00007"}, file.Options{}))(t)[0])
	byID = append(byID, need(file.ReadColumns(t.Context(), []string{hdf5File("csc")}, []string{"G7"}, file.Options{}))(t)[0])
	if !slices.Equal(byName[0], byID[0]) || !slices.Equal(byName[0], byID[1]) || !slices.Equal(byName[0], byID[2]) || !slices.ContainsFunc(byName[0], func(s string) bool { return s != "0" }) {
		t.Errorf("gene 7 is %q and %q", byName[0], byID[0])
	}
}

// Categories keep their order and their colours.
func TestCategoriesOfHDF5(t *testing.T) {
	names, colors := file.Categories(hdf5File("cells"), "cell_type")
	if !slices.Equal(names, []string{"größer", "T cell", "B cell"}) || !slices.Equal(colors, []int32{0xff0000, 0x00ff00, 0x0000ff}) {
		t.Errorf("got %q in the colours %x", names, colors)
	}
	for name, column := range map[string]string{"cells": "n", "new10x": "cell_type"} {
		if names, colors := file.Categories(hdf5File(name), column); names != nil || colors != nil {
			t.Errorf("%s: got %q in the colours %x", name, names, colors)
		}
	}
	if names, _ := file.Categories(hdf5File("anndata-0.2"), "type"); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("an old file has %q", names)
	}
}

// Points take the wanted genes by name, from dense and sparse matrices.
func TestPointsOfHDF5(t *testing.T) {
	for name, o := range map[string]file.Options{"scaled": {Layer: "X", LabelColumn: "n"}, "cells": {Layer: "counts"}} {
		all := need(file.Read(t.Context(), []string{hdf5File(name)}, o))(t)
		o.Columns = []string{"G7", "G3"}
		two := need(file.Read(t.Context(), []string{hdf5File(name)}, o))(t)
		if two.Points.D != 2 || all.Points.D != 25 || (two.Labels != nil) != (o.LabelColumn != "") {
			t.Fatalf("%s: got %d and %d columns", name, two.Points.D, all.Points.D)
		}
		for i := range 60 {
			if two.Points.At(i, 0) != all.Points.At(i, 7) || two.Points.At(i, 1) != all.Points.At(i, 3) {
				t.Fatalf("%s: the genes of cell %d are mixed up", name, i)
			}
		}
		o.Columns = []string{"G7", "G77"}
		wantError(t, errorOf(file.Read(t.Context(), []string{hdf5File(name)}, o)), data.ErrShape, `missing: "G77"`)
	}
	pca := need(file.Read(t.Context(), []string{hdf5File("cells")}, file.Options{Obsm: "X_pca"}))(t)
	if pca.Points.N != 60 || pca.Points.D != 5 || pca.Points.Columns != nil {
		t.Errorf("the components are %d×%d", pca.Points.N, pca.Points.D)
	}
}

func TestCountsOfHDF5NotFinite(t *testing.T) {
	first := need(counts.Open(t.Context(), []string{hdf5File("cells")}, file.Options{}))(t)
	numbers := func(values []float32) []byte { return need(binary.Append(nil, binary.LittleEndian, values))(t) }
	before := numbers(first.Value)
	first.Value[2] = float32(math.Inf(1))
	content := need(os.ReadFile(hdf5File("cells")))(t)
	path := put(t, t.TempDir(), "cells.h5ad", bytes.ReplaceAll(content, before, numbers(first.Value)))
	_, err := counts.Open(t.Context(), []string{path}, file.Options{})
	wantError(t, err, data.ErrNotFinite, path+": gene 11 in cell 0 (counted from 0): got +Inf")
}

// FuzzHDF5 reads damaged files: an error of a kind, or sound counts.
func FuzzHDF5(f *testing.F) {
	for _, name := range []string{"csc", "new10x", "anndata-0.2"} {
		content, err := os.ReadFile(hdf5File(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, 0, byte(0))
		f.Add(content, len(content)/2, byte(1))
	}
	f.Fuzz(func(t *testing.T, content []byte, at int, to byte) {
		if content = bytes.Clone(content); at >= 0 && at < len(content) {
			content[at] ^= to
		}
		path := put(t, t.TempDir(), "cells.h5ad", content)
		for _, o := range []file.Options{{LabelColumn: "cell_type"}, {Obsm: "X_pca"}} {
			if c, err := counts.Open(t.Context(), []string{path}, o); err == nil {
				must(t, c.Check())
			}
			if set, err := file.Read(t.Context(), []string{path}, o); err == nil {
				must(t, set.Check())
			}
		}
	})
}
