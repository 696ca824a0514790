package file_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/data/images"
)

// mnistFolder makes a folder with two training images and one test image.
func mnistFolder(t *testing.T) string {
	folder := t.TempDir()
	put(t, folder, "train-images-idx3-ubyte.gz", gz(idx(8, []uint32{2, 1, 2}, 1, 2, 3, 4)))
	put(t, folder, "train-labels-idx1-ubyte.gz", gz(idx(8, []uint32{2}, 9, 0)))
	put(t, folder, "t10k-images-idx3-ubyte", idx(8, []uint32{1, 1, 2}, 5, 6))
	put(t, folder, "t10k-labels-idx1-ubyte", idx(8, []uint32{1}, 9))
	return folder
}

func TestOpenFolder(t *testing.T) {
	folder := mnistFolder(t)
	ds := need(file.Read(t.Context(), []string{folder}, file.Options{}))(t)
	sameMatrix(t, ds.Points, matrix(3, 2, 1, 2, 3, 4, 5, 6))
	if !slices.Equal(ds.Labels.Names, []string{"0", "9"}) || !slices.Equal(ds.Labels.Class, []int32{1, 0, 1}) || !slices.Equal(ds.Labels.Value, []float64{9, 0, 9}) {
		t.Errorf("the labels are %+v", ds.Labels)
	}
	if ds.Name != filepath.Base(folder) || !ds.Bytes {
		t.Errorf("the name is %q, Bytes is %v", ds.Name, ds.Bytes)
	}

	// Options.Labels replace the folder's labels.
	ds = need(file.Read(t.Context(), []string{folder}, file.Options{Name: "mine", Labels: []string{put(t, t.TempDir(), "l.txt", []byte("a\nb\na\n"))}}))(t)
	if ds.Name != "mine" || !slices.Equal(ds.Labels.Names, []string{"a", "b"}) || ds.Labels.Value != nil {
		t.Errorf("the name is %q, the labels are %+v", ds.Name, ds.Labels)
	}

	os.Remove(filepath.Join(folder, "t10k-images-idx3-ubyte"))
	wantError(t, errorOf(file.Read(t.Context(), []string{folder}, file.Options{})), data.ErrUnsupported, "got a folder of MNIST without t10k-images-idx3-ubyte")
}

func TestOpenConcatenates(t *testing.T) {
	folder := t.TempDir()
	var array bytes.Buffer
	must(t, file.WriteNPY(&array, matrix(1, 2, 0.5, 1.5)))
	paths := []string{
		put(t, folder, "first.tsv.gz", gz([]byte("1\t2\n3\t4\n"))),
		put(t, folder, "second.npy", array.Bytes()),
		put(t, folder, "third", idx(8, []uint32{2, 2}, 7, 8, 9, 10)),
		put(t, folder, "fourth.csv", []byte("x,y\n11,12\n")),
	}
	labels := []string{
		put(t, folder, "l.idx", idx(8, []uint32{2}, 3, 200)),
		put(t, folder, "l.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", body(binary.LittleEndian, []int64{-1, 3})...)),
		put(t, folder, "l.txt.gz", gz([]byte("digit\r\n10\r\n3\r\n\r\n"))),
	}
	ds := need(file.Read(t.Context(), paths, file.Options{Labels: labels}))(t)
	sameMatrix(t, ds.Points, matrix(6, 2, 1, 2, 3, 4, 0.5, 1.5, 7, 8, 9, 10, 11, 12))
	if ds.Name != "first" || ds.Bytes {
		t.Errorf("the name is %q, Bytes is %v", ds.Name, ds.Bytes)
	}
	if want := []string{"-1", "3", "10", "200"}; !slices.Equal(ds.Labels.Names, want) {
		t.Errorf("the names are %q, want %q", ds.Labels.Names, want)
	}
	if want := []float64{3, 200, -1, 3, 10, 3}; !slices.Equal(ds.Labels.Value, want) {
		t.Errorf("the values are %v, want %v", ds.Labels.Value, want)
	}
}

