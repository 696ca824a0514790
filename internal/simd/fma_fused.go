//go:build arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64

package simd

// FMA returns x·y + z, rounded once. On these architectures the compiler fuses the
// expression; TestFMA checks it.
func FMA[T Float](x, y, z T) T { return x*y + T(z) }

func fma32(x, y, z float32) float32 { return x*y + float32(z) }
