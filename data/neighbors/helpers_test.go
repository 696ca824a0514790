package neighbors

import (
	"testing"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
