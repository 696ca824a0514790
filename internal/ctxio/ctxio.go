// Package ctxio reads files until a context ends, including pipes, which may block forever
// when they are opened or read.
package ctxio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cne/internal/kind"
)

// A File is a file whose reads return the context's error once the context ends, even while
// they block on a pipe.
type File struct {
	*os.File
	ctx  context.Context
	stop func() bool // ends the watch over ctx
}

// Open opens a file for reading. If ctx ends before, for example because a pipe has no
// writer, the error is ctx's. Other errors are as for os.Open.
func Open(ctx context.Context, path string) (_ *File, err error) {
	defer kind.Catch(&err)
	kind.Check(ctx.Err())
	f := kind.Got(Await(ctx, func() (*os.File, error) { return os.Open(path) }))
	// A deadline ends a read that waits. Regular files have none, and need none.
	return &File{f, ctx, context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })}, nil
}

// Read reads until the context ends.
func (f *File) Read(p []byte) (n int, err error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = f.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = f.ctx.Err()
	}
	return n, err
}

// ReadAt reads until the context ends.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// WriteTo reads through Read, which os.File's own does not.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

// Close closes the file.
func (f *File) Close() error {
	f.stop()
	return f.File.Close()
}

// ReadFile reads a whole file. Errors name it, or are ctx's.
func ReadFile(ctx context.Context, path string) (_ []byte, err error) {
	defer kind.Catch(&err)
	f := kind.Got(Open(ctx, path))
	defer f.Close()
	var content bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		content.Grow(int(min(info.Size(), 1<<30)) + bytes.MinRead)
	}
	_, err = content.ReadFrom(struct{ io.Reader }{f})
	kind.Check(err)
	return content.Bytes(), nil
}

// OpenRegular opens a regular file, for random access or for its size. It refuses other
// files without opening them, as that might block forever.
func OpenRegular(ctx context.Context, path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	return Open(ctx, path)
}

// Await returns the results of f, or ctx's error as soon as ctx ends; f then continues in
// its goroutine, and its results are lost. A panic of f is raised again on the calling
// goroutine.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value    T
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
