//go:build !(linux && amd64) || noasm

package simd

// AMX reports whether the processor multiplies tiles of bfloat16. Only Linux is asked to allow
// it.
func AMX() bool { return false }
