package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFolder locks a folder by a file in it, since Windows has no locks of folders.
func lockFolder(path string) (unlock func(), err error) {
	return LockFile(filepath.Join(path, ".cne-lock"))
}

// LockFile creates and locks a file, as Dir.Lock locks a folder; locks in the same
// process exclude each other, too. The error is ErrLocked if another has locked it. The
// system removes the file with the lock.
func LockFile(path string) (unlock func(), err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const nobodyElse = 0 // of the ways to share the file
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, nobodyElse, nil, windows.OPEN_ALWAYS,
		windows.FILE_ATTRIBUTE_HIDDEN|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	switch {
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return nil, ErrLocked
	case errors.Is(err, fs.ErrNotExist):
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	case err != nil: // for example a folder that cannot be written to
		return func() {}, nil
	}
	return func() { _ = windows.CloseHandle(handle) }, nil
}
