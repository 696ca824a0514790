// Package kerneltest has kernels for the tests of kernel.h's functions. Linking it in
// adds them to package kernels; no program contains them.
package kerneltest

import (
	_ "embed"

	"cne/internal/device/kernels"
)

//go:embed functions.ptx
var functions string

func init() { kernels.Add("kerneltest/functions.ptx", functions) }
