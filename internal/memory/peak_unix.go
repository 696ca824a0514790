//go:build unix

package memory

import (
	"runtime"
	"syscall"
)

// PeakRSS returns the largest resident memory of the process so far, in bytes.
func PeakRSS() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss) // in bytes there, in kilobytes elsewhere
	}
	return int64(usage.Maxrss) * 1024
}
