// Package summary puts several measurements of one figure into a few words, for
// the tables that the scripts print. It reads no files and starts no runs.
package summary

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figure formats the mean and the standard deviation of x: two significant
// digits of the deviation and as many decimals of the mean, or four significant
// digits of the mean when there is no deviation to tell which of them count.
func Figure(x []float64) string {
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

// Significant formats x with so many significant digits.
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

// MeanSD returns the mean of x, which is not empty, and the standard deviation of
// the sample, 0 of a single value or of equal ones.
func MeanSD(x []float64) (mean, sd float64) {
	// The differences from the first value, so that equal ones have no rounding
	// errors for a deviation.
	for _, v := range x {
		mean += (v - x[0]) / float64(len(x))
	}
	for _, v := range x {
		sd += (v - x[0] - mean) * (v - x[0] - mean)
	}
	return x[0] + mean, math.Sqrt(sd / float64(max(1, len(x)-1)))
}

// Median returns the middle value of x, which is not empty, or the mean of the
// two in the middle.
func Median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
