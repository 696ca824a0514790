// Package ctxio reads files until a context ends: also those that may never come to an
// end, such as pipes, whose opening waits for somebody to write and whose reading waits
// for what is written.
package ctxio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A File is a file that is read until a context ends: then reading has the context's
// error, also where it waits.
type File struct {
	*os.File
	ctx      context.Context
	waits    bool        // reading may wait for ever, and cannot be woken up
	stopWait func() bool // that of a deadline, nil without one
}

// Open opens a file for reading. If ctx ends before that is done, the error is ctx's;
// the file is then closed as soon as it is open. Other errors are those of os.Open.
func Open(ctx context.Context, path string) (*File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return &File{File: f, ctx: ctx}, nil
	}
	type result struct {
		file *os.File
		err  error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, r.err
		}
		f := &File{File: r.file, ctx: ctx}
		if f.waits = r.file.SetReadDeadline(time.Time{}) != nil; !f.waits {
			f.stopWait = context.AfterFunc(ctx, func() { _ = r.file.SetReadDeadline(time.Unix(1, 0)) })
		}
		return f, nil
	case <-ctx.Done():
		go func() {
			if r := <-opened; r.err == nil {
				r.file.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Read reads until the context ends.
func (f *File) Read(p []byte) (n int, err error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	if f.waits {
		return f.readAside(p)
	}
	n, err = f.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = f.ctx.Err()
	}
	return n, err
}

// readAside reads in a goroutine that is left behind when the context ends.
func (f *File) readAside(p []byte) (int, error) {
	type result struct {
		read []byte
		err  error
	}
	done := make(chan result, 1)
	buffer := make([]byte, len(p)) // p is the caller's again when the context has ended
	go func() {
		n, err := f.File.Read(buffer)
		done <- result{buffer[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.read), r.err
	case <-f.ctx.Done():
		return 0, f.ctx.Err()
	}
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
	if f.stopWait != nil {
		f.stopWait()
	}
	return f.File.Close()
}

// ReadFile reads a whole file. Errors name it, or are ctx's.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	f, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var room int64
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		room = info.Size()
	}
	content := make([]byte, 0, min(room, 1<<30)+1)
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := f.Read(content[len(content):min(cap(content), len(content)+1<<20)])
		content = content[:len(content)+n]
		if err == io.EOF {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// OpenRegular opens a file that must be a regular one, because its bytes are read in
// any order or its size says what it holds. Anything else, whose opening might wait for
// ever, is refused unopened; advice, a clause, says what to give in its place.
func OpenRegular(ctx context.Context, path, advice string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file; %s", path, advice)
	}
	return Open(ctx, path)
}
