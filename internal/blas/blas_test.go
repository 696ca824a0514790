package blas

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/internal/simd"
)

// stored returns a matrix of rows×cols with rows ld apart, NaN in the gaps.
func stored(rows, cols, ld int, s *rng.Stream) []float32 {
	if rows == 0 || cols == 0 {
		return nil
	}
	x := slices.Repeat([]float32{float32(math.NaN())}, (rows-1)*ld+cols)
	for i := range rows {
		for j := range cols {
			x[i*ld+j] = float32(2*s.Float64() - 1)
		}
	}
	return x
}

// normals returns n random numbers.
func normals[T Float](n int, seed uint64) []T {
	s := rng.New(seed, rng.Init)
	x := make([]T, n)
	for i := range x {
		x[i] = T(s.Normal())
	}
	return x
}

// strides returns how far apart the rows of A and B are if nothing lies between them.
func strides(transA, transB bool, m, n, k int) (lda, ldb int) {
	lda, ldb = k, n
	if transA {
		lda = m
	}
	if transB {
		ldb = k
	}
	return lda, ldb
}

// naive computes the product in float64, with the sum of the terms' sizes.
func naive(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) (want, scale []float64) {
	want, scale = make([]float64, m*n), make([]float64, m*n)
	rowA, stepA, stepB, columnB := lda, 1, ldb, 1
	if transA {
		rowA, stepA = 1, lda
	}
	if transB {
		stepB, columnB = 1, ldb
	}
	for i := range m {
		for j := range n {
			var sum, size float64
			for l := range k {
				x, y := float64(a[i*rowA+l*stepA]), float64(b[l*stepB+j*columnB])
				sum += x * y
				size += math.Abs(x * y)
			}
			w := float64(alpha) * sum
			if beta != 0 {
				w += float64(beta) * float64(c[i*ldc+j])
				size += math.Abs(float64(c[i*ldc+j]))
			}
			want[i*n+j], scale[i*n+j] = w, size
		}
	}
	return want, scale
}

func TestGemm(t *testing.T) {
	sizes := [][3]int{{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 33, 7}, {13, 1, 9}, {5, 31, 400}, {12, 32, 384}, {25, 65, 385},
		{6, 16, 8}, {7, 17, 15}, {100, 3, 784}, {64, 100, 20}, {401, 70, 30}, {29, 1100, 33}, {200, 520, 17}}
	for _, size := range sizes {
		for trans := range 4 {
			for _, gap := range []int{0, 3} {
				m, n, k := size[0], size[1], size[2]
				transA, transB := trans&1 != 0, trans&2 != 0
				s := rng.New(uint64(m+n+k), rng.Sample)
				ra, ca, rb, cb := m, k, k, n
				if transA {
					ra, ca = ca, ra
				}
				if transB {
					rb, cb = cb, rb
				}
				lda, ldb, ldc := max(1, ca)+gap, max(1, cb)+gap, max(1, n)+gap
				a, b, before := stored(ra, ca, lda, &s), stored(rb, cb, ldb, &s), stored(m, n, ldc, &s)
				product, scale := naive(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, nil, 0)
				forms(t, func(t *testing.T) {
					for _, f := range [][2]float32{{1, 0}, {-0.5, 1}, {2, -0.3}, {0, 2}, {0, 0}} {
						c := slices.Clone(before)
						if f[1] == 0 && len(c) > 0 {
							c[0] = float32(math.NaN()) // it is not read
						}
						gaps := slices.Clone(c)
						Gemm(transA, transB, m, n, k, f[0], a, lda, b, ldb, f[1], c, ldc)
						what := fmt.Sprintf("%v transposed %v %v, %d apart, alpha %g, beta %g", size, transA, transB, gap, f[0], f[1])
						for i := range m {
							for j := range n {
								got, want, size := float64(c[i*ldc+j]), float64(f[0])*product[i*n+j], scale[i*n+j]
								if f[1] != 0 {
									want += float64(f[1]) * float64(before[i*ldc+j])
									size += math.Abs(float64(before[i*ldc+j]))
								}
								if diff := math.Abs(got - want); !(diff <= 1e-5*size+1e-30) {
									t.Fatalf("%s: element (%d, %d) is %g, want %g", what, i, j, got, want)
								}
							}
						}
						for e := range c {
							if e%ldc >= n && !(math.IsNaN(float64(c[e])) && math.IsNaN(float64(gaps[e]))) {
								t.Fatalf("%s: a gap between rows was written", what)
							}
						}
					}
				})
			}
		}
	}
}

