package main

import (
	"os"
	"syscall"
)

// The program syncs what it writes, and thousands of small files wait for the disk: tests
// keep their folders in memory where Linux has room for them there.
func init() {
	const memory, room = "/dev/shm", 1 << 30
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") == "" && syscall.Statfs(memory, &s) == nil && int64(s.Bavail)*int64(s.Bsize) > room &&
		syscall.Access(memory, 2) == nil {
		os.Setenv("TMPDIR", memory)
	}
}
