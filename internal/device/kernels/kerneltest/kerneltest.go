// Package kerneltest has kernels that compute what kernel.h offers to all others,
// for the tests of that. No program contains them: they are known to package
// kernels where this package is linked in.
package kerneltest

import (
	_ "embed"

	"cne/internal/device/kernels"
)

//go:embed functions.ptx
var functions string

func init() { kernels.Add("kerneltest/functions.ptx", functions) }
