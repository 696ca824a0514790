package file_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"runtime/debug"
	"testing"

	"cne/data"
	"cne/data/datatest"
	"cne/data/file"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // small heaps are collected less often
	m.Run()
}

// What the tests of the packages below data share.
var (
	must       = datatest.Must
	wantError  = datatest.WantError
	put        = datatest.Put
	plant      = datatest.Plant
	gz         = datatest.Gzip
	idx        = datatest.IDX
	npy        = datatest.NPY
	matrix     = datatest.Matrix
	normal     = datatest.Normal
	sameMatrix = datatest.SameMatrix
	allocated  = datatest.Allocated
	withProcs  = datatest.WithProcs
)

type tree = datatest.Tree

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T { return datatest.Need(value, err) }

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// body writes values in the given order of bytes.
func body(order binary.ByteOrder, values any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, order, values); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func fromCSR(tb testing.TB, n, d int, indptr, indices []int, values []float32) *data.Matrix {
	tb.Helper()
	m, err := data.FromCSR(n, d, indptr, indices, values)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// decode reads points from a stream.
func decode(r io.Reader) (*data.Dataset, error) { return file.Decode(r, file.Options{}) }

// An entry is a file of a zip archive.
type entry struct {
	name    string
	content []byte
}

// zipOf packs files as np.savez does, or as np.savez_compressed.
func zipOf(method uint16, entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: method})
		if err != nil {
			panic(err)
		}
		f.Write(e.content)
	}
	w.Close()
	return b.Bytes()
}
