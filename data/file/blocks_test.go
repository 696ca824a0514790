package file_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// readBlocks reads all points in blocks of size rows.
func readBlocks(paths []string, opt file.Options, size int) (ds *data.Dataset, labels []string, err error) {
	return readBlocksFrom(paths, opt, size, 0)
}

// readBlocksFrom is readBlocks after skipping skip rows.
func readBlocksFrom(paths []string, opt file.Options, size, skip int) (ds *data.Dataset, labels []string, err error) {
	b, err := file.Open(context.Background(), paths, opt)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	if skipped, err := b.Skip(skip); skipped != skip || err != nil {
		return nil, nil, fmt.Errorf("%d of %d rows skipped: %w", skipped, skip, err)
	}
	block := data.NewMatrix(size, b.Width())
	ds = &data.Dataset{Points: data.NewMatrix(0, b.Width())}
	for {
		n, err := b.Next(block)
		if err == io.EOF {
			return ds, labels, nil
		}
		if err != nil {
			return ds, labels, err
		}
		if err := file.CheckFinite(b, skip+ds.Points.N, block.Rows(0, n)); err != nil {
			return ds, labels, err
		}
		ds.Points.X = append(ds.Points.X, block.X[:n*b.Width()]...)
		ds.Points.N += n
		labels = append(labels, b.Labels()...)
	}
}

// sameAsOpen compares what is read in blocks of all sizes with what Open
// reads, errors included.
func sameAsOpen(t *testing.T, paths []string, opt file.Options) {
	t.Helper()
	want, wantErr := file.Read(t.Context(), paths, opt)
	n := 5
	if wantErr == nil {
		n = want.Points.N
	}
	for _, size := range []int{1, 2, 7, n, n + 1} {
		got, labels, err := readBlocks(paths, opt, size)
		if wantErr != nil {
			// In a table, Open names the line of a value that is not finite.
			if errors.Is(wantErr, data.ErrNotFinite) && errors.Is(err, data.ErrNotFinite) {
				continue
			}
			if err == nil || err.Error() != wantErr.Error() {
				t.Fatalf("blocks of %d: the error is\n\t%v\nwant\n\t%v", size, err, wantErr)
			}
			continue
		}
		if err != nil {
			t.Fatalf("blocks of %d: %v", size, err)
		}
		sameMatrix(t, got.Points, want.Points)
		if want.Labels == nil {
			if labels != nil {
				t.Errorf("blocks of %d: there are labels", size)
			}
			continue
		}
		l := data.NewLabels(labels)
		if !slices.Equal(l.Class, want.Labels.Class) || !slices.Equal(l.Names, want.Labels.Names) {
			t.Errorf("blocks of %d: the labels are %q", size, labels)
		}
	}
	if wantErr == nil {
		sameAfterSkip(t, paths, opt)
	}
}

// sameAfterSkip compares what follows rows that are skipped with the same rows of the whole.
func sameAfterSkip(t *testing.T, paths []string, opt file.Options) {
	t.Helper()
	whole, all, err := readBlocks(paths, opt, 7)
	must(t, err)
	n, d := whole.Points.N, whole.Points.D
	for _, skip := range []int{1, n / 2, n - 1} {
		got, labels, err := readBlocksFrom(paths, opt, 3, skip)
		if err != nil || !slices.Equal(got.Points.X, whole.Points.X[skip*d:]) || all != nil && !slices.Equal(labels, all[skip:]) {
			t.Fatalf("after %d of %d rows: %+v, %q, %v", skip, n, got, labels, err)
		}
	}
	b := need(file.Open(t.Context(), paths, opt))(t)
	defer b.Close()
	if skipped, err := b.Skip(n + 1); skipped != n || err != nil {
		t.Errorf("%d of %d rows are skipped: %v", skipped, n, err)
	}
	if got, err := b.Next(data.NewMatrix(1, d)); got != 0 || err != io.EOF {
		t.Errorf("after all rows come %d: %v", got, err)
	}
}

// Rows that are skipped count in the names of rows and lines.
func TestSkippedRowsCount(t *testing.T) {
	table := put(t, t.TempDir(), "a.csv", []byte("x,y\n1,2\n\n3,4\n5,6\n7,inf\n9,z\n"))
	b := need(file.Open(t.Context(), []string{table, table}, file.Options{}))(t)
	defer b.Close()
	if skipped, err := b.Skip(3); skipped != 3 || err != nil {
		t.Fatal(skipped, err)
	}
	block := data.NewMatrix(1, 2)
	n := need(b.Next(block))(t)
	wantError(t, file.CheckFinite(b, 3, block.Rows(0, n)), data.ErrNotFinite, "a.csv:6: column \"y\": got +Inf")
	wantError(t, errorOf(b.Next(block)), data.ErrFormat, "a.csv:7: column")
}

