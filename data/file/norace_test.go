//go:build !race

package file_test

// raceBytes is what the race detector would add: see race_test.go.
const raceBytes = 0
