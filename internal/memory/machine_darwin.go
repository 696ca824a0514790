package memory

import "golang.org/x/sys/unix"

// machineLimits returns the machine's memory: what of it is free, macOS does not tell
// simply.
func machineLimits() []Limit {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return nil
	}
	return []Limit{{int64(size), "the machine's memory"}}
}
