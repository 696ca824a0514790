package counts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/internal/rng"
)

// mtx makes a file in the Matrix Market format: its sizes and entries.
func mtx(lines ...string) []byte {
	return []byte("%%MatrixMarket matrix coordinate integer general\n" + strings.Join(lines, "\n") + "\n")
}

// tenX makes a folder of 10x with three genes and two cells.
func tenX(t *testing.T, zipped bool) string {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"matrix.mtx":   string(mtx("%metadata_json: {}", "3 2 4", "1 1 5", "3 1 2", "1 2 1", "2 2 7")),
		"barcodes.tsv": "AAAC-1\nAAAG-1\n",
		"features.tsv": "ENSG1\tA1\tGene Expression\nENSG2\tB2\tGene Expression\nENSG3\tA1\tGene Expression\n",
	} {
		content := []byte(text)
		if zipped {
			name, content = name+".gz", gz(content)
		}
		put(t, folder, name, content)
	}
	return folder
}

// dense returns the counts as a matrix of cells × genes.
func dense(c *counts.Matrix) [][]float64 {
	x := make([][]float64, c.Cells)
	for i := range x {
		x[i] = make([]float64, c.Genes)
		for k := c.Start[i]; k < c.Start[i+1]; k++ {
			x[i][c.Column[k]] = float64(c.Value[k])
		}
	}
	return x
}

func wantDense(t *testing.T, c *counts.Matrix, want ...[]float64) {
	t.Helper()
	got := dense(c)
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("the counts are %v, want %v", got, want)
	}
	n := 0
	for _, row := range want {
		for _, v := range row {
			if v != 0 {
				n++
			}
		}
	}
	if len(c.Value) != n {
		t.Fatalf("%d counts are kept, want %d", len(c.Value), n)
	}
}

func TestOpenCounts(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		folder := tenX(t, zipped)
		labels := put(t, t.TempDir(), "types.txt", []byte("type\nneuron\nglia\n"))
		if !counts.Is(folder, file.Options{}) {
			t.Error("the folder is not recognised")
		}
		c := need(counts.Open(t.Context(), []string{folder}, file.Options{Labels: []string{labels}}))(t)
		wantDense(t, c, []float64{5, 0, 2}, []float64{1, 7, 0})
		if c.Name != filepath.Base(folder) || !slices.Equal(c.CellNames, []string{"AAAC-1", "AAAG-1"}) || !slices.Equal(c.GeneNames, []string{"ENSG1", "ENSG2", "ENSG3"}) {
			t.Errorf("the names are %q, %q, %q", c.Name, c.CellNames, c.GeneNames)
		}
		if !slices.Equal(c.Labels.Names, []string{"glia", "neuron"}) || !slices.Equal(c.Labels.Class, []int32{1, 0}) {
			t.Errorf("the labels are %+v", c.Labels)
		}

		content := filepath.Join(folder, "matrix.mtx")
		if zipped {
			content += ".gz"
		}
		if !counts.Is(content, file.Options{}) || counts.Is(labels, file.Options{}) || counts.Is(filepath.Dir(labels), file.Options{}) || counts.Is("gone", file.Options{}) {
			t.Error("counts and other files are confounded")
		}
		c = need(counts.Open(t.Context(), []string{content, folder}, file.Options{Name: "both"}))(t)
		wantDense(t, c, []float64{5, 0, 2}, []float64{1, 7, 0}, []float64{5, 0, 2}, []float64{1, 7, 0})
		if c.Name != "both" || len(c.CellNames) != 4 || len(c.GeneNames) != 3 {
			t.Errorf("the names are %q, %q, %q", c.Name, c.CellNames, c.GeneNames)
		}
		if c, err := counts.Open(t.Context(), []string{folder, folder}, file.Options{}); err != nil || len(c.CellNames) != 4 {
			t.Errorf("%q, %v", c.CellNames, err)
		}
		wantError(t, errorOf(file.Read(t.Context(), []string{folder}, file.Options{})), data.ErrUnsupported, "got counts of single cells, want points")
		points := need(file.Read(t.Context(), []string{content}, file.Options{}))(t).Points
		if points.N != 2 || points.D != 3 || !slices.Equal(points.CSR.Value, []float32{5, 2, 1, 7}) {
			t.Errorf("as points the counts are %+v", points.CSR)
		}
	}
}

