//go:build !linux

package memory

// UseHugePages does nothing: this system has no such request.
func UseHugePages[E any]([]E) {}
