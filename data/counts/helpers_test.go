package counts_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	"cne/data/counts"
	"cne/data/datatest"
	"cne/data/file"
)

// What the tests of the packages below data share.
var (
	must       = datatest.Must
	wantError  = datatest.WantError
	put        = datatest.Put
	plant      = datatest.Plant
	gz         = datatest.Gzip
	sameMatrix = datatest.SameMatrix
	allocated  = datatest.Allocated
	withProcs  = datatest.WithProcs
)

type tree = datatest.Tree

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T { return datatest.Need(value, err) }

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

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
