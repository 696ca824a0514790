//go:build !linux

package device

// thread returns 0: there are no drivers for this system, and nothing to capture.
func thread() int { return 0 }
