package memory

import (
	"math"
	"syscall"
)

// addressSpaceLimit returns the limit on the address space of the process, if there is
// one.
func addressSpaceLimit() (bytes uint64, ok bool) { return resourceLimit(syscall.RLIMIT_AS) }

// dataLimit returns the limit on the memory that the process may write to, if there is
// one.
func dataLimit() (bytes uint64, ok bool) { return resourceLimit(syscall.RLIMIT_DATA) }

func resourceLimit(resource int) (bytes uint64, ok bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(resource, &limit); err != nil {
		return 0, false
	}
	return limit.Cur, limit.Cur != math.MaxUint64
}
