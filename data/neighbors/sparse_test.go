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

// sparseCases are sets of dense points, most of whose values are 0.
var sparseCases = map[string]func(r *rand.Rand, n int) *data.Matrix{
	// Documents of four topics: frequent words in nearly all of them, and rare ones.
	"words": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, 500)
		for i := range n {
			for range 40 {
				word := int(math.Exp(r.Float64()*math.Log(500))) - 1
				if word > 20 && r.IntN(3) > 0 {
					word = 20 + (word-20)/4 + 120*(i%4)
				}
				m.Row(i)[word] += float32(1+word) / 50
			}
		}
		return m
	},
	// Whole numbers of both signs, with many equal distances.
	"whole": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, 37)
		for i := range m.X {
			if r.IntN(5) == 0 {
				m.X[i] = float32(r.IntN(5) - 2)
			}
		}
		return m
	},
	// Most points share no column.
	"lonely": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, n/2)
		for i := range n {
			m.Row(i)[r.IntN(m.D)] = 1
			m.Row(i)[r.IntN(m.D)] = float32(r.IntN(3))
		}
		return m
	},
	// Lengths over many orders of magnitude.
	"lengths": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, 58)
		for i := range m.X {
			if r.IntN(6) == 0 {
				m.X[i] = float32(r.NormFloat64() * math.Pow(10, float64(i/m.D%12-6)))
			}
		}
		return m
	},
	// A few distinct rows.
	"survey": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, 12)
		for i := range n {
			m.Row(i)[r.IntN(4)] = 1
			m.Row(i)[4+r.IntN(4)] = 1
		}
		return m
	},
	// Half of the values are not 0.
	"filled": func(r *rand.Rand, n int) *data.Matrix {
		m := data.NewMatrix(n, 21)
		for i := range m.X {
			m.X[i] = float32(r.IntN(2) * r.IntN(40))
		}
		return m
	},
}

// sparseCase returns points as they are compared by a metric, with copies and points of zeros.
func sparseCase(t testing.TB, name string, metric data.Metric, n int) *data.Matrix {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	m := sparseCases[name](r, n)
	for i := range n / 10 {
		copy(m.Row(r.IntN(n)), m.Row(i))
	}
	for range n / 50 {
		clear(m.Row(r.IntN(n)))
	}
	must(t, metric.Apply(m, nil, make([]bool, n)))
	return m
}

// Sparse points have the neighbours, distances and ranks of the same points as dense ones, bit
// for bit, by every metric, among themselves and for new points, on any number of cores.
func TestSparseIsDense(t *testing.T) {
	for name := range sparseCases {
		for _, metric := range []data.Metric{"", data.Cosine, data.Manhattan, data.Hamming, data.Jaccard} {
			t.Run(fmt.Sprint(name, metric), func(t *testing.T) {
				dense := sparseCase(t, name, metric, 150)
				sparse := dense.Sparse()
				if sparse.Metric != dense.Metric || sparse.Rows(0, 3).Metric != dense.Metric {
					t.Fatal("the metric is lost")
				}
				queries := sparseCase(t, name, metric, 60)
				if queries.D != dense.D {
					queries = dense.Take([]int{3, 50, 70, 3})
					queries.X[7] = 1
				}
				distance, compare := Compare(queries, dense), Compare(queries, sparse)
				for i := range queries.N {
					for j := range dense.N {
						if a, b := distance(i, j, math.Inf(1)), compare(i, j, math.Inf(1)); a != b {
							t.Fatalf("query %d and point %d are %v apart, and dense ones %v", i, j, b, a)
						}
					}
				}
				if a, b := Tie(dense), Tie(sparse); a != b {
					t.Errorf("points are equally near within %v, and dense ones within %v", b, a)
				}
				const ranked = 15
				index := make([]int32, 0, dense.N*ranked)
				r := rand.New(rand.NewPCG(5, 6))
				for i := range dense.N {
					for range ranked {
						index = append(index, int32((i+1+r.IntN(dense.N-1))%dense.N))
					}
				}
				ranks := need(Ranks(t.Context(), dense, index, ranked, Options{}))(t)
				if !slices.Equal(need(Ranks(t.Context(), sparse, index, ranked, Options{}))(t), ranks) {
					t.Error("the ranks differ")
				}
				for _, k := range []int{1, 15, 100} {
					want := exactly(t, dense, k)
					got := need(KNN(t.Context(), sparse, k, Options{Search: Approximate}))(t)
					sameNeighbors(t, got, want)
					cores := runtime.GOMAXPROCS(1)
					sameNeighbors(t, need(KNN(t.Context(), sparse, k, Options{}))(t), want)
					runtime.GOMAXPROCS(cores)

					want = need(Search(t.Context(), dense, queries, k, Options{Search: Exact}))(t)
					sameNeighbors(t, need(Search(t.Context(), sparse, queries, k, Options{}))(t), want)
					sameNeighbors(t, need(Search(t.Context(), sparse, queries.Sparse(), k, Options{}))(t), want)
					sameNeighbors(t, need(Search(t.Context(), dense, queries.Sparse(), k, Options{}))(t), want)
				}
			})
		}
	}
}

