package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

func TestReadIDXTypes(t *testing.T) {
	be := binary.BigEndian
	for _, tc := range []struct {
		name    string
		content []byte
		want    *data.Matrix
	}{
		{"unsigned byte", idx(0x08, []uint32{2, 2}, 0, 1, 128, 255), matrix(2, 2, 0, 1, 128, 255)},
		{"images are flattened", idx(0x08, []uint32{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8), matrix(2, 4, 1, 2, 3, 4, 5, 6, 7, 8)},
		{"signed byte", idx(0x09, []uint32{1, 2}, 0xff, 0x80), matrix(1, 2, -1, -128)},
		{"int16", idx(0x0b, []uint32{1, 2}, body(be, []int16{-300, 300})...), matrix(1, 2, -300, 300)},
		{"int32", idx(0x0c, []uint32{2, 1}, body(be, []int32{-70000, 70000})...), matrix(2, 1, -70000, 70000)},
		{"float32", idx(0x0d, []uint32{1, 2}, body(be, []float32{1.5, -2.25})...), matrix(1, 2, 1.5, -2.25)},
		{"float64", idx(0x0e, []uint32{1, 2}, body(be, []float64{0.1, -1e30})...), matrix(1, 2, 0.1, -1e30)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, content := range [][]byte{tc.content, gz(tc.content)} {
				ds := need(decode(bytes.NewReader(content)))(t)
				sameMatrix(t, ds.Points, tc.want)
				if want := tc.name == "unsigned byte" || strings.HasPrefix(tc.name, "images"); ds.Bytes != want {
					t.Errorf("Bytes is %v, want %v", ds.Bytes, want)
				}
				if ds.Labels != nil {
					t.Error("there are labels")
				}
			}
		})
	}
}

func TestReadNPYTypes(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	header := func(descr, shape string) string {
		return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	}
	long := npy(header("|u1", "(1, 2)"), 3, 4)
	version2 := append([]byte("\x93NUMPY\x02\x00"), long[8], long[9], 0, 0)
	version2 = append(version2, long[10:]...)
	for _, tc := range []struct {
		name    string
		content []byte
		want    *data.Matrix
	}{
		{"f4", npy(header("<f4", "(2, 1)"), body(le, []float32{1.5, -2})...), matrix(2, 1, 1.5, -2)},
		{"f8", npy(header("<f8", "(1, 2)"), body(le, []float64{0.1, 3})...), matrix(1, 2, 0.1, 3)},
		{"u1", npy(header("|u1", "(1, 2)"), 7, 255), matrix(1, 2, 7, 255)},
		{"i4", npy(header("<i4", "(1, 2)"), body(le, []int32{-5, 1 << 20})...), matrix(1, 2, -5, 1<<20)},
		{"i8", npy(header("<i8", "(1, 2)"), body(le, []int64{-5, 1 << 40})...), matrix(1, 2, -5, 1<<40)},
		{"f2", npy(header("<f2", "(1, 3)"), 0, 0x3e, 0, 0xc0, 1, 0), matrix(1, 3, 1.5, -2, 1./(1<<24))},
		{"big f2", npy(header(">f2", "(1, 1)"), 0x3e, 0), matrix(1, 1, 1.5)},
		{"big f4", npy(header(">f4", "(2, 1)"), body(be, []float32{1.5, -2})...), matrix(2, 1, 1.5, -2)},
		{"big f8", npy(header(">f8", "(1, 2)"), body(be, []float64{0.1, 3})...), matrix(1, 2, 0.1, 3)},
		{"bool", npy(header("|b1", "(1, 3)"), 0, 1, 2), matrix(1, 3, 0, 1, 1)},
		{"i1", npy(header("|i1", "(1, 2)"), 0xff, 0x80), matrix(1, 2, -1, -128)},
		{"an order for bytes, which have none", npy(header("<i1", "(1, 1)"), 0xff), matrix(1, 1, -1)},
		{"i2", npy(header("<i2", "(1, 2)"), body(le, []int16{-300, 300})...), matrix(1, 2, -300, 300)},
		{"big i4", npy(header(">i4", "(1, 2)"), body(be, []int32{-5, 1 << 20})...), matrix(1, 2, -5, 1<<20)},
		{"u2", npy(header(">u2", "(1, 2)"), body(be, []uint16{1, 65535})...), matrix(1, 2, 1, 65535)},
		{"u4", npy(header("<u4", "(1, 2)"), body(le, []uint32{1, 1 << 31})...), matrix(1, 2, 1, 1<<31)},
		{"u8", npy(header("<u8", "(1, 3)"), body(le, []uint64{1, 1 << 63, math.MaxUint64})...), matrix(1, 3, 1, 1<<63, 1<<64)},
		{"three dimensions", npy(header("|u1", "(2, 2, 1)"), 1, 2, 3, 4), matrix(2, 2, 1, 2, 3, 4)},
		{"version 2", version2, matrix(1, 2, 3, 4)},
		{"other order, quotes and spacing", npy(`{"shape":(1,2,),"fortran_order":False ,"descr":"|u1"}`, 3, 4), matrix(1, 2, 3, 4)},
		{"long integers of Python 2", npy(header("|u1", "(1L, 2L)"), 3, 4), matrix(1, 2, 3, 4)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, content := range [][]byte{tc.content, gz(tc.content)} {
				ds := need(decode(bytes.NewReader(content)))(t)
				sameMatrix(t, ds.Points, tc.want)
				if want := strings.Contains(tc.name, "u1") || bytes.Contains(tc.content, []byte("|u1")); ds.Bytes != want {
					t.Errorf("Bytes is %v, want %v", ds.Bytes, want)
				}
			}
		})
	}
}

