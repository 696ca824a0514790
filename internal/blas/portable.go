package blas

import (
	"unsafe"

	"cne/internal/simd"
)

// portable are the inner loops in Go. They add up in the order of the assembly, with the
// same products fused.
var portable = kernels{
	height: 4, panel: 8, lanes: 8, masked: true, doubles: doubleKernel{4, 4, portableDoubles},
	tile: portableTile,
}

// portableTile is the inner loop for a tile of number + 1 ≤ 4 rows and up to 8 columns.
func portableTile(k int, a *float32, rowStride, stepStride int, b, c *float32, ldc int, alpha, beta float32, bias *float32,
	floor float32, mask *uint32, number int) {
	rows := number + 1
	for j := 0; j < 8 && *at(mask, 4*j) != 0; j += 4 {
		var sums [4][4]float32
		if rows == 4 {
			addSingle(&sums, k, a, rowStride, stepStride, at(b, 4*j))
		} else {
			for i := range rows {
				addRow(&sums[i], k, at(a, i*rowStride), stepStride, at(b, 4*j))
			}
		}
		for i := range rows {
			for t, v := range sums[i] {
				if *at(mask, 4*(j+t)) == 0 {
					break
				}
				to := at(c, i*ldc+4*(j+t))
				v = float32(alpha * v)
				if beta != 0 {
					v = simd.FMA(beta, *to, v)
				}
				if bias != nil {
					v += *at(bias, 4*(j+t))
				}
				if v < floor {
					v = floor
				}
				*to = v
			}
		}
	}
}

// portableDoubles is the inner loop in double precision for a tile of 4 rows and columns.
func portableDoubles(k int, a, b, c *float64, ldc int) {
	var sums [4][4]float64
	for i := range sums {
		addRow(&sums[i], k, at(a, 8*i), 32, b)
		for j, v := range sums[i] {
			*at(c, i*ldc+8*j) += v
		}
	}
}

// at returns the address some bytes after p, which may be the end of the memory.
//
//go:nocheckptr
func at[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }

// addRow sets a row of a tile to the product of k elements of a and rows of b, as addSingle
// does for 4 rows. Strides are in bytes.
func addRow[T Float](sums *[4]T, k int, a *T, stepStride int, b *T) {
	var s0, s1, s2, s3 T
	for range k {
		row, x := (*[4]T)(unsafe.Pointer(b)), *a
		s0, s1, s2, s3 = simd.FMA(x, row[0], s0), simd.FMA(x, row[1], s1), simd.FMA(x, row[2], s2), simd.FMA(x, row[3], s3)
		a, b = at(a, stepStride), at(b, 32)
	}
	*sums = [4]T{s0, s1, s2, s3}
}