func TestBlocksEqualOpen(t *testing.T) {
	folder := t.TempDir()
	var array bytes.Buffer
	must(t, file.WriteNPY(&array, normal(1, 10, 2)))
	long := normal(2, 12, 5000) // rows that cross the buffer's bounds
	var longNPY, longCSV bytes.Buffer
	must(t, errors.Join(file.WriteNPY(&longNPY, long), file.WriteCSV(&longCSV, long, nil, nil)))
	table := put(t, folder, "a.csv", []byte("x,kind,y\n1,b,2\n\n3,a,4\n5,\"b\",6"))
	npyPath := put(t, folder, "b.npy", array.Bytes())
	packed := put(t, folder, "c.npy.gz", gz(array.Bytes()))
	images := put(t, folder, "d.idx", idx(8, []uint32{3, 1, 2}, 1, 2, 3, 4, 5, 6))
	tabs := put(t, folder, "e.tsv.gz", gz([]byte("1\t2\n3\t4\n")))
	for _, tc := range []struct {
		name  string
		paths []string
		opt   file.Options
	}{
		{"table with labels", []string{table}, file.Options{LabelColumn: "kind"}},
		{"table with quotation marks", []string{put(t, folder, "q.csv", []byte("1,\"a\n2,b\"\r\n\r\n2,\"\"\"c\"\n3,d"))}, file.Options{LabelColumn: "2"}},
		{"table twice", []string{table, table}, file.Options{LabelColumn: "kind"}},
		{"dropped column", []string{table}, file.Options{Drop: []string{"2"}}},
		{"npy", []string{npyPath}, file.Options{}},
		{"npy, gzip", []string{packed}, file.Options{}},
		{"images", []string{images}, file.Options{}},
		{"images twice", []string{images, images}, file.Options{}},
		{"folder", []string{mnistFolder(t)}, file.Options{}},
		{"folders", []string{mnistFolder(t), mnistFolder(t)}, file.Options{}},
		{"all formats", []string{tabs, npyPath, images, packed, tabs}, file.Options{}},
		{"long rows, npy", []string{put(t, folder, "l.npy", longNPY.Bytes())}, file.Options{}},
		{"long rows, table", []string{put(t, folder, "l.csv", longCSV.Bytes())}, file.Options{}},
		{"petals", []string{"testdata/petals.csv"}, file.Options{LabelColumn: "species", Drop: []string{"colour"}}},
		{"columns differ", []string{table, put(t, folder, "f.csv", []byte("y,kind,x\n1,b,2\n"))}, file.Options{LabelColumn: "kind"}},
		{"labels missing", []string{images, mnistFolder(t)}, file.Options{}},
		{"labels missing later", []string{mnistFolder(t), images}, file.Options{}},
	} {
		t.Run(tc.name, func(t *testing.T) { sameAsOpen(t, tc.paths, tc.opt) })
	}
}

// A row of a table that is not finite is delivered and named, and the rows
// around it are not lost.
func TestBlocksDeliverWhatIsNotFinite(t *testing.T) {
	folder := t.TempDir()
	a := put(t, folder, "a.csv", []byte("1,2\n3,4\nnan,6\n"))
	b := put(t, folder, "b.csv", []byte("7,8\n9,-inf\n"))
	blocks := need(file.Open(t.Context(), []string{a, b}, file.Options{}))(t)
	defer blocks.Close()
	block := data.NewMatrix(4, 2)
	n, err := blocks.Next(block)
	if n != 4 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
	if v := block.X; v[4] == v[4] || !slices.Equal(v[5:], []float32{6, 7, 8}) || v[0] != 1 {
		t.Errorf("the rows are %v", v)
	}
	wantError(t, file.CheckFinite(blocks, 0, block.Rows(0, n)), data.ErrNotFinite, a+":3: column 1: got NaN")
	n, err = blocks.Next(block)
	if n != 1 || err != nil || block.X[1] != float32(math.Inf(-1)) {
		t.Fatalf("%d rows, %v, %v", n, err, block.X)
	}
	wantError(t, file.CheckFinite(blocks, 4, block.Rows(0, n)), data.ErrNotFinite, b+":2: column 2")
	for range 2 {
		if n, err := blocks.Next(block); n != 0 || err != io.EOF {
			t.Errorf("after the end there are %d rows, %v", n, err)
		}
	}
	if got, want := blocks.RowName(3), b+":1"; got != want {
		t.Errorf("row 3 is called %q, want %q", got, want)
	}
}

