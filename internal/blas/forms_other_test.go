//go:build !amd64 || noasm

package blas

func available() []string { return []string{"portable"} }

func use(string) func() { return func() {} }
