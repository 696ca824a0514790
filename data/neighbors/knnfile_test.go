package neighbors

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// table makes an npy file of whole numbers, in Fortran order for "True ".
func table(descr, order string, n, k int, values any) []byte {
	return bytes.Replace(member(descr, fmt.Sprintf("(%d, %d)", n, k), values), []byte("False"), []byte(order), 1)
}

// archiveOf makes an archive of an array of a name, and of one of distances.
func archiveOf(name string, file []byte) []byte {
	return zipped(map[string][]byte{name: file, "distances.npy": []byte("not read")}, zip.Deflate)
}

// A file of neighbours gives the graph that FromNeighbors makes of them.
func TestReadFile(t *testing.T) {
	want := need(FromNeighbors(&Neighbors{N: 4, K: 2, Index: []int32{1, 2, 0, 2, 0, 1, 0, 2}}))(t)
	rows := []int32{0, 1, 2, 1, 2, 0, 2, 0, 1, 3, 2, 0} // with the points themselves
	var small []int8
	columns := make([]int64, len(rows))
	for e, j := range rows {
		small = append(small, int8(j))
		columns[e%3*4+e/3] = int64(j)
	}
	for name, file := range map[string][]byte{
		"rows":               table("<i4", "False", 4, 3, rows),
		"bytes":              table("|i1", "False", 4, 3, small),
		"column by column":   table("<i8", "True ", 4, 3, columns),
		"with some missing":  table("<i4", "False", 4, 4, []int32{-1, 0, 1, 2, 1, 2, 0, -1, 2, 0, 1, -1, 3, -1, 2, 0}),
		"unsigned":           table("<u4", "False", 4, 2, []uint32{1, 2, 0, 2, 0, 1, 0, 2}),
		"archive":            archiveOf("indices.npy", table("<i4", "False", 4, 3, rows)),
		"the graph as scipy": nil,
	} {
		path := filepath.Join(t.TempDir(), "g.npz")
		must(t, want.WriteNPZ(path))
		if file != nil {
			must(t, os.WriteFile(path, file, 0o666))
		}
		got, err := ReadFile(t.Context(), path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.N != want.N || !slices.Equal(got.Indptr, want.Indptr) || !slices.Equal(got.Indices, want.Indices) || !got.Symmetric() {
			t.Errorf("%s: the graph is %+v, want %+v", name, got, want)
		}
	}
	// In longer lists the first count, without the point itself and missing neighbours.
	path := filepath.Join(t.TempDir(), "long.npy")
	must(t, os.WriteFile(path, table("<i4", "False", 4, 5, []int32{-1, 0, 1, 2, 3, 1, 0, 2, 3, -1, 2, 0, 1, 3, -1, 3, 0, 2, -1, -1}), 0o666))
	cut, most, err := ReadNearest(t.Context(), path, 2, false, nil)
	if err != nil || most != 3 || !slices.Equal(cut.Indptr, want.Indptr) || !slices.Equal(cut.Indices, want.Indices) {
		t.Errorf("cut to 2 of %d neighbours the graph is %+v, want %+v (%v)", most, cut, want, err)
	}
	// Distances give the weights that the search's own would.
	index, near := []int32{0, 1, 2, 1, 2, 0, 2, 1, 0, 3, 2, 0}, []float32{0, 1, 2, 0, 1, 3, 0, 1, 2, 0, 4, 5}
	fuzzy := need(FuzzyGraph(&Neighbors{N: 4, K: 2, Index: []int32{1, 2, 2, 0, 1, 0, 2, 0}, Dist2: []float64{1, 4, 1, 9, 1, 4, 16, 25}}))(t)
	path = filepath.Join(t.TempDir(), "weighted.npz")
	must(t, os.WriteFile(path, zipped(map[string][]byte{"indices.npy": table("<i4", "False", 4, 3, index), "distances.npy": table("<f4", "False", 4, 3, near)}, zip.Deflate), 0o666))
	wrong := slices.Repeat([]float32{-0.5}, 12)
	below := filepath.Join(t.TempDir(), "below.npz")
	must(t, os.WriteFile(below, zipped(map[string][]byte{"indices.npy": table("<i4", "False", 4, 3, index), "distances.npy": table("<f4", "False", 4, 3, wrong)}, zip.Deflate), 0o666))
	if _, _, err := ReadNearest(t.Context(), below, 2, true, nil); !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), "distances.npy: got -0.5, want at least 0") {
		t.Errorf("distances below 0: %v", err)
	}
	for k, most := range map[int]int{2: 2, 9: 2} {
		got, m, err := ReadNearest(t.Context(), path, k, true, nil)
		if err != nil || m != most || !slices.Equal(got.Indices, fuzzy.Indices) || !slices.Equal(got.Weights, fuzzy.Weights) {
			t.Errorf("with distances the graph is %+v of %d, want %+v (%v)", got, m, fuzzy, err)
		}
	}
	for want, near := range map[string]any{"got 8 numbers, want 12": table("<f4", "False", 4, 2, near[:8]), "got NaN": table("<f4", "False", 4, 3, append([]float32{0, float32(math.NaN())}, near[2:]...))} {
		must(t, os.WriteFile(path, zipped(map[string][]byte{"indices.npy": table("<i4", "False", 4, 3, index), "distances.npy": near.([]byte)}, zip.Deflate), 0o666))
		if _, _, err := ReadNearest(t.Context(), path, 2, true, nil); !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	// A point may have no neighbours at all.
	single := table("<i4", "False", 3, 1, []int32{1, -1, -1})
	g, err := decodeFile(single)
	if err != nil || !slices.Equal(g.Indptr, []int64{0, 1, 2, 2}) {
		t.Errorf("a point single: %+v, %v", g, err)
	}
}