// TestArrayBoundaries reads arrays whose sizes lie about the length of the
// buffer through which they pass.
func TestArrayBoundaries(t *testing.T) {
	for _, n := range []int{1<<14 - 1, 1 << 14, 1<<14 + 1, 40000} {
		want := normal(uint64(n), n, 1)
		var content bytes.Buffer
		must(t, file.WriteNPY(&content, want))
		for _, r := range []io.Reader{bytes.NewReader(content.Bytes()), bytes.NewReader(gz(content.Bytes())), io.MultiReader(&content)} {
			sameMatrix(t, need(decode(r))(t).Points, want)
		}
	}
}

func TestWriteNPY(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 2}, {1000, 7}, {123456, 1}} {
		m := normal(1, shape[0], shape[1])
		m.X[0] = float32(math.Copysign(0, -1))
		var b bytes.Buffer
		must(t, file.WriteNPY(&b, m))
		content := b.Bytes()
		if string(content[:8]) != "\x93NUMPY\x01\x00" {
			t.Errorf("the file begins with %q", content[:8])
		}
		end := 10 + int(binary.LittleEndian.Uint16(content[8:]))
		if end%64 != 0 || content[end-1] != '\n' {
			t.Errorf("the header ends at %d with %q, want a multiple of 64 and a line end", end, content[end-1])
		}
		if want := body(binary.LittleEndian, m.X); !bytes.Equal(content[end:], want) {
			t.Error("the body is not the values in order")
		}
		sameMatrix(t, need(decode(&b))(t).Points, m)
	}
	if err := file.WriteNPY(io.Discard, &data.Matrix{N: 2, D: 2, X: make([]float32, 3)}); !errors.Is(err, data.ErrShape) {
		t.Errorf("an inconsistent matrix gives %v", err)
	}
	if err := file.WriteNPY(brokenWriter{}, matrix(1, 1, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails gives %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestHostileHeaders gives readers headers that announce far more than
// follows.
func TestHostileHeaders(t *testing.T) {
	huge := []uint32{1 << 30, 1 << 20}
	header := func(shape string) []byte {
		return npy("{'descr': '<f8', 'fortran_order': False, 'shape': "+shape+", }\n", make([]byte, 64)...)
	}
	for _, tc := range []struct {
		name    string
		read    func(io.Reader) (*data.Dataset, error)
		content []byte
	}{
		{"idx", decode, idx(0x08, huge, make([]byte, 64)...)},
		{"idx, product above 63 bits", decode, idx(0x0e, []uint32{1 << 31, 1 << 31, 1 << 31}, make([]byte, 64)...)},
		{"npy", decode, header("(1073741824, 1048576)")},
		{"npy, product above 63 bits", decode, header("(9223372036854775807, 9223372036854775807)")},
		{"npy, product that wraps to 0", decode, header("(4294967296, 4294967296, 4294967296, 4294967296)")},
		{"npy, size above 63 bits", decode, header("(99999999999999999999, 1)")},
		{"npy, long header", decode, []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			streams := map[string]func() io.Reader{
				"sized":   func() io.Reader { return bytes.NewReader(tc.content) },
				"unsized": func() io.Reader { return io.MultiReader(bytes.NewReader(tc.content)) },
				"gzip":    func() io.Reader { return bytes.NewReader(gz(tc.content)) },
			}
			for kind, stream := range streams {
				var err error
				used := allocated(func() { _, err = tc.read(stream()) })
				if !errors.Is(err, data.ErrFormat) {
					t.Errorf("%s: the error is %v, want one of kind ErrFormat", kind, err)
				}
				if used > 4<<20 {
					t.Errorf("%s: %d bytes were allocated for a file of %d", kind, used, len(tc.content))
				}
			}
		})
	}
}

// TestMemory checks that reading takes little more memory than the points.
func TestMemory(t *testing.T) {
	const n, d = 4000, 784
	pixels := make([]byte, n*d)
	for i, v := range normal(2, n*d/8, 1).X {
		pixels[i] = byte(100 + 20*v) // zeros elsewhere, as in images
	}
	content := idx(0x08, []uint32{n, 28, 28}, pixels...)
	packed := gz(content)
	folder := t.TempDir()
	a, b := put(t, folder, "a.gz", packed), put(t, folder, "b.gz", packed)
	for _, tc := range []struct {
		name string
		read func() error
		size int // values that room is made for at most
	}{
		{"plain", func() error { _, err := decode(bytes.NewReader(content)); return err }, n * d},
		{"gzip", func() error { _, err := decode(bytes.NewReader(packed)); return err }, n * d},
		{"two files", func() error { _, err := file.Read(t.Context(), []string{a, b}, file.Options{}); return err }, 2 * n * d},
		// Without a size the room grows by doubling.
		{"unknown size", func() error { _, err := decode(io.MultiReader(bytes.NewReader(content))); return err }, 4 * n * d},
	} {
		var err error
		used := allocated(func() { err = tc.read() })
		must(t, err)
		if limit := uint64(tc.size*4 + 2<<20); used > limit {
			t.Errorf("%s: %d bytes were allocated for %d points, want at most %d", tc.name, used, n, limit)
		}
	}
}

func TestCheck(t *testing.T) {
	nan := float32(math.NaN())
	many := normal(1, 1000, 700)
	many.X[600*700+30], many.X[600*700+31] = nan, nan
	many.X[999*700] = nan
	for _, tc := range []struct {
		name string
		ds   *data.Dataset
		kind error
		want string
	}{
		{"sound", &data.Dataset{Points: matrix(2, 1, 1, 2), Labels: data.NewLabels([]string{"a", "b"})}, nil, ""},
		{"nil", &data.Dataset{}, data.ErrEmpty, "points: got none, want at least one"},
		{"no points", &data.Dataset{Points: matrix(0, 3)}, data.ErrEmpty, "points: got none, want at least one"},
		{"no columns", &data.Dataset{Points: matrix(3, 0)}, data.ErrEmpty, "matrix: got 3×0"},
		{"inconsistent", &data.Dataset{Points: matrix(3, 1, 1)}, data.ErrShape, "matrix of 3×1: got 1 values"},
		{"labels", &data.Dataset{Points: matrix(2, 1, 1, 2), Labels: data.NewLabels([]string{"a"})}, data.ErrLabels, "labels: got 1, want 2, one for each point"},
		{"class", &data.Dataset{Points: matrix(2, 1, 1, 2), Labels: &data.Labels{Class: []int32{0, 1}, Names: []string{"a"}}}, data.ErrLabels, "class of point 2 (counted from 1): got 1, want 0 to 0"},
		{"NaN", &data.Dataset{Points: matrix(2, 2, 1, 2, nan, 3)}, data.ErrNotFinite, "row 2: column 1: got NaN"},
		{"infinity", &data.Dataset{Points: matrix(2, 2, 1, 2, 3, float32(math.Inf(-1)))}, data.ErrNotFinite, "row 2: column 2: got -Inf"},
		{"the first of several", &data.Dataset{Points: many}, data.ErrNotFinite, "row 601: column 31: got NaN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withProcs(t, func(t *testing.T, _ int) { wantError(t, tc.ds.Check(), tc.kind, tc.want) })
		})
	}
}

func TestBuiltin(t *testing.T) {
	ds := need(file.Builtin("mnist10k"))(t)
	if ds.Points.N != 10000 || ds.Points.D != 784 || !ds.Bytes {
		t.Errorf("the points are %d×%d, Bytes is %v", ds.Points.N, ds.Points.D, ds.Bytes)
	}
	if want := []int32{7, 2, 1, 0, 4, 1, 4, 9, 5, 9}; !slices.Equal(ds.Labels.Class[:10], want) {
		t.Errorf("the first labels are %v, want %v", ds.Labels.Class[:10], want)
	}
	counts := make([]int, 10)
	for _, c := range ds.Labels.Class {
		counts[c]++
	}
	// The published numbers of the digits 0 to 9.
	if want := []int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}; !slices.Equal(counts, want) {
		t.Errorf("the classes have %v points, want %v", counts, want)
	}
	wantError(t, errorOf(file.Builtin("mnist")), data.ErrOption, `built-in data set: got "mnist", want "mnist10k"`)
}
