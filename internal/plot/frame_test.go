package plot

import (
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// disk returns n points of a disk of radius 1 around 0, x and y alternating.
func disk(n int) []float64 {
	r := rng.New(1, rng.Sample)
	var xy []float64
	for len(xy) < 2*n {
		x, y := 2*r.Float64()-1, 2*r.Float64()-1
		if x*x+y*y <= 1 {
			xy = append(xy, x, y)
		}
	}
	return xy
}

func TestFrameOf(t *testing.T) {
	at := func(n int, x, y float64) []float64 { return slices.Repeat([]float64{x, y}, n) }
	for _, tc := range []struct {
		name            string
		xy              []float64
		low, high, near float64 // of x
	}{
		{"without outliers, all", disk(4000), -1, 1, 0.01},
		{"one far to the right", append(disk(4000), 50, 0), -1, 1, 0.01},
		{"as many as may be left out on either side", append(append(disk(3980), at(10, 50, 0)...), at(10, -70, 0)...), -1, 1, 0.01},
		{"one more on the right", append(disk(3989), at(11, 50, 0)...), -1, 50, 0.01},
		{"outliers that are near", append(disk(4000), 1.05, 0), -1, 1.05, 0.01},
		{"near ones and a far one", append(disk(4000), 1.05, 0, 50, 0), -1, 1.05, 0.01},
		{"fewer than 400", append(disk(398), 50, 0), -1, 50, 0.1},
		{"400", append(disk(399), 50, 0), -1, 1, 0.1},
		{"most at one place", append(at(4000, 3, 0), 50, 0), 3, 50, 0},
		{"all at one place", at(4000, 3, 3), 3, 3, 0},
		{"one point", at(1, 3, 3), 3, 3, 0},
	} {
		low, high := FrameOf(tc.xy)
		if math.Abs(low[0]-tc.low) > tc.near || math.Abs(high[0]-tc.high) > tc.near {
			t.Errorf("%s: got %v to %v", tc.name, low[0], high[0])
		}
		n := len(tc.xy) / 2
		in := 0
		swapped := make([]float64, 0, 2*n)
		for i := range n {
			x, y := tc.xy[2*i], tc.xy[2*i+1]
			if x >= low[0] && x <= high[0] && y >= low[1] && y <= high[1] {
				in++
			}
			swapped = append(swapped, y, x)
		}
		if 100*in < 99*n {
			t.Errorf("%s: %d of %d points are within", tc.name, in, n)
		}
		if l, h := FrameOf(swapped); l != [2]float64{low[1], low[0]} || h != [2]float64{high[1], high[0]} {
			t.Errorf("%s: with x and y exchanged: got %v to %v", tc.name, l, h)
		}
		// The order of the points makes no difference.
		slices.Reverse(swapped)
		if l, h := FrameOf(swapped); l != low || h != high {
			t.Errorf("%s: in reverse: got %v to %v", tc.name, l, h)
		}
	}
}
