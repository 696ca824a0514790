//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package rundir

// Lock does nothing here: there is no lock that ends with the process.
func (d *Dir) Lock() (unlock func(), err error) { return func() {}, nil }

// LockFile does nothing here, either.
func LockFile(string) (unlock func(), err error) { return func() {}, nil }
