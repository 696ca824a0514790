package simd

import (
	"math"
	"runtime"

	"cne/internal/elementary"
	"cne/internal/selection"
)

const (
	// BlockHeads is the number of heads that the dense kernels take at once.
	// They take embeddings of widths from MinDenseWidth to MaxDenseWidth.
	BlockHeads    = 4
	MinDenseWidth = 2
	MaxDenseWidth = 3
	// Lanes is the number of elements of a mask or of a slot of sums.
	Lanes = lanes
)

// A ColumnRange is a range of columns to pair with the heads of a block.
type ColumnRange struct {
	// First is the first column, and N the number of columns, a multiple of
	// Lanes.
	First, N int
	// At is where DenseTotals puts the squares of the first column.
	At int
	// Masks [4, Lanes] says which columns a head meets: column First+j if
	// element j modulo Lanes of its mask is −1, and not if it is 0.
	Masks *Masks
}

// Masks are the masks of four heads.
type Masks [BlockHeads * lanes]int32

// A HeadBlock is four heads to pair with ranges of columns. Heads and columns are rows of
// an embedding of d coordinates, MinDenseWidth ≤ d ≤ MaxDenseWidth. Columns are stored in
// planes: coordinate k of all columns is contiguous.
type HeadBlock[T Float] struct {
	D int
	// Columns [d, Stride] are the planes: coordinate k of column j is
	// Columns[k·Stride+j].
	Columns []T
	Stride  int
	Ranges  []ColumnRange
	// Heads [4, d] are the heads' coordinates, row after row.
	Heads []T
	// Most is at least 1 + the largest squared distance between a head and a
	// column.
	Most T
	// Sums [4, d, Lanes] gets for each head the sum over the columns of
	// weight·(column − head), in parts that Fold adds up. DenseTotals takes
	// [4, d+1, Lanes]: the last slot of a head is the sum of its similarities.
	Sums []T
	// Gradient [d, Stride] holds planes like Columns. It gets
	// weight·(column − head) as well. DenseTotals does not use it.
	Gradient []T
	// State [3, Lanes] holds the loss: Fresh resets it, Sum reads it.
	// DenseTotals does not use it.
	State []T

	constants [3]T // c, 1/c and the limit, where the vector form finds them
}

// Fresh sets the sums of the heads to zero, and the loss if state is set.
func (b *HeadBlock[T]) Fresh(state bool) {
	clear(b.Sums)
	if state {
		clear(b.State)
		selection.Fill(b.State[:lanes], 1)
	}
}

// Sum returns the loss that the kernels have left in State, and its derivative
// with respect to log c: the loss is Σ log of the first Lanes numbers plus
// log 2 times the sum of the next, and the derivative is minus the sum of the
// last.
func (b *HeadBlock[T]) Sum() (sum Sum) {
	var bits float64
	product := 1.0
	for i := range lanes {
		product *= float64(b.State[i])
		bits += float64(b.State[lanes+i])
		sum.DTheta -= float64(b.State[2*lanes+i])
	}
	sum.Loss = elementary.Log(product) + float64(math.Ln2*bits)
	return sum
}

// largest bounds products in float32, with room for a factor of 2. The float32 kernels
// have two variants, a fast and a careful one. The fast variant neither clamps nor checks
// the range of its products. Beyond the range of the careful variant, with distances of
// 1e9 and more, the generic form is used.
const largest = 1e38

// DenseNeg adds up Neg-t-SNE's loss of all pairs of a block as negatives,
// −log(1 − q/(q+c)) = log(1 + 1/(c(1+x))) with the squared distance x. The
// weight of a pair is minus the derivative with respect to x. Where the
// argument of the logarithm is below the clamp, the loss is the clamp's loss
// and the weight zero.
func DenseNeg[T Float](q *HeadBlock[T], c T, bound Bound[T]) {
	f, ok := any(q).(*HeadBlock[float32])
	factor, limit := float64(1+1/c), float64(bound.limit)
	most := float64(q.Most) * (1 + float64(c)*float64(q.Most))
	if !ok || !(most <= largest) || math.IsInf(factor, 1) || elementary.Pow(min(factor, limit), BlockHeads) > largest {
		denseNeg(q, c, bound)
		return
	}
	f.constants = [3]float32{float32(c), 1 / float32(c), float32(limit)}
	careful := factor > limit || most*most > largest
	formOf(denseNegVector, denseNegLanes)(f, careful)
}

