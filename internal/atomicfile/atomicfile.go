// Package atomicfile writes files that appear under their names only when they are
// complete.
//
// A process that is killed while it writes leaves a temporary file in the same folder,
// with a name that matches Pattern. The next process that writes in the folder removes
// it; so does RemoveAbandoned.
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
	"runtime"
	"sync"
	"syscall"
	"time"

	"cne/internal/kind"
)

// ErrNotRegular is wrapped by the error for a path that is not a file but, for example, a
// folder, a device or a pipe.
var ErrNotRegular = errors.New("not a regular file")

// Pattern matches the names of temporary files, as filepath.Match takes it.
const Pattern = prefix + "*" + suffix

const (
	prefix = ".cne-"
	suffix = ".tmp"
)

// Write writes the file at path through a temporary file in the same folder, which is
// renamed once it is complete and on disk. Readers of path see the old content or the
// new, never a part, even after the process was killed or the power failed; once Write
// has returned without an error, they see the new. A write that fails or panics leaves no
// temporary file. The writer passed to write is buffered.
//
// The file gets the permissions of any new file (0666 less the umask). A symbolic link at
// path is replaced; its target does not change.
//
// It returns write's errors, ErrNotRegular, or the file system's errors. They do not
// always name path.
func Write(path string, write func(w io.Writer) error) error {
	return WriteSeek(path, func(w io.WriteSeeker) error { return write(w) })
}

// WriteSeek is Write for content with a part, such as a header with the number of rows,
// that is known only at the end. The writer is buffered, and each Seek empties the
// buffer.
func WriteSeek(path string, write func(w io.WriteSeeker) error) error {
	// Renaming would put a file where there is a device or a pipe.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	return put(path, write, Rename)
}

// Create is Write for a file that must not exist: then the error is fs.ErrExist's, and
// of several processes that create it one succeeds.
func Create(path string, write func(w io.Writer) error) error {
	return put(path, func(w io.WriteSeeker) error { return write(w) }, link)
}

// link gives a temporary file a name that must not exist.
func link(temporary, path string) error {
	err := os.Link(temporary, path)
	if err == nil {
		return os.Remove(temporary)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no links: an empty file claims the name.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), Rename(temporary, path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Rename is os.Rename, which on Windows it tries again for two seconds while a file is
// open in another program, such as one that indexes files or looks for viruses.
func Rename(from, to string) error {
	const sharingViolation = syscall.Errno(32) // Windows' number
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || time.Now().After(end) ||
			!errors.Is(err, fs.ErrPermission) && !errors.Is(err, sharingViolation) {
			return err
		}
	}
}

// put writes a temporary file next to path, and has name give it that name.
func put(path string, write func(w io.WriteSeeker) error, name func(temporary, path string) error) (err error) {
	defer kind.Catch(&err)
	folder := filepath.Dir(path)
	removeAbandonedOnce(folder)
	f, release, err := createIn(folder)
	kind.Check(err)
	defer release()
	defer func() { // also when write panics; after success there is nothing to remove
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	w := writeSeeker{bufio.NewWriterSize(f, 1<<16), f}
	kind.Check(write(w))
	kind.Check(w.Flush())
	kind.Check(f.Sync())
	kind.Check(f.Close())
	kind.Check(name(f.Name(), path))
	return syncFolder(folder)
}

type writeSeeker struct {
	*bufio.Writer
	file *os.File
}

func (w writeSeeker) Seek(offset int64, whence int) (int64, error) {
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return w.file.Seek(offset, whence)
}

// createIn makes a new file with a hidden name in a folder, claimed until release is
// called. Unlike os.CreateTemp it uses the permissions that the umask gives. Its name is
// short, so it is valid even if the final name has the greatest length.
func createIn(folder string) (f *os.File, release func(), err error) {
	for {
		name := filepath.Join(folder, fmt.Sprintf("%s%016x%s", prefix, rand.Uint64(), suffix))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		release, claimed := claim(name)
		if _, err := os.Lstat(name); err == nil && !errors.Is(claimed, errClaimed) {
			return f, release, nil
		}
		release() // another process has taken it for an abandoned file
		f.Close()
	}
}

// syncFolder writes the names in a folder to disk, if the system can. Windows and some
// network file systems refuse, and a folder may be writable but not readable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	for _, refusal := range []error{fs.ErrPermission, errors.ErrUnsupported, syscall.EINVAL} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}

// errClaimed is the error if another process has claimed a file.
var errClaimed = errors.New("in use")

// unclaimedAge is the least age of an abandoned temporary file where files cannot be
// claimed.
const unclaimedAge = time.Hour

// cleaned are the folders that removeAbandonedOnce has seen.
var cleaned sync.Map

// removeAbandonedOnce removes the temporary files of killed processes in a folder, once
// once per process. Writing does not need this.
func removeAbandonedOnce(folder string) {
	if at, err := filepath.Abs(folder); err == nil {
		folder = at
	}
	if _, before := cleaned.LoadOrStore(folder, true); !before {
		RemoveAbandoned(folder)
	}
}

// RemoveAbandoned removes the temporary files of killed processes in a folder. Where files
// cannot be claimed, it removes those that have not been written to for an hour.
func RemoveAbandoned(folder string) {
	entries, _ := os.ReadDir(folder) // files that cannot be removed harm nobody
	for _, e := range entries {
		if match, _ := filepath.Match(Pattern, e.Name()); !match || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(folder, e.Name())
		release, err := claim(path)
		if errors.Is(err, errors.ErrUnsupported) {
			if info, statErr := os.Lstat(path); statErr == nil && time.Since(info.ModTime()) >= unclaimedAge {
				err = nil
			}
		}
		if err == nil { // if the writer has succeeded meanwhile, the name no longer exists
			_ = os.Remove(path)
		}
		release()
	}
}
