package neighbors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
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

// countedRanks checks ranks with all distances. Equal distances have the same rank.
func countedRanks(t *testing.T, m *data.Matrix, index []int32, k int, got []int32) {
	t.Helper()
	distances, least := make([]float64, m.N), 1-Tie(m)
	for e, j := range index {
		i := e / k
		if e%k == 0 {
			for other := range distances {
				distances[other] = dist2(m.Row(i), m.Row(other), math.Inf(1))
			}
			distances[i] = math.Inf(1)
		}
		want := 1
		for _, d := range distances {
			if d < distances[j]*least {
				want++
			}
		}
		if int(got[e]) != want {
			t.Fatalf("point %d has rank %d for point %d, want %d", j, got[e], e/k, want)
		}
	}
}

func TestRanksEqualSortedDistances(t *testing.T) {
	for _, size := range []struct{ n, d, k int }{
		{2, 1, 1}, {17, 2, 15}, {100, 3, 4}, {255, 9, 15}, {256, 20, 1}, {513, 12, 10}, {90, 100, 3},
	} {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(size.n), uint64(size.d)))
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, r)
				index := someOthers(size.n, size.k, r) // with duplicates
				countedRanks(t, m, index, size.k, need(Ranks(t.Context(), m, index, size.k, Options{}))(t))
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
	countedRanks(t, m, index, 15, need(Ranks(t.Context(), m, index, 15, Options{}))(t))
}

// The neighbours that KNN finds have the ranks 1, 2, …, and share them where they tie.
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
				first := e - e%12
				if want := 1 + slices.Index(nb.Dist2[first:first+12], nb.Dist2[e]); int(r) != want {
					t.Fatalf("D=%d, %d processors: neighbour %d of point %d has rank %d", d, procs, e%12, e/12, r)
				}
			}
		}
	}
}

// The ranks of some rows, in any order, are those among the ranks of all.
func TestRanksOfRows(t *testing.T) {
	for _, size := range []struct{ n, d, k int }{{17, 2, 3}, {256, 20, 1}, {600, 12, 5}} {
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
