//go:build !(unix || windows)

package memory

// PeakRSS returns 0: the system does not report it.
func PeakRSS() int64 { return 0 }
