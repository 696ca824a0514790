//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package rundir

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock keeps other processes of the program out of the folder until unlock is
// called or this one ends, however it does. Where the file system has no locks
// it does nothing.
func (d *Dir) Lock() (unlock func(), err error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the run folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("another process of cne is at work in the run folder %s; wait until it has ended, or choose another output.dir", d.path)
	}
	return func() { f.Close() }, nil
}
