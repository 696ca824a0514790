package quality

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"cne/data"
	"cne/data/neighbors"
)

// reduced returns points in three dimensions, an embedding that leaves one out, and
// labels; every fifth label is missing.
func reduced(n int) (points, embedding *data.Matrix, labels *data.Labels) {
	points, embedding = matrix(normal[float32](uint64(n), n, 3, 2), 3), data.NewMatrix(n, 2)
	names := make([]string, n)
	for i := range n {
		copy(embedding.Row(i), points.Row(i))
		if i%5 > 0 {
			names[i] = map[bool]string{true: "left", false: "right"}[points.Row(i)[0] < 0]
		}
	}
	return points, embedding, data.NewLabels(names)
}

// Measure gives what the functions for the single figures do.
func TestMeasure(t *testing.T) {
	const n, k, seed = 300, 7, 11
	ctx := t.Context()
	points, embedding, labels := reduced(n)
	near := need(neighbors.KNN(t.Context(), points, 2*k, neighbors.Options{}))(t)
	found := need(neighbors.KNN(t.Context(), embedding, k, neighbors.Options{}))(t)
	graph := need(neighbors.FromNeighbors(near.Nearest(k)))(t)
	var measured Metric
	o := Options{
		K: k, SpearmanSample: new(100), Seed: seed, Labels: labels, Measured: func(m Metric, took time.Duration) { measured |= m },
	}
	f := need(Measure(ctx, points, embedding, o))(t)
	if measured != Where(func(*Figure) bool { return true }) {
		t.Errorf("metrics %b were measured", measured)
	}

	check := func(what string, got *float64) func(want float64, err error) {
		return func(want float64, err error) {
			t.Helper()
			if err != nil || got == nil || *got != want {
				t.Errorf("%s: %v, want %v (%v)", what, got, want, err)
			}
		}
	}
	z, err := PartitionFunction(ctx, embedding.X, 2)
	check("partition function", f.PartitionFunction)(z, err)
	check("recall", f.KNNRecall)(knnRecall(near.Nearest(k).Index, found.Index, k, n))
	check("Spearman", f.Spearman)(mean(spearman(ctx, points, embedding, 100, 0)))
	heads, tails := graph.EdgeList()
	check("KL", f.KL)(klOf(ctx, heads, tails, embedding.X, 2, z))
	ranks := need(neighbors.Ranks(t.Context(), points, found.Index, k, neighbors.Options{}))(t)
	check("trustworthiness", f.Trustworthiness)(trustworthinessOf(ranks, k), nil)
	labelled := data.NewMatrix(0, 2)
	var class []int32
	for i, c := range labels.Class {
		if labels.Names[c] != "" {
			labelled.X, class = append(labelled.X, embedding.Row(i)...), append(class, c)
			labelled.N++
		}
	}
	check("accuracy", f.Accuracy)(knnAccuracy(ctx, labelled, class, AccuracyK, AccuracyTest, seed, nil))

	// What is known need not be found, and changes nothing.
	o.Neighbors, o.Found, o.Graph = near, found, graph
	again, err := Measure(ctx, points, embedding, o)
	if err != nil || *again.KNNRecall != *f.KNNRecall || *again.KL != *f.KL || *again.Trustworthiness != *f.Trustworthiness {
		t.Errorf("with known neighbours and graph: %+v, %v", again, err)
	}
}

