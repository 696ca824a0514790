//go:build !linux

package memory

// UseHugePages asks the system to hold a slice in huge pages, which not every system can be.
func UseHugePages[E any]([]E) {}
