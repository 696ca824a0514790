package initial

import (
	"errors"
	"math"
	"strings"
	"testing"

	"cne/data"
)

func tableFrom(t *testing.T, coordinates []float32, width, d int, std float64) []float64 {
	t.Helper()
	return need(Table[float64](&data.Matrix{N: len(coordinates) / width, D: width, X: coordinates}, d, std, 1))(t)
}

func TestTable(t *testing.T) {
	coordinates := []float32{
		-6, 1, 5,
		-2, -1, 5,
		2, -1, 5,
		6, 1, 5,
	}
	factor := 0.5 / math.Sqrt(20) // the first column has variance 20
	got := tableFrom(t, coordinates, 3, 2, 0.5)
	for i := range 4 {
		for j := range 2 {
			if want := factor * float64(coordinates[3*i+j]); math.Abs(got[2*i+j]-want) > 1e-12 {
				t.Errorf("coordinate %d of point %d is %g, want %g", j, i, got[2*i+j], want)
			}
		}
	}
	// A constant column, and one that is not there, become small noise; the
	// others stay as they are.
	got = tableFrom(t, coordinates, 3, 5, 0.5)
	for i := range 4 {
		for j := range 5 {
			v := got[5*i+j]
			if j < 2 {
				if want := factor * float64(coordinates[3*i+j]); math.Abs(v-want) > 1e-12 {
					t.Errorf("coordinate %d of point %d is %g, want %g", j, i, v, want)
				}
			} else if v == 0 || math.Abs(v) > 1e-3 {
				t.Errorf("coordinate %d of point %d is %g, want small noise", j, i, v)
			}
		}
	}
	if got[2] == got[3] || got[2] == got[7] {
		t.Error("noise repeats")
	}
	// Points without extent start at random.
	got = tableFrom(t, make([]float32, 3000), 1, 2, 2)
	var sum, sum2 float64
	for _, v := range got {
		sum += v
		sum2 += v * v
	}
	if mean, sd := sum/6000, math.Sqrt(sum2/6000); math.Abs(mean) > 0.1 || math.Abs(sd-2) > 0.1 {
		t.Errorf("mean %g and standard deviation %g, want 0 and 2", mean, sd)
	}
}

func TestTableRefuses(t *testing.T) {
	nan := float32(math.NaN())
	for _, tc := range []struct {
		coordinates []float32
		n, width, d int
		std         float64
		want        string
	}{
		{make([]float32, 4), 4, 0, 2, 1, "matrix: got 4×0"},
		{make([]float32, 4), 1, 3, 2, 1, "matrix of 1×3: got 4 values"},
		{nil, 0, 2, 2, 1, "matrix: got 0×2"},
		{make([]float32, 4), 2, 2, 0, 1, "got 2 points of width 0"},
		{make([]float32, 4), 2, 2, 1 << 31, 1, "want at most 2147483647 numbers"},
		{make([]float32, 4), 2, 2, 2, 0, "standard deviation: got 0"},
		{make([]float32, 4), 2, 2, 2, 1e-300, "standard deviation: got 1e-300"},
		{make([]float32, 4), 2, 2, 2, math.Inf(1), "standard deviation: got +Inf"},
		{[]float32{nan, 1, 2, 3}, 2, 2, 2, 1, "column 0"},
		{[]float32{1, nan, 2, 3}, 2, 2, 2, 1, "column 1"},
	} {
		if _, err := Table[float32](&data.Matrix{N: tc.n, D: tc.width, X: tc.coordinates}, tc.d, tc.std, 0); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want one with %q", err, tc.want)
		}
	}
}
