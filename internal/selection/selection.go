// Package selection takes some of many values (the smallest without sorting all, the median,
// given rows), and has the loops over all of them that package slices lacks.
package selection

import (
	"math"
	"slices"
)

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
	return b ^ (uint32(int32(b)>>31) | 1<<31) // without a branch, as half of the numbers are negative
}

// Median sorts values, at least one, and returns the middle one, or the mean of the two in the
// middle.
func Median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// UpTo returns the numbers from 0 to n−1.
func UpTo[T int | int32 | uint32](n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

// Where returns the numbers from 0 to n−1 for which is returns true; nil for none.
func Where[T int | int32](n int, is func(i T) bool) (found []T) {
	for i := range n {
		if is(T(i)) {
			found = append(found, T(i))
		}
	}
	return found
}

// Count returns how many elements is returns true for.
func Count[T any](all []T, is func(x T) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

// Pick returns the elements of all in the given rows; nil for nil.
func Pick[T any, I int | int32](all []T, rows []I) []T {
	if all == nil {
		return nil
	}
	some := make([]T, len(rows))
	for to, from := range rows {
		some[to] = all[from]
	}
	return some
}

// A Number is a type that Convert converts and Sum adds up.
type Number interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Map returns the result of a function for each element.
func Map[T, U any](all []T, of func(x T) U) []U {
	results := make([]U, len(all))
	for i, x := range all {
		results[i] = of(x)
	}
	return results
}

// Convert writes numbers of one type to dst as numbers of another.
func Convert[To, From Number](dst []To, src []From) {
	for i, x := range src {
		dst[i] = To(x)
	}
}

// As returns numbers as numbers of another type.
func As[To, From Number](all []From) []To {
	converted := make([]To, len(all))
	Convert(converted, all)
	return converted
}

// Fill sets all elements to x.
func Fill[T any](all []T, x T) {
	for i := range all {
		all[i] = x
	}
}

// Sum adds up numbers, one after the other.
func Sum[T Number](all []T) (sum T) {
	for _, x := range all {
		sum += x
	}
	return sum
}

// Accumulate adds to each number the sum of those before it.
func Accumulate[T Number](counts []T) {
	for i := range len(counts) - 1 {
		counts[i+1] += counts[i]
	}
}

// If returns yes if a condition holds, and otherwise no.
func If[T any](holds bool, yes, no T) T {
	if holds {
		return yes
	}
	return no
}

// Set returns the set of all elements.
func Set[T comparable](all []T) map[T]bool {
	set := make(map[T]bool, len(all))
	for _, x := range all {
		set[x] = true
	}
	return set
}