func TestReadFileErrors(t *testing.T) {
	sound := table("<i4", "False", 2, 2, []int32{0, 1, 1, 0})
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"too large":     {table("<i4", "False", 2, 2, []int32{0, 1, 1, 2}), "neighbour 1 of row 1 (both counted from 0): got 2, want 0 to 1"},
		"negative":      {table("<i4", "False", 2, 2, []int32{0, -2, 1, 0}), "neighbour 1 of row 0"},
		"floats":        {table("<f4", "False", 2, 2, []float32{0, 1, 1, 0}), "got 2×2 of type f4"},
		"no columns":    {table("<i4", "False", 1<<30, 0, []int32{}), "got 1073741824×0"},
		"cut":           {sound[:len(sound)-1], "values: got 3, want 4 (shape 2×2)"},
		"longer":        {append(bytes.Clone(sound), 0), "got more bytes than"},
		"absurd":        {table("<i4", "False", 1<<40, 1<<40, []int32{0}), "want one that fits into memory"},
		"one dimension": {[]byte(strings.Replace(string(sound), "(2, 2)", "(4,  )", 1)), "array: got 4 of"},
		"in an archive": {archiveOf("indices.npy", table("<i4", "False", 1, 1, []int32{5})), "indices.npy: neighbour 0 of row 0"},
		"another name":  {archiveOf("neighbours.npy", sound), "want format, too"},
	} {
		_, err := decodeFile(tc.file)
		if !errors.Is(err, ErrInvalidGraph) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want one with %q", name, err, tc.want)
		}
	}
}

// FuzzDecodeFile reads any bytes as neighbours.
func FuzzDecodeFile(f *testing.F) {
	f.Add(table("<i4", "False", 2, 2, []int32{0, 1, 1, 0}), false)
	f.Add(table("<i2", "True ", 2, 2, []int16{0, 1, -1, 0}), true)
	f.Fuzz(func(t *testing.T, file []byte, archived bool) {
		if archived {
			file = archiveOf("indices.npy", file)
		}
		g, err := decodeFile(file)
		if err != nil {
			return
		}
		must(t, g.Validate())
	})
}
