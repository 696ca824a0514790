//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package rundir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder.
func lockFolder(path string) (unlock func(), err error) { return lock(path, os.O_RDONLY) }

// LockFile creates and locks a file, as Dir.Lock locks a folder; locks in the same
// process exclude each other, too. The error is ErrLocked if another has locked it.
func LockFile(path string) (unlock func(), err error) { return lock(path, os.O_CREATE|os.O_WRONLY) }

// lock opens a file and locks it, and closes it to unlock it. Where the file system has
// no locks it only opens it.
func lock(path string, flags int) (unlock func(), err error) {
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, ErrLocked
	}
	return func() { f.Close() }, nil
}
