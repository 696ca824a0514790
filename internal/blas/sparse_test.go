package blas

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
)

// sparseRowsOf returns rows with about the given share of elements that are not
// zero, in runs as in images.
func sparseRowsOf(rows, cols int, share float64, seed uint64) []float32 {
	s := rng.New(seed, rng.Sample)
	x := make([]float32, rows*cols)
	const run = 5
	for i := 0; i < len(x); i += run {
		if s.Float64() < share {
			for j := i; j < min(len(x), i+run); j++ {
				x[j] = float32(s.Normal())
			}
		}
	}
	return x
}

// drawn returns m random row numbers.
func drawn(m, rows int) []int32 {
	s := rng.New(3, rng.Sample)
	index := make([]int32, m)
	for i := range index {
		index[i] = int32(s.IntN(rows))
	}
	return index
}

// A sparse layer and its gradient equal the dense ones of the same matrix.
func TestSparseIsDense(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, tc := range []struct {
			rows, cols, n, m, gap int
			share                 float64
			biased, relu          bool
		}{
			{1, 1, 1, 1, 0, 1, false, false},
			{5, 7, 3, 9, 2, 0.5, true, true},
			{40, 64, 16, 70, 0, 0.2, true, false},
			{40, 65, 17, 64, 3, 0.2, false, true},
			{100, 130, 100, 65, 1, 0.1, true, true},
			{60, 200, 129, 200, 0, 0.3, true, true},
			{60, 70, 300, 100, 5, 0.3, true, false},
			{700, 33, 8, 1500, 0, 0.2, true, true},
			{9, 784, 2, 9, 0, 0, true, true},
			{9, 20, 5, 0, 0, 0.5, true, true},
			{6, 20, 4, -1, 0, 0.5, true, true}, // −1: all rows
		} {
			x := sparseRowsOf(tc.rows, tc.cols, tc.share, 1)
			var index []int32
			m := tc.rows
			if tc.m >= 0 {
				m = tc.m
				index = drawn(m, tc.rows)
			}
			ldw, ldy := tc.cols+tc.gap, tc.n+tc.gap
			w, g := normals[float32](tc.n*ldw, 2), normals[float32](max(1, m)*ldy, 4)
			var bias []float32
			if tc.biased {
				bias = normals[float32](tc.n, 5)
			}
			s := NewSparse(x, tc.rows, tc.cols)
			if rows, cols := s.Size(); rows != tc.rows || cols != tc.cols {
				t.Errorf("size %d×%d", rows, cols)
			}
			const untouched = 77
			fill := func(n int) []float32 { return slices.Repeat([]float32{untouched}, n) }
			got, want := fill(max(1, m)*ldy), fill(max(1, m)*ldy)
			s.Linear(index, tc.n, w, ldw, bias, tc.relu, got, ldy)
			Linear(m, tc.n, tc.cols, x, tc.cols, index, w, ldw, bias, tc.relu, want, ldy)
			near(t, fmt.Sprintf("%+v: Y", tc), got, want)
			gotW, wantW := fill(tc.n*ldw), fill(tc.n*ldw)
			s.LinearGrad(index, tc.n, g, ldy, gotW, ldw)
			LinearGrad(m, tc.n, tc.cols, g, ldy, x, tc.cols, index, wantW, ldw)
			near(t, fmt.Sprintf("%+v: dW", tc), gotW, wantW)
		}
	})
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, v := range want {
		if d := math.Abs(float64(got[i] - v)); !(d <= 2e-4*(1+math.Abs(float64(v)))) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], v)
		}
	}
}

// The bits depend neither on the number of cores nor, for a row, on the other
// rows; and nothing is allocated.
func TestSparseBits(t *testing.T) {
	forms(t, func(t *testing.T) {
		const rows, cols, n, m = 300, 150, 100, 2100
		s := NewSparse(sparseRowsOf(rows, cols, 0.2, 1), rows, cols)
		index := drawn(m, rows)
		w, bias := normals[float32](n*cols, 2), normals[float32](n, 3)
		run := func(procs int) (y, dw []float32) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			y, dw = make([]float32, m*n), make([]float32, n*cols)
			s.Linear(index, n, w, cols, bias, true, y, n)
			s.LinearGrad(index, n, y, n, dw, cols)
			return y, dw
		}
		y, dw := run(1)
		for _, procs := range []int{2, 7} {
			if y2, dw2 := run(procs); !slices.Equal(y, y2) || !slices.Equal(dw, dw2) {
				t.Errorf("other bits on %d cores", procs)
			}
		}
		one := make([]float32, n)
		for _, i := range []int{0, 63, 64, m - 1} {
			s.Linear(index[i:i+1], n, w, cols, bias, true, one, n)
			if !slices.Equal(one, y[i*n:(i+1)*n]) {
				t.Errorf("row %d alone has other bits", i)
			}
		}
		if allocs := testing.AllocsPerRun(5, func() { // a collection meanwhile empties pools
			s.Linear(index, n, w, cols, bias, true, y, n)
			s.LinearGrad(index, n, y, n, dw, cols)
		}); allocs != 0 {
			t.Errorf("%g allocations", allocs)
		}
	})
}

// BenchmarkSparse runs the first layer of a network on MNIST, forward and
// backward, on rows as sparse as its images, next to the dense form.
func BenchmarkSparse(b *testing.B) {
	const points, cols, n = 20000, 784, 100
	x := sparseRowsOf(points, cols, 0.19, 1)
	s := NewSparse(x, points, cols)
	w, bias := normals[float32](n*cols, 2), normals[float32](n, 3)
	for _, form := range sets() {
		for _, m := range []int{2048, 16384} {
			if testing.Short() && m > 2048 {
				continue
			}
			index := drawn(m, points)
			y, dw := normals[float32](m*n, 4), make([]float32, n*cols)
			for name, f := range map[string]func(){
				"forward/sparse":  func() { s.Linear(index, n, w, cols, bias, true, y, n) },
				"forward/dense":   func() { Linear(m, n, cols, x, cols, index, w, cols, bias, true, y, n) },
				"backward/sparse": func() { s.LinearGrad(index, n, y, n, dw, cols) },
				"backward/dense":  func() { LinearGrad(m, n, cols, y, n, x, cols, index, dw, cols) },
			} {
				b.Run(fmt.Sprintf("%v/m=%d/%s", form, m, name), func(b *testing.B) {
					defer use(form)()
					for range b.N {
						f()
					}
				})
			}
		}
	}
}
