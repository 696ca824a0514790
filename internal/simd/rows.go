package simd

import (
	"math"
	"runtime"
	"slices"
	"unsafe"

	"cne/internal/elementary"
)

// The kernels of rows take the pairs of one head with many rows of a batch, as
// a matrix product leaves them: one number per pair, and one set of parameters
// for them all. The vector forms take multiples of 16 pairs; callers that have
// fewer fill the row up with excluded pairs, which have an exact loss,
// similarity and derivative of zero: an infinite squared distance, −1 for
// RowSimilarities, and minus infinity for a cosine over τ. In
// float32, whole vectors take squared distances beyond 1e18 for infinite.

const (
	// MaxBytes is the largest width of rows of bytes, whose squared distances are below 2³¹.
	MaxBytes = 1 << 15
	// rowChunk is the number of float32 added up at once.
	rowChunk = 4096
	// logChunk is the same for sums of logarithms: each lane multiplies logChunk/16
	// mantissas below 2.
	logChunk = 960
)

// RowDistances turns −2 times the inner products of a row with others into
// squared distances: x[j] += norm + norms[j], at least 0, where norm and
// norms[j] are the squared lengths. This cancels where rows are near each
// other: bit j%64 of found[j/64] says whether x[j]+slack is below
// near·(norm+norms[j]). found has ⌈len(x)/64⌉ words.
func RowDistances[T Float](x, norms []T, norm, slack, near T, found []uint64) {
	found = found[:(len(x)+63)/64]
	clear(found)
	f, whole := wholeVectors(x)
	if whole > 0 {
		rowDistancesVector(f, any(norms).([]float32), float32(norm), float32(slack), float32(near), found)
	}
	for j := whole; j < len(x); j++ {
		sum := norm + norms[j]
		d2 := max(0, sum+x[j])
		x[j] = d2
		if d2+slack < near*sum {
			found[j/64] |= 1 << (j % 64)
		}
	}
}

// MarkBelow says which numbers of a row are near 0: bit j%64 of found[j/64] says whether
// the magnitude of x[j] is below that of the float with the bits limit, or with the bits
// limits[j]. The limits are not negative. A NaN is never below. found has ⌈len(x)/64⌉ words.
func MarkBelow(x []float32, limits []uint32, limit uint32, found []uint64) {
	found = found[:(len(x)+63)/64]
	clear(found)
	f, whole := wholeVectors(x)
	if whole > 0 {
		markBelowVector(f, limits[:whole], limit, found)
	}
	for j := whole; j < len(x); j++ {
		if math.Float32bits(x[j])&^(1<<31) < max(limit, limits[j]) {
			found[j/64] |= 1 << (j % 64)
		}
	}
}

// RowSimilarities replaces squared distances by the Cauchy similarities
// q = 1/(1+x), but at least clamp, and returns their sum. A pair with a
// negative x is excluded.
func RowSimilarities[T Float](x []T, clamp T) (sum float64) {
	f, whole := wholeLanes(x)
	form := formOf(rowSimilaritiesVector, rowSimilaritiesLanes)
	for part := range slices.Chunk(f, rowChunk) {
		sum += float64(form(part, float32(clamp)))
	}
	x = x[whole:]
	var rest float64
	for j, d2 := range x {
		if d2 < 0 {
			x[j] = 0
			continue
		}
		q := max(clamp, 1/(1+d2))
		x[j] = q
		rest += float64(q)
	}
	return sum + rest
}

// RowInfoNC replaces the similarities of one head's negative pairs by
// InfoNC-t-SNE's derivatives with respect to the squared distances, as
// InfoNCNegative does, with one share for all.
func RowInfoNC[T Float](q []T, share, clamp T) {
	if f, whole := wholeVectors(q); whole > 0 {
		rowInfoNCVector(f, float32(share), float32(clamp))
		q = q[whole:]
	}
	for j, v := range q {
		if v <= clamp {
			q[j] = 0
			continue
		}
		q[j] = -v * (v * share)
	}
}

// RowMax returns the largest element of x, or least if none is above it. It may
// pass over NaNs.
func RowMax[T Float](x []T, least T) T {
	if f, whole := wholeVectors(x); whole > 0 {
		least, x = T(rowMaxVector(f, float32(least))), x[whole:]
	}
	for _, v := range x {
		least = max(least, v)
	}
	return least
}