// DenseUMAP is DenseNeg for UMAP's loss, −log(1−q) = log(1+1/x).
func DenseUMAP[T Float](q *HeadBlock[T], bound Bound[T]) {
	f, ok := any(q).(*HeadBlock[float32])
	limit, most := float64(bound.limit), float64(q.Most)*float64(q.Most)
	if !ok || !(most <= largest) {
		denseUMAP(q, bound)
		return
	}
	least, careful := float32(1/(limit-1)), limit > 1e15 || most*most > largest
	formOf(denseUMAPVector, denseUMAPLanes)(f, least, careful)
}

// DenseTotals is the first half of InfoNC-t-SNE's loss. It writes the squares
// of the pairs' similarities q = 1/(1+x) to squares [4, width], for each range
// from At on, and 0 for pairs that do not meet or are clamped. It adds up in
// Sums the similarities and q²·(column − head).
func DenseTotals[T Float](q *HeadBlock[T], squares []T, width int, bound Bound[T]) {
	f, ok := any(q).(*HeadBlock[float32])
	most := float64(q.Most)
	if !ok || !(most <= largest) {
		denseTotals(q, squares, width, bound.Clamp())
		return
	}
	careful := most >= float64(bound.limit) || most*most > largest
	formOf(denseTotalsVector, denseTotalsLanes)(f, any(squares).([]float32), width, float32(bound.Clamp()), careful)
}

// DenseScatter is the second half, for any number of heads: it multiplies the
// squares [heads, width] of n columns, a multiple of Lanes, from the left by
// coefficients [heads, 1+d], transposed, and adds the result to the 1+d planes
// of out, stride apart.
func DenseScatter[T Float](out []T, d, n, stride int, squares []T, width int, coefficients []T) {
	if f, ok := any(out).([]float32); ok {
		formOf(denseScatterVector, denseScatterLanes)(f, d, n, stride, any(squares).([]float32), width, any(coefficients).([]float32))
		return
	}
	for h := range len(coefficients) / (1 + d) {
		row := squares[h*width : h*width+n]
		for k := range 1 + d {
			f, plane := coefficients[h*(1+d)+k], out[k*stride:k*stride+n]
			for j, v := range row {
				plane[j] += T(f * v)
			}
		}
	}
}

// Fold adds up the Lanes numbers of each of the slots in src, [len(dst), Lanes].
func Fold[T Float](dst, src []T) {
	if f, ok := any(dst).([]float32); ok {
		formOf(foldSlotsVector, foldSlotsLanes)(f, any(src).([]float32))
		return
	}
	for i := range dst {
		var sum T
		for _, v := range src[i*lanes : (i+1)*lanes] {
			sum += v
		}
		dst[i] = sum
	}
}

// Planes writes the rows of src, [n, d], to planes: row i's coordinate k goes to
// dst[k·stride+i].
func Planes[T Float](dst []T, stride int, src []T, d int) {
	n, whole := len(src)/d, 0
	if f, ok := float32s(src); ok && n >= lanes && runtime.GOARCH == "amd64" { // NEON has no kernel for it
		whole = n - n%lanes
		planesVector(any(dst).([]float32), stride, f, d, whole)
	}
	for k := range d {
		plane := dst[k*stride:][:n]
		for i := whole; i < n; i++ {
			plane[i] = src[i*d+k]
		}
	}
}

// LessProduct subtracts (a−c)·b, element by element, from dst. a and b are at
// least as long.
func LessProduct[T Float](dst, a, b []T, c T) {
	if f, whole := wholeVectors(dst); whole > 0 {
		lessProductVector(f, any(a).([]float32), any(b).([]float32), float32(c))
		dst, a, b = dst[whole:], a[whole:], b[whole:]
	}
	for i := range dst {
		dst[i] = FMA(-b[i], a[i]-c, dst[i])
	}
}

// Pull adds f·w·(a−b), element by element, to dst. w, a and b are at least as
// long.
func Pull[T Float](dst, w, a, b []T, f T) {
	if v, whole := wholeVectors(dst); whole > 0 {
		pullVector(v, any(w).([]float32), any(a).([]float32), any(b).([]float32), float32(f))
		dst, w, a, b = dst[whole:], w[whole:], a[whole:], b[whole:]
	}
	for i := range dst {
		dst[i] = FMA(f*w[i], a[i]-b[i], dst[i])
	}
}

