//go:build !amd64 || noasm

package blas

func multiplyVectors(*product[float32]) { panic("blas: no vector form") }