// Older versions call the features genes; what is no gene is passed over.
func TestOpenCountsFeatures(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "matrix.mtx", mtx("3 2 4", "1 1 5", "3 1 2", "1 2 1", "2 2 7"))
	c, err := counts.Open(t.Context(), []string{folder}, file.Options{})
	if err != nil || c.GeneNames != nil || c.CellNames != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	put(t, folder, "genes.tsv", []byte("g1\tA\ng2\tB\ng3\tC\n"))
	if c, err = counts.Open(t.Context(), []string{folder}, file.Options{}); err != nil || !slices.Equal(c.GeneNames, []string{"g1", "g2", "g3"}) {
		t.Fatalf("%+v, %v", c, err)
	}
	wantDense(t, c, []float64{5, 0, 2}, []float64{1, 7, 0})
	put(t, folder, "features.tsv", []byte("g1\tA\tAntibody Capture\ng2\tB\tGene Expression\ng3\tC\tGene Expression\n"))
	if c, err = counts.Open(t.Context(), []string{folder}, file.Options{}); err != nil || !slices.Equal(c.GeneNames, []string{"g2", "g3"}) {
		t.Fatalf("%+v, %v", c, err)
	}
	wantDense(t, c, []float64{0, 2}, []float64{7, 0})
	log, said := logged()
	if _, err = counts.Open(t.Context(), []string{folder}, file.Options{Log: log, Columns: []string{"g2"}}); err != nil || said.Len() > 0 {
		t.Fatalf("%v, the log says %q", err, said)
	}
	put(t, folder, "features.tsv", []byte("g1\tA\tPeaks\ng2\tB\tPeaks\ng3\tC\tPeaks\n"))
	if c, err = counts.Open(t.Context(), []string{folder}, file.Options{Log: log}); err != nil || len(c.GeneNames) != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	if !strings.Contains(said.String(), "WARN") || !strings.Contains(said.String(), "kind=Peaks") {
		t.Errorf("the log says %q", said)
	}
	// Features without a kind are genes.
	said.Reset()
	put(t, folder, "features.tsv", []byte("g1\tA\ng2\tB\ng3\tC\n"))
	if _, err = counts.Open(t.Context(), []string{folder}, file.Options{Log: log}); err != nil || said.Len() > 0 {
		t.Errorf("%v, the log says %q", err, said)
	}
	folder = t.TempDir()
	matrix := put(t, folder, "single.mtx", mtx("3 2 2", "1 1 5", "2 2 7"))
	if _, err = counts.Open(t.Context(), []string{matrix}, file.Options{Log: log, Columns: []string{"g2"}}); err != nil || !strings.Contains(said.String(), "the genes have no names") {
		t.Errorf("%v, the log says %q", err, said)
	}
	zeros := put(t, folder, "zeros.mtx", mtx("3 2 2", "1 1 0", "2 2 0"))
	wantError(t, errorOf(counts.Open(t.Context(), []string{zeros}, file.Options{})), data.ErrEmpty, "zeros.mtx: counts: got only zeros for 3 genes in 2 cells")
}

// The lists next to a matrix say whether its rows are genes or cells.
func TestOpenCountsByLists(t *testing.T) {
	byGene, byCell := mtx("3 2 5", "1 1 5", "3 1 2", "1 2 1", "2 2 3", "2 2 4"), mtx("2 3 5", "1 1 5", "1 3 2", "2 1 1", "2 2 3", "2 2 4")
	for _, lists := range []tree{
		{"genes.tsv": []byte("x\ny\nz\n")}, {"barcodes.tsv.gz": gz([]byte("a\nb\n"))}, {"features.tsv": []byte("x\tX\ny\tY\nz\tZ\n"), "barcodes.tsv": []byte("a\nb\n")},
		{"cells_x_genes.genes.txt": []byte("x\ny\nz\n"), "cells_x_genes.barcodes.txt": []byte("a\nb\n")},
	} {
		for turned, matrix := range map[string][]byte{"false": byGene, "true": byCell} {
			files := maps.Clone(lists)
			files["cells_x_genes.mtx"] = matrix
			folder := plant(t, files)
			log, said := logged()
			for _, path := range []string{folder, filepath.Join(folder, "cells_x_genes.mtx")} {
				c := need(counts.Open(t.Context(), []string{path}, file.Options{Log: log}))(t)
				wantDense(t, c, []float64{5, 0, 2}, []float64{1, 7, 0})
				if len(lists) == 2 && (!slices.Equal(c.GeneNames, []string{"x", "y", "z"}) || !slices.Equal(c.CellNames, []string{"a", "b"})) {
					t.Errorf("%v: the names are %q, %q", lists, c.GeneNames, c.CellNames)
				}
			}
			if fmt.Sprint(strings.Contains(said.String(), "the rows of the matrix are cells")) != turned {
				t.Errorf("%v, %s: the log says %q", lists, turned, said)
			}
		}
	}
	square := plant(t, tree{"m.mtx": mtx("2 2 2", "2 1 5", "2 2 1"), "genes.tsv": []byte("x\ny\n")})
	wantDense(t, need(counts.Open(t.Context(), []string{square}, file.Options{}))(t), []float64{0, 5}, []float64{0, 1})
}

func TestReadCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		content []byte
		want    [][]float64 // cells × genes
	}{
		"in order":          {mtx("2 2 3", "1 1 5", "2 1 2", "2 2 7"), [][]float64{{5, 2}, {0, 7}}},
		"by gene":           {mtx("2 3 4", "1 1 5", "1 3 9", "2 1 2", "2 2 7"), [][]float64{{5, 2}, {0, 7}, {9, 0}}},
		"backwards":         {mtx("2 3 4", "2 3 1", "1 3 2", "2 1 3", "1 1 4"), [][]float64{{4, 3}, {0, 0}, {2, 1}}},
		"genes backwards":   {mtx("3 1 3", "3 1 1", "2 1 2", "1 1 3"), [][]float64{{3, 2, 1}}},
		"an empty cell":     {mtx("1 3 2", "1 1 1", "1 3 1"), [][]float64{{1}, {0}, {1}}},
		"empty at the ends": {mtx("2 4 2", "1 2 1", "2 3 2"), [][]float64{{0, 0}, {1, 0}, {0, 2}, {0, 0}}},
		"twice":             {mtx("2 2 5", "1 1 5", "2 1 1", "1 1 2", "2 2 3", "2 2 4"), [][]float64{{7, 1}, {0, 7}}},
		"twice, apart":      {mtx("2 2 5", "1 1 5", "2 2 1", "1 1 2", "2 2 3", "1 2 4"), [][]float64{{7, 0}, {4, 4}}},
		"zeros":             {mtx("2 2 4", "1 1 0", "2 1 1", "1 2 0", "1 2 3"), [][]float64{{0, 1}, {3, 0}}},
		"comments and gaps": {mtx("% one", "", "%", "2 1 2", "% two", "1 1 5", "", " \t", "2 1 6", "", "% end"), [][]float64{{5, 6}}},
		"spaces and tabs":   {mtx(" 2\t1  2 ", "\t1 1\t5 ", "2  1 6\r"), [][]float64{{5, 6}}},
		"Windows":           {[]byte("%%MatrixMarket matrix coordinate integer general\r\n1 1 1\r\n1 1 3\r\n"), [][]float64{{3}}},
		"no last line end":  {[]byte("%%matrixmarket MATRIX Coordinate Real General\n1 2 2\n1 1 3\n1 2 12.5"), [][]float64{{3}, {12.5}}},
		"unsigned":          {[]byte("%%MatrixMarket matrix coordinate unsigned-integer general\n% scipy\n2 2 3\n1 1 65535\n2 1 4294967295\n1 2 3\n"), [][]float64{{65535, 1 << 32}, {3, 0}}},
		"double":            {[]byte("%%MatrixMarket matrix coordinate double general\n2 1 1\n2 1 1.5\n"), [][]float64{{0, 1.5}}},
		"pattern":           {[]byte("%%MatrixMarket matrix coordinate pattern general\n3 2 4\n1 1\n3 1\n 2  2 \n3\t2\n"), [][]float64{{1, 0, 1}, {0, 1, 1}}},
		"real": {[]byte("%%MatrixMarket matrix coordinate real general\n7 1 7\n1 1 1.000000e+00\n2 1 .5\n3 1 2.\n4 1 1E3\n5 1 25e-1\n6 1 +4\n7 1 0.0\n"),
			[][]float64{{1, .5, 2, 1000, 2.5, 4, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, content := range [][]byte{tc.content, gz(tc.content)} {
				for _, r := range []io.Reader{bytes.NewReader(content), io.MultiReader(bytes.NewReader(content))} {
					wantDense(t, need(readCounts(r))(t), tc.want...)
				}
			}
		})
	}
}

// Numbers in text are those that strconv reads.
func TestReadCountsNumbers(t *testing.T) {
	s := rng.New(1, rng.Init)
	var want []float64
	lines := []string{""}
	for i := range 3000 {
		v := math.Exp(8 * s.Normal())
		text := fmt.Sprintf([]string{"%.3f", "%g", "%e", "%.0f", "%.18e", "%.12f", "%.1f"}[i%7], v)
		var x float64
		need(fmt.Sscan(text, &x))(t)
		want = append(want, float64(float32(x)))
		lines = append(lines, fmt.Sprintf("%d 1 %s", i+1, text))
	}
	lines[0] = "3000 1 3000"
	wantDense(t, need(readCounts(bytes.NewReader(bytes.Replace(mtx(lines...), []byte("integer"), []byte("real"), 1))))(t), want)
}

// Unsorted and repeated entries give the same bits on any number of cores.
func TestReadCountsInAnyOrder(t *testing.T) {
	s := rng.New(2, rng.Init)
	const cells, genes = 700, 50
	want := make([][]float64, cells)
	var entries []string
	for i := range want {
		want[i] = make([]float64, genes)
		for range s.IntN(60) {
			g, v := s.IntN(genes), 1+s.IntN(9)
			want[i][g] += float64(v)
			entries = append(entries, fmt.Sprintf("%d %d %d", g+1, i+1, v))
		}
	}
	shuffled := make([]string, len(entries))
	for i, j := range s.Perm(len(entries)) {
		shuffled[i] = entries[j]
	}
	sorted := slices.Clone(entries)
	slices.Sort(sorted) // by gene, as text
	for name, order := range map[string][]string{"by cell": entries, "shuffled": shuffled, "by gene": sorted} {
		content := mtx(append([]string{fmt.Sprint(genes, cells, len(entries))}, order...)...)
		withProcs(t, func(t *testing.T, procs int) {
			c, err := readCounts(bytes.NewReader(content))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			wantDense(t, c, want...)
		})
	}
}