// Products that are packed in several rounds.
func TestGemmInRounds(t *testing.T) {
	s := rng.New(1, rng.Sample)
	x := slices.Repeat(stored(1, 9973, 9973, &s), 120)
	for _, size := range [][3]int{{3, 500, 2200}, {300, 3, 2000}, {390, 1, 2000}, {2, 1200, 600}} {
		for trans := range 4 {
			m, n, k := size[0], size[1], size[2]
			transA, transB := trans&1 != 0, trans&2 != 0
			lda, ldb := strides(transA, transB, m, n, k)
			a, b := x[:m*k], x[1:][:k*n]
			want, scale := naive(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, nil, n)
			forms(t, func(t *testing.T) {
				c := make([]float32, m*n)
				Gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, c, n)
				for i, w := range want {
					if diff := math.Abs(float64(c[i]) - w); !(diff <= 1e-5*scale[i]) {
						t.Fatalf("%v transposed %v %v: element %d is %g, want %g", size, transA, transB, i, c[i], w)
					}
				}
			})
		}
	}
}

func TestGemmFloat64(t *testing.T) {
	for _, size := range [][3]int{{150, 7, 5}, {1, 70, 70}, {13, 33, 517}, {200, 193, 256}, {24, 400, 15}, {195, 64, 300}} {
		for trans := range 4 {
			testGemmFloat64(t, size[0], size[1], size[2], trans&1 != 0, trans&2 != 0)
		}
	}
}

// testGemmFloat64 compares a product with the definition. What lies between the rows of C
// must not change, and the bits must be the same on any number of cores.
func testGemmFloat64(t *testing.T, m, n, k int, transA, transB bool) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const apart, alpha, beta = 3, -1.5, 0.25 // more than the rows are long
	across := func(rows, columns int, trans bool, seed uint64) ([]float64, int, func(i, j int) int) {
		if trans {
			ld := rows + apart
			return normals[float64](columns*ld, seed), ld, func(i, j int) int { return j*ld + i }
		}
		ld := columns + apart
		return normals[float64](rows*ld, seed), ld, func(i, j int) int { return i*ld + j }
	}
	a, lda, inA := across(m, k, transA, 1)
	b, ldb, inB := across(k, n, transB, 2)
	before, ldc, inC := across(m, n, false, 3)
	product, scale := make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum, size := 0., math.Abs(before[inC(i, j)])
			for l := range k {
				p := a[inA(i, l)] * b[inB(l, j)]
				sum, size = sum+p, size+math.Abs(p)
			}
			product[i*n+j], scale[i*n+j] = sum, size
		}
	}
	forms(t, func(t *testing.T) {
		var first, overFirst []float64
		for _, procs := range []int{1, 3} {
			runtime.GOMAXPROCS(procs)
			c, over := slices.Clone(before), slices.Repeat([]float64{math.NaN()}, len(before))
			Gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
			Gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, over, ldc)
			if first == nil {
				first, overFirst = c, over
			} else if !slices.Equal(c, first) {
				t.Fatalf("%d×%d×%d: other bits on %d cores than on one", m, n, k, procs)
			}
			for at, v := range c {
				i, j := at/ldc, at%ldc
				if j >= n {
					if v != before[at] || !math.IsNaN(over[at]) {
						t.Fatalf("%d×%d×%d: what lies behind row %d has changed", m, n, k, i)
					}
					continue
				}
				if procs > 1 && over[at] == overFirst[at] {
					continue
				}
				sum, size := product[i*n+j], scale[i*n+j]
				want := alpha*sum + beta*before[inC(i, j)]
				if math.Abs(v-want) > 1e-13*size || math.Abs(over[at]-sum) > 1e-13*size {
					t.Fatalf("%d×%d×%d, transposed %v %v: element (%d, %d) is %g and %g, want %g and %g", m, n, k, transA, transB, i, j, v, over[at], want, sum)
				}
			}
		}
	})
}

