package op

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
)

// inRuns returns runs of m rows that begin with random ones.
func inRuns(b, rows, m int, s *rng.Stream) []int32 {
	runs := []int32{int32(m)}
	for range parallel.Pieces(b, GroupHeads) {
		runs = append(runs, int32(s.IntN(rows)))
	}
	return runs
}

// appendNegatives appends the rows that a head is contrasted with, as NegativeLayout's
// documentation says.
func appendNegatives(list []int32, head int, runs []int32, b, rows int) []int32 {
	if runs[0] != AllNegatives {
		for j := range runs[0] {
			if r := (runs[1+head/GroupHeads] + j) % int32(rows); r != int32(head) {
				list = append(list, r)
			}
		}
		return list
	}
	images := b
	if len(runs) == 2 {
		images = int(runs[1])
	}
	for r := range rows {
		if r >= 2*b || r%images != head%images {
			list = append(list, int32(r))
		}
	}
	return list
}

// A denseLoop goes over a batch whose heads are contrasted with stretches of
// rows.
type denseLoop[T Float] interface {
	init(options ContrastiveOptions)
	run(features []T, d, rows, b int, layout NegativeLayout, theta float64, withGrad bool, grad []T) simd.Sum
}

// listed computes a batch head by head, by the loop over negatives that are listed.
func listed[T Float](o ContrastiveOptions, features []T, d, b int, runs []int32, theta float64) (sum simd.Sum, grad []T) {
	rows := len(features) / d
	m, _ := NegativeLayout(runs).decode(b, rows)
	grad = make([]T, len(features))
	var s pairLoop[T]
	s.init(o)
	var list, negatives []int32
	var x []T
	images := NegativeLayout(runs).images(b)
	tails := max(1, b/images-1)
	for edge := range b * tails {
		head, tail := edge/tails, b+edge/tails
		if images < b {
			tail = (head + (1+edge%tails)*images) % b
		}
		list = appendNegatives(append(list[:0], int32(head), int32(tail)), head, runs, b, rows)
		x, negatives = x[:0], negatives[:0]
		for i, r := range list {
			x = append(x, features[int(r)*d:(int(r)+1)*d]...)
			if i >= 2 {
				negatives = append(negatives, int32(i))
			}
		}
		ofAll := theta
		if o.Loss.Info().Constant == LearntZ && len(negatives) < m { // Z is of m negatives
			ofAll += math.Log(float64(m) / float64(len(negatives)))
		}
		one := s.run(x, d, negatives, 1, ofAll, true)
		sum.Add(simd.Sum{Loss: one.Loss / float64(tails), DTheta: one.DTheta / float64(tails)})
		for _, p := range s.pieces {
			simd.Scale(p.grad, 1/T(tails))
			for i, r := range list {
				simd.Add(grad[int(r)*d:(int(r)+1)*d], p.grad[i*d:(i+1)*d])
			}
		}
	}
	return sum, grad
}

// sameAs compares with the largest magnitude.
func sameAs[T Float](t *testing.T, what string, got, want []T, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	var most float64
	for _, v := range want {
		most = max(most, math.Abs(float64(v)))
	}
	for i := range want {
		if diff := math.Abs(float64(got[i] - want[i])); !(diff <= tol*most+1e-30) {
			t.Errorf("%s[%d]: %v, want %v; the largest is %g", what, i, got[i], want[i], most)
			return
		}
	}
}

// planarOptions are all losses that a planarLoop takes, with and without their options.
func planarOptions(clamps ...float64) (all []ContrastiveOptions) {
	for _, clamp := range clamps {
		for _, loss := range Losses() {
			o := ContrastiveOptions{Loss: loss, Clamp: clamp, Temperature: 0.5, Scale: 1}
			var s planarLoop[float32]
			if s.init(o); !s.takes(2) {
				continue
			}
			all = append(all, o)
		}
	}
	return all
}