func TestBlocksErrors(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte("1,2\n3,4\nfive,6\n7,8\n"))
	wantError(t, errorOf(file.Open(t.Context(), []string{path}, file.Options{Labels: []string{"l.txt"}})), data.ErrOption, "labels: got the file l.txt, want a column")

	b := need(file.Open(t.Context(), []string{path}, file.Options{}))(t)
	defer b.Close()
	wantError(t, errorOf(b.Next(data.NewMatrix(2, 3))), data.ErrShape, "values per row of the block: got 3, want 2")
	wantError(t, errorOf(b.Next(data.NewMatrix(0, 2))), data.ErrEmpty, "matrix: got 0×2")
	block := data.NewMatrix(10, 2)
	if n, err := b.Next(block); n != 2 || err != nil || block.X[3] != 4 {
		t.Errorf("before the error there are %d rows, %v", n, err)
	}
	for range 2 {
		n, err := b.Next(block)
		if n != 0 {
			t.Errorf("%d rows come with the error", n)
		}
		wantError(t, err, data.ErrFormat, path+`:3: column 1: got "five", want a number`)
	}
}

// TestBlocksMemory reads many more points than it has room for.
func TestBlocksMemory(t *testing.T) {
	const n, d, size = 60000, 50, 100
	folder := t.TempDir()
	zeros := gz(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 50), }", make([]byte, 4*n*d)...))
	table := gz(bytes.Repeat([]byte(strings.Repeat("0,", d)+"a\n"), n))
	for _, tc := range []struct {
		path string
		opt  file.Options
	}{
		{put(t, folder, "a.npy.gz", zeros), file.Options{}},
		{put(t, folder, "a.csv.gz", table), file.Options{LabelColumn: "-1"}},
	} {
		b := need(file.Open(t.Context(), []string{tc.path}, tc.opt))(t)
		block := data.NewMatrix(size, d)
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		rows := 0
		for {
			got, err := b.Next(block)
			rows += got
			if err == io.EOF {
				break
			}
			must(t, err)
			if rows == n/2 || rows == n {
				runtime.GC()
				runtime.ReadMemStats(&now)
				if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
					t.Errorf("%s: after %d rows the heap has grown by %d bytes", tc.path, rows, grown)
				}
			}
		}
		if rows != n {
			t.Errorf("%s: %d rows, want %d", tc.path, rows, n)
		}
		b.Close()
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add([]byte("x,y\n1,2\n3,4\n"), uint8(2), "")
	f.Add([]byte("1;a\n2;\"b\n\"\n3\n"), uint8(1), "2")
	f.Add([]byte("1,nan\n2,3\n"), uint8(3), "")
	f.Add(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", 1, 2, 3, 4), uint8(2), "")
	f.Add(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }\n", 1, 2, 3, 4), uint8(1), "")
	f.Add(gz(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }\n", body(binary.LittleEndian, []float64{1, math.Inf(1)})...)), uint8(1), "")
	f.Fuzz(func(t *testing.T, content []byte, size uint8, column string) {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, content, 0o666))
		opt := file.Options{LabelColumn: column}
		want, wantErr := file.Read(t.Context(), []string{path}, opt)
		// A header may announce rows of any width. Open makes room for them only as values
		// arrive.
		if b, err := file.Open(t.Context(), []string{path}, opt); err == nil {
			b.Close()
			if b.Width() > 1<<16 {
				return
			}
		}
		got, labels, err := readBlocks([]string{path}, opt, 1+int(size))
		switch {
		case wantErr == nil && err == nil:
			sameMatrix(t, got.Points, want.Points)
			if (want.Labels != nil) != (labels != nil) || labels != nil && !slices.Equal(data.NewLabels(labels).Class, want.Labels.Class) {
				t.Fatalf("the labels are %q", labels)
			}
			sameAfterSkip(t, []string{path}, opt)
		case wantErr == nil || err == nil:
			t.Fatalf("got error %v, want %v as from Open", err, wantErr)
		case errors.Is(wantErr, data.ErrNotFinite) || errors.Is(err, data.ErrNotFinite):
			// Which of several defects is found first differs here.
		case err.Error() != wantErr.Error():
			t.Fatalf("the error is\n\t%v\nthat of Open\n\t%v", err, wantErr)
		}
	})
}