// Denormal numbers are not taken for 0.
func TestGemmKeepsDenormals(t *testing.T) {
	forms(t, func(t *testing.T) {
		a, b, c := []float32{1e-40, 2e-40}, []float32{1, 1}, []float32{0}
		Gemm(false, false, 1, 1, 2, 1, a, 2, b, 1, 0, c, 1)
		if want := a[0] + a[1]; c[0] != want {
			t.Errorf("1e-40 + 2e-40 = %g, want %g", c[0], want)
		}
	})
}

func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	forms(t, func(t *testing.T) {
		const m, n, k = 390, 260, 520 // shared columns, and two cuts of the depth
		s := rng.New(1, rng.Sample)
		a, b := stored(m, k, k, &s), stored(k, n, n, &s)
		var want []float32
		alone := make([]float32, m*n)
		GemmSerial(false, false, m, n, k, 1, a, k, b, n, 0, alone, n)
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			c, dw := make([]float32, m*n), make([]float32, n*k)
			Gemm(false, false, m, n, k, 1, a, k, b, n, 0, c, n)
			if !slices.Equal(c, alone) {
				t.Error("on one goroutine a product has other bits")
			}
			LinearGrad(m, n, k, c, n, a, k, nil, dw, k)
			c = append(c, dw...)
			if want == nil {
				want = c
			} else if !slices.Equal(c, want) {
				t.Errorf("%d cores give other bits than one", procs)
			}
		}
	})
}

