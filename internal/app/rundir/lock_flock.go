//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package rundir

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cne/internal/kind"
)

// Lock keeps other processes of the program out of the folder until unlock is
// called or this one ends, however it does; ErrLocked tells that one is at work there. Where the file system has no locks
// it does nothing.
func (d *Dir) Lock() (unlock func(), err error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the run folder: %w", err)
	}
	unlock, err = lock(f)
	if errors.Is(err, ErrLocked) {
		return nil, kind.Errorf(ErrLocked, "another process of cne is at work in the run folder %s; wait until it has ended, or choose another output.dir", d.path)
	}
	return unlock, nil
}

// LockFile creates and locks a file, as Dir.Lock locks a folder; locks in the same
// process exclude each other, too. The error is ErrLocked if another has locked it.
func LockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return lock(f)
}

// lock locks an open file, and closes it to unlock it. Where the file system has no
// locks it does nothing.
func lock(f *os.File) (unlock func(), err error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, ErrLocked
	}
	return func() { f.Close() }, nil
}
