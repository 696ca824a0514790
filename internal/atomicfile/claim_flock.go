//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// claim marks a file as in use, for other processes and within this one, until release
// is called or the process ends, however it does. It fails if the file is claimed, and
// with errors.ErrUnsupported where the file system has no locks. release is never nil.
func claim(path string) (release func(), err error) {
	// A lock for one writer needs a file that is open for writing on some systems.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return func() {}, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return func() {}, errClaimed
		}
		return func() {}, errors.ErrUnsupported
	}
	return func() { f.Close() }, nil
}
