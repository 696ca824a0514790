package file

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// The heads of arrays tell their size, the first rows of a table about how many there
// are, and of what tells nothing nothing is known.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	packed := func(content []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(content); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var array bytes.Buffer
	if err := WriteNPY(&array, data.NewMatrix(70, 6)); err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	rows.WriteString("a,b,c,kind\n")
	const n = 100000
	for i := range n {
		fmt.Fprintf(&rows, "%d,%g,-1.5,x\n", i%97, float64(i)/7)
	}
	npy := write("a.npy", array.Bytes())
	opt := Options{LabelColumn: "kind"}
	stay := Options{StreamFrom: 1, StreamAbove: 5}
	stored := func(n, d int, storage data.Storage) data.Size {
		size := data.SizeOf(n, d)
		size.Storage = storage
		return size
	}
	pixels := []byte("\x00\x00\x08\x02\x00\x00\x00\x09\x00\x00\x00\x06" + strings.Repeat("x", 54))
	idx := write("a.idx", pixels)
	for name, tc := range map[string]struct {
		paths []string
		opt   Options
		want  data.Size
	}{
		"an array":                 {[]string{npy}, Options{}, data.SizeOf(70, 6)},
		"a packed array":           {[]string{write("a.npy.gz", packed(array.Bytes()))}, Options{}, data.SizeOf(70, 6)},
		"arrays":                   {[]string{npy, npy, npy}, Options{}, data.SizeOf(210, 6)},
		"a short table":            {[]string{write("short.csv", []byte("1,2\n3,4\n5,6\n"))}, Options{}, data.SizeOf(3, 2)},
		"an array that stays":      {[]string{npy}, stay, stored(70, 6, data.InFiles)},
		"a packed one that cannot": {[]string{write("b.npy.gz", packed(array.Bytes()))}, stay, data.SizeOf(70, 6)},
		"bytes that stay":          {[]string{idx}, stay, stored(9, 6, data.InFiles)},
		"packed bytes":             {[]string{write("a.idx.gz", packed(pixels))}, stay, stored(9, 6, data.AsBytes)},
		"files and packed bytes":   {[]string{npy, write("b.idx.gz", packed(pixels))}, stay, data.SizeOf(79, 6)},
		"columns after each other": {[]string{write("f.npy", bytes.Replace(array.Bytes(), []byte("'fortran_order': False"), []byte("'fortran_order': True "), 1))}, stay, data.SizeOf(70, 6)},
		"an array and a table":     {[]string{npy, write("six.csv", []byte("1,2,3,4,5,6\n"))}, stay, data.SizeOf(71, 6)},
		"narrow points":            {[]string{npy}, Options{StreamFrom: 1, StreamAbove: 6}, data.SizeOf(70, 6)},
		"fewer points than values": {[]string{write("few.idx", slices.Concat([]byte("\x00\x00\x08\x02\x00\x00\x00\x05\x00\x00\x00\x06"), make([]byte, 30)))}, stay, data.SizeOf(5, 6)},
		"a missing file":           {[]string{filepath.Join(dir, "gone")}, Options{}, data.UnknownSize},
		"a truncated file":         {[]string{write("cut.npy", array.Bytes()[:200])}, Options{}, data.UnknownSize},
		"no table":                 {[]string{write("b.csv", []byte("1,2\n3,x\n"))}, Options{}, data.Size{Low: 1, High: math.MaxInt32, Likely: 1, Width: 2}},
	} {
		if got := Size(t.Context(), tc.paths, tc.opt); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	long := write("long.csv", []byte(rows.String()))
	if s := Size(t.Context(), []string{long}, opt); s.Width != 3 || s.Low > n || s.High < n || math.Abs(float64(s.Likely)/n-1) > 0.1 || s.Known() {
		t.Errorf("a long table: %+v", s)
	}
	if s := Size(t.Context(), []string{write("long.csv.gz", packed([]byte(rows.String())))}, opt); s.Width != 3 || s.Low > n || s.High != math.MaxInt32 {
		t.Errorf("a packed table: %+v", s)
	}
}

func TestBuiltinSize(t *testing.T) {
	if s := Size(t.Context(), []string{"builtin:mnist10k"}, Options{}); !s.Known() || s.Low != 10000 || s.Width != 784 {
		t.Error(s)
	}
	if s := Size(t.Context(), []string{"builtin:mnist"}, Options{}); s != data.UnknownSize {
		t.Error(s)
	}
}
