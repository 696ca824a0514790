package device

import "golang.org/x/sys/unix"

// thread returns the number of the operating system's thread that runs this.
func thread() int { return unix.Gettid() }
