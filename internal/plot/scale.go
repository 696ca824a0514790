package plot

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// roundLength returns the longest length of 1, 2 or 5 times a power of ten
// that is not above limit, as mantissa and exponent; limit is positive and
// finite.
func roundLength(limit float64) (mantissa, exponent int) {
	// One above, because the logarithm may be off by its last place.
	for exponent = int(math.Floor(math.Log10(limit))) + 1; ; exponent-- {
		for _, mantissa := range []int{5, 2, 1} {
			if decimal(mantissa, exponent) <= limit {
				return mantissa, exponent
			}
		}
	}
}

// decimal returns the floating-point number nearest to mantissa·10^exponent;
// a product would give 0.30000000000000004 for 3·10⁻¹.
func decimal(mantissa, exponent int) float64 {
	v, _ := strconv.ParseFloat(strconv.Itoa(mantissa)+"e"+strconv.Itoa(exponent), 64)
	return v // infinite when out of range
}

// Number writes v with as few characters as it takes: 0.05, 20, 5e6.
func Number(v float64) string {
	if a := math.Abs(v); a >= 1e-4 && a < 1e6 || v == 0 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	s := strconv.FormatFloat(v, 'e', -1, 64)
	return strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace(s)
}

// Rounded is Number of v with three digits.
func Rounded(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // it was just written
	return Number(v)
}

// Marks returns the Ticks of a scale of colours, or its ends where there are fewer than two.
func Marks(low, high float64) []float64 {
	if marks := Ticks(low, high); len(marks) >= 2 {
		return marks
	}
	return slices.Compact([]float64{low, high})
}

// Ticks returns two to six round numbers within [low, high], in increasing
// order. There are none if the range is empty, or so small or large that
// floating-point numbers cannot divide it.
func Ticks(low, high float64) []float64 {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	mantissa, exponent := roundLength(span / 2)
	step := decimal(mantissa, exponent)
	first := math.Ceil(low / step)
	if step == 0 || math.Abs(first) > 1e12 {
		return nil
	}
	var out []float64
	for k := int(first); ; k++ {
		v := decimal(k*mantissa, exponent)
		if v > high {
			return out
		}
		if v >= low { // the quotient above was rounded
			out = append(out, v)
		}
	}
}
