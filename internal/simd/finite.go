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
	// A product with 0 is 0, or NaN if the value is not finite. The four sums
	// need not wait for each other.
	var a, b, c, d T
	for ; len(x) >= 4; x = x[4:] {
		a += x[0] * 0
		b += x[1] * 0
		c += x[2] * 0
		d += x[3] * 0
	}
	for _, v := range x {
		a += v * 0
	}
	return a+b+c+d == 0
}
