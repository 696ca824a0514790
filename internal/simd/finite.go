package simd

import "slices"

// IsFinite reports whether v is neither NaN nor infinite.
func IsFinite[T Float](v T) bool { return v-v == 0 } // v−v is NaN for the others

// FirstNotFinite returns the index of the first value that is NaN or infinite, or −1.
func FirstNotFinite[T Float](x []T) int {
	if AllFinite(x) {
		return -1
	}
	return slices.IndexFunc(x, func(v T) bool { return !IsFinite(v) })
}

// AllFinite reports whether all values are finite.
func AllFinite[T Float](x []T) bool {
	if f, whole := wholeVectors(x); whole > 0 {
		if maxMagnitudeVector(f) >= infinity {
			return false
		}
		x = x[whole:]
	}
	// A product with 0 is 0, or NaN if the value is not finite. The two sums need not wait
	// for each other.
	var a, b T
	for ; len(x) >= 2; x = x[2:] {
		a += x[0] * 0
		b += x[1] * 0
	}
	for _, v := range x {
		a += v * 0
	}
	return a+b == 0
}

// infinity has the bits of an infinite float32 without the sign: maxMagnitude is the largest
// of such numbers.
const infinity = 0xff00_0000
