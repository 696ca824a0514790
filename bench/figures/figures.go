// Package figures formats the figures of several runs.
package figures

import (
	"fmt"
	"math"
	"strconv"
)

// MeanText formats the mean and standard deviation of x: two significant digits of the
// deviation and the same decimals of the mean, or four significant digits of the mean
// without a deviation.
func MeanText(x []float64) string {
	if len(x) == 0 {
		return "–"
	}
	mean, sd := MeanSD(x)
	if sd == 0 {
		return Significant(mean, 4)
	}
	unit, power := 1.0, ""
	if e := math.Floor(math.Log10(math.Abs(mean))); mean != 0 && (e >= 6 || e < -3) {
		unit, power = math.Pow(10, e), fmt.Sprintf("e%d", int(e))
	}
	decimals := max(0, 1-int(math.Floor(math.Log10(sd/unit))))
	text := fmt.Sprintf("%.*f ± %.*f", decimals, mean/unit, decimals, sd/unit)
	if power != "" {
		text = "(" + text + ")" + power
	}
	return text
}

// Significant formats x with a number of significant digits.
func Significant(x float64, digits int) string {
	if e := math.Floor(math.Log10(math.Abs(x))); x == 0 || e < 6 && e >= -3 {
		decimals := digits - 1
		if x != 0 {
			decimals = max(0, digits-1-int(e))
		}
		return strconv.FormatFloat(x, 'f', decimals, 64)
	}
	return strconv.FormatFloat(x, 'e', digits-1, 64)
}

// MeanSD returns the mean of x and the standard deviation of the sample, 0 for a single
// value. x must not be empty.
func MeanSD(x []float64) (mean, sd float64) {
	// Sums of differences from the first value: equal values have a deviation of 0.
	for _, v := range x {
		mean += (v - x[0]) / float64(len(x))
	}
	for _, v := range x {
		sd += (v - x[0] - mean) * (v - x[0] - mean)
	}
	return x[0] + mean, math.Sqrt(sd / float64(max(1, len(x)-1)))
}
