package figures

import (
	"math"
	"testing"
)

func TestMeanText(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want string
	}{
		{nil, "–"},
		{[]float64{0.10377}, "0.1038"},
		{[]float64{0}, "0.000"},
		{[]float64{0, 0}, "0.000"},
		{[]float64{-1, 1}, "0.0 ± 1.4"},
		{[]float64{12345}, "12345"},
		{[]float64{1.83e8, 1.83e8}, "1.830e+08"},
		{[]float64{1.82e8, 1.83e8, 1.84e8}, "(1.830 ± 0.010)e8"},
		{[]float64{1e-7, 3e-7}, "(2.0 ± 1.4)e-7"},
		{[]float64{0.365, 0.36, 0.37}, "0.3650 ± 0.0050"},
		{[]float64{100, 200, 300}, "200 ± 100"},
		{[]float64{0.1, 0.1, 0.1}, "0.1000"},
		{[]float64{0.365, 0.365, 0.365, 0.365, 0.365, 0.365, 0.365}, "0.3650"},
		{[]float64{-2, -4}, "-3.0 ± 1.4"},
	} {
		if got := MeanText(c.x); got != c.want {
			t.Errorf("MeanText(%v) = %q, want %q", c.x, got, c.want)
		}
	}
}

func TestMeanSD(t *testing.T) {
	x := []float64{2, 4, 4, 4, 5, 5, 7, 9} // deviations 3 1 1 1 0 0 2 4: squares add up to 32
	mean, sd := MeanSD(x)
	if math.Abs(mean-5) > 1e-12 || math.Abs(sd-math.Sqrt(32./7)) > 1e-12 {
		t.Errorf("mean %v and deviation %v", mean, sd)
	}
	for i := range x { // scaling and shifting
		x[i] = 10*x[i] + 3
	}
	if m, s := MeanSD(x); math.Abs(m-53) > 1e-9 || math.Abs(s-10*sd) > 1e-9 {
		t.Errorf("of ten times and three more: mean %v and deviation %v", m, s)
	}
}
