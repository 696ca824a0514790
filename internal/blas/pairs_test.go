package blas

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/internal/simd"
)

// words returns n random pairs of bfloat16: kinds are numbers around 1, any bits but
// infinities and NaN, and numbers whose products are subnormal, or nearly so.
func words(n int, kind string, s *rng.Stream) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(s.Uint64())
		for shift := 7; shift < 32; shift += 16 {
			exponent := w[i] >> shift & 0xff
			switch kind {
			case "ordinary":
				exponent = 120 + exponent%10
			case "any":
				exponent = min(exponent, 190) // so that no sum overflows
			case "tiny":
				exponent = 58 + exponent%10
			}
			w[i] = w[i]&^(0xff<<shift) | exponent<<shift
		}
	}
	return w
}

// The inner loops give the bits of sums in Go, whatever the factors are, in all sizes of tiles,
// and stay within the matrices: those for AVX-512 the sums of the portable form, those for AMX
// sums in their own order.
func TestPairsAreExact(t *testing.T) {
	if !simd.BFloat16() {
		t.Skip("the processor does not multiply bfloat16")
	}
	for _, c := range []struct {
		name    string
		sum     pairSum
		rows    []int
		depths  []int
		without bool // AMX
	}{
		{"AVX-512", portableSum, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, []int{1, 2, 33}, true},
		{"AMX", tileSum, []int{1, 15, 16, 17, 31, 32, 33, 65}, []int{1, 15, 16, 33}, false},
		{"AMX, deep", tileSum, []int{33}, []int{530}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.without {
				withoutAMX(t)
			} else if !simd.AMX() {
				t.Skip("the processor has no AMX, or the system does not allow it")
			}
			for _, kind := range []string{"ordinary", "any", "tiny"} {
				s := rng.New(1, rng.Sample)
				for _, n := range []int{16, 32, 48} {
					for _, m := range c.rows {
						for _, k := range c.depths {
							for trans := range 2 {
								for _, add := range []bool{false, true} {
									testPairs(t, c.sum, kind, m, n, k, trans == 1, add, &s)
								}
							}
						}
					}
				}
			}
		})
	}
}

// withoutAMX runs a test with the inner loops for AVX-512.
func withoutAMX(t *testing.T) {
	kernels := inUse()
	amx := kernels.amx
	kernels.amx = nil
	t.Cleanup(func() { kernels.amx = amx })
}

// A pairSum returns the product of k pairs, with what was in C if it is added.
type pairSum func(k int, a, b func(l int) uint32, add bool, old float32) float32

func portableSum(k int, a, b func(l int) uint32, add bool, old float32) (sum float32) {
	for l := range k {
		sum = addPair(sum, a(l), b(l))
	}
	if add {
		sum += old
	}
	return sum
}

// tileSum adds up as TDPBF16PS is described to.
func tileSum(k int, a, b func(l int) uint32, add bool, old float32) (sum float32) {
	const upper, one = 0xffff0000, 0x3f800000
	plus := func(x, y float32) float32 { return addProduct(x, math.Float32bits(y), one) }
	if add {
		sum = old
	}
	for first := 0; first < k; first += 16 {
		var evens, odds float32
		for l := first; l < min(k, first+16); l++ {
			evens, odds = addProduct(evens, a(l)<<16, b(l)<<16), addProduct(odds, a(l)&upper, b(l)&upper)
		}
		sum = plus(sum, plus(evens, odds))
	}
	return sum
}

func testPairs(t *testing.T, sum pairSum, kind string, m, n, k int, trans, add bool, s *rng.Stream) {
	t.Helper()
	rows, columns := k, 1
	if trans {
		rows, columns = 1, m
	}
	a, b := words(m*k, kind, s), words(k*n, kind, s)
	c := make([]float32, m*(n+3))
	for i := range c {
		c[i] = float32(math.NaN())
		if add {
			c[i] = float32(s.Normal())
		}
	}
	old := slices.Clone(c)
	form := Panels{k, n, 32}
	MultiplyPairs(form, m, a, rows, columns, b, add, c, n+3)
	for i := range m {
		for j := range n {
			at, stride := form.At(j)
			x := c[i*(n+3)+j]
			y := sum(k, func(l int) uint32 { return a[i*rows+l*columns] }, func(l int) uint32 { return b[at+l*stride] }, add, old[i*(n+3)+j])
			if math.Float32bits(x) != math.Float32bits(y) {
				t.Fatalf("%s: element %d,%d is %g (%x), want %g (%x)", fmt.Sprint(kind, m, n, k, trans, add),
					i, j, x, math.Float32bits(x), y, math.Float32bits(y))
			}
		}
		for j := n; j < n+3; j++ {
			if x, y := c[i*(n+3)+j], old[i*(n+3)+j]; x == x && x != y {
				t.Fatalf("what follows row %d has been written", i)
			}
		}
	}
}

