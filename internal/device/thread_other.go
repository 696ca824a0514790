//go:build !linux

package device

// thread returns 0: this system has no drivers, and nothing to capture.
func thread() int { return 0 }
