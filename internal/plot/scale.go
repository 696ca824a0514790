package plot

import (
	"math"
	"strconv"
	"strings"
)

// roundLength returns the longest length of 1, 2 or 5 times a power of ten
// that is not above limit, which is positive and finite.
func roundLength(limit float64) float64 {
	exponent := int(math.Floor(math.Log10(limit)))
	// The logarithm may be off by one unit in the last place; the decimal
	// number is parsed, since powers of ten below 1 are not exact.
	for e := exponent + 1; ; e-- {
		for _, mantissa := range []string{"5", "2", "1"} {
			length, err := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(e), 64)
			if err == nil && length <= limit {
				return length
			}
		}
	}
}

// number writes v with as few characters as needed: 0.05, 20, 5e6.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if a := math.Abs(v); a >= 1e-4 && a < 1e6 || v == 0 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	s = strings.Replace(s, "e+0", "e", 1)
	s = strings.Replace(s, "e-0", "e-", 1)
	return strings.Replace(s, "e+", "e", 1)
}

// ticks returns round numbers within [low, high], at most about five, in
// increasing order; none if the two are equal or so close that no number
// fits between.
func ticks(low, high float64) []float64 {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	step := roundLength(span / 2)
	if span/step > 5 {
		step = roundLength(span/2) * 2
		step = roundLength(step)
	}
	var out []float64
	first := math.Ceil(low / step)
	for k := first; k*step <= high && len(out) < 8; k++ {
		// Dividing by the inverse of a small step gives 0.3, not 0.30000000000000004.
		v := k * step
		if step < 1 {
			v = k / math.Round(1/step)
		}
		if len(out) > 0 && v <= out[len(out)-1] {
			return nil
		}
		out = append(out, v)
	}
	return out
}
