package memory

import "fmt"

// Bytes writes a number of bytes for people: 12 kB, 123 MB, 4.5 GB.
func Bytes(n int64) string {
	switch b := float64(n); {
	case b >= 9.995e14:
		return fmt.Sprintf("%.3g PB", b/1e15)
	case b >= 9.995e11:
		return fmt.Sprintf("%.3g TB", b/1e12)
	case b >= 9.995e8:
		return fmt.Sprintf("%.3g GB", b/1e9)
	case b >= 9.995e5:
		return fmt.Sprintf("%.0f MB", b/1e6)
	}
	return fmt.Sprintf("%.0f kB", float64(n)/1e3)
}
