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
