package configs

import (
	"math"
	"strconv"
	"testing"
)

func TestFormatFloat(t *testing.T) {
	for x, want := range map[float64]string{
		0:               "0.0",
		1:               "1.0",
		-2.5:            "-2.5",
		1e-10:           "1.0e-10",
		1.5e-10:         "1.5e-10",
		1e21:            "1.0e+21",
		math.MaxFloat64: "1.7976931348623157e+308",
	} {
		got := formatFloat(x)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if back, err := strconv.ParseFloat(got, 64); err != nil || back != x {
			t.Errorf("%s reads back as %g, error %v", got, back, err)
		}
	}
}
