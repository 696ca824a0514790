// Package rng derives random streams from one seed. A stream is counter-based:
// its i-th number depends only on the stream's key and i. Any part of it can be
// drawn by any core, in any order, and a resumed run draws what the uninterrupted
// one would have drawn.
//
// The generator is SplitMix64 (Steele, Lea and Flood, 2014), whose state is a
// counter by construction.
package rng

import (
	"math"
	"math/bits"

	"cne/internal/elementary"
)

const gamma = 0x9e3779b97f4a7c15

// A Purpose separates the streams of one seed from each other. Changing a number
// changes the results of every seed: a new purpose gets a new number, and no number
// is used again.
type Purpose uint64

// The purposes of the random numbers in cne.
const (
	Init       Purpose = 1  // starting values of parameters
	Shuffle    Purpose = 2  // order of the edges in an epoch
	Negatives  Purpose = 3  // negative samples of a batch
	Sample     Purpose = 4  // points that a quality metric uses
	Split      Purpose = 5  // which rows are held out
	Projection Purpose = 6  // negative samples of a point placed in a finished embedding
	Views      Purpose = 7  // augmented views of an image
	Imbalance  Purpose = 8  // which rows of a class are kept
	Forest     Purpose = 11 // hyperplanes of the trees of an approximate search for neighbours
	Rows       Purpose = 12 // points that the quality of many is estimated from
	Draws      Purpose = 13 // edges of an epoch, by their weights
	Components Purpose = 14 // initial directions for principal components of sparse points
	Training   Purpose = 15 // rows that are trained on, among more
)

// Mix is SplitMix64's output function: a bijection of the 64-bit integers.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// A Stream is one sequence of random numbers. Its zero value is a valid
// stream; New gives the streams of a seed.
type Stream struct{ state uint64 }

// New returns the stream of a seed for a purpose and any further indices
// (epoch, batch, …), at its start. Different arguments give unrelated streams.
func New(seed uint64, p Purpose, index ...uint64) Stream {
	key := Mix(seed + gamma)
	key = Mix(key ^ uint64(p)*gamma)
	for _, i := range index {
		key = Mix(key + gamma ^ Mix(i+gamma))
	}
	return Stream{key}
}

// At returns the stream moved i numbers ahead.
func (s Stream) At(i uint64) Stream { return Stream{s.state + i*gamma} }

// State returns the stream's state: its i-th next number, from 1, is
// Mix(State + i·0x9e3779b97f4a7c15). It is for code that draws many at once.
func (s Stream) State() uint64 { return s.state }

// Uint64 draws the next 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += gamma
	return Mix(s.state)
}

// Bounded maps 32 random bits to 0 … n−1 by multiplication. No value's
// probability is off by more than n/2³² of itself; for the bounds that
// occur here, at most some millions, that is not measurable.
func Bounded(u uint32, n uint32) uint32 { return uint32(uint64(u) * uint64(n) >> 32) }

// IntN draws a number from 0 … n−1, n > 0, without bias.
func (s *Stream) IntN(n int) int {
	hi, lo := bits.Mul64(s.Uint64(), uint64(n))
	if lo < uint64(n) {
		for limit := -uint64(n) % uint64(n); lo < limit; {
			hi, lo = bits.Mul64(s.Uint64(), uint64(n))
		}
	}
	return int(hi)
}

// Float64 draws a number uniformly from [0, 1).
func (s *Stream) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// Normal draws from the standard normal distribution (Box–Muller; one number
// per call, so that a stream's position is known from the number of draws).
func (s *Stream) Normal() float64 {
	r := math.Sqrt(-2 * elementary.Log(1-s.Float64()))
	return float64(r * elementary.CosPi(2*s.Float64()))
}

// Perm returns a uniformly drawn permutation of 0 … n−1.
func (s *Stream) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := s.IntN(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

// Choose returns count of the numbers from 0 to n−1 in ascending order. Every set of them has
// the same probability.
func (s *Stream) Choose(n, count int) []int {
	chosen := make([]int, 0, count)
	for i := 0; len(chosen) < count; i++ {
		if s.IntN(n-i) < count-len(chosen) {
			chosen = append(chosen, i)
		}
	}
	return chosen
}