// The density correlation is what its definition gives, in the metric of the points.
func TestDensityCorrelation(t *testing.T) {
	const n, k = 120, 6
	points, embedding := matrix(normal[float32](1, n, 3, 2), 3), matrix(normal[float32](2, n, 2, 1), 2)
	for i := range n {
		for j := range points.Row(i) {
			points.Row(i)[j] *= float32(1 + i%5)
		}
		embedding.Row(i)[0] *= float32(1 + i%5)
	}
	for i := 1; i <= k; i++ { // copies, whose radii are 0, do not count
		copy(points.Row(i), points.Row(0))
	}
	logRadius := func(m *data.Matrix, i int) float64 {
		d2 := make([]float64, n)
		for j := range d2 {
			for l, v := range m.Row(i) {
				d := float64(v) - float64(m.Row(j)[l])
				if m.Metric == data.Manhattan {
					d2[j] += math.Abs(d)
				} else {
					d2[j] += d * d
				}
			}
			if m.Metric == data.Manhattan {
				d2[j] *= d2[j]
			}
		}
		slices.Sort(d2)
		sum := 0.
		for _, v := range d2[1 : k+1] {
			sum += v / k
		}
		return math.Log(sum)
	}
	for _, metric := range []data.Metric{"", data.Manhattan} {
		points.Metric = metric
		var x, y []float64
		for i := range n {
			if a := logRadius(points, i); !math.IsInf(a, -1) {
				x, y = append(x, a), append(y, logRadius(embedding, i))
			}
		}
		f := need(Measure(t.Context(), points, embedding, Options{K: k, Skip: ^MetricDensity}))(t)
		if want := stat.Correlation(x, y, nil); len(x) != n-k-1 || f.Density == nil || math.Abs(*f.Density-want) > 1e-5 || want < 0.2 {
			t.Errorf("%q: got %v, want %v of %d points", metric, f.Density, want, len(x))
		}
	}
	points.Metric = ""
	twice := matrix(slices.Clone(points.X), 3)
	for i := range twice.X {
		twice.X[i] *= 2
	}
	if f := need(Measure(t.Context(), points, twice, Options{K: k, Skip: ^MetricDensity}))(t); f.Density == nil || math.Abs(*f.Density-1) > 1e-12 {
		t.Errorf("the points themselves have the correlation %v, want 1", f.Density)
	}
	ring := data.NewMatrix(n, 2)
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / n)
		ring.Row(i)[0], ring.Row(i)[1] = float32(sin), float32(cos)
	}
	if f := need(Measure(t.Context(), points, ring, Options{K: k, Skip: ^MetricDensity}))(t); f.Density != nil {
		t.Errorf("equal radii have the correlation %v, want none", *f.Density)
	}
}

