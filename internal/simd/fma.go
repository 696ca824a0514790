//go:build !(arm64 || riscv64 || ppc64 || ppc64le || s390x || loong64)

package simd

import (
	"math"
	"unsafe"
)

// FMA returns x·y + z, rounded once.
func FMA[T Float](x, y, z T) T {
	if unsafe.Sizeof(x) == 8 {
		return T(math.FMA(float64(x), float64(y), float64(z)))
	}
	return T(fma32(float32(x), float32(y), float32(z)))
}

// fma32 adds in float64, where the product is exact. Rounding to float64 and then to float32
// equals rounding once unless the float64 sum lies halfway between two float32 (its last 29
// bits are 1 and zeros) or is subnormal in float32.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if b := math.Float64bits(s); b&(1<<29-1) == 1<<28 || b<<1 < (1023-126)<<53 {
		s = toOdd(p, float64(z), s)
	}
	return float32(s)
}

// toOdd returns p+z rounded to odd: if s is inexact and even, the neighbour of s on the side
// of the exact sum. That can be rounded again without error.
func toOdd(p, z, s float64) float64 {
	q := s - p
	lost := (p - (s - q)) + (z - q)
	if b := math.Float64bits(s); lost != 0 && b&1 == 0 {
		if (lost > 0) == (s > 0) {
			return math.Float64frombits(b + 1)
		}
		return math.Float64frombits(b - 1)
	}
	return s
}
