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

// The definitions of the metrics, as scikit-learn has them.
var definitions = map[data.Metric]func(a, b []float64) float64{
	data.Manhattan: func(a, b []float64) (s float64) {
		for l := range a {
			s += math.Abs(a[l] - b[l])
		}
		return s
	},
	data.Hamming: func(a, b []float64) (s float64) {
		for l := range a {
			if a[l] != b[l] {
				s++
			}
		}
		return s
	},
	data.Jaccard: func(a, b []float64) float64 {
		differ, either := 0., 0.
		for l := range a {
			if a[l] != 0 || b[l] != 0 {
				either++
				if a[l] == 0 || b[l] == 0 {
					differ++
				}
			}
		}
		return differ / max(1, either)
	},
	data.Haversine: func(a, b []float64) float64 {
		const rad = data.HaversineUnit * math.Pi / 180
		x, y := math.Sin(rad*(a[0]-b[0])/2), math.Sin(rad*(a[1]-b[1])/2)
		return 2 * math.Asin(math.Sqrt(x*x+math.Cos(rad*a[0])*math.Cos(rad*b[0])*y*y))
	},
}

// metricPoints returns points for a metric: of two values for Haversine, sets for Jaccard.
func metricPoints(metric data.Metric, n, d int, seed uint64) *data.Matrix {
	r, m := rand.New(rand.NewPCG(seed, 1)), data.NewMatrix(n, d)
	for i := range m.X {
		switch metric {
		case data.Manhattan:
			m.X[i] = float32(100 + r.NormFloat64())
		case data.Hamming:
			m.X[i] = float32(r.IntN(4)) / 3
		case data.Jaccard:
			m.X[i] = float32(r.IntN(8*(1+i/d%3)) / 7 % 2)
		case data.Haversine:
			m.X[i] = float32(r.NormFloat64()) / 1000
			m.Offset = []float64{48.1 / data.HaversineUnit, 11.6 / data.HaversineUnit}
			if n < 1000 { // all over the globe, with both poles and the line where dates change
				m.X[i], m.Offset = []float32{90, 180}[i%2]*float32(r.IntN(65)-32)/32/data.HaversineUnit, nil
			}
		}
	}
	m.Metric = metric
	return m
}

// checkMetric compares neighbours with the definition: they are in order, and the nearest up
// to the rounding of the definition, and bit for bit where the metric is a ratio of numbers.
func checkMetric(t *testing.T, base, queries *data.Matrix, nb *Neighbors, own bool) {
	t.Helper()
	distance, row := definitions[base.Metric], func(m *data.Matrix, i int) []float64 {
		v := make([]float64, m.D)
		for l := range v {
			v[l] = m.At(i, l)
		}
		return v
	}
	rows := make([][]float64, base.N)
	for j := range rows {
		rows[j] = row(base, j)
	}
	rounding := 1e-13
	if base.Metric == data.Haversine {
		rounding = 1e-8 // the definition's: of the square root of a difference of sines near the poles
	}
	for i := 0; i < nb.N; i += 1 + nb.N/20 {
		q := row(queries, i)
		all, order := make([]float64, base.N), make([]int32, 0, base.N)
		for j := range all {
			if all[j] = distance(q, rows[j]); !own || i != j {
				order = append(order, int32(j))
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			if all[a] < all[b] {
				return -1
			}
			return int(math.Ceil(all[a] - all[b]))
		})
		for e, j := range nb.Of(i) {
			got, want := all[j], all[order[e]]
			if math.Abs(got-want) > rounding*(1+want) || (base.Metric == data.Hamming || base.Metric == data.Jaccard) && j != order[e] {
				t.Fatalf("neighbour %d of point %d is %d at %v, want %d at %v", e, i, j, got, order[e], want)
			}
			d2, want := nb.Dist2[i*nb.K+e], got*got
			if base.Metric == data.Haversine {
				want = math.Pow(2*math.Sin(got/2), 2)
			}
			if math.Abs(d2-want) > rounding*(1+want) {
				t.Fatalf("neighbour %d of point %d has the squared distance %v, want %v", e, i, d2, want)
			}
		}
	}
}

