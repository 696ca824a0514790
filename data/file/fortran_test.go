package file_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// orders returns the array of values of a type, which are counted from 0 in C order, in
// C and in Fortran order.
func orders(descr string, size int, value func(i int) []byte, shape ...int) (c, fortran []byte) {
	total := 1
	var sizes strings.Builder
	for _, n := range shape {
		total *= n
		fmt.Fprintf(&sizes, "%d, ", n)
	}
	rows, columns := make([]byte, 0, total*size), make([]byte, total*size)
	index := make([]int, len(shape))
	for i := range total {
		rows = append(rows, value(i)...)
		at, step := 0, 1
		for k, j := range index {
			at += step * j
			step *= shape[k]
		}
		copy(columns[at*size:], value(i))
		for k := len(index) - 1; k >= 0; k-- {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
	header := "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n"
	return npy(fmt.Sprintf(header, descr, "False", sizes.String()), rows...), npy(fmt.Sprintf(header, descr, "True", sizes.String()), columns...)
}

// fortranOf is orders for float64 values that float32 holds.
func fortranOf(shape ...int) (c, fortran []byte) {
	return orders("<f8", 8, func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(i))) }, shape...)
}

// An array in Fortran order is the points that it is in C order, wherever it comes from.
func TestFortranOrder(t *testing.T) {
	for _, shape := range [][]int{{3, 2}, {1, 7}, {7, 1}, {5, 3, 4}, {2, 3, 1, 5}, {100, 17}, {1000, 35}, {66, 8200}} {
		c, fortran := fortranOf(shape...)
		want := need(decode(bytes.NewReader(c)))(t)
		for name, r := range map[string]io.Reader{
			"in any order": bytes.NewReader(fortran), "gzip": bytes.NewReader(gz(fortran)), "unsized": io.MultiReader(bytes.NewReader(fortran)),
		} {
			got, err := decode(r)
			if err != nil {
				t.Fatalf("%v, %s: %v", shape, name, err)
			}
			sameMatrix(t, got.Points, want.Points)
		}
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			path := put(t, t.TempDir(), "a.npz", zipOf(method, entry{"x.npy", fortran}))
			sameAsOpen(t, []string{path}, file.Options{})
			sameMatrix(t, need(file.Read(t.Context(), []string{path}, file.Options{}))(t).Points, want.Points)
		}
	}
	for size, descr := range map[int]string{1: "|i1", 2: ">i2", 4: ">i4"} {
		c, fortran := orders(descr, size, func(i int) []byte {
			return binary.BigEndian.AppendUint32(nil, uint32(i%100))[4-size:]
		}, 50, 20)
		want := need(decode(bytes.NewReader(c)))(t)
		sameMatrix(t, need(decode(bytes.NewReader(fortran)))(t).Points, want.Points)
	}
}

// Reading a seekable file holds little at a time and allocates nothing for sizes that a
// header only claims.
func TestFortranOrderAllocates(t *testing.T) {
	const n, d = 120000, 32
	_, fortran := orders("<f4", 4, func(int) []byte { return []byte{0, 0, 0x80, 0x3f} }, n, d)
	for name, content := range map[string][]byte{"a.npy": fortran, "a.npz": zipOf(zip.Store, entry{"x.npy", fortran})} {
		path := put(t, t.TempDir(), name, content)
		fortran = nil
		block := data.NewMatrix(1000, d)
		if used := allocated(func() {
			b := need(file.Open(t.Context(), []string{path}, file.Options{}))(t)
			defer b.Close()
			rows := 0
			for {
				got, err := b.Next(block)
				if err == io.EOF {
					break
				}
				must(t, err)
				rows += got
			}
			if rows != n {
				t.Errorf("%s: %d rows", name, rows)
			}
		}); used > 8<<20 {
			t.Errorf("%s: %d bytes were allocated for blocks of a file of %d", name, used, len(content))
		}
	}
	claims := npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1048576, 1048576), }", 1, 2, 3, 4)
	for name, r := range map[string]io.Reader{"sized": bytes.NewReader(claims), "gzip": bytes.NewReader(gz(claims)), "unsized": io.MultiReader(bytes.NewReader(claims))} {
		if used := allocated(func() {
			wantError(t, errorOf(decode(r)), data.ErrFormat, "truncated")
		}); used > 4<<20 {
			t.Errorf("%s: %d bytes were allocated", name, used)
		}
	}
}

func TestFortranOrderDamaged(t *testing.T) {
	_, fortran := fortranOf(40, 3)
	cut, longer := fortran[:len(fortran)-9], append(bytes.Clone(fortran), 0)
	changed := zipOf(zip.Store, entry{"x.npy", fortran})
	changed[len(changed)/2] ^= 1
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		content []byte
		message string
	}{
		"cut.npy":     {cut, "values: got 118, want 120 (shape 40×3); the file is truncated"},
		"cut.npy.gz":  {gz(cut), "values: got 118, want 120"},
		"long.npy":    {longer, "got more bytes than the header announces"},
		"long.npy.gz": {gz(longer), "got more bytes than the header announces"},
		"changed.npz": {changed, "the array x.npy: the compressed data are damaged"},
	} {
		wantError(t, errorOf(file.Read(t.Context(), []string{put(t, folder, name, tc.content)}, file.Options{})), data.ErrFormat, name+": "+tc.message)
	}
}

