package counts_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cne/data"
	"cne/data/counts"
	"cne/data/file"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// put writes a file below a folder of the test and returns its path.
func put(t testing.TB, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	must(t, os.WriteFile(path, content, 0o666))
	return path
}

func gz(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// sameMatrix compares shapes and bits.
func sameMatrix(t *testing.T, got, want *data.Matrix) {
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

// allocated returns the bytes that f allocates, all in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// withProcs runs f under several GOMAXPROCS.
func withProcs(t *testing.T, f func(t *testing.T, procs int)) {
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		f(t, procs)
	}
}

// wantError checks the kind of an error and that its text contains want; no
// kind means no error.
func wantError(t *testing.T, err, kind error, want string) {
	t.Helper()
	if kind == nil {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is\n\t%v\nwant one of kind %q that contains\n\t%s", err, kind, want)
		return
	}
	if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "%!") {
		t.Errorf("the error is badly written: %q", text)
	}
}

// tree is a folder of files by their names, in which / separates folders.
type tree map[string][]byte

// plant writes a tree into a folder of the test. A name that ends in / is a
// folder.
func plant(t testing.TB, files tree) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		must(t, os.MkdirAll(folder, 0o777))
		if folder != path {
			put(t, root, filepath.FromSlash(name), content)
		}
	}
	return root
}

// logged returns a logger and what it was told.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

// readCounts reads the counts that a stream holds.
func readCounts(r io.Reader) (*counts.Matrix, error) {
	f, err := os.CreateTemp("", "*.mtx")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if _, err := io.Copy(f, r); err != nil {
		return nil, err
	}
	f.Close()
	return counts.Open(context.Background(), []string{f.Name()}, file.Options{})
}