func TestReadCountsErrors(t *testing.T) {
	head := func(first string) []byte { return []byte(first + "\n1 1 1\n1 1 1\n") }
	long := gz(mtx(append([]string{"9 2000 2000"}, strings.Split(strings.TrimSpace(strings.Repeat("1 1 1\n", 2000)), "\n")...)...))
	for _, tc := range []struct {
		name    string
		content []byte
		kind    error
		want    string
	}{
		{"empty", nil, data.ErrEmpty, "the file is empty"},
		{"other text", []byte("1,2\n"), data.ErrFormat, `.mtx:1: got "1,2", want %%MatrixMarket matrix coordinate integer general`},
		{"banner", head("%%MatrixMarket matrix coordinate"), data.ErrFormat, `.mtx:1: got "%%MatrixMarket matrix coordinate", want %%MatrixMarket matrix coordinate integer g`},
		{"vector", head("%%MatrixMarket vector coordinate real general"), data.ErrFormat, `.mtx:1: got "%%MatrixMarket vector coordinate real general", want %%MatrixMarket matrix coordin`},
		{"array", head("%%MatrixMarket matrix array real general"), data.ErrUnsupported, `.mtx: matrix: got "array", want coordinate (sparse); save it as an array with np.save`},
		{"value of a pattern", []byte("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2 5\n"), data.ErrFormat, `.mtx:4: got "2 2 5", want a row and a column`},
		{"few of a pattern", []byte("%%MatrixMarket matrix coordinate pattern general\n9 9 80\n1 1\n2 2\n"), data.ErrFormat, `want enough for 80 entries; the file is truncated`},
		{"complex", head("%%MatrixMarket matrix coordinate complex general"), data.ErrUnsupported, `.mtx: values: got "complex", want integer, real, pattern, unsigned-integer or double`},
		{"symmetric", head("%%MatrixMarket matrix coordinate real symmetric"), data.ErrUnsupported, `.mtx: matrix: got "symmetric", want general, with genes as rows and cells as columns; is this a`},
		{"hermitian", head("%%MatrixMarket matrix coordinate real Hermitian"), data.ErrUnsupported, `.mtx: matrix: got "hermitian", want general, with genes as rows and cells as columns; is this a`},
		{"no sizes", mtx("% only"), data.ErrFormat, "the file ends before the numbers of its rows"},
		{"two sizes", mtx("1 1"), data.ErrFormat, `.mtx:2: got "1 1", want the numbers of rows, columns and entries`},
		{"negative size", mtx("1 -1 1"), data.ErrFormat, `.mtx:2: got "1 -1 1", want the numbers of rows, columns and entries`},
		{"huge size", mtx("1 99999999999999999999 1"), data.ErrFormat, `.mtx:2: got "1 99999999999999999999 1", want the numbers of rows, columns and entries`},
		{"no genes", mtx("0 1 1"), data.ErrEmpty, "matrix: got 0 genes (rows), 1 cells (columns) and 1 counts, want at least one of each"},
		{"no entries", mtx("1 1 0"), data.ErrEmpty, "and 0 counts"},
		{"only zeros", mtx("1 1 1", "1 1 0"), data.ErrEmpty, "counts: got only zeros for 1 genes in 1 cells"},
		{"too many rows", mtx("4294967296 1 1", "1 1 1"), data.ErrUnsupported, "matrix: got 4294967296×1, want at most 2147483647 rows and columns"},
		{"unfiltered", mtx("2 6 2", "1 1 1", "1 2 1"), data.ErrEmpty, "matrix: got 6 cells (columns) with 2 counts, want the filtered matrix, with genes as rows"},
		{"claims genes", mtx("2000000000 1 1", "1 1 1"), data.ErrFormat, "genes (rows): got 2000000000, want no more than the 1 counts"},
		{"claims entries", mtx("1 1 1000000", "1 1 1"), data.ErrFormat, "bytes: got 67, want enough for 1000000 entries; the file is truncated"},
		{"truncated", mtx("2 1 3", "1 1 1", "2 1 100000000"), data.ErrFormat, "entries: got 2, want 3; the file is truncated"},
		{"truncated line", mtx("2 1 2", "1 1 1", "2 1"), data.ErrFormat, `.mtx:4: got "2 1", want a row, a column and a value`},
		{"one too many", mtx("2 1 1", "1 1 1", "2 1 1"), data.ErrFormat, `.mtx:4: got "2 1 1", want the end after the 1 entries that the header announces`},
		{"row 0", mtx("1 1 1", "0 1 1"), data.ErrFormat, `.mtx:3: got "0 1 1", want a row up to 1 and a column up to 1, as the header announces`},
		{"row 2", mtx("1 1 1", "2 1 1"), data.ErrFormat, `.mtx:3: got "2 1 1", want a row up to 1 and a column up to 1, as the header announces`},
		{"column 2", mtx("1 1 1", "1 2 1"), data.ErrFormat, `.mtx:3: got "1 2 1", want a row up to 1 and a column up to 1, as the header announces`},
		{"row -1", mtx("1 1 1", "-1 1 1"), data.ErrFormat, `.mtx:3: got "-1 1 1", want a row up to 1 and a column up to 1, as the header announces`},
		{"row of many digits", mtx("1 1 1", "10000000000000000000000000000001 1 1"), data.ErrFormat, `.mtx:3: got "10000000000000000000000000000001 1 1", want a row, a column and a value`},
		{"row of eleven digits", mtx("1 1 1", "10000000001 1 1"), data.ErrFormat, `.mtx:3: got "10000000001 1 1", want a row up to 1 and a column up to 1, as the header announces`},
		{"text", mtx("1 1 1", "1 1 x"), data.ErrFormat, `.mtx:3: got "1 1 x", want a row, a column and a value`},
		{"fraction as an index", mtx("1 1 1", "1 1.5 1"), data.ErrFormat, `.mtx:3: got "1 1.5 1", want a row, a column and a value`},
		{"run together", mtx("1 12 6", "1 1.5"), data.ErrFormat, `.mtx:3: got "1 1.5", want a row, a column and a value`},
		{"four fields", mtx("1 1 1", "1 1 1 1"), data.ErrFormat, `.mtx:3: got "1 1 1 1", want a row, a column and a value`},
		{"negative", mtx("1 1 1", "1 1 -2"), data.ErrFormat, `.mtx:3: got "1 1 -2", want a count of 0 or more; was the matrix scaled or centred?`},
		{"NaN", mtx("1 1 1", "1 1 nan"), data.ErrNotFinite, `.mtx:3: value: got "nan", want a finite number`},
		{"infinite", mtx("1 1 1", "1 1 1e999"), data.ErrFormat, `.mtx:3: got "1 1 1e999", want a row, a column and a value`},
		{"too large", mtx("1 1 1", "1 1 1e30"), data.ErrFormat, `.mtx:3: got "1 1 1e30", want a count`},
		{"many digits", mtx("1 1 1", "1 1 123456789012345678"), data.ErrFormat, `.mtx:3: got "1 1 123456789012345678", want a count`},
		{"long line", mtx("1 1 1", strings.Repeat(" ", 1<<17)+"1 1 1"), data.ErrFormat, `.mtx:3: got "", want a row, a column and a value`},
		{"gzip cut", long[:len(long)-9], data.ErrFormat, "the compressed data end early"},
		{"gzip damaged", append(slices.Clone(long[:len(long)-8]), 1, 2, 3, 4, 5, 6, 7, 8), data.ErrFormat, "the compressed data are damaged"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantError(t, errorOf(readCounts(bytes.NewReader(tc.content))), tc.kind, tc.want) })
	}
}

