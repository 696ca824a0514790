package memory

import (
	"math"
	"syscall"
)

// addressSpaceLimit returns the limit on the address space of the process, if there is
// one.
func addressSpaceLimit() (bytes uint64, ok bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return 0, false
	}
	return limit.Cur, limit.Cur != math.MaxUint64
}
