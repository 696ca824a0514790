package simd

import "unsafe"

// The kernels of this file compare one row with the rows of a matrix x that cols
// names, anywhere in x. cols has a multiple of 16 elements, if need be filled up
// with any row.

// NearRows sets dst[c] to the squared distance of row from row cols[c] of x, and bit c%64
// of found[c/64] to whether it is at most limit or at most limits[c]. found has
// ⌈len(cols)/64⌉ words. Limits must not be NaN. The distances of a from b and of b from a
// have the same bits, whatever the other columns.
func NearRows(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32) {
	dst, limits, found = dst[:len(cols)], limits[:len(cols)], found[:(len(cols)+63)/64]
	clear(found)
	if vectors() {
		nearRowsVector(dst, found, x, row, cols, limit, limits)
		return
	}
	nearRowsLanes(dst, found, x, row, cols, limit, limits)
}

// NearTiles compares the four rows of x that rows names with others: dst[16t+4r+c]
// becomes the squared distance of row rows[r] from row cols[4t+c], and bit 4r+c of
// found[t] is whether it is at most rowLimits[r] or at most limits[4t+c]. cols has a
// multiple of 4 elements, and width is the width of x. The distances have the bits that
// NearRows gives. For wide rows in the outer levels of the cache NearTiles is faster,
// since each load serves four pairs. While tile t is computed, row ahead[t] is brought to
// the cache, if there is one.
func NearTiles(dst []float32, found []uint16, x []float32, width int, rows *[4]int32, cols []int32, rowLimits *[4]float32,
	limits []float32, ahead []int32) {
	dst, limits, found = dst[:4*len(cols)], limits[:len(cols)], found[:len(cols)/4]
	if vectors() {
		nearTilesVector(dst, found, x, width, rows, cols, rowLimits, limits, ahead)
		return
	}
	for t := range found {
		found[t] = 0
		for r, i := range rows {
			near := [1]uint64{}
			nearRowsLanes(dst[16*t+4*r:][:4], near[:], x, x[int(i)*width:][:width], cols[4*t:][:4], rowLimits[r], limits[4*t:][:4])
			found[t] |= uint16(near[0]) << (4 * r)
		}
	}
}

// ProjectRows sets dst[c] to the inner product of along with the difference of
// row cols[c] of x minus from.
func ProjectRows(dst, x, from, along []float32, cols []int32) {
	dst, along = dst[:len(cols)], along[:len(from)]
	if vectors() {
		projectRowsVector(dst, x, from, along, cols)
		return
	}
	projectRowsLanes(dst, x, from, along, cols)
}

// Fetch prefetches rows of width elements of x, at most the first 512 bytes of each. It has
// no effect without assembly.
func Fetch[T any](x []T, width int, rows []int32) {
	if !assembly { // Go cannot prefetch memory
		return
	}
	const line, most = 64, 8
	var element T
	stride := width * int(unsafe.Sizeof(element))
	// If x begins with a line, a row begins at a multiple of step in its line.
	step := min(line, stride&-stride)
	fetchRows((*byte)(unsafe.Pointer(unsafe.SliceData(x))), stride, min((line-step+stride+line-1)/line, most), rows)
}
