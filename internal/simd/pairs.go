package simd

import (
	"fmt"
	"math"
)

// A bfloat16 number is the upper half of a float32. Numbers are stored in pairs, the first
// in the lower half of a word: the factors of blas.MultiplyPairs. They are rounded to
// nearest, ties to even; subnormal numbers become 0.

// pairVectors reports whether there are vector forms that make pairs.
func pairVectors() bool { return current == AVX512 && BFloat16() }

// Pair returns a pair of numbers.
func Pair(first, second float32) uint32 { return uint32(half(second))<<16 | uint32(half(first)) }

// RoundBFloat16 returns the number of bfloat16 that is nearest to x.
func RoundBFloat16(x float32) float32 { return math.Float32frombits(uint32(half(x)) << 16) }

// half returns the number of bfloat16 that is nearest to x.
func half(x float32) uint16 {
	const sign, infinity, quiet = 0x8000, 0x7f800000, 0x40
	switch bits := math.Float32bits(x); {
	case x != x:
		return uint16(bits>>16) | quiet
	case bits&infinity == 0:
		return uint16(bits>>16) & sign
	default:
		return uint16((bits + 0x7fff + bits>>16&1) >> 16)
	}
}

// PairUp writes the numbers of x in pairs: x[0] with x[1], and so on. If their number is
// odd, the second of the last pair is 0.
func PairUp(dst []uint32, x []float32) {
	if len(dst) != (len(x)+1)/2 {
		panic(fmt.Sprintf("simd: %d numbers do not fit %d pairs", len(x), len(dst)))
	}
	whole := 0
	if pairVectors() {
		whole = len(x) &^ 15
		pairUpVector(dst[:whole/2], x[:whole])
	}
	for i := whole; i < len(x); i += 2 {
		second := float32(0)
		if i+1 < len(x) {
			second = x[i+1]
		}
		dst[i/2] = Pair(x[i], second)
	}
}

// PairRows pairs the numbers of two rows with each other: x[i] with y[i].
func PairRows(dst []uint32, x, y []float32) {
	if len(dst) != len(x) || len(dst) != len(y) {
		panic(fmt.Sprintf("simd: rows of %d and %d numbers do not fit %d pairs", len(x), len(y), len(dst)))
	}
	whole := 0
	if pairVectors() {
		whole = len(x) &^ 15
		pairRowsVector(dst[:whole], x[:whole], y[:whole])
	}
	for i := whole; i < len(x); i++ {
		dst[i] = Pair(x[i], y[i])
	}
}

// A Half says where in a word a bfloat16 number is written: as the first of the pair, with
// 0 as the second, or as the second, keeping the first.
type Half int

// The halves.
const (
	First Half = iota
	Second
)

// put writes x to a half of a word.
func (h Half) put(word *uint32, x float32) {
	if h == First {
		*word = uint32(half(x))
	} else {
		*word = *word&0xffff | uint32(half(x))<<16
	}
}

// WinogradImagePairs is WinogradImage with results in pairs of channels; to counts
// words.
func WinogradImagePairs(dst []uint32, to Grid, x []float32, from Grid, channels int, inside *Inside) {
	if pairVectors() {
		pairsFunc(winogradImagePairsTile).run(dst, to, x, from, channels, inside)
		return
	}
	for c := 0; c < channels; c += 16 {
		var y halfTile
		WinogradImage(y[:], WinogradGrid(0, 16), x, from.channel(c), 16, inside)
		for p := range WinogradPoints {
			PairUp(dst[to.at(p)+c/2:][:8], y[16*p:16*p+16])
		}
	}
}

// WinogradImageHalf is WinogradImage with results in halves of words.
func WinogradImageHalf(dst []uint32, to Grid, x []float32, from Grid, channels int, inside *Inside, h Half) {
	imageHalves.run(dst, to, x, from, channels, inside, h)
}

// WinogradGradientHalf is WinogradGradient with results in halves of words.
func WinogradGradientHalf(dst []uint32, to Grid, g []float32, from Grid, channels int, inside *Inside, h Half) {
	gradientHalves.run(dst, to, g, from, channels, inside, h)
}

// WinogradWeightsHalf is WinogradWeights with results in halves of words.
func WinogradWeightsHalf(dst []uint32, to Grid, g []float32, from Grid, channels int, h Half) {
	weightHalves.run(dst, to, g, from, channels, nil, h)
}

// halves are the transforms whose results may be halves of words.
type halves int

const (
	imageHalves halves = iota
	gradientHalves
	weightHalves
)

// run writes a transform to halves of words, by its vector form or from whole numbers.
func (t halves) run(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside, h Half) {
	if pairVectors() {
		[...][2]pairsFunc{
			{winogradImageFirstTile, winogradImageSecondTile},
			{winogradGradientFirstTile, winogradGradientSecondTile},
			{winogradWeightsFirstTile, winogradWeightsSecondTile},
		}[t][h].run(dst, to, src, from, channels, inside)
		return
	}
	var y halfTile
	tile := WinogradGrid(0, 16)
	for c := 0; c < channels; c += 16 {
		switch t { // calls through a function's value would put y on the heap
		case imageHalves:
			WinogradImage(y[:], tile, src, from.channel(c), 16, inside)
		case gradientHalves:
			WinogradGradient(y[:], tile, src, from.channel(c), 16, inside)
		case weightHalves:
			WinogradWeights(y[:], tile, src, from.channel(c), 16)
		}
		for p := range WinogradPoints {
			for i := range 16 {
				h.put(&dst[to.channel(c).at(p)+i], y[16*p+i])
			}
		}
	}
}

// A halfTile has the transforms of 16 channels, which are transformed together.
type halfTile [WinogradPoints * 16]float32

// channel returns the grid from a channel on, and at where the element of a point is.
func (g Grid) channel(c int) Grid { return Grid{g.At + c, g.Row, g.Pixel} }
func (g Grid) at(p int) int       { return g.At + p/6*g.Row + p%6*g.Pixel }
