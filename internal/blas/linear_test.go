package blas

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
)

// layer is a call of Linear, with a gap between the rows of each matrix.
type layer[T Float] struct {
	m, n, k       int
	ldx, ldw, ldy int
	x, w, bias    []T
	rows          []int32
	relu          bool
}

// newLayer draws a layer; indexed, its rows are drawn from half as many
// stored ones.
func newLayer[T Float](m, n, k, gap int, indexed, biased, relu bool) *layer[T] {
	s := rng.New(uint64(m+n+k), rng.Sample)
	l := &layer[T]{m: m, n: n, k: k, ldx: max(1, k) + gap, ldw: max(1, k) + gap, ldy: max(1, n) + gap, relu: relu}
	height := m
	if indexed {
		height = m/2 + 1
		l.rows = drawn(m, height)
	}
	l.x, l.w = convert[T](stored(height, k, l.ldx, &s)), convert[T](stored(n, k, l.ldw, &s))
	if biased {
		l.bias = convert[T](stored(1, n, n, &s))
	}
	return l
}

func convert[T Float](x []float32) []T {
	y := make([]T, len(x))
	for i, v := range x {
		y[i] = T(v)
	}
	return y
}

// row returns row i of X.
func (l *layer[T]) row(i int) []T {
	if l.rows != nil {
		i = int(l.rows[i])
	}
	return l.x[i*l.ldx:][:l.k]
}

// sum returns element (i, j) of X·Wᵀ + bias and the sum of its terms' sizes.
func (l *layer[T]) sum(i, j int) (sum, size float64) {
	for e := range l.k {
		term := float64(l.row(i)[e]) * float64(l.w[j*l.ldw+e])
		sum += term
		size += math.Abs(term)
	}
	if l.bias != nil {
		sum += float64(l.bias[j])
		size += math.Abs(float64(l.bias[j]))
	}
	return sum, size
}

func (l *layer[T]) compute(y []T) {
	Linear(l.m, l.n, l.k, l.x, l.ldx, l.rows, l.w, l.ldw, l.bias, l.relu, y, l.ldy)
}

func TestLinear(t *testing.T) {
	t.Run("float32", func(t *testing.T) { forms(t, func(t *testing.T) { testLinear[float32](t, 1e-5) }) })
	t.Run("float64", func(t *testing.T) { testLinear[float64](t, 1e-14) })
}

func testLinear[T Float](t *testing.T, tolerance float64) {
	for _, size := range [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 100, 784}, {13, 33, 7}, {25, 40, 520}, {70, 8, 1030}, {30, 600, 9}, {400, 100, 20}} {
		for options := range 16 {
			gap, indexed, biased, relu := options&1*3, options&2 != 0, options&4 != 0, options&8 != 0
			l := newLayer[T](size[0], size[1], size[2], gap, indexed, biased, relu)
			nan := T(math.NaN())
			y := slices.Repeat([]T{nan}, max(0, l.m*l.ldy-gap))
			l.compute(y)
			what := fmt.Sprintf("%v, %d apart, rows by number %v, bias %v, ReLU %v", size, gap, indexed, biased, relu)
			for i := range l.m {
				for j := range l.n {
					want, scale := l.sum(i, j)
					if relu {
						want = max(0, want)
					}
					if got := float64(y[i*l.ldy+j]); !(math.Abs(got-want) <= tolerance*scale) {
						t.Fatalf("%s: element (%d, %d) is %g, want %g", what, i, j, got, want)
					}
				}
			}
			for e, v := range y {
				if e%l.ldy >= l.n && v == v {
					t.Fatalf("%s: a gap between rows was written", what)
				}
			}
		}
	}
}

