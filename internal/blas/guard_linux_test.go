package blas

import (
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns n floats that lie right before, or right after, a page that
// cannot be read or written.
func guarded(t *testing.T, n int, before bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	region, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip("no memory of our own:", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(region) })
	for _, guard := range [][]byte{region[:page], region[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Skip("no guard pages:", err)
		}
	}
	at := page
	if before {
		at += size - 4*n
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&region[at])), n)
}

// withGuards runs a test on every form, for sizes m×n×k, of matrices before and after such pages.
func withGuards(t *testing.T, sizes [][3]int, test func(t *testing.T, m, n, k int, before bool)) {
	forms(t, func(t *testing.T) {
		for _, size := range sizes {
			for _, before := range []bool{true, false} {
				test(t, size[0], size[1], size[2], before)
			}
		}
	})
}

// The inner loops stay within the matrices: one step beyond would end the
// test's process.
func TestGemmStaysWithinTheMatrices(t *testing.T) {
	withGuards(t, [][3]int{{1, 1, 1}, {5, 3, 9}, {12, 32, 16}, {13, 33, 17}, {7, 47, 8}, {30, 100, 21}}, func(t *testing.T, m, n, k int, before bool) {
		for trans := range 4 {
			transA, transB := trans&1 != 0, trans&2 != 0
			a, b, c := guarded(t, m*k, before), guarded(t, k*n, before), guarded(t, m*n, before)
			for i, x := range [][]float32{a, b, c} {
				copy(x, normals[float32](len(x), uint64(i)))
			}
			lda, ldb := strides(transA, transB, m, n, k)
			want, scale := naive(transA, transB, m, n, k, 1, a, lda, b, ldb, 1, c, n)
			Gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, 1, c, n)
			for i, w := range want {
				if d := float64(c[i]) - w; d > 1e-5*scale[i] || d < -1e-5*scale[i] {
					t.Fatalf("%d×%d×%d transposed %v %v: element %d is %g, want %g", m, n, k, transA, transB, i, c[i], w)
				}
			}
		}
	})
}

func TestGemmFloat64StaysWithinTheMatrices(t *testing.T) {
	withGuards(t, [][3]int{{1, 64, 64}, {12, 16, 256}, {13, 65, 64}, {7, 47, 100}, {30, 300, 21}}, func(t *testing.T, m, n, k int, before bool) {
		doubles := func(n int) []float64 {
			return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(guarded(t, 2*n, before)))), n)
		}
		for trans := range 4 {
			transA, transB := trans&1 != 0, trans&2 != 0
			lda, ldb := strides(transA, transB, m, n, k)
			Gemm(transA, transB, m, n, k, 1, doubles(m*k), lda, doubles(k*n), ldb, 1, doubles(m*n), n)
		}
	})
}

func TestLinearStaysWithinTheMatrices(t *testing.T) {
	withGuards(t, [][3]int{{1, 1, 1}, {5, 3, 9}, {13, 33, 17}, {7, 47, 8}, {30, 100, 21}, {3, 530, 5}}, func(t *testing.T, m, n, k int, before bool) {
		inside := func(x []float32) []float32 {
			y := guarded(t, len(x), before)
			copy(y, x)
			return y
		}
		l := newLayer[float32](m, n, k, 0, true, true, true)
		l.rows[0], l.rows[m-1] = 0, int32(len(l.x)/k-1) // the rows next to the guards
		l.x, l.w, l.bias = inside(l.x), inside(l.w), inside(l.bias)
		y, dw := guarded(t, m*n, before), guarded(t, n*k, before)
		l.compute(y)
		LinearGrad(m, n, k, y, n, l.x, k, l.rows, dw, k)
		for i := range m {
			for j := range n {
				want, scale := l.sum(i, j)
				if d := float64(y[i*n+j]) - max(0, want); d > 1e-5*scale || d < -1e-5*scale {
					t.Fatalf("%d×%d×%d: element (%d, %d) is %g, want %g", m, n, k, i, j, y[i*n+j], max(0, want))
				}
			}
		}
	})
}

func TestPanelsStayWithinTheMatrices(t *testing.T) {
	withGuards(t, [][3]int{{1, 16, 1}, {13, 48, 9}, {7, 80, 21}, {30, 32, 8}, {5, 3, 4}}, func(t *testing.T, m, n, k int, before bool) {
		form := NewPanels[float32](k, n)
		a, b, c := guarded(t, m*k, before), guarded(t, form.Len(), before), guarded(t, m*n, before)
		for _, beta := range []float32{0, 1} {
			MultiplyPanels(form, m, a, k, 1, b, beta, c, n)
			MultiplyPanels(form, m, a, 1, m, b, beta, c, n)
		}
	})
}

func TestPairsStayWithinTheMatrices(t *testing.T) {
	words := func(x []float32) []uint32 {
		return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
	}
	sizes := [][3]int{{1, 16, 1}, {13, 48, 9}, {7, 80, 21}, {30, 32, 8}, {5, 3, 4}, {16, 16, 16}, {33, 64, 32}, {81, 48, 530}}
	multiply := func(t *testing.T, m, n, k int, before bool) {
		form := NewPairPanels(k, n)
		a, b, c := words(guarded(t, m*k, before)), words(guarded(t, form.Len(), before)), guarded(t, m*n, before)
		for _, add := range []bool{false, true} {
			MultiplyPairs(form, m, a, k, 1, b, add, c, n)
			MultiplyPairs(form, m, a, 1, m, b, add, c, n)
		}
	}
	withGuards(t, sizes, multiply)
	t.Run("without AMX", func(t *testing.T) {
		withoutAMX(t)
		withGuards(t, sizes, multiply)
	})
}
