package file_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// checkRead checks what holds of the result of every reader.
func checkRead(t *testing.T, ds *data.Dataset, err error) {
	t.Helper()
	if err != nil {
		kinds := []error{data.ErrFormat, data.ErrUnsupported, data.ErrShape, data.ErrLabels, data.ErrNotFinite, data.ErrEmpty, data.ErrOption}
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				return
			}
		}
		t.Fatalf("the error %q is of no kind", err)
	}
	if err := ds.Check(); err != nil {
		t.Fatalf("a reader returned unsound data: %v", err)
	}
}

// fuzzArray reads a file as it is and without its size, which must give the
// same.
func fuzzArray(t *testing.T, content []byte, read func(io.Reader) (*data.Dataset, error)) {
	ds, err := read(bytes.NewReader(content))
	checkRead(t, ds, err)
	unsized, errUnsized := read(io.MultiReader(bytes.NewReader(content)))
	checkRead(t, unsized, errUnsized)
	if (err == nil) != (errUnsized == nil) {
		t.Fatalf("with its size the file gives %v, without it %v", err, errUnsized)
	}
	if err == nil {
		sameMatrix(t, unsized.Points, ds.Points)
	}
}

func FuzzReadIDX(f *testing.F) {
	f.Add(idx(8, []uint32{2, 2}, 1, 2, 3, 4))
	f.Add(idx(0x0e, []uint32{1, 1}, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(idx(8, []uint32{1 << 30, 1 << 30}, 1))
	f.Add(idx(8, []uint32{0, 0}))
	f.Add(gz(idx(8, []uint32{1, 2, 2}, 1, 2, 3, 4)))
	f.Fuzz(func(t *testing.T, content []byte) { fuzzArray(t, content, decode) })
}

func FuzzReadNPY(f *testing.F) {
	f.Add(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n", 1, 2, 3, 4))
	f.Add(npy(`{"shape":(1L,1),"fortran_order":False,"descr":"<f8"}`, make([]byte, 8)...))
	f.Add(npy("{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': ()}"))
	f.Add([]byte("\x93NUMPY\x02\x00\x10\x00\x00\x00{'shape': (1,)} "))
	f.Add(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }\n", 1, 2, 3, 4))
	f.Add(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 1), }", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))
	f.Fuzz(func(t *testing.T, content []byte) { fuzzArray(t, content, decode) })
}

// FuzzReadCSV compares the fields of lines with those from encoding/csv: every column but
// the first is read as the label in turn.
func FuzzReadCSV(f *testing.F) {
	f.Add("1,a\n2,b\n", ",")
	f.Add("x;y\n1;\"a;\"\"b\"\"\nc\"\n\n2;\"\"\r\n", ";")
	f.Add("1\t\"a\r\nb\"\t3\n", "\t")
	f.Add("\ufeff1,a\"b\n2,\"c", ",")
	f.Add("sep=|\n# by me\n#\n# a|b\n1|c", "|")
	f.Add("2 3\n\" 1 2 3\n\"a \\\" b\" 1 2 4\n", " ")
	f.Fuzz(func(t *testing.T, text, separator string) {
		opt := file.Options{}
		ds, err := file.Decode(strings.NewReader(text), opt)
		checkRead(t, ds, err)

		text = strings.TrimPrefix(text, "\ufeff")
		if len(separator) != 1 || !strings.Contains(",;\t|", separator) || strings.HasPrefix(strings.TrimLeft(text, "\r\n"), "#") {
			return
		}
		opt.Header = file.HeaderNone
		opt.LabelColumn = "2"
		r := csv.NewReader(strings.NewReader(text))
		r.Comma = rune(separator[0])
		rows, errReference := r.ReadAll()
		if len(rows) > 0 {
			for c := range rows[0] {
				if c > 1 {
					opt.Drop = append(opt.Drop, "-1")
					break
				}
			}
		}
		ds, err = file.Decode(strings.NewReader("sep="+separator+"\n"+text), opt)
		checkRead(t, ds, err)
		if err != nil {
			return
		}
		if errReference != nil {
			t.Fatalf("encoding/csv refuses what was read: %v", errReference)
		}
		if ds.Points.N != len(rows) {
			t.Fatalf("%d rows were read, want %d", ds.Points.N, len(rows))
		}
		for i, row := range rows {
			got := ds.Labels.Names[ds.Labels.Class[i]]
			want := strings.TrimSpace(row[1])
			if ds.Labels.Value == nil && got != want {
				t.Fatalf("the label of row %d is %q, want %q", i, got, want)
			}
		}
	})
}
