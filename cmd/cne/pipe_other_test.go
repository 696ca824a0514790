//go:build !unix

package main

import "testing"

// makePipe skips the test: there are no named pipes in the file system.
func makePipe(t *testing.T, _ string) { t.Skip("the file system has no pipes") }