// No header makes the reader take memory for what is not there.
func TestReadCountsAllocates(t *testing.T) {
	for name, content := range map[string][]byte{
		"cells":   mtx("1 2000000000 1000000000", "1 1999999999 1"),
		"genes":   mtx("2000000000 1 2000000000", "1999999999 1 1"),
		"entries": mtx("1000 1000000 1000000000", "1 1 1"),
	} {
		for _, r := range []io.Reader{bytes.NewReader(content), io.MultiReader(bytes.NewReader(content)), bytes.NewReader(gz(content))} {
			if n := allocated(func() {
				wantError(t, errorOf(readCounts(r)), data.ErrFormat, "")
			}); n > 1<<22 {
				t.Errorf("%s: %d bytes were allocated", name, n)
			}
		}
	}
}

func TestOpenCountsErrors(t *testing.T) {
	matrix := mtx("3 2 4", "1 1 5", "3 1 2", "1 2 1", "2 2 7")
	good := tree{"d/matrix.mtx": matrix, "d/barcodes.tsv": []byte("a\nb\n"), "d/features.tsv": []byte("x\ny\nz\n")}
	with := func(name, text string) tree {
		f := maps.Clone(good)
		f[name] = []byte(text)
		return f
	}
	for _, tc := range []struct {
		name  string
		files tree
		paths []string
		opt   file.Options
		kind  error
		want  string
	}{
		{"no paths", nil, nil, file.Options{}, data.ErrOption, "counts: got no path"},
		{"missing", nil, []string{"gone"}, file.Options{}, fs.ErrNotExist, "gone: no such file or directory"},
		{"other folder", tree{"d/x": nil}, []string{"d"}, file.Options{}, data.ErrUnsupported, "d: got a folder without a matrix (.mtx or .mtx.gz)"},
		{"other file", tree{"d/x.csv": []byte("1,2\n")}, []string{"d/x.csv"}, file.Options{}, data.ErrUnsupported, filepath.Join("d", "x.csv") + ": points: got dense ones"},
		{"label column", good, []string{"d"}, file.Options{LabelColumn: "1"}, data.ErrOption, "d: columns: got a label column or columns to take or drop"},
		{"dropped column", good, []string{"d"}, file.Options{Drop: []string{"1"}}, data.ErrOption, "d: columns: got a label column or columns to take or drop"},
		{"genes", with("d/features.tsv", "x\ny\n"), []string{"d"}, file.Options{}, data.ErrShape,
			"matrix.mtx: got 3 rows and 2 columns, want them as in the lists next to it: d/features.tsv of length 2, d/barcodes.tsv of length 2; move"},
		{"other genes", with("d/features.tsv", "x\n"), []string{"d"}, file.Options{}, data.ErrShape, "next to it: d/features.tsv of length 1, d/barcodes.tsv of length 2;"},
		{"no genes", with("d/features.tsv", ""), []string{"d"}, file.Options{}, data.ErrEmpty, "features.tsv: the file is empty"},
		{"gap", with("d/features.tsv", "x\n\ny\n"), []string{"d"}, file.Options{}, data.ErrFormat, "features.tsv:2: got an empty line, want a name"},
		{"barcodes", with("d/barcodes.tsv", "a\n"), []string{"d"}, file.Options{}, data.ErrShape, "next to it: d/features.tsv of length 3, d/barcodes.tsv of length 1;"},
		{"one list", tree{"d/matrix.mtx": matrix, "d/genes.tsv": []byte("x\n")}, []string{"d"}, file.Options{}, data.ErrShape, "next to it: d/genes.tsv of length 1; move"},
		{"no list", tree{"d/cells_x_genes.mtx": matrix}, []string{"d"}, file.Options{}, data.ErrUnsupported,
			"d: got d/cells_x_genes.mtx without a list of genes or cells next to it (genes.tsv, barcodes.tsv), want one, or the path of the file"},
		{"entry", with("d/matrix.mtx", string(mtx("3 2 1", "4 1 1"))), []string{"d"}, file.Options{}, data.ErrFormat, filepath.Join("d", "matrix.mtx") + `:3: got "4 1 1"`},
		{"labels", with("l", "1\n2\n3\n"), []string{"d"}, file.Options{Labels: []string{"l"}}, data.ErrLabels, "labels: got 3 (l: 3), want 2, one for each point"},
		{"widths", with("e.mtx", string(mtx("2 1 1", "1 1 1"))), []string{"d", "e.mtx"}, file.Options{}, data.ErrShape, "e.mtx: genes: got 2, want 3 as in d"},
		{"names", with("e/matrix.mtx", string(matrix)), []string{"d", "e"}, file.Options{}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(plant(t, tc.files))
			_, err := counts.Open(t.Context(), tc.paths, tc.opt)
			if tc.kind == nil {
				must(t, err)
				put(t, "e", "genes.tsv", []byte("x\nw\nz\n"))
				wantError(t, errorOf(counts.Open(t.Context(), tc.paths, tc.opt)), data.ErrShape, `e: gene 2: got "w", want "y" as in d`)
				return
			}
			wantError(t, err, tc.kind, tc.want)
		})
	}
}

