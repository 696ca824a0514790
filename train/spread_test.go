package train

import (
	"math"
	"testing"
)

func TestRootMeanSquareDistance(t *testing.T) {
	for name, tc := range map[string]struct {
		x    []float32
		d    int
		want float64
	}{
		"two points":  {[]float32{0, 0, 3, 4}, 2, 5 / math.Sqrt2}, // a point and itself count, too
		"equal":       {[]float32{0.1, -0.3, 0.1, -0.3, 0.1, -0.3}, 2, 0},
		"nearly":      {[]float32{4096, 4096.0005, 4096, 4096.0005}, 1, 0.00048828125 / math.Sqrt2},
		"flown apart": {[]float32{-1e30, 1e30}, 1, math.Sqrt2 * 1e30},
	} {
		if got := rootMeanSquareDistance(tc.x, len(tc.x)/tc.d, tc.d); !(math.Abs(got-tc.want) <= 1e-7*tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
