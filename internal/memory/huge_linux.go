package memory

import (
	"syscall"
	"unsafe"
)

const (
	// Advice to Linux: use huge pages for memory not touched yet, and move used memory
	// into huge pages (since Linux 6.1).
	madviseHugePage = 14
	madviseCollapse = 25

	hugePage = 2 << 20
)

// UseHugePages asks the system to hold a slice in huge pages where it lets programs choose:
// random access then causes fewer TLB misses. It is a hint, and does nothing for slices
// of less than a few megabytes.
func UseHugePages[E any](x []E) {
	if len(x) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(x))
	size := len(x) * int(unsafe.Sizeof(x[0]))
	before := int(-uintptr(p) % hugePage)
	if whole := (size - before) / hugePage * hugePage; whole > 0 {
		inside := unsafe.Slice((*byte)(unsafe.Add(p, before)), whole)
		// An error means that there are no huge pages, or no such advice.
		_ = syscall.Madvise(inside, madviseHugePage)
		_ = syscall.Madvise(inside, madviseCollapse)
	}
}