func TestCountsCheck(t *testing.T) {
	good := func() *counts.Matrix {
		return &counts.Matrix{Cells: 2, Genes: 3, CSR: data.CSR{Start: []int{0, 2, 3}, Column: []int32{0, 2, 1}, Value: []float32{1, 2, 3}}}
	}
	must(t, good().Check())
	for name, tc := range map[string]struct {
		spoil func(c *counts.Matrix)
		kind  error
		want  string
	}{
		"nothing":   {func(c *counts.Matrix) { *c = counts.Matrix{} }, data.ErrEmpty, "got 0 counts of 0 genes in 0 cells"},
		"cells":     {func(c *counts.Matrix) { c.Cells = 3 }, data.ErrShape, "3 rows, 3 columns of values, 3 values and 3 entries in Start contradict"},
		"end":       {func(c *counts.Matrix) { c.Start[2] = 2 }, data.ErrShape, "inconsistent"},
		"start":     {func(c *counts.Matrix) { c.Start[1] = 4 }, data.ErrShape, "Start is not in ascending order"},
		"gene":      {func(c *counts.Matrix) { c.Column[1] = 3 }, data.ErrShape, "the columns of row 0 (counted from 0)"},
		"negative":  {func(c *counts.Matrix) { c.Column[0] = -1 }, data.ErrShape, "the columns of row 0"},
		"twice":     {func(c *counts.Matrix) { c.Column[1] = 0 }, data.ErrShape, "the columns of row 0"},
		"zero":      {func(c *counts.Matrix) { c.Value[2] = 0 }, data.ErrFormat, "gene 1 in cell 1 (counted from 0): got 0"},
		"NaN":       {func(c *counts.Matrix) { c.Value[2] = float32(math.NaN()) }, data.ErrNotFinite, "got NaN"},
		"cellnames": {func(c *counts.Matrix) { c.CellNames = []string{"a"} }, data.ErrShape, "got 1 names for 2 cells"},
		"labels":    {func(c *counts.Matrix) { c.Labels = data.NewLabels([]string{"a"}) }, data.ErrLabels, "labels: got 1, want 2, one for each point"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good()
			tc.spoil(c)
			wantError(t, c.Check(), tc.kind, tc.want)
		})
	}
}

// drawCounts draws counts of genes that differ in how much and how often they
// are seen.
func drawCounts(seed uint64, cells, genes int) *counts.Matrix {
	s := rng.New(seed, rng.Init)
	c := &counts.Matrix{Name: "drawn", Cells: cells, Genes: genes, CSR: data.CSR{Start: []int{0}}}
	share, mean := make([]float64, genes), make([]float64, genes)
	for g := range genes {
		share[g], mean[g] = s.Float64(), math.Exp(1.5*s.Normal()+1)
	}
	for i := range cells {
		depth := math.Exp(0.5 * s.Normal())
		for g := range genes {
			if s.Float64() < share[g] {
				c.Column = append(c.Column, int32(g))
				c.Value = append(c.Value, float32(1+math.Floor(-mean[g]*depth*math.Log(1-s.Float64()))))
			}
		}
		c.Start = append(c.Start, len(c.Column))
		c.CellNames = append(c.CellNames, fmt.Sprint("cell", i))
	}
	for g := range genes {
		c.GeneNames = append(c.GeneNames, fmt.Sprint("gene", g))
	}
	return c
}

// naivePreprocessing does on dense numbers what the paper's programs do: they
// look for the offset of a curve by halving an interval.
func naivePreprocessing(x [][]float64, n int) (genes []int, points [][]float64) {
	cells := float64(len(x))
	above := func(offset float64) (found []int) {
		for g := range x[0] {
			detected, sum := 0., 0.
			for i := range x {
				if x[i][g] > 0 {
					detected++
					sum += math.Log2(x[i][g])
				}
			}
			if detected >= 10 && 1-detected/cells > math.Exp(-1.5*(sum/detected-offset))+0.02 {
				found = append(found, g)
			}
		}
		return found
	}
	low, high := -20., 20.
	for range 100 {
		middle := (low + high) / 2
		if genes = above(middle); len(genes) == n {
			break
		} else if len(genes) < n {
			high = middle
		} else {
			low = middle
		}
	}
	sizes := make([]float64, len(x))
	for i, row := range x {
		for _, v := range row {
			sizes[i] += v
		}
	}
	sorted := slices.Clone(sizes)
	sort.Float64s(sorted)
	median := sorted[len(x)/2]
	if len(x)%2 == 0 {
		median = (sorted[len(x)/2-1] + sorted[len(x)/2]) / 2
	}
	for i, row := range x {
		var p []float64
		for _, g := range genes {
			p = append(p, math.Log2(row[g]/sizes[i]*median+1))
		}
		points = append(points, p)
	}
	return genes, points
}

func TestFitCounts(t *testing.T) {
	for _, tc := range []struct{ cells, genes, n int }{{200, 300, 50}, {301, 120, 17}, {1000, 60, 1}, {77, 500, 100}} {
		c := drawCounts(uint64(tc.cells), tc.cells, tc.genes)
		want, points := naivePreprocessing(dense(c), tc.n)
		if len(want) != tc.n {
			t.Fatalf("the naive way finds %d genes", len(want))
		}
		var first *data.Dataset
		withProcs(t, func(t *testing.T, procs int) {
			s := need(counts.Fit(c, tc.n))(t)
			ds := need(s.Apply(c))(t)
			if first != nil {
				sameMatrix(t, ds.Points, first.Points)
				return
			}
			first = ds
			if len(s.Genes) != tc.n || s.Total != tc.genes || ds.Points.N != tc.cells || ds.Points.D != tc.n {
				t.Fatalf("%d of %d genes, points %d×%d", len(s.Genes), s.Total, ds.Points.N, ds.Points.D)
			}
			for j, g := range want {
				if int(s.Genes[j]) != g || ds.Points.Columns[j] != fmt.Sprint("gene", g) {
					t.Fatalf("gene %d is %d (%s), want %d", j, s.Genes[j], ds.Points.Columns[j], g)
				}
			}
			for i, row := range points {
				for j, v := range row {
					if got := ds.Points.Row(i)[j]; math.Abs(float64(got)-v) > 1e-6*(1+v) {
						t.Fatalf("value %d of cell %d is %v, want %v", j, i, got, v)
					}
				}
			}
			if ds.Names[3] != "cell3" || ds.Name != "drawn" || ds.Bytes {
				t.Errorf("the dataset is %q with names %q", ds.Name, ds.Names[:4])
			}
			// A part of the cells comes out as it does among the others.
			part := data.NewMatrix(3, tc.n)
			must(t, s.ApplyTo(part, c, 5))
			sameMatrix(t, part, ds.Points.Rows(5, 8))
		})
	}
}

