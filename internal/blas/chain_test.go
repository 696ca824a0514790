package blas

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"cne/internal/rng"
	"cne/internal/simd"
)

// chainOf returns a chain of drawn weights, and the rows that Linear computes layer by layer.
func chainOf[T Float](widths []int, m int) (c *Chain[T], x, want []T) {
	s := rng.New(uint64(len(widths)), rng.Sample)
	x = convert[T](stored(m, widths[0], widths[0], &s))
	want = x
	c = NewChain(widths, func(l int) (w, b []T, then Activation) {
		n, k := widths[l+1], widths[l]
		w, b = convert[T](stored(n, k, k, &s)), convert[T](stored(1, n, n, &s))
		y := make([]T, m*n)
		Linear(m, n, k, want, k, nil, w, k, b, l < len(widths)-2 && l != 2, y, n)
		want = y
		switch l {
		case len(widths) - 2:
			return w, b, NoActivation
		case 2: // as in networks of landmarks
			for i := range m {
				softmax(y[i*n : (i+1)*n])
			}
			return w, b, Softmax
		}
		return w, b, ReLU
	})
	return c, x, want
}

func softmax[T Float](x []T) { simd.Scale(x, T(1/simd.RowExp(x, slices.Max(x)))) }

func testChain[T Float](t *testing.T) {
	for _, widths := range [][]int{{1, 1}, {3, 2}, {520, 100, 100, 100, 2}, {50, 7, 33, 3}, {512, 64, 256, 40}, {530, 200, 5}} {
		for _, m := range []int{1, 13, 97, 193} {
			c, x, want := chainOf[T](widths, m)
			y := make([]T, len(want))
			c.Run(y, x)
			if !slices.Equal(y, want) {
				t.Errorf("%v: %d rows have other bits than by Linear", widths, m)
			}
			// The bits of a row do not depend on the others.
			in, out := widths[0], widths[len(widths)-1]
			for i := max(0, m-15); i < m; i++ {
				clear(y[i*out : (i+1)*out])
				c.Run(y[i*out:(i+1)*out], x[i*in:(i+1)*in])
			}
			if !slices.Equal(y, want) {
				t.Errorf("%v: %d rows have other bits one by one", widths, m)
			}
		}
	}
}

func TestChain(t *testing.T) {
	t.Run("float32", func(t *testing.T) { forms(t, testChain[float32]) })
	t.Run("float64", func(t *testing.T) { forms(t, testChain[float64]) })
	c, _, _ := chainOf[float32]([]int{3, 2}, 1)
	c.Run(nil, nil)
	defer func() {
		if recover() == nil {
			t.Error("rows of another length do not panic")
		}
	}()
	c.Run(make([]float32, 4), make([]float32, 5))
}

// Goroutines share a chain, and a call allocates nothing.
func TestChainShared(t *testing.T) {
	const m, goroutines = 7, 32
	c, x, want := chainOf[float32]([]int{784, 100, 100, 2}, m)
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			y := make([]float32, len(want))
			for range 50 {
				clear(y)
				if c.Run(y, x); !slices.Equal(y, want) {
					t.Error("other bits while other goroutines compute")
					return
				}
			}
		})
	}
	group.Wait()
	y := make([]float32, len(want))
	least := math.Inf(1)
	for range 50 { // with -race, a sync.Pool drops some of its values
		least = min(least, testing.AllocsPerRun(1, func() { c.Run(y, x) }))
	}
	if least > 0 {
		t.Errorf("%v allocations in a run", least)
	}
}

func BenchmarkChain(b *testing.B) {
	for _, m := range []int{1, 32, 1024} {
		c, x, want := chainOf[float32]([]int{784, 100, 100, 100, 2}, m)
		y := make([]float32, len(want))
		b.Run(fmt.Sprintf("rows=%d", m), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Run(y, x)
			}
		})
	}
}
