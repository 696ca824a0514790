package neighbors

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// stack puts matrices of one width one below the other.
func stack(ms ...*data.Matrix) *data.Matrix {
	all := &data.Matrix{D: ms[0].D}
	for _, m := range ms {
		all.N += m.N
		all.X = append(all.X, m.X...)
	}
	return all
}

// queriesFor returns queries of several sorts: some of the base points
// themselves, points of the same sort, and points near and far off.
func queriesFor(base *data.Matrix, fill func(*data.Matrix, *rand.Rand)) *data.Matrix {
	fresh := data.NewMatrix(20, base.D)
	fill(fresh, rand.New(rand.NewPCG(99, 1)))
	near := data.NewMatrix(10, base.D)
	r := rand.New(rand.NewPCG(98, 1))
	for i := range near.X {
		near.X[i] = base.X[i%len(base.X)] + float32(0.01*r.NormFloat64())
	}
	off := normal(12, base.D, 97)
	for i := range off.N {
		for l := range off.Row(i) {
			off.Row(i)[l] *= float32(math.Pow(10, float64(3*i)))
		}
	}
	extreme := data.NewMatrix(3, base.D)
	for l := range base.D {
		extreme.Row(0)[l] = math.MaxFloat32
		extreme.Row(1)[l] = -math.MaxFloat32
		extreme.Row(2)[l] = math.SmallestNonzeroFloat32
	}
	return stack(base.Rows(0, min(20, base.N)), fresh, near, off, extreme)
}

func TestSearchEqualsScanOfAllPairs(t *testing.T) {
	sizes := []struct {
		n, d int
		ks   []int
	}{
		{1, 1, []int{1}},
		{17, 2, []int{1, 17}},
		{100, 3, []int{4}},
		{100, 8, []int{15}},
		{280, 9, []int{15, 280}},
		{300, 50, []int{1, 15, 59}},
		{90, 100, []int{3}},
	}
	for _, kind := range kinds {
		for _, size := range sizes {
			base := data.NewMatrix(size.n, size.d)
			kind.fill(base, rand.New(rand.NewPCG(uint64(size.n), uint64(size.d))))
			points := queriesFor(base, kind.fill)
			x := need(NewIndex(t.Context(), base, Options{}))(t)
			among := []*Index{blockedIndex(base), roundedIndex(base, false), roundedIndex(base, true)}
			for _, k := range size.ks {
				t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, k), func(t *testing.T) {
					want := scan(base, points, k, false)
					same(t, need(x.Search(t.Context(), points, k))(t), want)
					same(t, need(Search(t.Context(), base, points, k, Options{}))(t), want)
					for _, among := range among {
						found := newNeighbors(points.N, k)
						rankCandidates(t, among, found, queries{points: points})
						same(t, found, want)
					}
				})
			}
		}
	}
}

// The products prove the result of ordinary queries; those far from the base
// are searched in the tree.
func TestWhichQueriesAreSearched(t *testing.T) {
	base := normal(2000, 20, 1)
	far := normal(10, 20, 3)
	for i := range far.X {
		far.X[i] *= 1e20
	}
	for _, tc := range []struct {
		name    string
		queries *data.Matrix
		want    int
	}{
		{"of the same sort", normal(600, 20, 2), 0},
		{"the base itself", base, 0},
		{"far", far, 10},
		{"some far", stack(normal(300, 20, 2), far, normal(300, 20, 4)), 10},
	} {
		got := rankCandidates(t, blockedIndex(base), newNeighbors(tc.queries.N, 15), queries{points: tc.queries})
		if got != tc.want {
			t.Errorf("%s: %d queries were searched in the tree, want %d", tc.name, got, tc.want)
		}
	}
}