// RowExp replaces x by exp(x−top), which may be 0 below e⁻⁵⁰, and returns the sum. No element
// is above top.
func RowExp[T Float](x []T, top T) (sum float64) {
	f, whole := wholeLanes(x)
	form := formOf(rowExpVector, rowExpLanes)
	for part := range slices.Chunk(f, rowChunk) {
		sum += float64(form(part, float32(top)))
	}
	x = x[whole:]
	var rest float64
	for j, v := range x {
		e := T(elementary.Exp(float64(v - top)))
		x[j] = e
		rest += float64(e)
	}
	return sum + rest
}

// SoftmaxRows replaces each row of x [n, d], d ≥ 1, by its softmax, exp(x)/Σ exp(x).
func SoftmaxRows[T Float](x []T, d int) {
	for ; len(x) > 0; x = x[d:] {
		row := x[:d]
		Scale(row, T(1/RowExp(row, RowMax(row, T(math.Inf(-1))))))
	}
}

// SoftmaxGrad writes the gradient of a row before a softmax to dst, which may be y or g:
// y·(g − Σ y·g), with the softmax y and its gradient g.
func SoftmaxGrad[T Float](dst, y, g []T) {
	dst, g = dst[:len(y)], g[:len(y)]
	f, whole := wholeLanes(y)
	var sum T
	for i, v := range y[whole:] {
		sum += T(v * g[whole+i])
	}
	if whole > 0 {
		sum = T(formOf(softmaxGradVector, softmaxGradLanes)(any(dst).([]float32), f, any(g).([]float32), float32(sum)))
	}
	for i, v := range y[whole:] {
		dst[whole+i] = v * (g[whole+i] - sum)
	}
}

// RowNeg is NegNegative for many pairs. The vector forms bound c to
// [1.2e-38, 1e20].
func RowNeg[T Float](x []T, c T, bound Bound[T]) (sum Sum) {
	f, whole := wholeLanes(x)
	form := formOf(rowNegVector, rowNegLanes)
	// Here infinite intermediate results would make NaNs.
	within := min(max(float32(c), 1.2e-38), 1e20)
	for part := range slices.Chunk(f, logChunk) {
		loss, dTheta := form(part, within, 1/within, float32(bound.limit))
		sum.Add(Sum{float64(loss), float64(dTheta)})
	}
	sum.Add(negNegative(x[whole:], c, bound))
	return sum
}

// RowUMAP is UMAPNegative for many pairs.
func RowUMAP[T Float](x []T, bound Bound[T]) (loss float64) {
	f, whole := wholeLanes(x)
	form := formOf(rowUMAPVector, rowUMAPLanes)
	for part := range slices.Chunk(f, logChunk) {
		loss += float64(form(part, float32(bound.limit)))
	}
	return loss + umapNegative(x[whole:], bound)
}

// RowLogistic is LogisticNegative for many pairs.
func RowLogistic[T Float](x []T, theta T) (sum Sum) {
	f, whole := wholeLanes(x)
	form := formOf(rowLogisticVector, rowLogisticLanes)
	for part := range slices.Chunk(f, logChunk) {
		loss, dTheta := form(part, float32(theta))
		sum.Add(Sum{float64(loss), float64(dTheta)})
	}
	sum.Add(LogisticNegative(x[whole:], theta))
	return sum
}

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

// NearBytes is NearRows for rows of bytes and without limits of columns. row is the row to
// compare, its length a multiple of 32 up to MaxBytes. Its squared distances are the nearest
// float32 to the integers.
func NearBytes(dst []float32, found []uint64, x []uint8, row []int16, cols []int32, limit float32) {
	dst, found = dst[:len(cols)], found[:(len(cols)+63)/64]
	clear(found)
	if vectors() {
		nearBytesVector(dst, found, x, row, cols, limit)
		return
	}
	for c, j := range cols {
		sum := int32(0)
		for l, v := range x[int(j)*len(row):][:len(row)] {
			d := int32(v) - int32(row[l])
			sum += d * d
		}
		if dst[c] = float32(sum); dst[c] <= limit {
			found[c/64] |= 1 << (c % 64)
		}
	}
}

// SquaredDistances sets dst[i] to the squared distance of row from row rows[i] of x, in float64:
// four sums of every fourth column, added in pairs. Without AVX it does nothing and returns
// false.
func SquaredDistances(dst []float64, x, row []float32, rows []int32) bool {
	if !vectors() || runtime.GOARCH != "amd64" {
		return false
	}
	squaredDistances(dst[:len(rows)], x, row, rows)
	return true
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
