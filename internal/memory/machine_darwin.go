package memory

import "golang.org/x/sys/unix"

// machineLimits returns the machine's memory: macOS does not simply report how much of it
// is free.
func machineLimits() []Limit {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return nil
	}
	return []Limit{{int64(size), "the machine's memory"}}
}