// The base among itself gives every point first, or one that equals it, and
// then what KNN gives.
func TestSearchAgreesWithKNN(t *testing.T) {
	for _, d := range []int{2, 30} {
		m := normal(700, d, 5)
		knn := need(KNN(t.Context(), m, 10, Options{}))(t)
		found := need(Search(t.Context(), m, m, 11, Options{}))(t)
		for i := range m.N {
			if got := found.Of(i); got[0] != int32(i) || !slices.Equal(got[1:], knn.Of(i)) {
				t.Fatalf("D=%d: point %d finds %v, its neighbours are %v", d, i, got, knn.Of(i))
			}
		}
	}
}

// A query finds the same in whatever block it comes, on any number of cores,
// and while others search too.
func TestSearchDoesNotDependOnTheBlock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, d := range []int{2, 30} {
		base, queries := normal(1500, d, 8), normal(700, d, 9)
		for i := range 300 { // some ties for the tree to search
			copy(base.Row(i), base.Row(i%10))
			copy(queries.Row(i), base.Row(i%20))
		}
		want := need(Search(t.Context(), base, queries, 15, Options{}))(t)
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			x := need(NewIndex(t.Context(), base, Options{}))(t)
			var wg sync.WaitGroup
			for _, size := range []int{1, 7, 256, 700} {
				wg.Go(func() {
					for lo := 0; lo < queries.N; lo += size {
						hi := min(queries.N, lo+size)
						got, err := x.Search(t.Context(), queries.Rows(lo, hi), 15)
						if err != nil {
							t.Error(err)
							return
						}
						if !slices.Equal(got.Index, want.Index[lo*15:hi*15]) || !slices.Equal(got.Dist2, want.Dist2[lo*15:hi*15]) {
							t.Errorf("D=%d, %d processors: queries %d to %d find other neighbours in a separate search", d, procs, lo, hi-1)
							return
						}
					}
				})
			}
			wg.Wait()
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add(uint8(3), uint8(2), uint8(5), []byte("some points and queries"))
	f.Add(uint8(9), uint8(1), uint8(3), bytes.Repeat([]byte{0, 1, 1, 0, 255}, 160))
	f.Fuzz(func(t *testing.T, d, k, q uint8, b []byte) {
		if d == 0 || k == 0 || q == 0 || len(b)/int(d) < int(k)+int(q) || len(b) > 4000 {
			return
		}
		m := data.NewMatrix(len(b)/int(d), int(d))
		for i := range m.X {
			m.X[i] = float32(int8(b[i]))
		}
		queries, base := m.Rows(0, int(q)), m.Rows(int(q), m.N)
		same(t, need(Search(t.Context(), base, queries, int(k), Options{}))(t), scan(base, queries, int(k), false))
	})
}

func BenchmarkSearch(b *testing.B) {
	for _, d := range []int{2, 50} {
		for _, queries := range []int{1, 1000, 10000} {
			b.Run(fmt.Sprintf("10000x%d, %d queries", d, queries), func(b *testing.B) {
				x := need(NewIndex(b.Context(), normal(10000, d, 1), Options{}))(b)
				q := normal(queries, d, 2)
				for b.Loop() {
					need(x.Search(b.Context(), q, 15))(b)
				}
			})
		}
	}
}

// Queries are searched where they are, whatever offset the base has.
func TestSearchRelatesOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	base, queries := data.NewMatrix(200, 2), data.NewMatrix(20, 2)
	for i := range base.X {
		base.X[i] = float32(s.IntN(4096)) / 64
	}
	copy(queries.X, base.X)
	want := need(Search(t.Context(), base, queries, 5, Options{}))(t)
	base.Offset = []float64{1e9, -1e9}
	moved := queries.Relative([]float64{8, -4})
	moved.Offset = []float64{1e9 + 8, -1e9 - 4}
	got, err := Search(t.Context(), base, moved, 5, Options{})
	if err != nil || !slices.Equal(got.Index, want.Index) || !slices.Equal(got.Dist2, want.Dist2) {
		t.Errorf("the neighbours are others (%v)", err)
	}
}
