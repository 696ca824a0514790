//go:build amd64 && !noasm

package simd

const assembly = true
