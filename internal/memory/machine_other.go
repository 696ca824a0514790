//go:build !(windows || darwin)

package memory

// machineLimits returns no limits: Linux tells them in files.
func machineLimits() []Limit { return nil }
