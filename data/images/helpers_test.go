package images_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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

// idx makes an IDX file out of its type, its shape, and its body.
func idx(kind byte, shape []uint32, body ...byte) []byte {
	b := []byte{0, 0, kind, byte(len(shape))}
	for _, n := range shape {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, body...)
}

// npy makes an npy file of version 1.0 out of the text of its header and its
// body.
func npy(header string, body ...byte) []byte {
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), body...)
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