// testDense compares a dense loop with the one over listed negatives.
func testDense[T Float](t *testing.T, s denseLoop[T], o ContrastiveOptions, d, b, extra int, tol float64) {
	t.Helper()
	random := rng.New(uint64(b*100+d), rng.Sample)
	rows := 2*b + extra
	features := make([]T, rows*d)
	for i := range features {
		features[i] = T(float32(2*random.Normal() + 5))
	}
	if b > 3 { // a point that is met twice, and one met by its own edge's tail
		copy(features[3*d:4*d], features[:d])
		copy(features[(b+2)*d:(b+3)*d], features[d:2*d])
	}
	if o.Metric == Cosine {
		for i := range rows {
			row := features[i*d : (i+1)*d]
			var norm float64
			for _, v := range row {
				norm += float64(v) * float64(v)
			}
			for k := range row {
				row[k] /= T(math.Sqrt(norm))
			}
		}
	}
	cases := map[string][]int32{"every row": {AllNegatives}}
	for _, m := range []int{2, 7, 16, 50, rows} {
		if m <= rows {
			cases[fmt.Sprintf("runs of %d", m)] = inRuns(b, rows, m, &random)
			round := inRuns(b, rows, m, &random)
			round[1] = int32(min(5, rows-1)) // in the midst of the first group
			cases[fmt.Sprintf("runs of %d from a head", m)] = round
		}
	}
	for name, runs := range cases {
		what := fmt.Sprintf("%v %v clamp %g, d=%d b=%d extra=%d %T, %s", o.Loss, o.Metric, o.Clamp, d, b, extra, T(0), name)
		const theta = -0.3
		s.init(o)
		grad := make([]T, len(features))
		for i := range grad {
			grad[i] = 7 // whatever is there is written over
		}
		got := s.run(features, d, rows, b, runs, theta, true, grad)
		want, wantGrad := listed(o, features, d, b, runs, theta)
		sameAs(t, what+": loss", []float64{got.Loss}, []float64{want.Loss}, tol)
		sameAs(t, what+": dTheta", []float64{got.DTheta}, []float64{want.DTheta}, tol)
		sameAs(t, what+": gradient", grad, wantGrad, tol)
		if again := s.run(features, d, rows, b, runs, theta, false, nil); again.Loss != got.Loss {
			t.Errorf("%s: loss %g without the gradient, %g with it", what, again.Loss, got.Loss)
		}
	}
}

func TestPlanarLoopAgreeWithListedNegatives(t *testing.T) {
	for _, o := range planarOptions(1e-10, 0, 0.05) {
		for d := 1; d <= simd.MaxDenseWidth; d++ {
			for _, b := range []int{1, 2, 15, 16, 17, 33, 129} {
				for _, extra := range []int{0, 1, 40} {
					if o.Loss == UMAP && o.Clamp == 0 {
						continue // coincident points weigh what the largest float allows
					}
					if b > 100 && (extra != 1 || o.Clamp != 1e-10) {
						continue // the largest takes longest
					}
					testDense[float64](t, &planarLoop[float64]{}, o, d, b, extra, 1e-9)
					testDense[float32](t, &planarLoop[float32]{}, o, d, b, extra, 1e-4)
				}
			}
		}
	}
}

// Batches of several pieces, of whole groups and not.
func TestPlanarLoopInPieces(t *testing.T) {
	for _, o := range planarOptions(1e-10) {
		for _, b := range []int{304, 401} {
			s := new(planarLoop[float32])
			testDense(t, s, o, 2, b, 3, 1e-4)
			if len(s.pieces) < 3 {
				t.Errorf("b=%d: %d pieces; there is nothing to add up", b, len(s.pieces))
			}
		}
	}
}

// Rows far from the origin, or some far from the others, cost digits only in InfoNC's
// sums of products, whose error comes from rounding the coordinates.
func TestPlanarLoopOfFarRows(t *testing.T) {
	const b, d = 200, 2
	random := rng.New(7, rng.Sample)
	for name, tc := range map[string]struct {
		move   func(i int, v float64) float64
		infonc float64 // its tolerance
	}{
		"one at 1e5":      {func(i int, v float64) float64 { return v + 1e5*float64(min(1, i/(2*b-1))) }, 1e-4},
		"all at 1e3":      {func(_ int, v float64) float64 { return v + 1e3 }, 1e-5},
		"tight clusters":  {func(i int, v float64) float64 { return 0.05*v + 200*float64(i%2*2-1) }, 1e-3},
		"far clusters":    {func(i int, v float64) float64 { return v + 2e4*float64(i%2*2-1) }, 1e-2},
		"beyond clamping": {func(i int, v float64) float64 { return v + 1e7*float64(i) }, 1e-5},
		"farther still":   {func(i int, v float64) float64 { return v + 1e11*float64(i) }, 1e-5},
	} {
		features := make([]float32, 2*b*d)
		for i := range features {
			features[i] = float32(tc.move(i/d, random.Normal()))
		}
		for _, o := range planarOptions(1e-10) {
			var s planarLoop[float32]
			s.init(o)
			grad := make([]float32, len(features))
			got := s.run(features, d, 2*b, b, []int32{AllNegatives}, -0.3, true, grad)
			want, wantGrad := listed(o, converted[float64](features), d, b, []int32{AllNegatives}, -0.3)
			tol := 2e-6
			if o.Loss == InfoNC {
				tol = tc.infonc
			}
			what := fmt.Sprintf("%s, %v", name, o.Loss)
			sameAs(t, what+": loss", []float64{got.Loss}, []float64{want.Loss}, 1e-4)
			sameAs(t, what+": gradient", converted[float64](grad), wantGrad, tol)
		}
	}
}

