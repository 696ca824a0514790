package blas

import (
	"hash/crc32"
	"math"
	"testing"
	"unsafe"
)

// fixed returns n numbers by a formula, from −1 to 1 but for a few that are 0 or subnormal.
func fixed[T Float](n int, seed uint32) []T {
	x := make([]T, n)
	for i := range x {
		seed = seed*1664525 + 1013904223
		switch v := T(int32(seed)) / (1 << 31); seed >> 8 & 63 {
		case 0:
			x[i] = 0
		case 1:
			x[i] = T(math.Copysign(0, float64(v)))
		case 2:
			x[i] = v * 0x1p-140
		default:
			x[i] = v
		}
	}
	return x
}

// bitsOf returns the bytes of numbers.
func bitsOf[T Float](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}

// All instruction sets give the same bits, on every architecture: these.
func TestBits(t *testing.T) {
	for name, tc := range map[string]struct {
		want    uint32
		compute func() []byte
	}{
		"gemm":            {0x1be4142d, gemmBits[float32]},
		"gemm64":          {0x68d6c7ba, gemmBits[float64]},
		"layer":           {0xa2555e01, layerBits[float32]},
		"layer64":         {0x89b697d6, layerBits[float64]},
		"panels":          {0xedc8121f, panelBits},
		"sparse":          {0x00829932, sparseBits},
		"sparse gradient": {0xb52d35b0, sparseGradientBits},
		"wide gradient":   {0x96d857d2, wideGradientBits},
		"strips":          {0x5a966ce4, stripBits},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "wide gradient" {
				t.Skip("it takes long")
			}
			forms(t, func(t *testing.T) {
				if got := crc32.ChecksumIEEE(tc.compute()); got != tc.want {
					t.Errorf("%#08x, want %#08x", got, tc.want)
				}
			})
		})
	}
}

func gemmBits[T Float]() (all []byte) {
	for _, size := range [][3]int{{1, 1, 1}, {7, 9, 1}, {13, 17, 520}, {3, 2, 600}, {25, 65, 33}, {40, 530, 17}, {14, 8, 1030}, {49, 97, 70}} {
		for trans := range 4 {
			for _, f := range [][2]T{{1, 0}, {-0.7, 1}, {1.3, -0.3}, {0, 2}} {
				m, n, k := size[0], size[1], size[2]
				transA, transB := trans&1 != 0, trans&2 != 0
				lda, ldb := strides(transA, transB, m, n, k)
				c := fixed[T](m*n, 3)
				Gemm(transA, transB, m, n, k, f[0], fixed[T](m*k, 1), lda, fixed[T](k*n, 2), ldb, f[1], c, n)
				all = append(all, bitsOf(c)...)
			}
		}
	}
	return all
}

func layerBits[T Float]() (all []byte) {
	for _, size := range [][3]int{{30, 2, 20}, {13, 100, 784}, {401, 33, 15}, {6, 17, 530}} {
		m, n, k := size[0], size[1], size[2]
		rows := make([]int32, m)
		for i := range rows {
			rows[i] = int32(i * i % 11)
		}
		x, y, dw := fixed[T](11*k, 1), make([]T, m*n), make([]T, n*k)
		Linear(m, n, k, x, k, rows, fixed[T](n*k, 2), k, fixed[T](n, 3), true, y, n)
		LinearGrad(m, n, k, y, n, x, k, rows, dw, k)
		all = append(append(all, bitsOf(y)...), bitsOf(dw)...)
	}
	return all
}

func panelBits() (all []byte) {
	for _, size := range [][3]int{{5, 16, 30}, {13, 48, 600}, {12, 96, 7}, {4, 20, 530}} {
		m, n, k := size[0], size[1], size[2]
		form, matrix, c := NewPanels[float32](k, n), fixed[float32](k*n, 2), fixed[float32](m*n, 3)
		b := make([]float32, form.Len())
		for j := range n {
			at, stride := form.At(j)
			for l := range k {
				b[at+l*stride] = matrix[l*n+j]
			}
		}
		for i, a := range [][2]int{{k, 1}, {1, m}} {
			MultiplyPanels(form, m, fixed[float32](m*k, 1), a[0], a[1], b, float32(i)/3, c, n)
			all = append(all, bitsOf(c)...)
		}
	}
	return all
}

// fixedSparse returns a matrix with three quarters of its elements 0.
func fixedSparse(rows, columns int) *Sparse {
	x := fixed[float32](rows*columns, 5)
	for i := range x {
		if i*7%16 > 3 {
			x[i] = 0
		}
	}
	return NewSparse(x, rows, columns)
}

func sparseBits() (all []byte) {
	s := fixedSparse(50, 70)
	for _, n := range []int{1, 8, 17, 100, 131} {
		y := make([]float32, 50*n)
		s.Linear(nil, n, fixed[float32](n*70, 2), 70, fixed[float32](n, 3), true, y, n)
		all = append(all, bitsOf(y)...)
	}
	return all
}

func sparseGradientBits() (all []byte) {
	const columns = 600
	rows := make([]int32, 2100)
	for i := range rows {
		rows[i] = int32(i * 3 % 40)
	}
	s := fixedSparse(40, columns)
	for _, n := range []int{3, 24} {
		dw := make([]float32, n*columns)
		s.LinearGrad(rows, n, fixed[float32](len(rows)*n, 2), n, dw, columns)
		all = append(all, bitsOf(dw)...)
	}
	return all
}

// wideGradientBits has so many columns that they limit the number of pieces of the rows
// with a gradient of their own.
func wideGradientBits() []byte {
	const columns, n = 20000, 100
	s := SparseOf([]int{0, 2, 5, 6, 8}, []int32{0, 7, 5, 9000, 19999, 1, 2, 9000}, fixed[float32](8, 1), columns)
	rows, dw := make([]int32, 8*gradRows), make([]float32, n*columns)
	for i := range rows {
		rows[i] = int32(i * 3 % 4)
	}
	s.LinearGrad(rows, n, fixed[float32](len(rows)*n, 2), n, dw, columns)
	return bitsOf(dw)
}

func stripBits() (all []byte) {
	columns, values, strip := []int32{0, 2, 3, 7}, fixed[float32](4, 1), fixed[float64](8*StripWidth, 2)
	y := [StripWidth]float64(fixed[float64](StripWidth, 3))
	for range 5 {
		SumStrip(columns, values, strip, &y)
		ScatterStrip(columns, values, strip, &y)
	}
	return append(bitsOf(y[:]), bitsOf(strip)...)
}
