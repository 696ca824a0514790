// Package atomicfile writes files that appear under their names only when they
// are complete. What goes into a file is up to the caller.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// ErrNotRegular is wrapped by the error for a path at which there is something
// other than a file: a folder, a device, a pipe.
var ErrNotRegular = errors.New("not a regular file")

// Write writes the file at path by way of a temporary one in the same folder,
// which takes the name once its content is complete and on disk. Whoever opens
// path sees the old content or the new, never a part, and a write that fails
// or panics leaves nothing behind. The writer that write gets is buffered.
//
// The file gets the permissions of any new file (0666 less the umask). A
// symbolic link at path is replaced, and what it points to stays as it is.
//
// Errors are those of write, ErrNotRegular, or the file system's. They do not
// always name path: that is left to the caller.
func Write(path string, write func(w io.Writer) error) error {
	// Renaming would put a file in the place of a device or a pipe.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	f, err := createIn(filepath.Dir(path))
	if err != nil {
		return err
	}
	renamed := false
	defer func() {
		if !renamed { // also when write panics
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriterSize(f, 1<<16)
	if err := write(buffer); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	renamed = true
	return nil
}

// createIn makes a new file with a hidden name in a folder. Unlike those of
// os.CreateTemp, its permissions are what the umask gives; and its name is
// short, so that a final name of the greatest length leads to no error.
func createIn(folder string) (*os.File, error) {
	for {
		name := filepath.Join(folder, fmt.Sprintf(".cne-%016x.tmp", rand.Uint64()))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