// Sums at the edges of the arithmetic that this package describes for pairs.
func TestPairsAtTheEdges(t *testing.T) {
	withoutAMX(t)
	pair := func(first, second float32) uint32 {
		return math.Float32bits(first)>>16 | math.Float32bits(second)&0xffff0000
	}
	const least, subnormal = 0x1p-126, 0x1p-127
	for _, tc := range []struct {
		name      string
		a, b      [2]float32 // the second is added first
		old, want float32
	}{
		{"the second first", [2]float32{1, -0x1p24}, [2]float32{1, 1}, 0x1p24, 1},
		{"the first is lost", [2]float32{0.5, 0x1p24}, [2]float32{1, 1}, 0, 0x1p24},
		{"the even one of two", [2]float32{1, 0x1p24}, [2]float32{1, 1}, 0, 0x1p24},
		{"the even one, above", [2]float32{3, 0x1p24}, [2]float32{1, 1}, 0, 0x1p24 + 4},
		{"subnormal factors", [2]float32{subnormal, 0}, [2]float32{0x1p100, 0}, 0, 0},
		{"a subnormal sum", [2]float32{0x1p-64, 0}, [2]float32{0x1p-63, 0}, 0, 0},
		{"the least sum", [2]float32{0x1p-63, 0}, [2]float32{0x1p-63, 0}, 0, least},
		{"a subnormal product in a sum", [2]float32{0x1p-70, 0x1p-60}, [2]float32{0x1p-70, 0x1p-66}, 0, 0x1p-126 + 0x1p-140},
		{"a sum that cancels to a subnormal one", [2]float32{-0x1p-63, 0x1p-63}, [2]float32{0x1p-63, 0x1.8p-63}, 0, 0},
		{"subnormal before it is rounded", [2]float32{-0x1p-80, 0x1p-63}, [2]float32{0x1p-72, 0x1p-63}, 0, least},
		{"subnormal rounded to 24 bits", [2]float32{-0x1.4p-75, 0x1p-63}, [2]float32{0x1p-75, 0x1p-63}, 0, 0},
		{"an infinity", [2]float32{0x1p100, 0}, [2]float32{0x1p100, 0}, 0, float32(math.Inf(1))},
	} {
		forms(t, func(t *testing.T) {
			form := Panels{1, 16, 16}
			if current == simd.AVX512 {
				form.width = 32
			}
			b, c := make([]uint32, 16), make([]float32, 16)
			for j := range b {
				b[j], c[j] = pair(tc.b[0], tc.b[1]), tc.old
			}
			// C would be added last, so an old sum is a step before.
			k := 1
			a := []uint32{pair(tc.a[0], tc.a[1])}
			if tc.old != 0 {
				k, a, b = 2, []uint32{pair(0, tc.old), a[0]}, append(make([]uint32, 16), b...)
				for j := range 16 {
					b[j] = pair(0, 1)
				}
				form.k = 2
			}
			MultiplyPairs(form, 1, a, k, 1, b, false, c, 16)
			for j, x := range c {
				if x != tc.want {
					t.Fatalf("%s: column %d is %g (%x), want %g", tc.name, j, x, math.Float32bits(x), tc.want)
				}
			}
		})
	}
}

// NaN is passed on, whichever factor it is.
func TestPairsPassNaN(t *testing.T) {
	forms(t, func(t *testing.T) {
		form := NewPanels[float32](2, 16)
		for _, at := range [][2]int{{0, 0}, {1, 5}} {
			a, b, c := make([]uint32, 2), make([]uint32, form.Len()), make([]float32, 16)
			a[at[0]] = 0x7fc0
			MultiplyPairs(form, 1, a, 2, 1, b, false, c, 16)
			for j, x := range c {
				if x == x {
					t.Fatalf("column %d is %g", j, x)
				}
			}
		}
	})
}

func TestPairsAllocateNothing(t *testing.T) {
	const m, n, k = 33, 48, 530
	form := NewPairPanels(k, n)
	a, b, c := make([]uint32, m*k), make([]uint32, form.Len()), make([]float32, m*n)
	for _, strides := range [][2]int{{k, 1}, {1, m}} {
		if allocs := testing.AllocsPerRun(5, func() { MultiplyPairs(form, m, a, strides[0], strides[1], b, false, c, n) }); allocs != 0 {
			t.Errorf("strides %d: %v allocations", strides, allocs)
		}
	}
}

func BenchmarkMultiplyPairs(b *testing.B) {
	const m, n, k = 192, 128, 128
	b.Run("float32", func(b *testing.B) {
		form := NewPanels[float32](k, n)
		x, y, z := make([]float32, m*k), make([]float32, form.Len()), make([]float32, m*n)
		for b.Loop() {
			MultiplyPanels(form, m, x, k, 1, y, 0, z, n)
		}
		b.ReportMetric(2*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
	multiply := func(b *testing.B) {
		form := NewPanels[float32](k/2, n)
		x, y, z := make([]uint32, m*k/2), make([]uint32, form.Len()), make([]float32, m*n)
		for b.Loop() {
			MultiplyPairs(form, m, x, k/2, 1, y, false, z, n)
		}
		b.ReportMetric(2*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	}
	b.Run("bfloat16", multiply)
	if kernels := inUse(); simd.AMX() {
		amx := kernels.amx
		kernels.amx = nil
		b.Run("without AMX", multiply)
		kernels.amx = amx
	}
}
