package simd

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"

	"cne/internal/elementary"
)

// The vector forms take multiples of lanes elements.
const lanes = 16

// current is the instruction set in use: the best, except in tests. The vector forms read it.
var current = Best()

func vectors() bool { return current != Portable }

// formOf returns the vector form of a kernel, or its twin in plain Go where there is no
// assembly.
func formOf[F any](vector, plain F) F {
	if vectors() {
		return vector
	}
	return plain
}

// float32s returns s as []float32, and reports whether it is one and there are vector forms
// in assembly. Without them the scalar code gives the same bits.
func float32s[T Float](s []T) ([]float32, bool) {
	if !vectors() {
		return nil, false
	}
	f, ok := any(s).([]float32)
	return f, ok
}

// wholeVectors returns the elements of s in whole vectors of float32, and their number, if
// there is a vector form in assembly.
func wholeVectors[T Float](s []T) (f []float32, n int) {
	if !vectors() {
		return nil, 0
	}
	return wholeLanes(s)
}

// wholeLanes is wholeVectors for loops that add up, in 16 lanes of float32 also without
// assembly. The scalar code is for the elements left over, and for float64.
func wholeLanes[T Float](s []T) (f []float32, n int) {
	if f, ok := any(s).([]float32); ok {
		n = len(f) &^ (lanes - 1)
		return f[:n], n
	}
	return nil, 0
}

// A Bound is the largest value that 1/x may take for an argument x of a
// logarithm that is clamped from below. BoundOf makes it.
type Bound[T Float] struct {
	limit T
	log   float64 // of limit
}

// BoundOf returns the bound for a clamp from [0, 1). A clamp of 0 leaves a
// bound that keeps the arithmetic finite.
func BoundOf[T Float](clamp float64) Bound[T] {
	largest := 1e300
	if _, single := any(T(0)).(float32); single {
		largest = 8e37 // its inverse is a normal number
	}
	limit := T(min(1/clamp, largest))
	return Bound[T]{limit, elementary.Log(float64(limit))}
}

// Clamp returns the least argument of a logarithm that the bound lets through.
func (b Bound[T]) Clamp() T { return 1 / b.limit }

// Pairs2 computes for each pair k of row head+k of features and row tails[k]
// the differences dx[k], dy[k] (head minus tail) and the squared distance
// d2[k]. features is [n, 2], row after row.
func Pairs2[T Float](d2, dx, dy, features []T, head int, tails []int32) {
	n := len(tails)
	if f, ok := float32s(features); ok && n >= lanes {
		whole := n - n%lanes
		pairs2Vector(any(d2).([]float32)[:whole], any(dx).([]float32), any(dy).([]float32), f, head, tails)
		d2, dx, dy, tails, head = d2[whole:], dx[whole:], dy[whole:], tails[whole:], head+whole
	}
	heads := features[2*head : 2*(head+len(tails))]
	for k, t := range tails {
		x := heads[2*k] - features[2*t]
		y := heads[2*k+1] - features[2*t+1]
		dx[k], dy[k], d2[k] = x, y, FMA(y, y, T(x*x))
	}
}

// ScatterGradient2 adds the gradient of each pair to its ends. With g[k] the derivative
// of the loss with respect to the pair's squared distance, the head's sums
// hx[k], hy[k] get 2·g·dx and 2·g·dy, and row tails[k] of grad, [n, 2], the
// opposite. Tails are visited in order.
func ScatterGradient2[T Float](grad, hx, hy, g, dx, dy []T, tails []int32) {
	n := len(tails)
	if f, ok := float32s(grad); ok && n >= lanes {
		whole := n - n%lanes
		scatterGradient2Vector(f, any(hx).([]float32), any(hy).([]float32), any(g).([]float32)[:whole],
			any(dx).([]float32), any(dy).([]float32), tails)
		hx, hy, g, dx, dy, tails = hx[whole:], hy[whole:], g[whole:], dx[whole:], dy[whole:], tails[whole:]
	}
	for k, t := range tails {
		px, py := T(2*g[k]*dx[k]), T(2*g[k]*dy[k])
		hx[k] += px
		hy[k] += py
		grad[2*t] -= px
		grad[2*t+1] -= py
	}
}