// TestOpenErrors holds everything that can be wrong with files.
func TestOpenErrors(t *testing.T) {
	complexes := npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1), }", 0, 0, 0, 0)
	dtype := func(d string) []byte {
		return npy("{'descr': '"+d+"', 'fortran_order': False, 'shape': (1, 1), }", make([]byte, 8)...)
	}
	bytesOf := func(shape string, b ...byte) []byte {
		return npy("{'descr': '|u1', 'fortran_order': False, 'shape': "+shape+", }", b...)
	}
	packed := gz(idx(8, []uint32{1, 40}, []byte("The quick brown fox jumps over lazy dogs")...))
	broken := slices.Clone(packed)
	broken[len(broken)-6] ^= 1 // in the checksum
	noise := make([]byte, 300000)
	for i, v := range normal(1, len(noise), 1).X {
		noise[i] = byte(100 * v)
	}
	long := gz(idx(8, []uint32{3, 100000}, noise...))
	for _, tc := range []struct {
		name  string
		files tree
		paths []string
		opt   file.Options
		kind  error
		want  string
	}{
		{"no path", nil, nil, file.Options{}, data.ErrOption, "data: got no path"},
		{"missing file", nil, []string{"gone.csv"}, file.Options{}, fs.ErrNotExist, "gone.csv: no such file"},
		{"missing labels", tree{"a.csv": []byte("1\n")}, []string{"a.csv"}, file.Options{Labels: []string{"gone.txt"}}, fs.ErrNotExist, "gone.txt"},
		{"empty file", tree{"a.csv": nil}, []string{"a.csv"}, file.Options{}, data.ErrEmpty, "a.csv: the file is empty"},
		{"empty gzip", tree{"a.csv.gz": gz(nil)}, []string{"a.csv.gz"}, file.Options{}, data.ErrEmpty, "a.csv.gz: the file is empty"},
		{"folder without data", tree{"d/x": nil}, []string{"d"}, file.Options{}, data.ErrUnsupported, "d: got a folder of other files, want the four of MNIST"},
		{"unknown binary", tree{"a.bin": []byte("abc\x00def")}, []string{"a.bin"}, file.Options{}, data.ErrUnsupported, "a.bin: the file is neither IDX nor npy nor Parquet nor text"},
		{"npz: no zip", tree{"a.npz": []byte("PK\x03\x04....")}, []string{"a.npz"}, file.Options{}, data.ErrFormat, "a.npz: the npz archive cannot be read"},
		{"npz: within gzip", tree{"a.npz.gz": gz(zipOf(zip.Store, entry{"x.npy", bytesOf("(1, 1)", 1)}))}, []string{"a.npz.gz"}, file.Options{}, data.ErrUnsupported, "a.npz.gz: the file is a zip archive within a gzip stream"},
		{"npz: a table", tree{"a.zip": zipOf(zip.Store, entry{"a.csv", []byte("1,2\n")})}, []string{"a.zip"}, file.Options{}, data.ErrUnsupported, "a.zip: the file is a zip archive without arrays (.npy); unpack it"},
		{"npz: other names", tree{"a.npz": zipOf(zip.Store, entry{"train.npy", bytesOf("(1, 1)", 1)}, entry{"test.npy", bytesOf("(1, 1)", 1)})}, []string{"a.npz"}, file.Options{}, data.ErrFormat, `a.npz: arrays: got "train", "test", want one of images, x, X (np.savez(file, x=points, labels=y))`},
		{"npz: labels as points", tree{"a.npz": zipOf(zip.Store, entry{"arr_0.npy", bytesOf("(2,)", 1, 2)})}, []string{"a.npz"}, file.Options{}, data.ErrShape, "a.npz: the array arr_0.npy: shape: got 2, want a row for each point; reshape points of one value to 2×1, and one point to 1×2, or name the file as labels"},
		{"npz: too few labels", tree{"a.npz": zipOf(zip.Store, entry{"x.npy", bytesOf("(2, 1)", 1, 2)}, entry{"y.npy", bytesOf("(1,)", 1)})}, []string{"a.npz"}, file.Options{}, data.ErrLabels, "a.npz: the array y.npy: labels: got 1, want 2, one for each point"},
		{"npz: labels of two dimensions", tree{"a.npz": zipOf(zip.Store, entry{"x.npy", bytesOf("(2, 1)", 1, 2)}, entry{"y.npy", bytesOf("(1, 2)", 1, 2)})}, []string{"a.npz"}, file.Options{}, data.ErrShape, "a.npz: the array y.npy: labels: got an array of shape 1×2, want one dimension; are these the points?"},
		{"npz: truncated", tree{"a.npz": zipOf(zip.Deflate, entry{"x.npy", bytesOf("(2, 2)", 1, 2, 3)})}, []string{"a.npz"}, file.Options{}, data.ErrFormat, "a.npz: the array x.npy: values: got 3, want 4 (shape 2×2); the file is truncated"},
		{"npz: labels truncated", tree{"a.npz": zipOf(zip.Deflate, entry{"x.npy", bytesOf("(2, 2)", 1, 2, 3, 4)}, entry{"labels.npy", bytesOf("(2,)", 1)})}, []string{"a.npz"}, file.Options{}, data.ErrFormat, "a.npz: the array labels.npy: values: got 1, want 2 (shape 2); the file is truncated"},
		{"JSON with a name that shells and Python change", tree{"it's $1.json": []byte("[[1,2],\n[3,4]]\n")}, []string{"it's $1.json"}, file.Options{}, data.ErrUnsupported, `it\x27s \x241.json'))).to_csv('`},
		{"npz: second of two", tree{"a.csv": []byte("1\n"), "b.npz": zipOf(zip.Store, entry{"x.npy", complexes})}, []string{"a.csv", "b.npz"}, file.Options{}, data.ErrUnsupported, `b.npz: the array x.npy: dtype: got "<c8", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"npz: column", tree{"a.npz": zipOf(zip.Store, entry{"x.npy", bytesOf("(1, 1)", 1)})}, []string{"a.npz"}, file.Options{LabelColumn: "1"}, data.ErrOption, "a.npz: columns: got a label column or columns to take or drop, categories or dates, want a table"},
		{"npz: only some with labels", tree{"a.npz": zipOf(zip.Store, entry{"x.npy", bytesOf("(1, 1)", 1)}, entry{"y.npy", bytesOf("(1,)", 1)}), "b.csv": []byte("1\n")}, []string{"a.npz", "b.csv"}, file.Options{}, data.ErrLabels, "b.csv: labels: got none, want some"},
		{"labels: npz of other names", tree{"a.csv": []byte("1\n"), "l.npz": zipOf(zip.Store, entry{"a.npy", bytesOf("(1,)", 1)}, entry{"b.npy", bytesOf("(1,)", 1)})}, []string{"a.csv"}, file.Options{Labels: []string{"l.npz"}}, data.ErrFormat, `l.npz: arrays: got "a", "b", want one of labels, y (np.savez(file, x=points, labels=y))`},
		{"UTF-16 without a mark", tree{"a.csv": []byte("a\x00,\x00b\x00\n\x00")}, []string{"a.csv"}, file.Options{}, data.ErrUnsupported, "a.csv: the file is neither IDX nor npy nor Parquet nor text in UTF-8; save the points with numpy.save, or as CSV; if it is text in UTF-16, want UTF-8; save it"},
		{"labels in UTF-16 without a mark", tree{"a.csv": []byte("1\n2\n"), "b.txt": []byte("x\x00\n\x00y\x00\n\x00")}, []string{"a.csv"}, file.Options{Labels: []string{"b.txt"}}, data.ErrUnsupported, "b.txt: the file is neither IDX nor npy nor Parquet nor text in UTF-8"},
		{"options: header", tree{"a.csv": []byte("1\n")}, []string{"a.csv"}, file.Options{Header: "maybe"}, data.ErrOption, `header: got "maybe", want auto, yes or no`},
		{"options: labels twice", tree{"a.csv": []byte("1\n")}, []string{"a.csv"}, file.Options{LabelColumn: "1", Labels: []string{"b"}}, data.ErrOption, `labels: got column "1" and the file b, want one of the two`},
		{"options: category of an array", tree{"a.idx": idx(8, []uint32{1, 1}, 1)}, []string{"a.idx"}, file.Options{Categories: []string{"1"}}, data.ErrOption, "a.idx: columns: got a label column or columns to take or drop, categories or dates, want a table"},
		{"options: column of an array", tree{"a.idx": idx(8, []uint32{1, 1}, 1)}, []string{"a.idx"}, file.Options{LabelColumn: "1"}, data.ErrOption, "a.idx: columns: got a label column or columns to take or drop, categories or dates, want a table"},

		{"gzip cut", tree{"a.gz": packed[:len(packed)-12]}, []string{"a.gz"}, file.Options{}, data.ErrFormat, "a.gz: the compressed data end early"},
		{"gzip cut within the values", tree{"a.gz": long[:len(long)/2]}, []string{"a.gz"}, file.Options{}, data.ErrFormat, ", want 300000 (shape 3×100000); the file is truncated"},
		{"gzip header cut", tree{"a.gz": packed[:5]}, []string{"a.gz"}, file.Options{}, data.ErrFormat, "a.gz: the compressed data end early"},
		{"gzip damaged", tree{"a.gz": broken}, []string{"a.gz"}, file.Options{}, data.ErrFormat, "a.gz: the compressed data are damaged"},
		{"gzip of text cut", tree{"a.csv.gz": gz([]byte(strings.Repeat("1,2\n3,4\n", 100)))[:30]}, []string{"a.csv.gz"}, file.Options{}, data.ErrFormat, "a.csv.gz: the compressed data end early"},

		{"idx: wrong magic", tree{"a.idx": []byte("abcdefgh")}, []string{"a.idx"}, file.Options{}, data.ErrFormat, "a.idx: IDX magic number: got 61 62 63 64, want 00 00, then 08, 09, 0b, 0c, 0d or 0e"},
		{"idx: unknown type", tree{"a": idx(7, []uint32{1, 1}, 1)}, []string{"a"}, file.Options{}, data.ErrFormat, "00 00 07 02"},
		{"idx: three bytes", tree{"a": {0, 0, 8}}, []string{"a"}, file.Options{}, data.ErrFormat, "a: IDX header: got 3 bytes, want 4 or more"},
		{"idx: sizes cut", tree{"a": {0, 0, 8, 2, 0, 0, 0, 1}}, []string{"a"}, file.Options{}, data.ErrFormat, "a: IDX header: got an early end, want the sizes of 2 dimensions"},
		{"idx: truncated", tree{"a": idx(8, []uint32{2, 2}, 1, 2, 3)}, []string{"a"}, file.Options{}, data.ErrFormat, "a: values: got 3, want 4 (shape 2×2); the file is truncated"},
		{"idx: truncated inside of gzip", tree{"a.gz": gz(idx(8, []uint32{2, 2}, 1, 2, 3))}, []string{"a.gz"}, file.Options{}, data.ErrFormat, "a.gz: values: got 3, want 4 (shape 2×2); the file is truncated"},
		{"idx: too long", tree{"a": idx(8, []uint32{1, 2}, 1, 2, 3)}, []string{"a"}, file.Options{}, data.ErrFormat, "a: got more bytes than the header announces, want the end of the file"},
		{"idx: no dimension", tree{"a": idx(8, nil, 1)}, []string{"a"}, file.Options{}, data.ErrShape, "a: shape: got a single number, want a row for each point"},
		{"idx: labels as points", tree{"a": idx(8, []uint32{3}, 1, 2, 3)}, []string{"a"}, file.Options{}, data.ErrShape, "a: shape: got 3, want a row for each point; reshape points of one value to 3×1, and one point to 1×3, or name the file as labels"},
		{"idx: no points", tree{"a": idx(8, []uint32{0, 28, 28})}, []string{"a"}, file.Options{}, data.ErrEmpty, "a: shape: got 0×28×28, want at least one row and one column"},
		{"idx: no columns", tree{"a": idx(8, []uint32{5, 0})}, []string{"a"}, file.Options{}, data.ErrEmpty, "a: shape: got 5×0, want at least one row and one column"},

		{"npy: wrong magic", tree{"a.npy": []byte("1,2,3,4,5,6\n")}, []string{"a.npy"}, file.Options{}, data.ErrFormat, `a.npy: first bytes: got "1,2,3,", want "\x93NUMPY" of an npy file`},
		{"npy: header cut", tree{"a": complexes[:40]}, []string{"a"}, file.Options{}, data.ErrFormat, "a: the file ends within its npy header"},
		{"npy: version", tree{"a": []byte("\x93NUMPY\x07\x00xxxx")}, []string{"a"}, file.Options{}, data.ErrUnsupported, "a: version of the npy format: got 7, want 1 to 3"},
		{"npy: complex numbers", tree{"a": complexes}, []string{"a"}, file.Options{}, data.ErrUnsupported, `a: dtype: got "<c8", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},
		{"npy: objects", tree{"a": dtype("|O")}, []string{"a"}, file.Options{}, data.ErrUnsupported, "a: dtype: got object, want numbers, or text for labels; numpy.array(x.tolist(), 'float32') or x.astype(str) converts it"},
		{"npy: fields", tree{"a": npy("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", make([]byte, 8)...)}, []string{"a"}, file.Options{}, data.ErrUnsupported, `a: dtype: got the fields "[('a', '<f4'), ('b', '<f4')]", want numbers; numpy.lib.recfunctions.structured_to_unstructured(x) converts them`},
		{"npy: text", tree{"a": dtype("<U5")}, []string{"a"}, file.Options{}, data.ErrUnsupported, "a: values: got text, want numbers; x.astype('float32') converts it"},
		{"npy: structured", tree{"a": npy("{'descr': [('x', '<f4'), ('y', [('z', '<f4')])], 'fortran_order': False, 'shape': (1,), }")}, []string{"a"}, file.Options{}, data.ErrUnsupported, `dtype: got the fields "[('x', '<f4'), ('y', [('z', '<f4')])]", want numbers; numpy.lib.recfunctions.structured_to_unstructured(x) converts them`},
		{"npy: no dictionary", tree{"a": npy("rubbish")}, []string{"a"}, file.Options{}, data.ErrFormat, `a: npy header "rubbish": got "rubbish", want a dictionary`},
		{"npy: key missing", tree{"a": npy("{'descr': '<f4', 'shape': (1, 1)}")}, []string{"a"}, file.Options{}, data.ErrFormat, `npy header "{'descr': '<f4', 'shape': (1, 1)}": fortran_order: got none, want one`},
		{"npy: negative size", tree{"a": bytesOf("(-1, 2)")}, []string{"a"}, file.Options{}, data.ErrFormat, `npy header "{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 2), }": shape: got "-1", want a size`},
		{"npy: truncated", tree{"a": bytesOf("(2, 2)", 1)}, []string{"a"}, file.Options{}, data.ErrFormat, "a: values: got 1, want 4 (shape 2×2); the file is truncated"},
		{"npy: one dimension", tree{"a": bytesOf("(2,)", 1, 2)}, []string{"a"}, file.Options{}, data.ErrShape, "shape: got 2, want a row for each point; reshape points of one value to 2×1, and one point to 1×2, or name the file as labels"},
		{"npy: NaN", tree{"a": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", append(make([]byte, 12), 0, 0, 0xc0, 0x7f)...)}, []string{"a"}, file.Options{}, data.ErrNotFinite, "a: row 2: column 2: got NaN"},
		{"npy: too large for float32", tree{"a": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", body(binary.LittleEndian, 1e300)...)}, []string{"a"}, file.Options{}, data.ErrNotFinite, "a: row 1: column 1: got +Inf"},

		{"several: widths differ", tree{"a.csv": []byte("1,2\n"), "b.idx": idx(8, []uint32{1, 3}, 1, 2, 3)}, []string{"a.csv", "b.idx"}, file.Options{}, data.ErrShape, "b.idx: values per point: got 3, want 2 as in a.csv"},
		{"several: columns differ", tree{"a.csv": []byte("x,y\n1,2\n"), "b.csv": []byte("y,x\n1,2\n")}, []string{"a.csv", "b.csv"}, file.Options{}, data.ErrShape, `b.csv: data column 1: got "y", want "x" as in a.csv`},
		{"several: NaN in the second", tree{"a.csv": []byte("1\n2\n"), "b.csv": []byte("3\nnan\n")}, []string{"a.csv", "b.csv"}, file.Options{}, data.ErrNotFinite, "b.csv:2: column 1: got NaN"},
		{"several: second damaged", tree{"a.csv": []byte("1\n"), "b.npy": complexes}, []string{"a.csv", "b.npy"}, file.Options{}, data.ErrUnsupported, `b.npy: dtype: got "<c8", want bool or numbers of up to 64 bits, or text for labels; x.astype('float32') or x.astype(str) converts it`},

		{"labels: too few", tree{"a.csv": []byte("1\n2\n3\n"), "l.txt": []byte("a\nb\n")}, []string{"a.csv"}, file.Options{Labels: []string{"l.txt"}}, data.ErrLabels, "labels: got 2 (l.txt: 2), want 3, one for each point"},
		{"labels: one too many, no heading", tree{"a.csv": []byte("1\n2\n"), "l.txt": []byte("a\nb\na\n")}, []string{"a.csv"}, file.Options{Labels: []string{"l.txt"}}, data.ErrLabels, "labels: got 3 (l.txt: 3), want 2, one for each point"},
		{"labels: one number too many", tree{"a.csv": []byte("1\n2\n"), "l.txt": []byte("7\n8\n9\n")}, []string{"a.csv"}, file.Options{Labels: []string{"l.txt"}}, data.ErrLabels, "labels: got 3 (l.txt: 3), want 2, one for each point"},
		{"labels: images", tree{"a.csv": []byte("1\n2\n"), "l": idx(8, []uint32{2, 2}, 1, 2, 3, 4)}, []string{"a.csv"}, file.Options{Labels: []string{"l"}}, data.ErrShape, "l: labels: got an array of shape 2×2, want one dimension; are these the points?"},
		{"labels: truncated", tree{"a.csv": []byte("1\n2\n"), "l": idx(8, []uint32{2}, 1)}, []string{"a.csv"}, file.Options{Labels: []string{"l"}}, data.ErrFormat, "l: values: got 1, want 2 (shape 2); the file is truncated"},
		{"labels: endless line", tree{"a.csv": []byte("1\n"), "l.txt": bytes.Repeat([]byte("a"), 1<<17)}, []string{"a.csv"}, file.Options{Labels: []string{"l.txt"}}, data.ErrFormat, "l.txt:1: got more than 65536 bytes, want one item on each line"},
		{"labels: infinity", tree{"a.csv": []byte("1\n"), "l.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0x80, 0x7f)}, []string{"a.csv"}, file.Options{Labels: []string{"l.npy"}}, data.ErrFormat, "l.npy: label 1: got +Inf, want a finite number, or NaN for none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(plant(t, tc.files))
			wantError(t, errorOf(file.Read(t.Context(), tc.paths, tc.opt)), tc.kind, tc.want)
			if len(tc.opt.Labels) == 0 {
				sameAsOpen(t, tc.paths, tc.opt)
			}
		})
	}
}

func TestOpenPartlyLabeled(t *testing.T) {
	plain := put(t, t.TempDir(), "plain.idx", idx(8, []uint32{1, 1, 2}, 1, 2))
	err := errorOf(file.Read(t.Context(), []string{mnistFolder(t), plain}, file.Options{}))
	wantError(t, err, data.ErrLabels, "plain.idx: labels: got none, want some")
	if errors.Is(err, data.ErrFormat) {
		t.Error("the error is of two kinds")
	}
}

func TestTrimEnding(t *testing.T) {
	for path, want := range map[string]string{
		"a.npy": "a", "a.csv.gz": "a", "a.TSV": "a", "a.gz": "a", "dir.csv/a": "dir.csv/a", "a-0.5": "a-0.5", "a.npy.npy": "a.npy",
		"a": "a", ".npy": ".npy", "dir/.csv": "dir/.csv", "t10k-images.idx": "t10k-images", "a.b.txt": "a.b", "a.dat": "a.dat",
	} {
		if got := file.TrimEnding(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Reading ends with its context, whichever kind of file is read.
func TestReadingEndsWithItsContext(t *testing.T) {
	t.Chdir(plant(t, tree{
		"points.csv": []byte("a,b\n1,2\n3,4\n"),
		"counts.mtx": []byte("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 3\n"),
	}))
	ctx, cancel := context.WithCancel(t.Context())
	blocks := need(file.Open(ctx, []string{"points.csv"}, file.Options{}))(t)
	defer blocks.Close()
	cancel()
	for name, err := range map[string]error{
		"points": errorOf(file.Read(ctx, []string{"points.csv"}, file.Options{})),
		"blocks": errorOf(file.Open(ctx, []string{"points.csv"}, file.Options{})),
		"counts": errorOf(counts.Open(ctx, []string{"counts.mtx"}, file.Options{})),
		"images": errorOf(images.Open(ctx, []string{"points.csv"}, images.Options{})),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
