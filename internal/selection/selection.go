// Package selection finds the smallest of many keys without sorting them.
package selection

import "math"

// Smallest moves the k smallest of the keys to the front in no particular
// order and returns the largest of them; 1 ≤ k ≤ len(keys). (Hoare's selection with
// the median of three as pivot.)
func Smallest[T uint32 | uint64](keys []T, k int) T {
	lo, hi := 0, len(keys)-1
	for lo < hi {
		a, b, c := keys[lo], keys[lo+(hi-lo)/2], keys[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i++
				j--
			}
		}
		switch {
		case k-1 <= j:
			hi = j
		case k-1 >= i:
			lo = i
		default:
			return keys[k-1]
		}
	}
	return keys[k-1]
}

// Ordered maps a number to an integer such that greater numbers have greater
// integers.
func Ordered(v float32) uint32 {
	b := math.Float32bits(v)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}
