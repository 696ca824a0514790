//go:build amd64 && !noasm

package isa

const assembly = true
