package quality

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/data/neighbors"
)

// sampleFrom has more than n points sampled during a test.
func sampleFrom(t *testing.T, n int) {
	t.Helper()
	before := sampleAbove
	sampleAbove = n
	t.Cleanup(func() { sampleAbove = before })
}

// A sampledCase is an embedding of some kind, with all that can be measured of it.
type sampledCase struct {
	points, embedding *data.Matrix
	o                 Options
}

// sampledCases returns embeddings of as many kinds as differ in how unlike their points
// are: what errors are about.
func sampledCases(t *testing.T, n int) map[string]sampledCase {
	t.Helper()
	cases := map[string]sampledCase{}
	add := func(name string, d int, place func(i int, x, y []float32)) {
		points := matrix(normal[float32](5, n, 4, 1), 4)
		embedding := data.NewMatrix(n, d)
		labels := make([]string, n)
		for i := range n {
			place(i, points.Row(i), embedding.Row(i))
			labels[i] = fmt.Sprint("class ", i%3)
			if points.Row(i)[0] > 0.3 {
				labels[i] = "right"
			}
		}
		near := need(neighbors.KNN(t.Context(), points, 9, neighbors.Options{}))(t)
		graph := need(neighbors.FromNeighbors(near))(t)
		cases[name] = sampledCase{points, embedding, Options{
			K: 9, Sample: new(200), Labels: data.NewLabels(labels), Graph: graph, Neighbors: near, Skip: MetricSpearman,
		}}
	}
	add("reduced", 2, func(_ int, x, y []float32) { copy(y, x) })
	add("three dimensions", 3, func(_ int, x, y []float32) { copy(y, x) })
	add("clusters", 2, func(i int, x, y []float32) {
		x[0] += float32(20 * (i % 7))
		y[0], y[1] = 4*x[0], x[1]
	})
	add("an outlier", 2, func(i int, x, y []float32) {
		copy(y, x)
		if i == 17 {
			y[0] = 30
		}
	})
	add("heavy tails", 2, func(_ int, x, y []float32) {
		y[0], y[1] = x[0]*x[0]*x[0]*10, x[1]*x[1]*x[1]*10
	})
	add("pairs at one place", 2, func(i int, x, y []float32) {
		y[0], y[1] = float32(i/2%40), float32(i/2/40)
	})
	return cases
}

// An estimated is a figure with its error, from a sample and of all points.
type estimated struct{ value, err, exact *float64 }

func compared(got, exact *Figures) map[string]estimated {
	return map[string]estimated{
		"recall":             {got.KNNRecall, got.KNNRecallError, exact.KNNRecall},
		"partition function": {got.PartitionFunction, got.PartitionFunctionError, exact.PartitionFunction},
		"KL":                 {got.KL, got.KLError, exact.KL},
		"accuracy":           {got.Accuracy, got.AccuracyError, exact.Accuracy},
		"density":            {got.Density, got.DensityError, exact.Density},
		"trustworthiness":    {got.Trustworthiness, got.TrustworthinessError, exact.Trustworthiness},
	}
}

// A sample's figures are as far from the exact ones as they say: never by four standard
// errors, mostly by less than two, and by one in the root mean square.
func TestSampledFigures(t *testing.T) {
	const n, seeds = 1500, 40
	for name, c := range sampledCases(t, n) {
		t.Run(name, func(t *testing.T) {
			sampleFrom(t, n) // all count
			exact := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
			far, squares := map[string]int{}, map[string]float64{}
			for seed := range uint64(seeds) {
				c.o.Seed = seed
				sampleAbove = n
				accuracy := c.o // the seed decides who is held out
				accuracy.Skip = ^MetricAccuracy
				of := need(Measure(t.Context(), c.points, c.embedding, accuracy))(t)
				exact.Accuracy = of.Accuracy
				sampleAbove = n - 1
				got := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
				for what, f := range compared(got, exact) {
					if what == "density" && name == "an outlier" {
						continue // most samples lack the point that alone lowers the correlation
					}
					if f.exact == nil || f.value == nil || f.err == nil {
						t.Fatalf("%s is missing: %v", what, f)
					}
					off := (*f.value - *f.exact) / *f.err
					if what == "KL" || what == "partition function" {
						// What is single precision is of another order in both.
						if math.Abs(*f.value-*f.exact) < 1e-6**f.exact {
							off = 0
						}
					}
					if !(math.Abs(off) < 4) {
						t.Errorf("seed %d: %s is %v ± %v, exactly %v", seed, what, *f.value, *f.err, *f.exact)
					}
					if math.Abs(off) > 2 {
						far[what]++
					}
					squares[what] += off * off / seeds
				}
			}
			for what, v := range squares {
				t.Logf("%s: %d of %d beyond two standard errors, %.2f in the root mean square", what, far[what], seeds, math.Sqrt(v))
				if far[what] > 8 || v < 0.5 || v > 2 {
					t.Errorf("%s: %d of %d beyond two standard errors, %.2f in the root mean square", what, far[what], seeds, math.Sqrt(v))
				}
			}
		})
	}
}

