package op

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/internal/simd"
)

// A productCase is a batch, and which of its rows the heads are contrasted with.
type productCase struct {
	name       string
	options    ContrastiveOptions
	d, b, rows int
	runs       []int32
	theta      float64
	features   []float64
}

// productOptions are all losses with all metrics, and the given clamps where
// there are clamps.
func productOptions(clamps ...float64) (list []ContrastiveOptions) {
	for _, metric := range []Metric{Euclidean, Cosine} {
		for _, loss := range Losses() {
			if metric == Cosine && loss.Info().EuclideanOnly {
				continue
			}
			for _, clamp := range clamps {
				o := ContrastiveOptions{Loss: loss, Metric: metric, Temperature: 0.3, Clamp: clamp, Scale: 1}
				if metric == Euclidean || clamp == clamps[0] {
					list = append(list, o)
				}
			}
		}
	}
	return list
}

// productFeatures draws the features of a case: some rows coincide, some
// nearly, and with the Euclidean metric they all lie far from the origin. They
// are numbers of float32, so that these rows are as near in either type.
func productFeatures(o ContrastiveOptions, rows, d int, seed uint64) []float64 {
	s := rng.New(seed, rng.Sample)
	x := make([]float64, rows*d)
	for i := range rows {
		row := x[i*d : (i+1)*d]
		for k := range row {
			row[k] = s.Normal()
			if o.Metric == Euclidean {
				row[k] = row[k]*1.5 + 30
			}
		}
		if other := s.IntN(i + 1); i > 0 && s.IntN(5) == 0 {
			copy(row, x[other*d:(other+1)*d])
			if s.IntN(2) == 0 {
				row[s.IntN(d)] += 1e-3
			}
		}
		if o.Metric == Cosine {
			var norm float64
			for _, v := range row {
				norm += v * v
			}
			for k := range row {
				row[k] /= math.Sqrt(norm)
			}
		}
	}
	for i, v := range x {
		x[i] = float64(float32(v))
	}
	return x
}

// productRuns returns runs of m rows that begin anywhere, the last one at the
// end.
func productRuns(rows, b, m int, seed uint64) []int32 {
	s := rng.New(seed, rng.Sample)
	runs := []int32{int32(m)}
	for lo := 0; lo < b; lo += GroupHeads {
		first := s.IntN(rows)
		if lo+GroupHeads >= b {
			first = rows - 1
		}
		runs = append(runs, int32(first))
	}
	return runs
}

// productCases are batches of all sizes.
func productCases(bs, ds []int, options []ContrastiveOptions) (list []productCase) {
	for _, o := range options {
		for _, b := range bs {
			for _, d := range ds {
				seed := uint64(1000*b + d)
				for _, extra := range []int{0, 5} {
					rows := 2*b + extra
					c := productCase{options: o, d: d, b: b, rows: rows, theta: 0.7, features: productFeatures(o, rows, d, seed)}
					if o.Metric == Euclidean {
						c.theta = -1.5
					}
					for _, m := range []int{0, 2, rows/3 | 1, rows} { // 0: all
						if m == 1 || m == 2 && rows > 40 {
							continue
						}
						c.runs = []int32{AllNegatives}
						if m > 0 {
							c.runs = productRuns(rows, b, m, seed)
						}
						c.name = fmt.Sprintf("%v/%v/clamp=%g/b=%d/d=%d/rows=%d/m=%d", o.Metric, o.Loss, o.Clamp, b, d, rows, m)
						list = append(list, c)
					}
				}
			}
		}
	}
	return list
}

func converted[T, S Float](x []S) []T {
	y := make([]T, len(x))
	for i, v := range x {
		y[i] = T(v)
	}
	return y
}