// NegPositive replaces squared distances x of positive pairs by the derivative
// of Neg-t-SNE's −log(q/(q+c)) = log(1+c(1+x)) with respect to them. Where the
// argument of the logarithm is below the clamp, the loss is the clamp's loss
// and the derivative zero, as in all kernels.
func NegPositive[T Float](x []T, c T, bound Bound[T]) (sum Sum) {
	if f, whole := wholeLanes(x); whole > 0 {
		loss, dTheta := formOf(negPositiveVector, negPositiveLanes)(f, float32(c), float32(bound.limit), float32(bound.log))
		sum, x = Sum{float64(loss), float64(dTheta)}, x[whole:]
	}
	sum.Add(negPositive(x, c, bound))
	return sum
}

// NegNegative is NegPositive's counterpart for negative pairs, whose loss is
// −log(1 − q/(q+c)) = log(1 + 1/(c(1+x))).
func NegNegative[T Float](x []T, c T, bound Bound[T]) (sum Sum) {
	f, whole := wholeLanes(x)
	form := formOf(negNegativeVector, negNegativeLanes)
	for part := range slices.Chunk(f, logChunk) {
		loss, dTheta := form(part, 1/float32(c), float32(bound.limit))
		sum.Add(Sum{float64(loss), float64(dTheta)})
	}
	sum.Add(negNegative(x[whole:], c, bound))
	return sum
}

// UMAPPositive replaces squared distances of positive pairs by the derivative
// of UMAP's −log q = log(1+x) with respect to them.
func UMAPPositive[T Float](x []T, bound Bound[T]) (loss float64) {
	if f, whole := wholeLanes(x); whole > 0 {
		loss, x = float64(formOf(umapPositiveVector, umapPositiveLanes)(f, float32(bound.limit), float32(bound.log))), x[whole:]
	}
	return loss + umapPositive(x, bound)
}

// UMAPNegative replaces squared distances of negative pairs by the derivative
// of UMAP's −log(1−q) = log(1+1/x) with respect to them. A pair at distance 0
// has no gradient.
func UMAPNegative[T Float](x []T, bound Bound[T]) (loss float64) {
	if f, whole := wholeLanes(x); whole > 0 {
		loss, x = float64(formOf(umapNegativeVector, umapNegativeLanes)(f, float32(bound.limit), float32(bound.log))), x[whole:]
	}
	return loss + umapNegative(x, bound)
}

// Similarities replaces squared distances by the Cauchy similarities
// q = 1/(1+x), but at least clamp, and adds them to total, a sum per head.
func Similarities[T Float](x, total []T, clamp T) {
	if f, whole := wholeVectors(x); whole > 0 {
		similaritiesVector(f, any(total).([]float32), float32(clamp))
		x, total = x[whole:], total[whole:]
	}
	for i, d2 := range x {
		q := max(clamp, 1/(1+d2))
		x[i] = q
		total[i] += q
	}
}

// LogTotals returns weight·Σ log total and replaces each total by
// weight/total, the share that InfoNC's derivatives are multiplied by.
func LogTotals[T Float](total []T, weight T) (loss float64) {
	if f, whole := wholeLanes(total); whole > 0 {
		loss = float64(weight) * float64(formOf(logTotalsVector, logTotalsLanes)(f, float32(weight)))
		total = total[whole:]
	}
	var sum float64
	for i, t := range total {
		sum += elementary.Log(float64(t))
		total[i] = weight / t
	}
	return loss + float64(sum*float64(weight))
}

// InfoNCPositive replaces similarities q of positive pairs, as Similarities
// leaves them, by the derivative of InfoNC-t-SNE's −log q + weight·log total
// with respect to the squared distance, and returns the sum of −log q. share
// is what LogTotals leaves.
func InfoNCPositive[T Float](q, share []T, clamp T) (loss float64) {
	if f, whole := wholeLanes(q); whole > 0 {
		loss = float64(formOf(infoncPositiveVector, infoncPositiveLanes)(f, any(share).([]float32), float32(clamp)))
		q, share = q[whole:], share[whole:]
	}
	var rest float64
	for i, v := range q {
		rest -= elementary.Log(float64(v))
		if v <= clamp {
			q[i] = 0
			continue
		}
		q[i] = FMA(-v, T(share[i]*v), v)
	}
	return loss + rest
}

// InfoNCNegative is InfoNCPositive's counterpart for negative pairs, which
// enter the loss only through the total.
func InfoNCNegative[T Float](q, share []T, clamp T) {
	if f, whole := wholeVectors(q); whole > 0 {
		infoncNegativeVector(f, any(share).([]float32), float32(clamp))
		q, share = q[whole:], share[whole:]
	}
	for i, v := range q {
		if v <= clamp {
			q[i] = 0
			continue
		}
		q[i] = FMA(-v, T(v*share[i]), 0)
	}
}