// TestDenseSameBits: the bits of a dense loop do not depend on how many cores
// there are, nor on what was computed before.
func TestDenseSameBits(t *testing.T) {
	const b, rows = 300, 610
	random := rng.New(3, rng.Sample)
	for _, o := range planarOptions(1e-10) {
		for name, runs := range map[string][]int32{"every row": {AllNegatives}, "runs": inRuns(b, rows, 133, &random)} {
			for d := 1; d <= simd.MaxDenseWidth; d++ {
				features := make([]float32, rows*d)
				for i := range features {
					features[i] = float32(3 * random.Normal())
				}
				var first []float32
				var loss float64
				var s planarLoop[float32]
				s.init(o)
				for _, procs := range []int{1, 2, 7} {
					old := runtime.GOMAXPROCS(procs)
					grad := make([]float32, len(features))
					sum := s.run(features, d, rows, b, runs, 0, true, grad)
					runtime.GOMAXPROCS(old)
					if first == nil {
						first, loss = grad, sum.Loss
					}
					if !slices.Equal(grad, first) || sum.Loss != loss {
						t.Errorf("%v, %s, d=%d: other bits with %d processors", o.Loss, name, d, procs)
					}
				}
			}
		}
	}
}

func TestDenseDoesNotAllocate(t *testing.T) {
	const b, rows = 300, 600
	features, grad := make([]float32, rows*2), make([]float32, rows*2)
	for i := range features {
		features[i] = float32(i % 13)
	}
	random := rng.New(3, rng.Sample)
	all, runs := []int32{AllNegatives}, inRuns(b, rows, 133, &random)
	for _, o := range planarOptions(1e-10) {
		var s planarLoop[float32]
		s.init(o)
		step := func() {
			s.run(features, 2, rows, b, all, 0, true, grad)
			s.run(features, 2, rows, b, runs, 0, true, grad)
		}
		step()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			step()
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > 100 { // a worker or two may be new
			t.Errorf("%v: %d allocations in 100 runs", o.Loss, n)
		}
	}
}

// A number that is none shows in the loss, also where it is no end of an edge.
func TestDenseKeepsNaN(t *testing.T) {
	for _, o := range planarOptions(1e-10) {
		for _, row := range []int{16, 100, 130} {
			for _, bad := range []float64{math.NaN(), math.Inf(1)} {
				features := make([]float32, 2*140)
				for i := range features {
					features[i] = float32(i)
				}
				features[2*row+1] = float32(bad)
				var s planarLoop[float32]
				s.init(o)
				grad := make([]float32, len(features))
				sum := s.run(features, 2, 140, 64, []int32{AllNegatives}, 0, true, grad)
				if finite := !slices.ContainsFunc(grad, func(v float32) bool { return v-v != 0 }); sum.Loss-sum.Loss == 0 && (math.IsNaN(bad) || !finite) {
					t.Errorf("%v: with %g in row %d the loss is %g; the gradient is finite: %v", o.Loss, bad, row, sum.Loss, finite)
				}
			}
		}
	}
}

func BenchmarkPlanarLoop(b *testing.B) {
	const edges = 1024
	for d := 1; d <= simd.MaxDenseWidth; d++ {
		random := rng.New(1, rng.Sample)
		features, grad := make([]float32, 2*edges*d), make([]float32, 2*edges*d)
		for i := range features {
			features[i] = float32(20 * random.Normal())
		}
		for _, o := range planarOptions(1e-10) {
			var s planarLoop[float32]
			s.init(o)
			for _, m := range []int{50, 500} {
				runs := inRuns(edges, 2*edges, m, &random)
				b.Run(fmt.Sprintf("d=%d/%v/m=%d", d, o.Loss, m), func(b *testing.B) {
					for range b.N {
						s.run(features, d, 2*edges, edges, runs, 0, true, grad)
					}
				})
			}
		}
	}
}
