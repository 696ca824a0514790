//go:build race

package file_test

// raceBytes is what the race detector adds to what reading a table of a few megabytes
// allocates.
const raceBytes = 2 << 20
