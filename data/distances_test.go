package data_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"cne/data"
)

// A matrix of distances is square, symmetric and 0 on the diagonal, up to rounding.
func TestCheckDistances(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for want, x := range map[string][]float32{
		"":                      {0, 1, 2, 1, 0, 3, 2, 3, 0},
		" ":                     {-1e-6, 1, 2, 1.0001, 0, 3, 2, 3, 1e-6},
		"got 1 on the diagonal": {1, .5, .2, .5, 1, .3, .2, .3, 1},
		"row 3: column 2: got the distance 2.9, and 3 the other way": {0, 1, 2, 1, 0, 3, 2, 2.9, 0},
		"row 2: column 1: got -1, want a distance of at least 0":     {0, -1, 2, -1, 0, 3, 2, 3, 0},
		"row 2: column 3: got NaN":                                   {0, 1, 2, 1, 0, nan, 2, nan, 0},
		"row 1: column 3: got +Inf":                                  {0, 1, inf, 1, 0, 3, inf, 3, 0},
		"2×3, want a square one":                                     {0, 1, 2, 1, 0, 3},
	} {
		err := (&data.Dataset{Points: &data.Matrix{N: len(x) / 3, D: 3, X: x}}).CheckDistances()
		if want = strings.TrimSpace(want); want == "" && err != nil || want != "" && (!errors.Is(err, data.ErrShape) && !errors.Is(err, data.ErrNotFinite) && !errors.Is(err, data.ErrDirection) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", x, err, want)
		}
	}
}
