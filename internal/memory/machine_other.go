//go:build !(windows || darwin)

package memory

// machineLimits returns no limits: Linux has them in files.
func machineLimits() []Limit { return nil }