func sameNeighbors(t *testing.T, got, want *Neighbors) {
	t.Helper()
	for e, j := range want.Index {
		if got.Index[e] != j || got.Dist2[e] != want.Dist2[e] {
			t.Fatalf("neighbour %d of point %d is %d at %v, want %d at %v", e%want.K, e/want.K, got.Index[e], got.Dist2[e], j, want.Dist2[e])
		}
	}
}

// Copies of sparse rows are spread as copies of dense ones are, and the same points are alone.
func TestCopiesOfSparseRows(t *testing.T) {
	dense := sparseCase(t, "survey", "", 300)
	sparse := dense.Sparse()
	want, distinct, points, err := SpreadCopies(t.Context(), dense, exactly(t, dense, 15), Options{})
	must(t, err)
	got, distinct2, points2, err := SpreadCopies(t.Context(), sparse, exactly(t, sparse, 15), Options{})
	must(t, err)
	if sameNeighbors(t, got, want); distinct != distinct2 || points != points2 || points == 0 {
		t.Errorf("%d rows and %d points, want %d and %d", distinct2, points2, distinct, points)
	}
	if !slices.Equal(Alone(sparse), Alone(dense)) {
		t.Error("other points are alone")
	}
}

// Distances are those between dense points to six digits, also of points whose lengths differ by
// many orders of magnitude.
func TestDistancesOfSparsePoints(t *testing.T) {
	for name := range sparseCases {
		for _, metric := range []data.Metric{"", data.Cosine, data.Manhattan, data.Hamming, data.Jaccard} {
			dense := sparseCase(t, name, metric, 80)
			compare, distances, values := Compare(dense, dense), Distances(dense.Sparse()), make([]float64, dense.N)
			for i := range dense.N {
				distances(i, values)
				for j := i + 1; j < dense.N; j++ {
					v := values[j]
					if want := compare(i, j, math.Inf(1)); math.Abs(v-want) > 1e-6*want {
						t.Fatalf("%s, %s: points %d and %d are %v apart, want %v", name, metric, i, j, v, want)
					}
				}
			}
		}
	}
}

// BenchmarkSparseKNN finds the neighbours of documents of 20 topics with 130 107 words, as TF-IDF
// weights of length 1.
func BenchmarkSparseKNN(b *testing.B) {
	for _, n := range []int{2500, 20_000} {
		m := documents(n, 130_107)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				need(KNN(b.Context(), m, 15, Options{}))(b)
			}
		})
	}
}

// documents returns TF-IDF weights of n documents of 20 topics, most words of which are rare.
func documents(n, words int) *data.Matrix {
	r := rand.New(rand.NewPCG(1, 2))
	c, often := &data.CSR{Start: []int{0}}, make([]float64, words)
	for i := range n {
		document := map[int32]bool{}
		for range 90 {
			document[int32(math.Exp(r.Float64()*math.Log(float64(words))))-1] = true
			document[int32((i%20*997+r.IntN(3000)*20)%words)] = true
		}
		for word := range document {
			c.Column, c.Value = append(c.Column, word), append(c.Value, 1)
			often[word]++
		}
		c.Start = append(c.Start, len(c.Value))
	}
	c.Tidy()
	for l, word := range c.Column {
		c.Value[l] = float32(1 + math.Log(float64(1+n)/(1+often[word])))
	}
	m := &data.Matrix{N: n, D: words, CSR: c}
	if err := data.Cosine.Apply(m, nil, nil); err != nil {
		panic(err)
	}
	return m
}
