// Package datatest helps to test the packages below data: it makes points and files, and
// compares points and errors.
package datatest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
	"cne/internal/selection"
)

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Need returns the value of a call that must not fail: Need(f())(t).
func Need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
}

// WantError checks that an error is of a kind, and that its text is a single line that
// contains want. A nil kind means no error.
func WantError(t *testing.T, err, kind error, want string) {
	t.Helper()
	switch {
	case kind == nil && err != nil:
		t.Errorf("unexpected error: %v", err)
	case kind == nil:
	case !errors.Is(err, kind) || !strings.Contains(err.Error(), want):
		t.Errorf("the error is\n\t%v\nwant one of kind %q that contains\n\t%s", err, kind, want)
	case strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "%!"):
		t.Errorf("the error is badly written: %q", err.Error())
	}
}

// Put writes a file into a folder and returns its path.
func Put(t testing.TB, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	Must(t, os.WriteFile(path, content, 0o666))
	return path
}

// A Tree maps names of files in a folder to their contents; / separates folders. A name
// that ends in / is a folder.
type Tree map[string][]byte

// Plant writes a tree into a folder of the test.
func Plant(t testing.TB, files Tree) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		folder := selection.If(strings.HasSuffix(name, "/"), path, filepath.Dir(path))
		Must(t, os.MkdirAll(folder, 0o777))
		if folder != path {
			Put(t, root, filepath.FromSlash(name), content)
		}
	}
	return root
}

// Gzip returns the content of a file compressed with gzip.
func Gzip(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// IDX makes an IDX file of its type, its shape and its values.
func IDX(kind byte, shape []uint32, body ...byte) []byte {
	b := []byte{0, 0, kind, byte(len(shape))}
	for _, n := range shape {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, body...)
}

// NPY makes an npy file of version 1.0 of the text of its header and its values.
func NPY(header string, body ...byte) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(b, header...), body...)
}

// Matrix returns n points of d values.
func Matrix(n, d int, x ...float32) *data.Matrix { return &data.Matrix{N: n, D: d, X: x} }

// Normal returns n points of d standard normal numbers.
func Normal(seed uint64, n, d int) *data.Matrix {
	m := data.NewMatrix(n, d)
	s := rng.New(seed, rng.Init)
	for i := range m.X {
		m.X[i] = float32(s.Normal())
	}
	return m
}

// SameMatrix compares shapes and bits.
func SameMatrix(t *testing.T, got, want *data.Matrix) {
	t.Helper()
	if got.N != want.N || got.D != want.D || len(got.X) != len(want.X) {
		t.Fatalf("the matrix is %d×%d with %d values, want %d×%d with %d", got.N, got.D, len(got.X), want.N, want.D, len(want.X))
	}
	for i, v := range got.X {
		if math.Float32bits(v) != math.Float32bits(want.X[i]) {
			t.Fatalf("value %d of point %d is %v, want %v (counted from 0)", i%got.D, i/got.D, v, want.X[i])
		}
	}
}

// Allocated returns the number of bytes that f allocates.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// WithProcs runs f under several GOMAXPROCS.
func WithProcs(t *testing.T, f func(t *testing.T, procs int)) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		f(t, procs)
	}
}
