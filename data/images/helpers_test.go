package images_test

import (
	"testing"

	"cne/data/datatest"
)

// What the tests of the packages below data share.
var (
	must      = datatest.Must
	wantError = datatest.WantError
	put       = datatest.Put
	plant     = datatest.Plant
	gz        = datatest.Gzip
	idx       = datatest.IDX
	npy       = datatest.NPY
	allocated = datatest.Allocated
	withProcs = datatest.WithProcs
)

type tree = datatest.Tree

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T { return datatest.Need(value, err) }