func TestRefusesWhatDoesNotFit(t *testing.T) {
	x, y, few := make([]float32, 100), make([]float32, 100), make([]float32, 20)
	s, four := NewSparse(make([]float32, 6), 2, 3), make([]float32, 12)
	for name, f := range map[string]func(){
		"a too short":         func() { Gemm(false, false, 11, 2, 10, 1, x, 10, x, 2, 0, make([]float32, 22), 2) },
		"b too short":         func() { Gemm(false, true, 2, 11, 10, 1, x, 10, x, 10, 0, make([]float32, 22), 11) },
		"c too short":         func() { Gemm(false, false, 10, 10, 10, 1, x, 10, x, 10, 0, x[:99], 10) },
		"stride":              func() { Gemm(false, false, 2, 2, 10, 1, x, 9, x, 2, 0, x, 2) },
		"negative":            func() { Gemm(false, false, -1, 2, 10, 1, x, 10, x, 2, 0, x, 2) },
		"bias":                func() { Linear(4, 2, 5, few, 5, nil, few, 5, few[:1], false, y, 2) },
		"x too short":         func() { Linear(5, 2, 5, few, 5, nil, few, 5, nil, false, y, 2) },
		"w too short":         func() { Linear(4, 5, 5, few, 5, nil, few, 5, nil, false, y, 5) },
		"row too high":        func() { Linear(2, 2, 5, few, 5, []int32{0, 4}, few, 5, nil, false, y, 2) },
		"row below 0":         func() { Linear(2, 2, 5, few, 5, []int32{-1, 3}, few, 5, nil, false, y, 2) },
		"too few rows":        func() { Linear(2, 2, 5, few, 5, []int32{1}, few, 5, nil, false, y, 2) },
		"no rows":             func() { Linear(2, 2, 5, few, 5, []int32{}, few, 5, nil, false, y, 2) },
		"gradient's row":      func() { LinearGrad(2, 2, 5, few, 2, few, 5, []int32{0, 4}, y, 5) },
		"gradient's rows":     func() { LinearGrad(3, 2, 5, few, 2, few, 5, []int32{0, 3}, y, 5) },
		"g too short":         func() { LinearGrad(4, 6, 5, few, 6, few, 5, nil, y, 5) },
		"dw too short":        func() { LinearGrad(4, 5, 5, few, 5, few, 5, nil, y[:24], 5) },
		"negative, gradient":  func() { LinearGrad(-1, 5, 5, few, 5, few, 5, nil, y, 5) },
		"sparse, size":        func() { NewSparse(four, 2, 3) },
		"sparse, no columns":  func() { NewSparse(nil, 2, 0) },
		"sparse, too wide":    func() { NewSparse(make([]float32, MaxSparseColumns+1), 1, MaxSparseColumns+1) },
		"sparse, row":         func() { s.Linear([]int32{2}, 4, four, 3, nil, false, four, 4) },
		"sparse, negative":    func() { s.LinearGrad([]int32{-1}, 4, four, 4, four, 3) },
		"sparse, weights":     func() { s.Linear(nil, 5, four, 3, nil, false, four, 5) },
		"sparse, bias":        func() { s.Linear(nil, 4, four, 3, four[:3], false, four, 4) },
		"sparse, result":      func() { s.Linear(nil, 4, four, 3, nil, false, four[:7], 4) },
		"sparse, gradient":    func() { s.LinearGrad(nil, 4, four[:7], 4, four, 3) },
		"sparse, of weights":  func() { s.LinearGrad(nil, 4, four, 4, four[:11], 3) },
		"sparse, near stride": func() { s.LinearGrad(nil, 4, four, 3, four, 3) },
		"strip below 0":       func() { SumStrip([]int32{-1}, []float32{1}, make([]float64, 40*StripWidth), new([StripWidth]float64)) },
		"strip too high":      func() { SumStrip([]int32{40}, []float32{1}, make([]float64, 40*StripWidth), new([StripWidth]float64)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, form := range sets() {
		for _, tc := range []struct {
			transA, transB bool
			m, n, k        int
		}{
			{false, false, 2048, 100, 784}, {false, true, 2048, 100, 784}, {true, false, 100, 784, 2048},
			{false, false, 2048, 100, 100}, {false, true, 2048, 100, 100}, {true, false, 100, 100, 2048},
			{false, false, 512, 512, 512}, {false, true, 512, 512, 512}, {true, false, 512, 512, 512},
			{false, false, 64, 16384, 576}, {true, false, 256, 256, 52},
		} {
			if testing.Short() && tc.n > 512 {
				continue
			}
			name := fmt.Sprintf("%s/%dx%dx%d/%s", form, tc.m, tc.k, tc.n, map[[2]bool]string{{false, false}: "NN", {false, true}: "NT", {true, false}: "TN"}[[2]bool{tc.transA, tc.transB}])
			b.Run(name, func(b *testing.B) {
				defer use(form)()
				x, y, c := normals[float32](tc.m*tc.k, 1), normals[float32](tc.k*tc.n, 2), make([]float32, tc.m*tc.n)
				lda, ldb := strides(tc.transA, tc.transB, tc.m, tc.n, tc.k)
				for b.Loop() {
					Gemm(tc.transA, tc.transB, tc.m, tc.n, tc.k, 1, x, lda, y, ldb, 0, c, tc.n)
				}
				b.ReportMetric(2*float64(tc.m*tc.n*tc.k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

func BenchmarkGemmFloat64(b *testing.B) {
	for _, form := range sets() {
		for _, tc := range []struct{ m, n, k int }{{784, 784, 1024}, {784, 80, 784}, {3072, 80, 3072}} {
			if testing.Short() && tc.m > 784 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dx%dx%d", form, tc.m, tc.k, tc.n), func(b *testing.B) {
				defer use(form)()
				x, y, c := normals[float64](tc.m*tc.k, 1), normals[float64](tc.k*tc.n, 2), make([]float64, tc.m*tc.n)
				for b.Loop() {
					Gemm(true, false, tc.m, tc.n, tc.k, 1, x, tc.m, y, tc.n, 0, c, tc.n)
				}
				b.ReportMetric(2*float64(tc.m*tc.n*tc.k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// sets returns the instruction sets that the processor has.
func sets() []simd.Set {
	here := []simd.Set{simd.Portable}
	for set := simd.Portable + 1; set <= current; set++ {
		if kernelsOf(set) != &portable {
			here = append(here, set)
		}
	}
	return here
}

// forms runs a test on every form that this processor has.
func forms(t *testing.T, test func(t *testing.T)) {
	for _, set := range sets() {
		t.Run(set.String(), func(t *testing.T) {
			defer use(set)()
			test(t)
		})
	}
}

// use selects a form and returns a function that selects the former one again.
func use(set simd.Set) func() {
	old := current
	current = set
	return func() { current = old }
}