// Add adds src to dst, which is at least as long.
func Add[T Float](dst, src []T) {
	if f, whole := wholeVectors(src); whole > 0 {
		addVector(any(dst).([]float32), f)
		dst, src = dst[whole:], src[whole:]
	}
	add(dst, src)
}

// Scale multiplies each element of x by f.
func Scale[T Float](x []T, f T) {
	if v, whole := wholeVectors(x); whole > 0 {
		scaleVector(v, float32(f))
		x = x[whole:]
	}
	for i := range x {
		x[i] *= f
	}
}

// Divide divides each element of x by a number.
func Divide[T Float](x []T, by T) {
	if v, whole := wholeVectors(x); whole > 0 {
		divideVector(v, float32(by))
		x = x[whole:]
	}
	for i := range x {
		x[i] /= by
	}
}

// MaskPositive sets dst[i] to g[i] where y[i] > 0, else to 0: the gradient of a
// ReLU from its output y. dst may be y or g.
func MaskPositive[T Float](dst, y, g []T) {
	dst, g = dst[:len(y)], g[:len(y)]
	if f, whole := wholeVectors(y); whole > 0 {
		maskPositiveVector(any(dst).([]float32)[:whole], f, any(g).([]float32))
		dst, y, g = dst[whole:], y[whole:], g[whole:]
	}
	for i, v := range y {
		if v > 0 {
			dst[i] = g[i]
		} else {
			dst[i] = 0
		}
	}
}

// ColumnSums adds the rows of x, [n, d], to dst, [d], one after the other. d is
// at least 1.
func ColumnSums[T Float](dst, x []T, d int) {
	dst = dst[:d]
	if f, ok := float32s(x); ok {
		columnSumsVector(any(dst).([]float32), f, len(f)/d, d)
		return
	}
	columnSums(dst, x, d)
}

// AddPlane adds (xs[i], ys[i]) to row i of dst, [len(xs), 2].
func AddPlane[T Float](dst, xs, ys []T) {
	if f, ok := float32s(dst); ok && len(xs) >= lanes {
		whole := len(xs) - len(xs)%lanes
		addPlaneVector(f, any(xs).([]float32)[:whole], any(ys).([]float32))
		dst, xs, ys = dst[2*whole:], xs[whole:], ys[whole:]
	}
	for i, x := range xs {
		dst[2*i] += x
		dst[2*i+1] += ys[i]
	}
}

// MaxUint32 returns the largest element of x read as unsigned numbers, so that
// one comparison finds negative indices too; 0 if x is empty.
func MaxUint32(x []int32) (m uint32) {
	if vectors() && len(x) >= lanes {
		whole := len(x) - len(x)%lanes
		m, x = maxUint32Vector(x[:whole]), x[whole:]
	}
	for _, v := range x {
		m = max(m, uint32(v))
	}
	return m
}

// InverseSum2 returns Σ 1/(1 + (x−xs[i])² + (y−ys[i])²). In float32 it adds
// up at most some thousand terms well; callers cut longer runs.
func InverseSum2[T Float](xs, ys []T, x, y T) (sum float64) {
	if f, whole := wholeLanes(xs); whole > 0 {
		sum = float64(formOf(inverseSum2Vector, inverseSum2Lanes)(f, any(ys).([]float32), float32(x), float32(y)))
		xs, ys = xs[whole:], ys[whole:]
	}
	return sum + inverseSum2(xs, ys, x, y)
}

// InverseSum2Near is InverseSum2, with other bits, for squared distances of at most 1e18:
// the product of two of them must not overflow. It is up to twice as fast.
func InverseSum2Near[T Float](xs, ys []T, x, y T) (sum float64) {
	if f, ok := any(xs).([]float32); ok && len(xs) >= 2*lanes {
		whole := len(xs) - len(xs)%(2*lanes)
		sum = float64(formOf(inverseSum2NearVector, inverseSum2NearLanes)(f[:whole], any(ys).([]float32), float32(x), float32(y)))
		xs, ys = xs[whole:], ys[whole:]
	}
	return sum + inverseSum2(xs, ys, x, y)
}

// AddSquares adds (x−xs[i])² to dst[i]; dst is at least as long as xs.
func AddSquares[T Float](dst, xs []T, x T) {
	if f, whole := wholeVectors(xs); whole > 0 {
		addSquaresVector(any(dst).([]float32), f, float32(x))
		dst, xs = dst[whole:], xs[whole:]
	}
	for i, xi := range xs {
		dst[i] = FMA(x-xi, x-xi, dst[i])
	}
}

