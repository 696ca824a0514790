//go:build unix

package openfiles

import (
	"os"
	"strconv"
	"syscall"
)

// needed is how many files a command may have open at the same time beside stdin,
// stdout and stderr, with those of Go's runtime. A run on more files than that says
// itself that there are too many.
const needed = 10

func init() {
	n, err := available()
	if err == nil {
		return
	}
	// Without package fmt, which is initialised later.
	message := "cne: only " + strconv.Itoa(n) + " of the " + strconv.Itoa(needed) + " files that the program needs can be open at the same time (" +
		err.Error() + "); raise the limit, for example with \"ulimit -n 64\"\n"
	_, _ = syscall.Write(syscall.Stderr, []byte(message))
	os.Exit(1)
}

// available returns how many files can be opened, at most needed of them, and why no
// more can.
func available() (n int, err error) {
	var opened [needed]int
	defer func() {
		for _, fd := range opened[:n] {
			_ = syscall.Close(fd)
		}
	}()
	for n < needed {
		fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
			opened[n] = fd
			n++
		case syscall.EINTR:
		case syscall.EMFILE, syscall.ENFILE:
			return n, err
		default:
			return n, nil // it is not for want of files
		}
	}
	return n, nil
}