// By hand: gene 0 is in every cell, gene 2 in too few, gene 1 is 4 in 10 of 20
// cells and gene 3 is 1 in 10 of them.
func TestFitCountsByHand(t *testing.T) {
	c := &counts.Matrix{Cells: 20, Genes: 4, CSR: data.CSR{Start: []int{0}}}
	for i := range 20 {
		add := func(g int32, v float32) { c.Column, c.Value = append(c.Column, g), append(c.Value, v) }
		add(0, 3)
		if i < 10 {
			add(1, 4)
		}
		if i < 9 {
			add(2, 100)
		}
		if i >= 10 {
			add(3, 1)
		}
		c.Start = append(c.Start, len(c.Column))
	}
	// Library sizes: 107 (9 cells), 7 (1), 4 (10); the median is (4+7)/2.
	for n, want := range map[int][]int32{1: {1}, 2: {1, 3}, 1000: {1, 3}} {
		s := need(counts.Fit(c, n))(t)
		if !slices.Equal(s.Genes, want) || s.LibrarySize != 5.5 || s.Names != nil {
			t.Errorf("%d genes: %+v", n, s)
		}
		ds := need(s.Apply(c))(t)
		if got, want := ds.Points.Row(9)[0], float32(math.Log2(4./7*5.5+1)); got != want || ds.Points.Row(10)[0] != 0 {
			t.Errorf("the points are %v and %v, want %v and 0", got, ds.Points.Row(10)[0], want)
		}
	}

	// A cell without counts becomes zeros; if most are without, nothing is known.
	for i := range 3 {
		c.Cells++
		c.Start = append(c.Start, len(c.Column))
		s := need(counts.Fit(c, 1))(t)
		ds, err := s.Apply(c)
		if err != nil || ds.Points.Row(20 + i)[0] != 0 {
			t.Fatalf("%v, %v", ds, err)
		}
	}
}

func TestFitCountsRefuses(t *testing.T) {
	c := drawCounts(1, 40, 30)
	wantError(t, errorOf(counts.Fit(c, 0)), data.ErrOption, "genes to choose: got 0, want at least 1")
	wantError(t, errorOf(counts.Fit(&counts.Matrix{}, 1)), data.ErrEmpty, "got 0 counts")
	few := drawCounts(1, 9, 30)
	wantError(t, errorOf(counts.Fit(few, 5)), data.ErrEmpty, "variable genes: got none, want genes in at least 10 of the 9 cells and zero in more than 2 % of them")
	sparse := drawCounts(1, 40, 30)
	for range 41 {
		sparse.Cells++
		sparse.Start = append(sparse.Start, len(sparse.Column))
	}
	sparse.CellNames = nil
	wantError(t, errorOf(counts.Fit(sparse, 5)), data.ErrEmpty, "counts: got none for most of the 81 cells")
}

