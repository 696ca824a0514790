//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package rundir

// lockFolder does nothing here: there is no lock that ends with the process.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }

// LockFile does nothing here, either.
func LockFile(string) (unlock func(), err error) { return func() {}, nil }