// AddDistances adds min(|x−xs[i]|·scale, most) to dst[i]; dst is at least as long as xs.
func AddDistances(dst, xs []float32, x, scale, most float32) {
	if f, whole := wholeVectors(xs); whole > 0 {
		addDistancesVector(dst, f, x, scale, most)
		dst, xs = dst[whole:], xs[whole:]
	}
	for i, xi := range xs {
		dst[i] += min(max(x-xi, xi-x)*scale, most)
	}
}

// InverseSum returns Σ 1/(1 + d2[i]), with the precision of InverseSum2.
func InverseSum[T Float](d2 []T) (sum float64) {
	if f, whole := wholeLanes(d2); whole > 0 {
		sum = float64(formOf(inverseSumVector, inverseSumLanes)(f))
		d2 = d2[whole:]
	}
	var rest float64
	for _, v := range d2 {
		rest += float64(1 / (1 + v))
	}
	return sum + rest
}

// CountBelow adds to counts[k] the number of elements of x below limits[k];
// counts is at least as long as limits. A NaN is below nothing. It is fastest
// for a multiple of 4 limits.
func CountBelow[T Float](counts []int32, x, limits []T) {
	counts = counts[:len(limits)] // the vector form does not check
	if f, ok := float32s(x); ok && len(x) >= lanes {
		whole, four := len(x)-len(x)%lanes, len(limits)-len(limits)%4
		countBelowVector(counts, f[:whole], any(limits).([]float32)[:four])
		countBelow(counts[four:], x[:whole], limits[four:])
		x = x[whole:]
	}
	countBelow(counts, x, limits)
}

// A Set is an instruction set with vector kernels. AVX512 follows AVX2; NEON is for arm64
// only.
type Set int

// The sets. Portable stands for plain Go.
const (
	Portable Set = iota
	AVX2         // with FMA
	AVX512       // F, BW, DQ and VL
	NEON         // of arm64
)

func (s Set) String() string { return [...]string{"portable", "avx2", "avx512", "neon"}[s] }

// Best returns the widest set that the processor has: Portable on other
// architectures than amd64 and arm64, and with the build tag noasm.
func Best() Set {
	switch {
	case !assembly:
	case runtime.GOARCH == "arm64":
		return NEON
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Portable
}

// BFloat16 reports whether, with AVX512, the processor multiplies pairs of bfloat16.
func BFloat16() bool { return Best() == AVX512 && cpu.X86.HasAVX512BF16 }

// ScatterWords writes each word to the next place of its choice: order[next[c]] = words[i]
// for c = choice[i], and next[c] grows by one. order must have room there for all words of
// a choice. ScatterWords is fast where the choices take turns: it prefetches the cache lines
// that it writes to soon.
func ScatterWords[T ~uint64](order, words []T, choice []uint8, next *[256]int) {
	if len(choice) == 0 {
		return
	}
	if assembly {
		scatterWords(uint64s(order), uint64s(words[:len(choice)]), choice, next[:])
		return
	}
	for i, c := range choice {
		order[next[c]] = words[i]
		next[c]++
	}
}

// HoldsWord reports whether e|set is word for an element e of list. Another goroutine may
// write to the list meanwhile. Without AVX HoldsWord is always false.
func HoldsWord(list []uint64, word, set uint64) bool {
	// In Go, reading what another goroutine may write would be a race.
	return vectors() && runtime.GOARCH == "amd64" && holdsWord(list, word, set)
}

// InsertWord puts a word in its place in an ascending list, and drops the last element, which
// is above the word. It does not if e|set is the word for an element e, and reports whether it
// did. All words are below 1<<63. Lengths that are multiples of 8 are fastest.
func InsertWord(list []uint64, word, set uint64) bool {
	const long = 256 // faster in Go
	switch {
	case len(list) > long || !vectors() || runtime.GOARCH != "amd64":
	case len(list)%8 == 0 && current == AVX512:
		return insertWordWide(list, word, set)
	case len(list) >= 4:
		return insertWord(list, word, set)
	}
	at, _ := slices.BinarySearch(list, word)
	if at > 0 && list[at-1]|set == word || list[at] == word {
		return false
	}
	copy(list[at+1:], list[at:])
	list[at] = word
	return true
}

func uint64s[T ~uint64](x []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