func TestNPYWriter(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 2}, {1000, 7}, {30000, 2}} {
		m := normal(1, shape[0], shape[1])
		var want bytes.Buffer
		must(t, file.WriteNPY(&want, m))
		f := need(os.Create(filepath.Join(t.TempDir(), "a.npy")))(t)
		defer f.Close()
		f.WriteString("before") // a file may begin elsewhere than at 0
		w := need(file.NewNPYWriter(f, m.D))(t)
		for lo := 0; lo < m.N; lo += 11 {
			must(t, w.Write(m.Rows(lo, min(m.N, lo+11))))
		}
		wantError(t, w.Write(data.NewMatrix(1, m.D+1)), data.ErrShape, "values per row: got ")
		must(t, w.Close())
		f.WriteString("after")
		got := need(os.ReadFile(f.Name()))(t)
		if !bytes.Equal(got, slices.Concat([]byte("before"), want.Bytes(), []byte("after"))) {
			t.Errorf("%d×%d: the file differs from what WriteNPY writes", m.N, m.D)
		}
	}
}

func TestNPYWriterErrors(t *testing.T) {
	f := need(os.Create(filepath.Join(t.TempDir(), "a.npy")))(t)
	wantError(t, errorOf(file.NewNPYWriter(f, 0)), data.ErrShape, "values per row: got 0, want at least 1")
	w := need(file.NewNPYWriter(f, 2))(t)
	wantError(t, w.Write(data.NewMatrix(0, 2)), data.ErrEmpty, "matrix: got 0×2")
	must(t, w.Write(data.NewMatrix(30000, 2)))
	// What was not completed is refused.
	wantError(t, errorOf(file.Read(t.Context(), []string{f.Name()}, file.Options{})), data.ErrEmpty, "shape: got 0×2, want at least one row and one column")
	f.Close()
	if err := w.Write(data.NewMatrix(30000, 2)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("writing to a closed file gives %v", err)
	}
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closing after it gives %v", err)
	}
	if _, err := file.NewNPYWriter(f, 2); !errors.Is(err, os.ErrClosed) {
		t.Errorf("beginning in a closed file gives %v", err)
	}
}

func TestCSVWriter(t *testing.T) {
	names := []string{"plain", "with, comma", `with "marks"`, "two\nlines", ""}
	labels := make([]string, 100)
	for i := range labels {
		labels[i] = names[i%len(names)]
	}
	for _, d := range []int{1, 2, 3, 5} {
		m := normal(3, len(labels), d)
		for mask := range 4 {
			labeled, named := mask&1 != 0, mask&2 != 0
			var l *data.Labels
			if labeled {
				l = data.NewLabels(labels)
			}
			var all []string
			if named {
				all = labels
			}
			var want, got bytes.Buffer
			must(t, file.WriteCSV(&want, m, l, all))
			w := need(file.NewCSVWriter(&got, d, labeled, named))(t)
			for lo := 0; lo < m.N; lo += 7 {
				hi := min(m.N, lo+7)
				var some, called []string
				if labeled {
					some = labels[lo:hi]
				}
				if named {
					called = labels[lo:hi]
				}
				must(t, w.Write(m.Rows(lo, hi), some, called))
			}
			must(t, w.Close())
			if got.String() != want.String() {
				t.Errorf("%d columns, labels %v, names %v: the table differs from what WriteCSV writes", d, labeled, named)
			}
		}
	}
}

func TestCSVWriterErrors(t *testing.T) {
	wantError(t, errorOf(file.NewCSVWriter(io.Discard, 0, false, false)), data.ErrShape, "values per point: got 0, want at least 1")
	two := matrix(2, 1, 1, 2)
	for _, tc := range []struct {
		name    string
		labeled bool
		m       *data.Matrix
		labels  []string
		kind    error
		want    string
	}{
		{"width", false, matrix(1, 2, 1, 2), nil, data.ErrShape, "values per row: got 2, want 1 as before"},
		{"too few labels", true, two, []string{"a"}, data.ErrLabels, "labels: got 1, want one for each of 2 points in a table with a column for them"},
		{"no labels", true, two, nil, data.ErrLabels, "labels: got 0, want one for each of 2 points in a table with a column for them"},
		{"unwanted labels", false, two, []string{"a", "b"}, data.ErrLabels, "labels: got 2, want one for each of 2 points in a table with a column for them"},
	} {
		w := need(file.NewCSVWriter(io.Discard, 1, tc.labeled, false))(t)
		wantError(t, w.Write(tc.m, tc.labels, nil), tc.kind, tc.want)
	}
	for named, names := range map[bool][]string{true: {"a"}, false: {"a", "b"}} {
		w := need(file.NewCSVWriter(io.Discard, 1, false, named))(t)
		wantError(t, w.Write(two, nil, names), data.ErrShape, "in a table with a column for them")
	}
	w, _ := file.NewCSVWriter(brokenWriter{}, 1, false, false)
	if err := w.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails gives %v", err)
	}
}