func TestReLUKeepsNaN(t *testing.T) {
	forms(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		x, y := []float32{nan, 1, -1, inf, -inf}, make([]float32, 5)
		Linear(5, 1, 1, x, 1, nil, []float32{1}, 1, nil, true, y, 1)
		if !math.IsNaN(float64(y[0])) || !slices.Equal(y[1:], []float32{1, 0, inf, 0}) {
			t.Errorf("ReLU of %v is %v", x, y)
		}
		Linear(5, 1, 1, x, 1, nil, []float32{1}, 1, nil, false, y, 1)
		if !math.IsNaN(float64(y[0])) || !slices.Equal(y[1:], x[1:]) {
			t.Errorf("%v times 1 is %v", x, y)
		}
	})
}

func TestLinearGrad(t *testing.T) {
	t.Run("float32", func(t *testing.T) { forms(t, func(t *testing.T) { testLinearGrad[float32](t, 1e-5) }) })
	t.Run("float64", func(t *testing.T) { testLinearGrad[float64](t, 1e-14) })
}

func testLinearGrad[T Float](t *testing.T, tolerance float64) {
	for _, size := range [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {9, 100, 70}, {1100, 13, 33}, {520, 2, 530}, {70, 390, 8}} {
		for options := range 4 {
			gap, indexed := options&1*3, options&2 != 0
			l := newLayer[T](size[0], size[1], size[2], gap, indexed, false, false)
			s := rng.New(1, rng.Sample)
			ldg := max(1, l.n) + gap
			g := convert[T](stored(l.m, l.n, ldg, &s))
			dw := make([]T, l.n*l.ldw)
			LinearGrad(l.m, l.n, l.k, g, ldg, l.x, l.ldx, l.rows, dw, l.ldw)
			for j := range l.n {
				for e := range l.k {
					var want, scale float64
					for i := range l.m {
						term := float64(g[i*ldg+j]) * float64(l.row(i)[e])
						want += term
						scale += math.Abs(term)
					}
					if got := float64(dw[j*l.ldw+e]); !(math.Abs(got-want) <= tolerance*scale) {
						t.Fatalf("%v, %d apart, rows by number %v: element (%d, %d) is %g, want %g", size, gap, indexed, j, e, got, want)
					}
				}
			}
		}
	}
}

// A row of a result has the same bits whatever the other rows are, so points
// projected one by one are where they are in a batch.
func TestRowsDoNotDependOnEachOther(t *testing.T) {
	t.Run("float32", func(t *testing.T) { forms(t, testRowsAlone[float32]) })
	t.Run("float64", func(t *testing.T) { forms(t, testRowsAlone[float64]) })
}

