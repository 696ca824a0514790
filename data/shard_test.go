package data_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cne/data"
)

// readShard reads one part in blocks of so many rows, after it has passed over some. The
// names of rows are those that it gives to what it reads.
func readShard(paths []string, opt data.Options, shard data.Shard, size, skip int) (x []float32, labels, rows []string, borders [2]data.Border, err error) {
	b, err := data.OpenShard(context.Background(), paths, opt, shard)
	if err != nil {
		return nil, nil, nil, borders, err
	}
	defer b.Close()
	if err := b.Skip(skip); err != nil {
		return nil, nil, nil, borders, err
	}
	block := data.NewMatrix(size, b.D())
	for {
		n, err := b.Next(block)
		if err == io.EOF {
			borders[0], borders[1] = b.Borders()
			return x, labels, rows, borders, nil
		}
		if err != nil {
			return x, labels, rows, borders, err
		}
		x = append(x, block.X[:n*b.D()]...)
		labels = append(labels, b.Labels()...)
		for range n {
			rows = append(rows, b.Row(skip+len(rows)))
		}
	}
}

// inShards compares the parts of points with the whole: for several numbers of parts, with
// the rows and labels, their names, and the borders.
func inShards(t *testing.T, paths []string, opt data.Options, counts ...int) {
	t.Helper()
	want, wantLabels, err := readBlocks(paths, opt, 3)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := data.OpenBlocks(t.Context(), paths, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	d := want.Points.D
	if n, err := whole.Next(data.NewMatrix(want.Points.N, d)); n != want.Points.N {
		t.Fatal(n, err)
	}
	for _, count := range counts {
		var x []float32
		var labels []string
		var last data.Border
		for i := range count {
			shard := data.Shard{Index: i, Count: count}
			got, gotLabels, rows, borders, err := readShard(paths, opt, shard, 9, 0)
			if err != nil {
				t.Fatalf("part %d of %d: %v", i, count, err)
			}
			for k, row := range rows {
				name, _, _ := strings.Cut(whole.Row(len(x)/d+k), " (row ")
				if row != name {
					t.Fatalf("part %d of %d: row %d is called %q, and %q in the whole", i, count, k, row, name)
				}
			}
			x, labels = append(x, got...), append(labels, gotLabels...)
			if borders != ([2]data.Border{}) {
				if borders[0] != last {
					t.Errorf("part %d of %d begins at %v, and the one before it ends at %v", i, count, borders[0], last)
				}
				last = borders[1]
			}
			n := len(got) / d
			for _, skip := range []int{1, n / 2, n} {
				if skip > n {
					continue
				}
				rest, restLabels, restRows, restBorders, err := readShard(paths, opt, shard, 5, skip)
				if err != nil || !slices.Equal(rest, got[skip*d:]) || gotLabels != nil && !slices.Equal(restLabels, gotLabels[skip:]) || !slices.Equal(restRows, rows[skip:]) || restBorders != borders {
					t.Fatalf("part %d of %d, from row %d on: %v, %v, %v, %v, %v", i, count, skip, rest, restLabels, restRows, restBorders, err)
				}
			}
			if _, _, _, _, err := readShard(paths, opt, shard, 1, n+1); !errors.Is(err, data.ErrEmpty) {
				t.Errorf("part %d of %d: passing over %d of %d rows: %v", i, count, n+1, n, err)
			}
		}
		if !slices.Equal(x, want.Points.X) {
			t.Errorf("%d parts hold %d values, or others than the whole, which has %d", count, len(x), len(want.Points.X))
		}
		if !slices.Equal(labels, wantLabels) {
			t.Errorf("%d parts have the labels %q, the whole has %q", count, labels, wantLabels)
		}
	}
}

// counting is a matrix of which every value is another.
func counting(n, d int) *data.Matrix {
	m := data.NewMatrix(n, d)
	for i := range m.X {
		m.X[i] = float32(i)
	}
	return m
}

func TestShards(t *testing.T) {
	folder := t.TempDir()
	at := func(name string, content []byte) string { return put(t, folder, name, content) }
	m := counting(23, 3)
	var array, table bytes.Buffer
	if err := errors.Join(data.WriteNPY(&array, m), data.WriteCSV(&table, m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	columns := data.NewMatrix(3, 23) // the transpose
	for i := range columns.X {
		columns.X[i] = m.X[i%23*3+i/23]
	}
	fortran := npy("{'descr': '<f4', 'fortran_order': True, 'shape': (23, 3), }", body(binary.LittleEndian, columns.X)...)
	pixels := make([]byte, 23*4)
	for i := range pixels {
		pixels[i] = byte(i)
	}
	images := idx(8, []uint32{23, 2, 2}, pixels...)
	kinds := npy("{'descr': '|u1', 'fortran_order': False, 'shape': (23,), }", pixels[:23]...)
	csr := soundCSR()

	quoted := &strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(quoted, "%d,\"the %s\"\"kind\"\"\n%d,\",%d\r\n", i, strings.Repeat("very ", i%7), i%3, -i)
		if i%5 == 0 {
			quoted.WriteString("\n\r\n")
		}
	}
	labelled := data.Options{LabelColumn: "2"}
	csvPath, npyPath := at("a.csv", table.Bytes()), at("a.npy", array.Bytes())
	packedText := at("packed.csv.gz", gz(table.Bytes()))
	for _, tc := range []struct {
		name  string
		paths []string
		opt   data.Options
	}{
		{"npy", []string{npyPath}, data.Options{}},
		{"npy with an offset", []string{npyPath}, data.Options{Offset: []float64{1, 2, 3}}},
		{"npy, gzip", []string{at("b.npy.gz", gz(array.Bytes()))}, data.Options{}},
		{"npy, Fortran order", []string{at("f.npy", fortran)}, data.Options{}},
		{"npy, Fortran order, gzip", []string{at("f.npy.gz", gz(fortran))}, data.Options{}},
		{"IDX", []string{at("a.idx", images)}, data.Options{}},
		{"IDX, gzip", []string{at("a.idx.gz", gz(images))}, data.Options{}},
		{"npz, stored", []string{at("s.npz", zipOf(zip.Store, entry{"x.npy", array.Bytes()}, entry{"y.npy", kinds}))}, data.Options{}},
		{"npz, deflated", []string{at("d.npz", zipOf(zip.Deflate, entry{"x.npy", array.Bytes()}, entry{"y.npy", kinds}))}, data.Options{}},
		{"CSR", []string{at("c.npz", csr.archive(zip.Deflate)), at("c2.npz", csr.archive(zip.Store))}, data.Options{}},
		{"folder", []string{mnistFolder(t)}, data.Options{}},
		{"Kuzushiji", []string{kuzushiji(t, "kmnist")}, data.Options{}},
		{"table", []string{csvPath}, data.Options{}},
		{"table with labels", []string{csvPath}, labelled},
		{"table without a header", []string{at("n.csv", []byte("1,2\n3,4\n5,6\n7,8\n9,10\n11,12"))}, data.Options{}},
		{"table with a mark", []string{at("m.csv", []byte("\ufeffx,y\r\n1,2\r\n\r\n\r\n3,4\r\n5,6\r\n\r\n"))}, data.Options{}},
		{"table with quotation marks", []string{at("q.csv", []byte(quoted.String()))}, labelled},
		{"table of one row", []string{at("o.csv", []byte("x,y\n1,2\n"))}, data.Options{}},
		{"a row much longer than a part", []string{at("l.csv", []byte("x,kind,y\n1,a,2\n3,"+strings.Repeat("a", 500)+",4\n5,b,6\n"))}, labelled},
		{"tables", []string{csvPath, csvPath, csvPath}, data.Options{}},
		{"tables, gzip", []string{packedText, packedText, packedText}, data.Options{}},
		{"all formats", []string{csvPath, packedText, npyPath, at("e.npy", fortran), packedText}, data.Options{}},
		{"Parquet", []string{parquetFile("arrow")}, data.Options{LabelColumn: "kind"}},
		{"Parquet, lists", []string{parquetFile("arrow-list")}, data.Options{LabelColumn: "kind"}},
		{"Parquet, array", []string{parquetFile("duckdb-array"), parquetFile("duckdb-array")}, data.Options{}},
		{"Parquet, booleans as labels", []string{parquetFile("duckdb-snappy")}, data.Options{LabelColumn: "e", Only: []string{"a", "d"}}},
	} {
		t.Run(tc.name, func(t *testing.T) { inShards(t, tc.paths, tc.opt, 1, 3, 24) })
	}
	t.Run("row groups", func(t *testing.T) { inShards(t, []string{parquetFile("duckdb-groups")}, data.Options{}, 3, 4) })
}

// Quotation marks far away from a cut do not keep it from being found nearby, and a file
// that is all quotation marks is cut at the same rows by all parts.
func TestShardsOfLongTables(t *testing.T) {
	var near, far strings.Builder
	far.WriteString("\"0\",\"a\nb\"\n")
	label := strings.Repeat("long ", 200)
	for i := range 2500 {
		fmt.Fprintf(&far, "%d,%s\n", i, label)
		fmt.Fprintf(&near, "%d,\"a\n%d,%s\"\n", i, i%17, label)
	}
	folder := t.TempDir()
	inShards(t, []string{put(t, folder, "far.csv", []byte(far.String()))}, data.Options{LabelColumn: "2"}, 2)
	inShards(t, []string{put(t, folder, "near.csv", []byte(near.String()))}, data.Options{LabelColumn: "2"}, 2)
}

// The rows of arrays are shared evenly, and row groups where there are enough.
func TestShardsAreEven(t *testing.T) {
	var array bytes.Buffer
	if err := data.WriteNPY(&array, counting(1001, 4)); err != nil {
		t.Fatal(err)
	}
	path := put(t, t.TempDir(), "a.npy", array.Bytes())
	for i := range 10 {
		x, _, _, _, err := readShard([]string{path}, data.Options{}, data.Shard{Index: i, Count: 10}, 50, 0)
		if n := len(x) / 4; err != nil || n != 100 && n != 101 {
			t.Errorf("part %d has %d of 1001 rows, %v", i, n, err)
		}
	}
	// The groups have 2048, 2048 and 904 rows.
	for i, want := range []int{2048, 2048, 904} {
		x, _, _, _, err := readShard([]string{parquetFile("duckdb-groups")}, data.Options{}, data.Shard{Index: i, Count: 3}, 1000, 0)
		if n := len(x) / 3; err != nil || n != want {
			t.Errorf("part %d has %d rows, want %d: %v", i, n, want, err)
		}
	}
}

func TestShardErrors(t *testing.T) {
	folder := t.TempDir()
	table := put(t, folder, "a.csv", []byte("x,y\n1,2\n\n3,4\n5,6\n7,8\n9,z\n"))
	array := put(t, folder, "a.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2), }", 1, 2, 3, 4, 5, 6, 7, 8))
	long := put(t, folder, "long.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2), }", 1, 2, 3, 4, 5, 6, 7, 8, 9))
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, tc := range []struct {
		name         string
		index, count int
		paths        []string
		opt          data.Options
		kind         error
		want         string
	}{
		{"negative", -1, 2, []string{array}, data.Options{}, data.ErrOption, "there is no part -1 of 2; parts are numbered from 0"},
		{"too large", 2, 2, []string{array}, data.Options{}, data.ErrOption, "there is no part 2 of 2"},
		{"no parts", 0, 0, []string{array}, data.Options{}, data.ErrOption, "there is no part 0 of 0"},
		{"pipe", 0, 2, []string{array, pipe}, data.Options{}, data.ErrUnsupported, "pipe: this is no regular file"},
		{"compressed text", 1, 2, []string{put(t, folder, "t.csv.gz", gz([]byte("1,2\n3,4\n")))}, data.Options{}, data.ErrUnsupported, "t.csv.gz: compressed text cannot be read in parts, since its lines are found only from the beginning; unpack it, or divide it into several files"},
		{"no file", 0, 2, []string{array, filepath.Join(folder, "none")}, data.Options{}, os.ErrNotExist, "the data cannot be read"},
		{"an empty file", 1, 2, []string{array, put(t, folder, "empty.csv", nil)}, data.Options{}, data.ErrEmpty, "the file is empty"},
		{"widths", 1, 2, []string{array, parquetFile("arrow-list")}, data.Options{LabelColumn: ""}, data.ErrShape, "its points have 4 values, those of"},
		{"labels", 0, 2, []string{array}, data.Options{Labels: []string{"x"}}, data.ErrOption, "labels from a file of their own"},
		{"the line of a fault", 1, 2, []string{table}, data.Options{}, data.ErrFormat, `a.csv: line 7, column 2 ("y"), both counted from 1: "z" is not a number`},
		{"more than the header says", 3, 4, []string{long}, data.Options{}, data.ErrFormat, "there is more in the file than its header says"},
	} {
		_, _, _, _, err := readShard(tc.paths, tc.opt, data.Shard{Index: tc.index, Count: tc.count}, 1, 0)
		if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is\n\t%v\nwant\n\t%s", tc.name, err, tc.want)
		}
	}
}