// A float16 is a sign, 5 bits of exponent with a bias of 15, and 10 of fraction.
func TestHalf(t *testing.T) {
	var all []byte
	var want []float32
	for h := range 1 << 16 {
		exponent, fraction := h>>10&31, float64(h&1023)
		if exponent == 31 {
			continue
		}
		v := math.Ldexp(1+fraction/1024, exponent-15)
		if exponent == 0 {
			v = math.Ldexp(fraction/1024, -14)
		}
		all = binary.LittleEndian.AppendUint16(all, uint16(h))
		want = append(want, float32(math.Copysign(v, float64(0x7fff-h))))
	}
	ds := need(decode(bytes.NewReader(npy(fmt.Sprintf("{'descr': '<f2', 'fortran_order': False, 'shape': (%d, 1), }", len(want)), all...))))(t)
	sameMatrix(t, ds.Points, matrix(len(want), 1, want...))
	for _, h := range []uint16{0x7c00, 0xfc00, 0x7e00} { // ±∞, NaN
		wantError(t, errorOf(decode(bytes.NewReader(npy("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 1), }", byte(h), byte(h>>8))))), data.ErrNotFinite, "row 1: column 1")
	}
}

// Labels from arrays have the text that NumPy prints.
func TestArrayLabels(t *testing.T) {
	characters := func(order binary.ByteOrder, text string) []byte {
		b := make([]byte, 4*4)
		for i, c := range []rune(text) {
			order.PutUint32(b[4*i:], uint32(c))
		}
		return b
	}
	le, be := binary.LittleEndian, binary.BigEndian
	for _, tc := range []struct {
		descr string
		body  []byte
		want  []string // in order; nil: refused
		fault string
	}{
		{"|b1", []byte{1, 0, 1}, []string{"True", "False", "True"}, ""},
		{">i2", body(be, []int16{-3, 5, 7}), []string{"-3", "5", "7"}, ""},
		{"<u8", body(le, []uint64{math.MaxUint64, 1, 2}), []string{"18446744073709551615", "1", "2"}, ""},
		{"<f2", []byte{0, 0x3e, 0, 0, 0, 0xc0}, []string{"1.5", "0", "-2"}, ""},
		{">f4", body(be, []float32{0.1, 2, 3}), []string{"0.1", "2", "3"}, ""},
		{"|S3", []byte("ab\x00c\x00\x00\xc3\xa9 "), []string{"ab", "c", "é"}, ""},
		{"<U4", slices.Concat(characters(le, "Öl"), characters(le, "abcd"), characters(le, "")), []string{"Öl", "abcd", ""}, ""},
		{">U4", slices.Concat(characters(be, "😀"), characters(be, "b"), characters(be, "c")), []string{"😀", "b", "c"}, ""},
		{"|S2", []byte("abc\xffde"), nil, `label 2: got "c\xff", want UTF-8`},
		{"<U1", []byte{1, 0, 0, 0, 0, 0xd8, 0, 0, 1, 0, 0, 0}, nil, "label 2: got the character 0xd800"},
		{"<U99999", nil, nil, "characters of a label: got 99999"},
		{"|O", nil, nil, "dtype: got object"},
		{"<U0", nil, nil, "dtype"},
		{"<M8[ns]", nil, nil, "dtype"},
		{"<c8", nil, nil, "dtype"},
		{"|f4", nil, nil, "dtype"},
		{"f4", nil, nil, "dtype"},
	} {
		folder := t.TempDir()
		points := put(t, folder, "x.npy", byteArray("(3, 1)", 1, 2, 3))
		labels := put(t, folder, "y.npy", npy("{'descr': '"+tc.descr+"', 'fortran_order': True, 'shape': (3,), }", tc.body...))
		ds, err := file.Read(t.Context(), []string{points}, file.Options{Labels: []string{labels}})
		if tc.want == nil {
			if err == nil || !strings.Contains(err.Error(), "y.npy: ") || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: the error is %v, want one with %q", tc.descr, err, tc.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.descr, err)
			continue
		}
		var got []string
		for _, c := range ds.Labels.Class {
			got = append(got, ds.Labels.Names[c])
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: the labels are %q, want %q", tc.descr, got, tc.want)
		}
	}
	wantError(t, errorOf(decode(bytes.NewReader(npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1, 1), }", 'a', 0, 0, 0)))), data.ErrUnsupported, "values: got text, want numbers; x.astype('float32') converts it")
}

// Unsigned integers above the int64 range keep their differences.
func TestUnsignedOffset(t *testing.T) {
	const base = 1 << 63
	values := make([]uint64, 200)
	for i := range values {
		values[i] = base + 4096*(uint64(i)%100)
	}
	ds := need(decode(bytes.NewReader(npy("{'descr': '<u8', 'fortran_order': True, 'shape': (200, 1), }", body(binary.LittleEndian, values)...))))(t)
	if ds.Points.Offset == nil {
		t.Fatal("the points have no offset")
	}
	for i := range values {
		if got, want := ds.Points.X[i]-ds.Points.X[0], float32(4096*(i%100)); got != want {
			t.Fatalf("point %d differs from the first by %v, want %v", i, got, want)
		}
	}
}

// FuzzArrayLabels reads labels of any bytes.
func FuzzArrayLabels(f *testing.F) {
	f.Add(npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", 'a', 0, 0, 0))
	f.Add(npy("{'descr': '|S2', 'fortran_order': True, 'shape': (1, 1), }", 'a', 0))
	f.Add(npy("{'descr': '>f2', 'fortran_order': False, 'shape': (1,), }", 0x7c, 0))
	f.Fuzz(func(t *testing.T, content []byte) {
		folder := t.TempDir()
		points := put(t, folder, "x.npy", byteArray("(1, 1)", 1))
		ds, err := file.Read(t.Context(), []string{points}, file.Options{Labels: []string{put(t, folder, "y.npy", content)}})
		checkRead(t, ds, err)
	})
}
