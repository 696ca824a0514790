package data_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/rng"
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

func matrix(n, d int, x ...float32) *data.Matrix { return &data.Matrix{N: n, D: d, X: x} }

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

// normal returns n×d standard normal numbers.
func normal(seed uint64, n, d int) *data.Matrix {
	m := data.NewMatrix(n, d)
	s := rng.New(seed, rng.Init)
	for i := range m.X {
		m.X[i] = float32(s.Normal())
	}
	return m
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