// againstPairs compares a gemmLoop with a loop over the list of pairs.
func againstPairs[T Float](t *testing.T, s *gemmLoop[T], c *productCase, tol float64) {
	t.Helper()
	features := converted[T](c.features)
	want, wantGrad := listed(c.options, features, c.d, c.b, c.runs, c.theta)
	grad := make([]T, len(features))
	for i := range grad {
		grad[i] = T(math.NaN())
	}
	s.init(c.options)
	got := s.run(features, c.d, c.rows, c.b, c.runs, c.theta, true, grad)
	if !(math.Abs(got.Loss-want.Loss) <= tol*max(math.Abs(want.Loss), float64(c.b))) || !(math.Abs(got.DTheta-want.DTheta) <= tol*math.Abs(want.DTheta)) {
		t.Errorf("%s: %+v, want %+v", c.name, got, want)
	}
	var largest float64
	for _, v := range wantGrad {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range wantGrad {
		if !(math.Abs(float64(grad[i])-float64(v)) <= tol*largest) {
			t.Errorf("%s: gradient %d of row %d is %g, want %g", c.name, i%c.d, i/c.d, grad[i], v)
			return
		}
	}
	if alone := s.run(features, c.d, c.rows, c.b, c.runs, c.theta, false, nil); alone != got {
		t.Errorf("%s: %+v without the gradient, %+v with it", c.name, alone, got)
	}
}

func TestGemmLoopIsPairLoop(t *testing.T) {
	cases := productCases([]int{1, 2, 15, 16, 17, 33}, []int{1, 2, 5, 10}, productOptions(1e-10))
	cases = append(cases, productCases([]int{129}, []int{5}, productOptions(1e-10))...) // the largest take longest
	cases = append(cases, productCases([]int{1, 17, 33}, []int{2, 3, 10}, productOptions(0, 1e-10, 0.05))...)
	cases = append(cases, productCases([]int{17}, []int{128}, productOptions(0, 1e-10))...)
	cases = append(cases, productCases([]int{129}, []int{128}, productOptions(0.05))...)
	agree(t, cases)
}

// The tails of a head are the other heads of its image, with their mean; its negatives are
// neither these nor the tails of the image, but all other rows.
func TestSeveralEdgesOfAnImage(t *testing.T) {
	var cases []productCase
	for _, o := range productOptions(1e-10) {
		for _, images := range []int{1, 6, 8, 24} {
			for _, extra := range []int{0, 5} {
				rows := 48 + extra
				cases = append(cases, productCase{name: fmt.Sprint(o, images, extra), options: o, d: 10, b: 24, rows: rows, runs: []int32{AllNegatives, int32(images)}, theta: -0.5, features: productFeatures(o, rows, 10, 3)})
			}
		}
	}
	agree(t, cases)
	for _, images := range []int32{0, 5, 48} {
		if err := (NegativeLayout{AllNegatives, images}).check(24, 48); err == nil {
			t.Errorf("no error with %d images for 24 edges", images)
		}
	}
}

func agree(t *testing.T, cases []productCase) {
	var single gemmLoop[float32]
	var double gemmLoop[float64]
	for i := range cases {
		againstPairs(t, &single, &cases[i], 1e-4)
		againstPairs(t, &double, &cases[i], 1e-10)
	}
}

// The instruction sets below the best, each in a process of its own.
func TestDenseOnEverySet(t *testing.T) {
	const variable = "CNE_TEST_SET"
	if os.Getenv(variable) != "" {
		if got := simd.Best().String(); got != os.Getenv(variable) {
			t.Fatalf("the set in use is %s", got)
		}
		agree(t, productCases([]int{1, 17, 33}, []int{2, 10, 50}, productOptions(1e-10, 0.05)))
		for _, o := range planarOptions(1e-10, 0.05) {
			for d := 1; d <= simd.MaxDenseWidth; d++ {
				for _, b := range []int{1, 17, 33} {
					testDense(t, &planarLoop[float32]{}, o, d, b, 3, 1e-4)
				}
			}
		}
		return
	}
	off := map[simd.Set]string{simd.Portable: "cpu.avx512f=off,cpu.avx2=off", simd.AVX2: "cpu.avx512f=off"}
	for set := range off {
		if set >= simd.Best() || runtime.GOARCH != "amd64" { // others cannot switch theirs off
			continue
		}
		t.Run(set.String(), func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Skip(err)
			}
			c := exec.Command(self, "-test.run", "^TestDenseOnEverySet$")
			c.Env = append(os.Environ(), variable+"="+set.String(), "GODEBUG="+off[set])
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestGemmLoopSameBitsOnAnyNumberOfCores(t *testing.T) {
	for _, c := range productCases([]int{17, 129}, []int{10, 50}, productOptions(1e-10)) {
		sameBits[float32](t, &c)
		sameBits[float64](t, &c)
	}
}

func sameBits[T Float](t *testing.T, c *productCase) {
	t.Helper()
	var want []T
	var sum simd.Sum
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		var s gemmLoop[T]
		s.init(c.options)
		grad := make([]T, c.rows*c.d)
		got := s.run(converted[T](c.features), c.d, c.rows, c.b, c.runs, c.theta, true, grad)
		if want == nil {
			want, sum = grad, got
		}
		if got != sum || !slices.Equal(grad, want) {
			t.Errorf("%s: on %d cores the bits are others than on one", c.name, procs)
		}
		runtime.GOMAXPROCS(old)
	}
}

// Several tiles, and many pairs near each other in all of them.
func TestGemmLoopOfSeveralTiles(t *testing.T) {
	const b, extra, d = 40, 70000, 2
	o := ContrastiveOptions{Loss: UMAP, Temperature: 0.5, Clamp: 1e-10, Scale: 1}
	c := productCase{name: "tiles", options: o, d: d, b: b, rows: 2*b + extra, runs: []int32{AllNegatives}, features: productFeatures(o, 2*b+extra, d, 1)}
	againstPairs(t, new(gemmLoop[float32]), &c, 1e-4)
	againstPairs(t, new(gemmLoop[float64]), &c, 1e-10)
}

// A feature that is no number does not go unseen.
func TestGemmLoopKeepsNaNs(t *testing.T) {
	for _, c := range productCases([]int{33}, []int{10}, productOptions(1e-10)) {
		if m := int(c.runs[0]); m != AllNegatives && m < c.rows {
			continue // not every row is a negative
		}
		for _, row := range []int{3, 40, c.rows - 1} {
			features, grad := converted[float32](c.features), make([]float32, len(c.features))
			features[row*c.d+4] = float32(math.NaN())
			var s gemmLoop[float32]
			s.init(c.options)
			if sum := s.run(features, c.d, c.rows, c.b, c.runs, c.theta, true, grad); !math.IsNaN(sum.Loss) {
				t.Errorf("%s: with a NaN in row %d the loss is %g", c.name, row, sum.Loss)
			}
			if g := float64(grad[row*c.d+4]); !math.IsNaN(g) {
				t.Errorf("%s: with a NaN in row %d its gradient is %g", c.name, row, g)
			}
		}
	}
}

func TestGemmLoopDoesNotAllocate(t *testing.T) {
	for _, c := range productCases([]int{129}, []int{10}, productOptions(1e-10)) {
		if simd.Best() == simd.Portable && len(c.runs) > 1 {
			continue // products of groups use more workers than there are processors, which come and go
		}
		for _, procs := range []int{1, 2} {
			old := runtime.GOMAXPROCS(procs)
			var s gemmLoop[float32]
			s.init(c.options)
			features, grad := converted[float32](c.features), make([]float32, len(c.features))
			run := func() { s.run(features, c.d, c.rows, c.b, c.runs, c.theta, true, grad) }
			for range 3 {
				run()
			}
			// testing.AllocsPerRun would run it on one processor.
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 40 {
				run()
			}
			runtime.ReadMemStats(&after)
			if allocs := after.Mallocs - before.Mallocs; allocs >= 40 { // a worker or two may be new
				t.Errorf("%s, GOMAXPROCS %d: %d allocations in 40 runs", c.name, procs, allocs)
			}
			runtime.GOMAXPROCS(old)
		}
	}
}

// BenchmarkGemmLoop times what BenchmarkFullBatch does not: runs of m negatives (m=0 is
// every row) by products and by the loop over a list of them, only the loss, points in
// clusters, and other losses.
func BenchmarkGemmLoop(b *testing.B) {
	for _, tc := range []struct {
		metric  Metric
		loss    Loss
		b, d, m int
		how     string
	}{
		{Cosine, InfoNC, 1024, 128, 512, "products"},
		{Cosine, InfoNC, 1024, 128, 128, "products"},
		{Cosine, InfoNC, 1024, 128, 128, "pairs"},
		{Cosine, Neg, 1024, 128, 0, "products"},
		{Euclidean, InfoNC, 1024, 10, 0, "loss"},
		{Euclidean, Neg, 1024, 10, 0, "products"},
		{Euclidean, Neg, 1024, 10, 0, "clusters"},
		{Euclidean, UMAP, 1024, 10, 0, "products"},
		{Euclidean, Neg, 1024, 10, 512, "products"},
		{Euclidean, Neg, 1024, 10, 128, "products"},
		{Euclidean, Neg, 1024, 10, 128, "pairs"},
	} {
		b.Run(fmt.Sprintf("%v/%v/b=%d/d=%d/m=%d/%s", tc.metric, tc.loss, tc.b, tc.d, tc.m, tc.how), func(b *testing.B) {
			o := ContrastiveOptions{Loss: tc.loss, Metric: tc.metric, Temperature: 0.5, Clamp: 1e-10, Scale: 1}
			c := productCase{options: o, d: tc.d, b: tc.b, rows: 2 * tc.b}
			c.runs = []int32{AllNegatives}
			if tc.m > 0 {
				c.runs = productRuns(c.rows, c.b, tc.m, 1)
			}
			x := rng.New(1, rng.Sample)
			features := make([]float32, c.rows*c.d)
			for i := range features {
				features[i] = float32(x.Normal())
				if tc.metric == Cosine {
					features[i] /= float32(math.Sqrt(float64(c.d)))
				}
				if tc.how == "clusters" { // ten, far from each other
					features[i] = 0.3*features[i] + 10*float32(math.Sin(float64(7*(i/c.d%10)+i%c.d)))
				}
			}
			grad := make([]float32, len(features))
			if tc.how == "pairs" {
				m, _ := NegativeLayout(c.runs).decode(c.b, c.rows)
				negatives := make([]int32, m*c.b)
				for i := range negatives {
					list := appendNegatives(nil, i%c.b, c.runs, c.b, c.rows)
					negatives[i] = list[i/c.b%len(list)]
				}
				var s pairLoop[float32]
				s.init(o)
				for b.Loop() {
					s.run(features, c.d, negatives, c.b, 0, true)
				}
				return
			}
			var s gemmLoop[float32]
			s.init(o)
			for b.Loop() {
				s.run(features, c.d, c.rows, c.b, c.runs, 0, tc.how != "loss", grad)
			}
		})
	}
}
