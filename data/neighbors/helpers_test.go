package neighbors

import (
	"testing"

	"cne/data/datatest"
)

var must = datatest.Must

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T { return datatest.Need(value, err) }

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