// What is missing leaves figures out, as does Skip.
func TestMeasureLeavesOut(t *testing.T) {
	// with returns the metrics that need no more than these.
	with := func(needs Needs) (all Metric) {
		for _, f := range table {
			if f.Needs&^needs == 0 {
				all |= f.Metric
			}
		}
		return all
	}
	const ofPoints = NeedsPoints | NeedsNeighbors | NeedsGraph
	none := with(NeedsNone)
	points, embedding, labels := reduced(40)
	near := need(neighbors.KNN(t.Context(), points, 5, neighbors.Options{}))(t)
	graph := need(neighbors.FromNeighbors(near))(t)
	ages := make([]string, 40)
	for i := range ages {
		ages[i] = string(rune('0'+i%10)) + ".5"
	}
	few := func(m *data.Matrix, n int) *data.Matrix { return m.Rows(0, n) }
	for name, tc := range map[string]struct {
		points, embedding *data.Matrix
		o                 Options
		want              Metric
	}{
		"nothing else":       {nil, embedding, Options{}, none},
		"neighbours alone":   {nil, embedding, Options{K: 5, Neighbors: near}, with(NeedsNeighbors)},
		"graph alone":        {nil, embedding, Options{Graph: graph}, with(NeedsGraph)},
		"no edges":           {nil, embedding, Options{Graph: &neighbors.Graph{N: 40, Indptr: make([]int64, 41)}}, none},
		"labels alone":       {nil, embedding, Options{Labels: labels}, with(NeedsLabels)},
		"quantities":         {nil, embedding, Options{Labels: data.NewLabels(ages)}, none},
		"too few labels":     {nil, few(embedding, 11), Options{Labels: data.NewLabels(slices.Repeat([]string{"a"}, 11))}, none},
		"points":             {points, embedding, Options{K: 5}, with(ofPoints)},
		"neighbours by half": {points, embedding, Options{K: 20}, with(ofPoints) &^ MetricTrustworthiness},
		"collapsed":          {points, data.NewMatrix(40, 2), Options{K: 5, Skip: ^(none | MetricSpearman)}, none},
		"two points":         {few(points, 2), few(embedding, 2), Options{K: 1}, with(ofPoints) &^ (MetricTrustworthiness | MetricSpearman | MetricDensity)},
		"skipped":            {points, embedding, Options{Skip: ^MetricSpearman}, MetricSpearman},
	} {
		var got Metric
		tc.o.Measured = func(m Metric, _ time.Duration) { got |= m }
		f, err := Measure(t.Context(), tc.points, tc.embedding, tc.o)
		if err != nil || got != tc.want {
			t.Errorf("%s: metrics %b were measured, want %b (%v)", name, got, tc.want, err)
			continue
		}
		for _, figure := range Table() {
			if v, _ := figure.Of(f); (v != nil) != (tc.want&figure.Metric != 0) {
				t.Errorf("%s: %s is there: %v", name, figure.Key, v != nil)
			}
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	points, embedding, labels := reduced(40)
	broken := data.NewMatrix(40, 2)
	broken.X[5] = float32(math.Inf(1))
	near := need(neighbors.KNN(t.Context(), points, 5, neighbors.Options{}))(t)
	for name, tc := range map[string]struct {
		points, embedding *data.Matrix
		o                 Options
		is                error
	}{
		"no embedding":        {points, nil, Options{}, ErrInput},
		"sizes":               {points.Rows(0, 39), embedding, Options{}, ErrInput},
		"a broken matrix":     {points, &data.Matrix{N: 40, D: 2, X: make([]float32, 7)}, Options{}, ErrInput},
		"sparse points":       {&data.Matrix{N: 40, D: 3, CSR: &data.CSR{Start: make([]int, 40)}}, embedding, Options{}, data.ErrShape},
		"sparse embedding":    {points, embedding.Sparse(), Options{}, data.ErrSparse},
		"another N":           {points, &data.Matrix{N: 41, D: 2, X: embedding.X}, Options{}, ErrInput},
		"infinite embedding":  {points, broken, Options{}, ErrNotFinite},
		"infinite data":       {broken, embedding, Options{}, ErrNotFinite},
		"too few points":      {points.Rows(0, 15), embedding.Rows(0, 15), Options{}, ErrUndefined},
		"negative K":          {points, embedding, Options{K: -1}, ErrInput},
		"sample":              {points, embedding, Options{SpearmanSample: new(2)}, ErrInput},
		"labels":              {points, embedding, Options{Labels: data.NewLabels([]string{"a"})}, ErrInput},
		"classes":             {points, embedding, Options{Labels: &data.Labels{Class: slices.Repeat([]int32{3}, 40)}}, ErrInput},
		"few neighbours":      {points, embedding, Options{K: 6, Neighbors: near}, ErrInput},
		"others' neighbours":  {points.Rows(0, 30), embedding.Rows(0, 30), Options{K: 5, Found: near}, ErrInput},
		"no such neighbour":   {points, embedding, Options{K: 1, Neighbors: &neighbors.Neighbors{N: 40, K: 1, Index: slices.Repeat([]int32{40}, 40), Dist2: make([]float64, 40)}}, ErrInput},
		"graph of others":     {points, embedding, Options{Graph: &neighbors.Graph{N: 1, Indptr: make([]int64, 2)}}, ErrInput},
		"broken graph":        {points, embedding, Options{Graph: &neighbors.Graph{N: 40}}, ErrInput},
		"accuracy, all right": {points, embedding, Options{Labels: labels, Skip: ^MetricAccuracy}, nil},
	} {
		if _, err := Measure(t.Context(), tc.points, tc.embedding, tc.o); !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %v", name, err, tc.is)
		}
	}
}

// Sparse points have the figures of the same points as dense ones, also estimated ones and those
// of held-out points, up to the rounding of distances for the rank correlation.
func TestMeasureSparse(t *testing.T) {
	defer func(n int) { sampleAbove = n }(sampleAbove)
	r := rand.New(rand.NewPCG(3, 4))
	for _, metric := range []data.Metric{"", data.Cosine, data.Manhattan, data.Hamming, data.Jaccard} {
		points, embedding := data.NewMatrix(400, 60), data.NewMatrix(400, 2)
		for i := range points.N {
			for range 8 {
				points.Row(i)[i%3*20+r.IntN(25)%20] = float32(1 + r.IntN(3))
			}
			embedding.Row(i)[0], embedding.Row(i)[1] = float32(i%3)+float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		must(t, metric.Apply(points, nil, nil))
		held := HeldOut{Points: points.Rows(300, 400), Embedding: embedding.Rows(300, 400)}
		for _, sampleAbove = range []int{1000, 300} {
			o := Options{K: 7, Sample: new(200), Skip: ^(MetricRecall | MetricTrustworthiness | MetricSpearman | MetricKL)}
			want := need(Measure(t.Context(), points, embedding, o))(t)
			got := need(Measure(t.Context(), points.Sparse(), embedding, o))(t)
			if math.Abs(*got.Spearman-*want.Spearman) > 1e-4 {
				t.Errorf("%s: the correlation is %v, want %v", metric, *got.Spearman, *want.Spearman)
			}
			got.Spearman = want.Spearman
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", metric, got, want)
			}
			few, at := points.Rows(0, 300), embedding.Rows(0, 300)
			whole := need(MeasureHeldOut(t.Context(), few, at, held, o))(t)
			for _, p := range []*data.Matrix{held.Points, held.Points.Sparse()} {
				for _, m := range []*data.Matrix{few, few.Sparse()} {
					if f := need(MeasureHeldOut(t.Context(), m, at, HeldOut{Points: p, Embedding: held.Embedding}, o))(t); *f.KNNRecall != *whole.KNNRecall {
						t.Errorf("%s: the recall of held-out points is %v, want %v", metric, *f.KNNRecall, *whole.KNNRecall)
					}
				}
			}
		}
	}
}

// A context that ends stops each of the figures, and what was measured is returned.
func TestMeasureStops(t *testing.T) {
	points, embedding, labels := reduced(300)
	ended, end := context.WithCancel(t.Context())
	end()
	heads, tails := []int32{0, 1}, []int32{1, 0}
	for name, err := range map[string]error{
		"partition function":       errorOf(PartitionFunction(ended, embedding.X, 2)),
		"partition function, wide": errorOf(PartitionFunction(ended, points.X, 3)),
		"partition function, 64":   errorOf(PartitionFunction(ended, make([]float64, 9), 3)),
		"KL":                       errorOf(klOf(ended, heads, tails, embedding.X, 2, 1)),
		"Spearman":                 errorOf(spearman(ended, points, embedding, 300, 1)),
		"accuracy":                 errorOf(knnAccuracy(ended, embedding, labels.Class, 5, 0.2, 1, nil)),
		"held-out accuracy":        errorOf(HeldOutAccuracy(ended, embedding, labels.Class, embedding, labels.Class, 5, nil)),
		"held-out figures":         errorOf(MeasureHeldOut(ended, points, embedding, HeldOut{Points: points, Embedding: embedding}, Options{})),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}

	ctx, end := context.WithCancel(t.Context())
	f, err := Measure(ctx, points, embedding, Options{Measured: func(m Metric, _ time.Duration) {
		if m == MetricPartition {
			end()
		}
	}})
	if !errors.Is(err, context.Canceled) || f == nil || f.PartitionFunction == nil || f.KNNRecall != nil || f.KL != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestDivergence(t *testing.T) {
	pair := &neighbors.Graph{N: 3, Indptr: []int64{0, 1, 2, 2}, Indices: []int32{1, 0}}
	close, far := []float32{0, 0, 1, 0, 0, 1}, []float32{0, 0, 1e25, 0, 0, 1e25}
	for _, tc := range []struct {
		name  string
		graph *neighbors.Graph
		x     []float32
		want  float64 // NaN: none
	}{
		// Both edges have q = 1/2, and the ordered pairs 1/2, 1/2 and 1/3 twice:
		// the divergence is log 2 + log(8/3) − log 2.
		{"an edge", pair, close, math.Log(8. / 3)},
		{"no edges", &neighbors.Graph{N: 3, Indptr: make([]int64, 4)}, close, math.NaN()},
		{"far apart", pair, far, math.NaN()},
	} {
		f, err := Measure(t.Context(), nil, matrix(tc.x, 2), Options{Graph: tc.graph, Skip: ^MetricKL})
		if err != nil || (f.KL == nil) != math.IsNaN(tc.want) || f.KL != nil && math.Abs(*f.KL-tc.want) > 1e-6 {
			t.Errorf("%s: %+v (%v), want %g", tc.name, f, err, tc.want)
		}
	}
}

func TestMeasureHeldOut(t *testing.T) {
	points, embedding, labels := reduced(200)
	train, held := embedding.Rows(0, 150), embedding.Rows(150, 200)
	names := func(lo, hi int) *data.Labels {
		var all []string
		for _, c := range labels.Class[lo:hi] {
			all = append(all, labels.Names[c])
		}
		return data.NewLabels(all)
	}
	o := Options{K: 5, Labels: names(0, 150)}
	h := HeldOut{Points: points.Rows(150, 200), Embedding: held, Labels: names(150, 200)}
	f, err := MeasureHeldOut(t.Context(), points.Rows(0, 150), train, h, o)
	if err != nil || f.N != 50 || f.OtherLabels {
		t.Fatalf("%+v, %v", f, err)
	}
	near := need(neighbors.Search(t.Context(), points.Rows(0, 150), h.Points, 5, neighbors.Options{}))(t)
	found := need(neighbors.Search(t.Context(), train, held, 5, neighbors.Options{}))(t)
	if want, err := knnRecall(near.Index, found.Index, 5, 150); err != nil || *f.KNNRecall != want {
		t.Errorf("recall %v, want %v (%v)", *f.KNNRecall, want, err)
	}
	var known, tests classified
	known.Matrix, tests.Matrix = data.NewMatrix(0, 2), data.NewMatrix(0, 2)
	for i, c := range labels.Class {
		if to := map[bool]*classified{true: &known, false: &tests}[i < 150]; labels.Names[c] != "" {
			to.X, to.class = append(to.X, embedding.Row(i)...), append(to.class, c)
			to.N++
		}
	}
	if want, err := HeldOutAccuracy(t.Context(), known.Matrix, known.class, tests.Matrix, tests.class, AccuracyK, nil); err != nil || *f.Accuracy != want {
		t.Errorf("accuracy %v, want %v (%v)", *f.Accuracy, want, err)
	}

	other := h
	other.Labels = data.NewLabels(slices.Repeat([]string{"unheard of"}, 50))
	if f, err := MeasureHeldOut(t.Context(), nil, train, other, o); err != nil || f.KNNRecall != nil || f.Accuracy != nil || !f.OtherLabels {
		t.Errorf("other labels: %+v, %v", f, err)
	}
	if f, err := MeasureHeldOut(t.Context(), points.Rows(0, 150), train, h, Options{Skip: MetricRecall}); err != nil || f.KNNRecall != nil || f.Accuracy != nil {
		t.Errorf("neither asked for nor labelled: %+v, %v", f, err)
	}
	wide := data.NewMatrix(50, 4)
	for name, tc := range map[string]struct {
		held HeldOut
		k    int
		is   error
	}{
		"no positions":     {HeldOut{Points: h.Points}, 5, ErrInput},
		"points' width":    {HeldOut{Points: wide, Embedding: held}, 5, ErrInput},
		"positions' width": {HeldOut{Points: h.Points, Embedding: wide}, 5, ErrInput},
		"fewer points":     {HeldOut{Points: points.Rows(0, 3), Embedding: held}, 5, ErrInput},
		"labels":           {HeldOut{Embedding: held, Labels: o.Labels}, 5, ErrInput},
		"too many":         {h, 151, ErrUndefined},
	} {
		if _, err := MeasureHeldOut(t.Context(), points.Rows(0, 150), train, tc.held, Options{K: tc.k}); !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, want %v", name, err, tc.is)
		}
	}
}