// A file that is changed while a part of it is read is found out.
func TestShardOfAFileThatChanges(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte("x,y\n1,2\n3,4\n5,6\n7,8\n"))
	b, err := data.OpenShard(t.Context(), []string{path}, data.Options{}, data.Shard{Index: 0, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	block := data.NewMatrix(100, b.D())
	_, err = b.Next(block)
	if err == nil {
		_, err = b.Next(block)
	}
	wantError(t, err, data.ErrChanged, "a.csv has changed while it was read")
}

func TestFiles(t *testing.T) {
	folder := mnistFolder(t)
	files, err := data.Files([]string{"testdata/petals.csv", folder, "testdata/cells"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f.Path))
		if info, err := os.Stat(f.Path); err != nil || !os.SameFile(info, f.Info) {
			t.Error(f.Path, err)
		}
	}
	if len(names) != 8 || names[0] != "petals.csv" || !strings.HasPrefix(names[2], "train-labels") || !slices.Equal(names[5:], []string{"matrix.mtx", "barcodes.tsv", "features.tsv"}) {
		t.Errorf("the files are %q", names)
	}
	if _, err := data.Files([]string{t.TempDir()}); !errors.Is(err, data.ErrUnsupported) {
		t.Error(err)
	}
}

// Whatever a file holds, its parts hold the same as the whole, or one of them has an error
// as the whole has one.
func FuzzShards(f *testing.F) {
	f.Add([]byte("x,y\n1,2\n3,4\n"), uint8(2), "")
	f.Add([]byte("1;a\n2;\"b\n\"\n\n3;c\n"), uint8(3), "2")
	f.Add([]byte("\"1\",\"a\"\r\n\r\n\"2\",\"b\""), uint8(5), "-1")
	f.Add(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }\n", 1, 2, 3, 4), uint8(3), "")
	f.Add(gz(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }\n", body(binary.LittleEndian, []float64{1, 2})...)), uint8(2), "")
	f.Fuzz(func(t *testing.T, file []byte, count uint8, column string) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		paths, opt, parts := []string{path}, data.Options{LabelColumn: column}, 1+int(count%8)
		if b, err := data.OpenBlocks(t.Context(), paths, opt); err == nil {
			b.Close()
			if b.D() > 1<<16 {
				return
			}
		}
		want, wantLabels, wantErr := readBlocks(paths, opt, 4)
		var x []float32
		var labels []string
		for i := range parts {
			got, gotLabels, _, _, err := readShard(paths, opt, data.Shard{Index: i, Count: parts}, 4, 0)
			if errors.Is(err, data.ErrUnsupported) {
				return
			}
			if err != nil && wantErr == nil {
				t.Fatalf("part %d of %d: %v", i, parts, err)
			}
			if err != nil {
				return
			}
			x, labels = append(x, got...), append(labels, gotLabels...)
		}
		switch {
		case errors.Is(wantErr, data.ErrNotFinite): // which parts deliver
		case wantErr != nil:
			t.Fatalf("all parts are read, but the whole is not: %v", wantErr)
		case !slices.Equal(x, want.Points.X) || !slices.Equal(labels, wantLabels):
			t.Fatalf("%d parts hold %v and %q, the whole %v and %q", parts, x, labels, want.Points.X, wantLabels)
		}
	})
}