// The sums of all rows make the partition function, and each is its row's.
func TestRowSums(t *testing.T) {
	for _, size := range []struct {
		n, d  int
		scale float64
	}{{2, 2, 1}, {63, 2, 1}, {1500, 1, 3}, {1500, 2, 3}, {1500, 2, 1e8}, {1500, 2, 1e12}, {1500, 3, 3}, {1030, 9, 1e12}} {
		e := matrix(normal[float32](9, size.n, size.d, size.scale), size.d)
		all := make([]int, size.n)
		for i := range all {
			all[i] = i
		}
		sums := need(overRows(t.Context(), size.n, all, similarityTerms(e.X, size.n, size.d, true)))(t)
		var total float64
		for i, got := range sums {
			var want float64
			for j := range size.n {
				if j != i {
					want += 1 / (1 + squaredDistance(e.Row(i), e.Row(j)))
				}
			}
			near(t, fmt.Sprintf("row %d of %+v", i, size), got, want, 1e-6)
			total += got
		}
		want := partitionNaive(e.X, size.d)
		near(t, fmt.Sprintf("%+v", size), total, want, 1e-6)
	}
}

// What is known of the neighbours changes nothing, nor does the number of processors.
func TestSampledBits(t *testing.T) {
	const n = 2400 // more are held out than sampled
	sampleFrom(t, n-1)
	for name, c := range sampledCases(t, n) {
		t.Run(name, func(t *testing.T) {
			found := need(neighbors.KNN(t.Context(), c.embedding, 12, neighbors.Options{}))(t)
			known, unknown := c.o, c.o
			known.Found, unknown.Neighbors = found, nil
			want := need(Measure(t.Context(), c.points, c.embedding, known))(t)
			for what, o := range map[string]Options{"given": c.o, "searched": unknown} {
				got := need(Measure(t.Context(), c.points, c.embedding, o))(t)
				for figure, f := range compared(got, want) {
					if *f.value != *f.exact {
						t.Errorf("with neighbours %s, %s is %v, want %v", what, figure, *f.value, *f.exact)
					}
				}
			}
			sameBits(t, "the figures", func() (float64, error) {
				f, err := Measure(t.Context(), c.points, c.embedding, unknown)
				if err != nil {
					return 0, err
				}
				sum := fnv.New32a()
				figures := compared(f, f)
				for _, what := range slices.Sorted(maps.Keys(figures)) {
					fmt.Fprintln(sum, what, *figures[what].value, *figures[what].err)
				}
				return float64(sum.Sum32()), nil
			})
		})
	}
}

// Nothing is drawn from few points, or if all are asked for.
func TestSampled(t *testing.T) {
	for _, tc := range []struct{ points, n, want int }{
		{-1, ExactPoints, 0}, {-1, ExactPoints + 1, DefaultSample}, {100, ExactPoints, 0}, {100, 1e6, 100},
		{0, 1e6, 0}, {1e6, 1e6, 0}, {2e6, 1e6, 0}, {1e6 - 1, 1e6, 1e6 - 1},
	} {
		o := &Options{Sample: &tc.points}
		if tc.points < 0 {
			o.Sample = nil
		}
		if got := o.Sampled(tc.n); got != tc.want {
			t.Errorf("%d points drawn of %d, asked for %d; want %d", got, tc.n, tc.points, tc.want)
		}
	}
	sampleFrom(t, 499)
	c := sampledCases(t, 500)["reduced"]
	for _, size := range []int{0, 500, 1 << 40} {
		c.o.Sample = &size
		f := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
		for what, e := range compared(f, f) {
			if e.value == nil || e.err != nil {
				t.Errorf("%s of all points is %v with error %v", what, e.value, e.err)
			}
		}
	}
	for _, size := range []int{1, 99} {
		c.o.Sample = &size
		if _, err := Measure(t.Context(), c.points, c.embedding, c.o); !errors.Is(err, ErrInput) {
			t.Errorf("a sample of %d points: %v", size, err)
		}
	}
}

// The accuracy is exact where no more points are held out than the sample has.
func TestSampledAccuracyOfAllHeldOut(t *testing.T) {
	c := sampledCases(t, 1200)["reduced"]
	exact := need(Measure(t.Context(), c.points, c.embedding, c.o))(t)
	sampleFrom(t, 1199)
	f, err := Measure(t.Context(), c.points, c.embedding, c.o) // 200, of 171 held out
	if err != nil || *f.Accuracy != *exact.Accuracy || f.AccuracyError != nil {
		t.Errorf("accuracy %v ± %v, want %v exactly (%v)", *f.Accuracy, f.AccuracyError, *exact.Accuracy, err)
	}
}
