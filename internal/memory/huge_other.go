//go:build !linux

package memory

// Huge asks the system to hold a slice in huge pages, which not every system can be.
func Huge[E any]([]E) {}
