//go:build !linux

package memory

// addressSpaceLimit tells of no limit: how much of it is in use is not known here.
func addressSpaceLimit() (bytes uint64, ok bool) { return 0, false }

// dataLimit tells of none, for the same reason.
func dataLimit() (bytes uint64, ok bool) { return 0, false }
