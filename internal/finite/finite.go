// Package finite looks for NaN and infinities among floating-point numbers.
package finite

import "cne/internal/parallel"

// Float is a floating-point type.
type Float interface{ float32 | float64 }

// Is tells whether v is neither NaN nor infinite.
func Is[T Float](v T) bool { return v-v == 0 } // v−v is NaN for the others

// grain is how many values are looked at in one piece.
const grain = 1 << 16

// First returns the index of the first value that is NaN or infinite, or −1. It
// uses all cores.
func First[T Float](x []T) int {
	if len(x) <= grain {
		return first(x)
	}
	found := make([]int, parallel.Pieces(len(x), grain))
	parallel.For(len(x), grain, func(piece, lo, hi int) {
		found[piece] = first(x[lo:hi])
	})
	for piece, at := range found {
		if at >= 0 {
			return piece*grain + at
		}
	}
	return -1
}

// first is First on one core.
func first[T Float](x []T) int {
	if All(x) {
		return -1
	}
	for i, v := range x {
		if !Is(v) {
			return i
		}
	}
	return -1
}

// All tells whether all values are finite.
func All[T Float](x []T) bool {
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
