//go:build !amd64 || noasm

package simd

func available() []string { return []string{"portable"} }

func use(string) func() { return func() {} }
