package neighbors

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// someOthers draws k other points for each of n.
func someOthers(n, k int, r *rand.Rand) []int32 {
	index := make([]int32, 0, n*k)
	for i := range n {
		for range k {
			j := r.IntN(n - 1)
			if j >= i {
				j++
			}
			index = append(index, int32(j))
		}
	}
	return index
}

func TestRanksEqualSortedDistances(t *testing.T) {
	for _, size := range []struct{ n, d, k int }{
		{2, 1, 1}, {17, 2, 15}, {100, 3, 4}, {255, 9, 15}, {256, 20, 1}, {513, 12, 40}, {90, 100, 3},
	} {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(size.n), uint64(size.d)))
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, r)
				index := someOthers(size.n, size.k, r) // some of them twice
				got := need(Ranks(t.Context(), m, index, size.k, Options{}))(t)
				all := oracle(m, size.n-1)
				for e, j := range index {
					if want := 1 + slices.Index(all.Of(e/size.k), j); int(got[e]) != want {
						t.Fatalf("point %d has rank %d for point %d, want %d", j, got[e], e/size.k, want)
					}
				}
			})
		}
	}
}

// An outlier takes digits from the products of all others.
func TestRanksBesideAnOutlier(t *testing.T) {
	m := normal(600, 20, 1)
	for l := range m.Row(300) {
		m.Row(300)[l] = 1e6
	}
	index := someOthers(600, 15, rand.New(rand.NewPCG(2, 2)))
	got := need(Ranks(t.Context(), m, index, 15, Options{}))(t)
	all := oracle(m, 599)
	for e, j := range index {
		if want := 1 + slices.Index(all.Of(e/15), j); int(got[e]) != want {
			t.Fatalf("point %d has rank %d for point %d, want %d", j, got[e], e/15, want)
		}
	}
}

// The neighbours that KNN finds have the ranks 1, 2, ….
func TestRanksOfNeighbours(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, d := range []int{2, 30} {
		m := normal(1500, d, 8)
		for i := range 300 { // some ties
			copy(m.Row(i), m.Row(i%10))
		}
		nb := need(KNN(t.Context(), m, 12, Options{}))(t)
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			ranks := need(Ranks(t.Context(), m, nb.Index, 12, Options{}))(t)
			for e, r := range ranks {
				if int(r) != 1+e%12 {
					t.Fatalf("D=%d, %d processors: neighbour %d of point %d has rank %d", d, procs, e%12, e/12, r)
				}
			}
		}
	}
}

func TestRanksRefusals(t *testing.T) {
	m := normal(4, 2, 1)
	bad := normal(4, 2, 1)
	bad.X[3] = float32(math.NaN())
	for _, tc := range []struct {
		name  string
		m     *data.Matrix
		index []int32
		k     int
		want  string
		is    error
	}{
		{"no points", nil, nil, 1, "there is no matrix of points", ErrInput},
		{"no k", m, nil, 0, "0 indices are not 0 for each of 4 points", ErrInput},
		{"too few indices", m, []int32{1, 2, 3}, 1, "3 indices are not 1 for each of 4 points", ErrInput},
		{"too many indices", m, []int32{1, 0, 0, 0, 1}, 1, "5 indices are not 1 for each of 4 points", ErrInput},
		{"a point that is not there", m, []int32{1, 2, 3, 4}, 1, "point 3 is asked for the rank of 4; give other points from 0 to 3", ErrInput},
		{"negative", m, []int32{1, -1, 3, 0}, 1, "point 1 is asked for the rank of -1", ErrInput},
		{"itself", m, []int32{1, 2, 2, 0}, 1, "point 2 is asked for the rank of 2", ErrInput},
		{"NaN", bad, []int32{1, 2, 3, 0}, 1, "value 1 of point 1 (both counted from 0) is NaN", ErrNotFinite},
	} {
		if _, err := Ranks(t.Context(), tc.m, tc.index, tc.k, Options{}); err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %q, which is %v", tc.name, err, tc.want, tc.is)
		}
	}
}

func BenchmarkRanks(b *testing.B) {
	n := 8000
	if testing.Short() {
		n = 2000
	}
	m := normal(n, 50, 1)
	nb := need(KNN(b.Context(), m, 15, Options{}))(b)
	for name, index := range map[string][]int32{"near": nb.Index, "any": someOthers(m.N, 15, rand.New(rand.NewPCG(1, 1)))} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				need(Ranks(b.Context(), m, index, 15, Options{}))(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.N*m.N), "ns/pair")
		})
	}
	b.Run("KNN", func(b *testing.B) {
		for b.Loop() {
			need(KNN(b.Context(), m, 15, Options{}))(b)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.N*m.N), "ns/pair")
	})
}