// New counts are scaled as the old ones were, their genes found by name, also
// after the scaling has been written and read as JSON.
func TestCountScalingOfOtherCounts(t *testing.T) {
	c := drawCounts(3, 100, 80)
	fitted := need(counts.Fit(c, 20))(t)
	text := need(json.Marshal(fitted))(t)
	var s counts.Scaling
	must(t, json.Unmarshal(text, &s))
	all := need(s.Apply(c))(t)

	// The same cells with the genes in the opposite order and one more.
	other := &counts.Matrix{Cells: c.Cells, Genes: 81, CSR: data.CSR{Start: c.Start, Column: slices.Clone(c.Column), Value: slices.Clone(c.Value)}}
	for i := range c.Cells {
		lo, hi := c.Start[i], c.Start[i+1]
		for k := lo; k < hi; k++ {
			other.Column[k] = 79 - c.Column[lo+hi-1-k]
			other.Value[k] = c.Value[lo+hi-1-k]
		}
	}
	for g := range 80 {
		other.GeneNames = append(other.GeneNames, c.GeneNames[79-g])
	}
	other.GeneNames = append(other.GeneNames, "new")
	got := need(s.Apply(other))(t)
	for i, v := range got.Points.X { // the library sizes are added up in another order
		if math.Abs(float64(v-all.Points.X[i])) > 1e-6 {
			t.Fatalf("value %d is %v, want %v", i, v, all.Points.X[i])
		}
	}

	// Genes of one name are told apart by their places, or not at all.
	names := slices.Clone(other.GeneNames)
	first, second := s.Names[2], s.Names[5]
	s.Names[5] = first
	twice := slices.Clone(c.GeneNames)
	twice[s.Genes[5]] = first
	same := *c
	same.GeneNames = twice
	if got, err := s.Apply(&same); err != nil || !slices.Equal(got.Points.X, all.Points.X) {
		t.Errorf("two genes of one name at their places: %v", err)
	}
	other.GeneNames[slices.Index(names, second)] = first
	refuses := func(kind error, want string) {
		t.Helper()
		wantError(t, errorOf(s.Apply(other)), kind, want)
	}
	refuses(data.ErrShape, fmt.Sprintf("got several called %q", first))
	s.Names[5], other.GeneNames = second, names

	name := s.Names[7]
	at := slices.Index(other.GeneNames, name)
	other.GeneNames[at] = "renamed"
	got = need(s.Apply(other))(t)
	for i := range got.Points.N {
		if got.Points.Row(i)[7] != 0 {
			t.Fatalf("the missing gene is %v in cell %d", got.Points.Row(i)[7], i)
		}
	}
	if missing := s.Missing(other); missing != 1 {
		t.Errorf("%d genes are missing, want 1", missing)
	}
	// It is found by its second name on either side.
	other.OtherNames = slices.Clone(other.GeneNames)
	other.OtherNames[at] = name
	if missing := s.Missing(other); missing != 0 {
		t.Errorf("%d genes are missing by second names", missing)
	}
	s.Others, other.OtherNames = slices.Clone(s.Names), nil
	s.Others[7] = "renamed"
	if missing := s.Missing(other); missing != 0 {
		t.Errorf("%d genes are missing by the model's second names", missing)
	}
	// Unless that is the name of another gene.
	for _, j := range []int{3, 8} {
		s.Others[7] = s.Names[j]
		if missing := s.Missing(other); missing != 1 {
			t.Errorf("%d genes are missing where %q is a second name, too, want 1", missing, s.Names[j])
		}
	}
	s.Others = nil
	for _, name := range s.Names[8:18] {
		other.GeneNames[slices.Index(other.GeneNames, name)] = "gone"
	}
	refuses(data.ErrShape, fmt.Sprintf("got counts without 11 of the model's 20 genes, such as %q", name))
	other.GeneNames = nil
	refuses(data.ErrShape, "genes: got 81, want 80 as in training")
	s.LibrarySize = 0
	refuses(data.ErrOption, "a library size of 0")
	s.LibrarySize, s.Genes[3] = 1, 80
	refuses(data.ErrShape, "scaling of counts: got 20 of 80 genes with 20 names")
	wantError(t, fitted.ApplyTo(data.NewMatrix(2, 20), c, 99), data.ErrShape, "block for cells from 99 on (counted from 0): got 2×20")
	wantError(t, fitted.ApplyTo(data.NewMatrix(2, 19), c, 0), data.ErrShape, "got 2×19, want at most 100 rows of 20 genes")

	wantError(t, s.Check(), data.ErrShape, "scaling of counts: got 20 of 80 genes with 20 names")
}

// FuzzReadCounts compares with a reader that is slow and simple.
func FuzzReadCounts(f *testing.F) {
	f.Add(mtx("2 2 3", "1 1 5", "2 1 2", "2 2 7"))
	f.Add(mtx("% c", "2 3 4", "2 3 1", "", "1 3 2.5e0", "2 1 3", "2 1 4"))
	f.Add(gz(mtx("1 1 1", "1 1 1")))
	f.Add(mtx("010 010 2", "09 010 012", "008\t09  7"))
	f.Add(mtx("1 2000000000 1000000000", "1 1999999999 1"))
	f.Add([]byte("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n"))
	f.Add([]byte("%%MatrixMarket matrix coordinate real general\r\n1 1 1\r\n1 1 .5e-3\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := readCounts(bytes.NewReader(content))
		unsized, errUnsized := readCounts(io.MultiReader(bytes.NewReader(content)))
		if (err == nil) != (errUnsized == nil) {
			t.Fatalf("with its size the file gives %v, without it %v", err, errUnsized)
		}
		if err != nil {
			kinds := []error{data.ErrFormat, data.ErrUnsupported, data.ErrShape, data.ErrNotFinite, data.ErrEmpty}
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
				t.Fatalf("the error %q is of no kind", err)
			}
			return
		}
		if err := c.Check(); err != nil {
			t.Fatalf("unsound counts were returned: %v", err)
		}
		if !slices.Equal(c.Column, unsized.Column) || !slices.Equal(c.Value, unsized.Value) || !slices.Equal(c.Start, unsized.Start) {
			t.Fatal("the size of the file changes the counts")
		}
		if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) || c.Cells*c.Genes > 1<<16 {
			return
		}
		want := make([][]float64, c.Cells)
		for i := range want {
			want[i] = make([]float64, c.Genes)
		}
		seen := 0
		banner, lines, _ := strings.Cut(string(content), "\n")
		pattern := strings.EqualFold(strings.Fields(banner)[3], "pattern")
		for _, line := range strings.Split(lines, "\n") {
			if line = strings.TrimLeft(line, " \t\r"); line == "" || line[0] == '%' {
				continue
			}
			if pattern && seen > 0 {
				line += " 1"
			}
			var row, column int
			var value float64
			if _, err := fmt.Sscanf(line, "%d %d %g", &row, &column, &value); err != nil { // Sscan takes 010 for 8
				t.Fatalf("%q was read, but fmt says: %v", line, err)
			}
			if seen++; seen > 1 {
				want[column-1][row-1] += value
			}
		}
		for i, row := range dense(c) {
			for g, v := range row {
				if math.Abs(v-want[i][g]) > 1e-5*want[i][g]+1e-37 {
					t.Fatalf("the count of gene %d in cell %d is %v, want %v", g, i, v, want[i][g])
				}
			}
		}
	})
}
