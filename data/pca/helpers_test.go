package pca

import (
	"testing"

	"cne/data/datatest"
)

// What the tests of the packages below data share.
var (
	wantError  = datatest.WantError
	matrix     = datatest.Matrix
	normal     = datatest.Normal
	sameMatrix = datatest.SameMatrix
	withProcs  = datatest.WithProcs
)

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T { return datatest.Need(value, err) }

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
