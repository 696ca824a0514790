package neighbors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cne/data"
)

// The ranks of some rows, in any order, are those among the ranks of all.
func TestRanksOfRows(t *testing.T) {
	for _, size := range []struct{ n, d, k int }{{17, 2, 3}, {256, 20, 1}, {1100, 12, 5}} {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(size.n), 3))
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, r)
				index := someOthers(size.n, size.k, r)
				all := need(Ranks(t.Context(), m, index, size.k, Options{}))(t)
				rows := r.Perm(size.n)[:size.n/2]
				var asked, want []int32
				for _, i := range rows {
					asked = append(asked, index[i*size.k:(i+1)*size.k]...)
					want = append(want, all[i*size.k:(i+1)*size.k]...)
				}
				got, err := RanksOf(t.Context(), m, rows, asked, size.k)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%v\nwant %v (%v)", got, want, err)
				}
			})
		}
	}
}

func TestRanksOfRefusals(t *testing.T) {
	m := normal(20, 3, 1)
	for name, tc := range map[string]struct {
		rows  []int
		index []int32
		k     int
	}{
		"no rows":         {nil, nil, 1},
		"no neighbours":   {[]int{1}, nil, 0},
		"too few indices": {[]int{1, 2}, []int32{3}, 1},
		"a negative row":  {[]int{-1}, []int32{3}, 1},
		"a row beyond":    {[]int{20}, []int32{3}, 1},
		"itself":          {[]int{4}, []int32{4}, 1},
		"a point beyond":  {[]int{4}, []int32{20}, 1},
	} {
		if _, err := RanksOf(t.Context(), m, tc.rows, tc.index, tc.k); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