func TestMetricsEqualTheirDefinitions(t *testing.T) {
	for metric := range definitions {
		for _, size := range []struct{ n, d, k int }{{12, 3, 11}, {300, 2, 15}, {700, 8, 5}, {700, 9, 15}, {1030, 130, 15}, {100, 2500, 10}} {
			if metric == data.Haversine {
				size.d = 2
			}
			t.Run(fmt.Sprintf("%s,n=%d,d=%d", metric, size.n, size.d), func(t *testing.T) {
				m, q := metricPoints(metric, size.n, size.d, 1), metricPoints(metric, 40, size.d, 2)
				m.X[0] = m.X[size.d] // two equal values in a column
				if size.n >= 1000 {
					q = metricPoints(metric, size.n, size.d, 2).Rows(0, 40)
				}
				nb := need(KNN(t.Context(), m, size.k, Options{}))(t)
				checkMetric(t, m, m, nb, true)
				before := runtime.GOMAXPROCS(1)
				again := need(KNN(t.Context(), m, size.k, Options{}))(t)
				runtime.GOMAXPROCS(before)
				if !slices.Equal(nb.Index, again.Index) || !slices.Equal(nb.Dist2, again.Dist2) {
					t.Error("the neighbours depend on the number of processors")
				}
				checkMetric(t, m, q, need(Search(t.Context(), m, q, size.k, Options{}))(t), false)
				ranks, compare, least := need(Ranks(t.Context(), m, nb.Index, size.k, Options{}))(t), Compare(m, m), 1-Tie(m)
				for e, rank := range ranks {
					i, want := e/size.k, e%size.k+1
					for ; want > 1 && compare(i, int(nb.Index[e-e%size.k+want-2]), math.Inf(1)) >= compare(i, int(nb.Index[e]), math.Inf(1))*least; want-- {
					}
					if int(rank) != want {
						t.Fatalf("neighbour %d of point %d has the rank %d, want %d", e%size.k, i, rank, want)
					}
					if e%size.k > 0 && compare(i, int(nb.Index[e]), math.Inf(1)) < compare(i, int(nb.Index[e-1]), math.Inf(1)) {
						t.Fatalf("neighbour %d of point %d compares as nearer than the one before", e%size.k, i)
					}
				}
			})
		}
	}
}

// Points of two values that are compared with others, and with sets of other sizes.
func TestHammingOfOtherQueries(t *testing.T) {
	base, q := metricPoints(data.Hamming, 400, 20, 1), metricPoints(data.Hamming, 30, 20, 2)
	for i, v := range base.X {
		base.X[i] = float32(int(v)) // 0 and 1; the queries have thirds, too
	}
	checkMetric(t, base, q, need(Search(t.Context(), base, q, 15, Options{}))(t), false)
}

func TestApproximateMetrics(t *testing.T) {
	for metric := range definitions {
		n, d, k := 2000, 30, 10
		if metric == data.Haversine {
			d = 2
		}
		m := metricPoints(metric, n, d, 1)
		for i := range n { // a few hundred groups, with some structure in each
			if metric != data.Haversine && i >= 300 {
				for l := range d {
					if (i*31+l*17)%5 < 3 {
						m.X[i*d+l] = m.X[i%300*d+l]
					}
				}
			}
		}
		exact := need(KNN(t.Context(), m, k, Options{Search: Exact}))(t)
		nb := need(KNN(t.Context(), m, k, Options{Search: Approximate, Seed: 1}))(t)
		share := need(EstimateRecall(t.Context(), m, nb, 1, Options{}))(t).Share
		if got := recall(nb, exact); got < 0.97 || math.Abs(share-got) > 0.02 {
			t.Errorf("%s: recall of %.3f, estimated as %.3f, want at least .97", metric, got, share)
		}
		x := need(NewIndex(t.Context(), m, Options{Search: Approximate, Seed: 1}))(t)
		if got := recall(need(x.Search(t.Context(), m, k))(t), need(Search(t.Context(), m, m, k, Options{Search: Exact}))(t)); got < 0.95 {
			t.Errorf("%s: recall of %.3f in an index, want at least .95", metric, got)
		}
	}
}

// Where all columns but few are noise, neighbours are hardly nearer than other points.
func TestContrast(t *testing.T) {
	of := func(n, d int, noise float64, distinct int) *data.Matrix {
		random := rand.New(rand.NewPCG(7, 8))
		m := data.NewMatrix(n, d)
		for i := range n {
			row := m.Row(i % distinct)
			copy(m.Row(i), row)
			for j := range d {
				if i == i%distinct {
					m.Row(i)[j] = float32(noise*random.NormFloat64()) + float32(3*((i%5)>>(j%3)&1))
				}
			}
		}
		return m
	}
	for name, tc := range map[string]struct {
		m           *data.Matrix
		least, most float64
	}{
		"noise in many columns":  {of(1000, 400, 1000, 1000), 0.85, 1},
		"noise in few columns":   {of(3000, 3, 1000, 3000), 0.01, 0.3},
		"groups":                 {of(1000, 400, 0.1, 1000), 0.01, 0.2},
		"distances as in theory": {of(200, 5000, 1000, 200), 0.96, 1},
		"copies":                 {of(1000, 400, 1000, 20), 0, 0},
		"few":                    {of(6, 400, 1000, 6), 0, 0},
		"all equal":              {of(100, 4, 1000, 1), 0, 0},
	} {
		if got := Contrast(tc.m); !(got >= tc.least && got <= tc.most) {
			t.Errorf("%s: %.3f, want %v to %v", name, got, tc.least, tc.most)
		}
	}
}
