package blas

import (
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"cne/internal/rng"
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

// The inner loops stay within the matrices: one step beyond would end the
// test's process.
func TestGemmStaysWithinTheMatrices(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, size := range [][3]int{{1, 1, 1}, {5, 3, 9}, {12, 32, 16}, {13, 33, 17}, {7, 47, 8}, {30, 100, 21}} {
			for trans := range 4 {
				for _, before := range []bool{true, false} {
					m, n, k := size[0], size[1], size[2]
					a, b, c := guarded(t, m*k, before), guarded(t, k*n, before), guarded(t, m*n, before)
					s := rng.New(1, rng.Sample)
					for _, x := range [][]float32{a, b, c} {
						for i := range x {
							x[i] = float32(s.Normal())
						}
					}
					lda, ldb := k, n
					if trans&1 != 0 {
						lda = m
					}
					if trans&2 != 0 {
						ldb = k
					}
					want, scale := naive(trans&1 != 0, trans&2 != 0, m, n, k, 1, a, lda, b, ldb, 1, c, n)
					Gemm(trans&1 != 0, trans&2 != 0, m, n, k, 1, a, lda, b, ldb, 1, c, n)
					for i, w := range want {
						if d := float64(c[i]) - w; d > 1e-5*scale[i] || d < -1e-5*scale[i] {
							t.Fatal(fmt.Sprint(size, " transposed ", trans), ": element", i, "is", c[i], "want", w)
						}
					}
				}
			}
		}
	})
}

func TestGemmFloat64StaysWithinTheMatrices(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, size := range [][3]int{{1, 64, 64}, {12, 16, 256}, {13, 65, 64}, {7, 47, 100}, {30, 300, 21}} {
			for trans := range 4 {
				for _, before := range []bool{true, false} {
					m, n, k := size[0], size[1], size[2]
					doubles := func(n int) []float64 {
						return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(guarded(t, 2*n, before)))), n)
					}
					lda, ldb := k, n
					if trans&1 != 0 {
						lda = m
					}
					if trans&2 != 0 {
						ldb = k
					}
					Gemm(trans&1 != 0, trans&2 != 0, m, n, k, 1, doubles(m*k), lda, doubles(k*n), ldb, 1, doubles(m*n), n)
				}
			}
		}
	})
}

func TestLinearStaysWithinTheMatrices(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, size := range [][3]int{{1, 1, 1}, {5, 3, 9}, {13, 33, 17}, {7, 47, 8}, {30, 100, 21}, {3, 530, 5}} {
			for _, before := range []bool{true, false} {
				inside := func(x []float32) []float32 {
					y := guarded(t, len(x), before)
					copy(y, x)
					return y
				}
				l := newLayer[float32](size[0], size[1], size[2], 0, true, true, true)
				l.rows[0], l.rows[l.m-1] = 0, int32(len(l.x)/l.k-1) // the rows next to the guards
				l.x, l.w, l.bias = inside(l.x), inside(l.w), inside(l.bias)
				y, dw := guarded(t, l.m*l.n, before), guarded(t, l.n*l.k, before)
				l.compute(y)
				LinearGrad(l.m, l.n, l.k, y, l.n, l.x, l.k, l.rows, dw, l.k)
				for i := range l.m {
					for j := range l.n {
						want, scale := l.sum(i, j)
						if d := float64(y[i*l.n+j]) - max(0, want); d > 1e-5*scale || d < -1e-5*scale {
							t.Fatalf("%v: element (%d, %d) is %g, want %g", size, i, j, y[i*l.n+j], max(0, want))
						}
					}
				}
			}
		}
	})
}

func TestPanelsStayWithinTheMatrices(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, size := range [][3]int{{1, 16, 1}, {13, 48, 9}, {7, 80, 21}, {30, 32, 8}, {5, 3, 4}} {
			for _, before := range []bool{true, false} {
				m, n, k := size[0], size[1], size[2]
				form := NewPanels[float32](k, n)
				a, b, c := guarded(t, m*k, before), guarded(t, form.Len(), before), guarded(t, m*n, before)
				for _, beta := range []float32{0, 1} {
					MultiplyPanels(form, m, a, k, 1, b, beta, c, n)
					MultiplyPanels(form, m, a, 1, m, b, beta, c, n)
				}
			}
		}
	})
}

func TestPairsStayWithinTheMatrices(t *testing.T) {
	words := func(t *testing.T, n int, before bool) []uint32 {
		x := guarded(t, n, before)
		return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), n)
	}
	forms(t, func(t *testing.T) {
		for _, size := range [][3]int{{1, 16, 1}, {13, 48, 9}, {7, 80, 21}, {30, 32, 8}} {
			for _, before := range []bool{true, false} {
				m, n, k := size[0], size[1], size[2]
				form := NewPanels[float32](k, n)
				a, b, c := words(t, m*k, before), words(t, form.Len(), before), guarded(t, m*n, before)
				for _, add := range []bool{false, true} {
					MultiplyPairs(form, m, a, k, 1, b, add, c, n)
					MultiplyPairs(form, m, a, 1, m, b, add, c, n)
				}
			}
		}
	})
}