// Extents finds the least and the largest coordinates of the rows of src, [n, d], n > 0,
// MinDenseWidth ≤ d ≤ MaxDenseWidth, and their sums. They are the first d numbers of least,
// most and sum; the further elements, up to d·Lanes in all, are scratch. Least and largest
// may pass over a NaN.
func Extents[T Float](least, most, sum, src []T, d int) {
	if f, ok := any(src).([]float32); ok && len(f) >= lanes*d {
		whole := len(f) - len(f)%(lanes*d)
		formOf(extentsVector, extentsLanes)(any(least).([]float32), any(most).([]float32), any(sum).([]float32), f[:whole], d)
		src = src[whole:]
		for i := d; i < lanes*d; i++ {
			least[i%d], most[i%d] = lesser(least[i%d], least[i]), greater(most[i%d], most[i])
			sum[i%d] += sum[i]
		}
	} else {
		copy(least, src[:d])
		copy(most, src[:d])
		clear(sum[:d])
	}
	for i, v := range src {
		least[i%d], most[i%d] = lesser(least[i%d], v), greater(most[i%d], v)
		sum[i%d] += v
	}
}

// The portable forms take the pairs of a block one by one.

// differences writes column − head to x, [d], and returns the sum of its squares.
func (b *HeadBlock[T]) differences(x []T, head, column int) (d2 T) {
	for k := range x {
		x[k] = b.Columns[k*b.Stride+column] - b.Heads[head*b.D+k]
		d2 += T(x[k] * x[k])
	}
	return d2
}

// pull adds weight times the difference x to the sums of both ends.
func (b *HeadBlock[T]) pull(head, column int, x []T, weight T) {
	for k, v := range x {
		b.Sums[(head*b.D+k)*lanes+column%lanes] += T(weight * v)
		b.Gradient[k*b.Stride+column] += T(weight * v)
	}
}

// eachPair calls f for each head h and column j of a range s that its mask allows, with
// their difference x and its square.
func (b *HeadBlock[T]) eachPair(f func(s *ColumnRange, h, j int, x []T, d2 T)) {
	var buffer [MaxDenseWidth]T
	x := buffer[:b.D]
	for r := range b.Ranges {
		s := &b.Ranges[r]
		for i := range BlockHeads * s.N {
			if h, j := i/s.N, i%s.N; s.Masks[h*lanes+j%lanes] != 0 {
				f(s, h, j, x, b.differences(x, h, s.First+j))
			}
		}
	}
}

func denseNeg[T Float](q *HeadBlock[T], c T, bound Bound[T]) {
	q.eachPair(func(s *ColumnRange, h, j int, x []T, d2 T) {
		similarity := 1 / (1 + d2)
		r := similarity / c
		v := 1 + r
		if v > bound.limit {
			q.State[lanes+j%lanes] += T(bound.log / math.Ln2)
			return
		}
		q.State[lanes+j%lanes] += T(elementary.Log1p(float64(r)) / math.Ln2)
		q.State[2*lanes+j%lanes] += r / v
		q.pull(h, s.First+j, x, similarity*(r/v))
	})
}

func denseUMAP[T Float](q *HeadBlock[T], bound Bound[T]) {
	q.eachPair(func(s *ColumnRange, h, j int, x []T, d2 T) {
		r := 1 / d2
		if 1+r > bound.limit {
			q.State[lanes+j%lanes] += T(bound.log / math.Ln2)
			return
		}
		q.State[lanes+j%lanes] += T(elementary.Log1p(float64(r)) / math.Ln2)
		q.pull(h, s.First+j, x, r/(1+d2))
	})
}

func denseTotals[T Float](q *HeadBlock[T], squares []T, width int, clamp T) {
	for i := range BlockHeads * len(q.Ranges) {
		s := &q.Ranges[i/BlockHeads]
		clear(squares[i%BlockHeads*width+s.At:][:s.N])
	}
	slots := q.D + 1
	q.eachPair(func(s *ColumnRange, h, j int, x []T, d2 T) {
		similarity := max(clamp, 1/(1+d2))
		q.Sums[(h*slots+q.D)*lanes+j%lanes] += similarity
		if similarity <= clamp {
			return
		}
		square := similarity * similarity
		squares[h*width+s.At+j] = square
		for k, v := range x {
			q.Sums[(h*slots+k)*lanes+j%lanes] += T(square * v)
		}
	})
}
