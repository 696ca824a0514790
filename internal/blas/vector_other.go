//go:build !(amd64 || arm64) || noasm

package blas

import "cne/internal/simd"

func kernelsOf(simd.Set) *kernels { return &portable }
