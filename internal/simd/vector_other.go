//go:build !(amd64 || arm64) || noasm

package simd

const assembly = false
