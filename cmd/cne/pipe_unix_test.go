//go:build unix

package main

import (
	"syscall"
	"testing"
)

// makePipe makes a named pipe, or skips the test where the file system has none.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("the file system has no pipes: ", err)
	}
}