func testRowsAlone[T Float](t *testing.T) {
	for _, size := range [][3]int{{390, 37, 520}, {200, 530, 33}, {37, 2, 1100}, {40, 1100, 5}} {
		l := newLayer[T](size[0], size[1], size[2], 1, false, true, true)
		m, n, k := l.m, l.n, l.k
		l.rows = make([]int32, m)
		for i := range l.rows {
			l.rows[i] = int32(m - 1 - i)
		}
		all := make([]T, m*l.ldy)
		l.compute(all)
		// Gemm on the same numbers, W as stored and transposed.
		const alpha, beta = 1.5, 0.25
		wt := make([]T, k*n)
		for j := range n {
			for e := range k {
				wt[e*n+j] = l.w[j*l.ldw+e]
			}
		}
		allNT, allNN := slices.Repeat([]T{1}, m*n), slices.Repeat([]T{1}, m*n)
		Gemm(false, true, m, n, k, alpha, l.x, l.ldx, l.w, l.ldw, beta, allNT, n)
		Gemm(false, false, m, n, k, alpha, l.x, l.ldx, wt, n, beta, allNN, n)
		for _, some := range [][2]int{{0, 1}, {1, 2}, {m - 1, m}, {3, 10}, {5, 18}, {7, m - 1}} {
			i0, i1 := some[0], some[1]
			part := *l
			part.m, part.rows = i1-i0, l.rows[i0:i1]
			y := make([]T, part.m*l.ldy)
			part.compute(y)
			if !slices.Equal(y, all[i0*l.ldy:i1*l.ldy]) {
				t.Errorf("%v: Linear of rows %d to %d alone has other bits", size, i0, i1)
			}
			c := slices.Repeat([]T{1}, part.m*n)
			Gemm(false, true, part.m, n, k, alpha, l.x[i0*l.ldx:], l.ldx, l.w, l.ldw, beta, c, n)
			if !slices.Equal(c, allNT[i0*n:i1*n]) {
				t.Errorf("%v: A·Bᵀ of rows %d to %d alone has other bits", size, i0, i1)
			}
			c = slices.Repeat([]T{1}, part.m*n)
			Gemm(false, false, part.m, n, k, alpha, l.x[i0*l.ldx:], l.ldx, wt, n, beta, c, n)
			if !slices.Equal(c, allNN[i0*n:i1*n]) {
				t.Errorf("%v: A·B of rows %d to %d alone has other bits", size, i0, i1)
			}
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	t.Run("float32", func(t *testing.T) { forms(t, testAllocations[float32]) })
	t.Run("float64", testAllocations[float64])
}

func testAllocations[T Float](t *testing.T) {
	l := newLayer[T](300, 100, 70, 0, true, true, true)
	y, dw, c := make([]T, l.m*l.n), make([]T, l.n*l.k), make([]T, l.k*l.k)
	step := func() {
		l.compute(y)
		LinearGrad(l.m, l.n, l.k, y, l.n, l.x, l.k, l.rows, dw, l.k)
		Gemm(true, false, l.k, l.k, l.n, 1, dw, l.k, dw, l.k, 0, c, l.k)
	}
	for _, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		if procs == 1 {
			if allocs := testing.AllocsPerRun(5, step); allocs != 0 {
				t.Errorf("GOMAXPROCS 1: %g allocations", allocs)
			}
			continue
		}
		// AllocsPerRun would keep to one processor. A worker may be new.
		const runs, fewBytes = 50, 64
		for range 10 {
			step()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			step()
		}
		runtime.ReadMemStats(&after)
		if size := (after.TotalAlloc - before.TotalAlloc) / runs; size > fewBytes {
			t.Errorf("GOMAXPROCS %d: %d bytes allocated in a step", procs, size)
		}
	}
}

// BenchmarkLayer runs the layers of a network on MNIST forward and backward,
// on rows drawn from all points.
func BenchmarkLayer(b *testing.B) {
	const points = 70000
	for _, form := range sets() {
		for _, tc := range []struct {
			m, n, k int
			indexed bool
		}{{2048, 100, 784, true}, {2048, 100, 100, false}, {2048, 2, 100, false}, {42000, 100, 784, true}} {
			if testing.Short() && tc.m > 2048 {
				continue
			}
			s := rng.New(1, rng.Sample)
			height, rows := tc.m, []int32(nil)
			if tc.indexed {
				height, rows = points, drawn(tc.m, points)
			}
			x := slices.Repeat([]float32{0.5}, height*tc.k)
			w, dw := stored(tc.n, tc.k, tc.k, &s), make([]float32, tc.n*tc.k)
			bias, y := make([]float32, tc.n), make([]float32, tc.m*tc.n)
			flops := 2 * float64(tc.m*tc.n*tc.k)
			for _, f := range []struct {
				name string
				run  func()
			}{
				{"forward", func() { Linear(tc.m, tc.n, tc.k, x, tc.k, rows, w, tc.k, bias, true, y, tc.n) }},
				{"gradient", func() { LinearGrad(tc.m, tc.n, tc.k, y, tc.n, x, tc.k, rows, dw, tc.k) }},
			} {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", form, tc.m, tc.k, tc.n, f.name), func(b *testing.B) {
					defer use(form)()
					for b.Loop() {
						f.run()
					}
					b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
