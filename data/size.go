package data

import "math"

// A Size is what is known of points, or of images, before they are read.
type Size struct {
	// Low and High bound their number; they are equal where it is known.
	Low, High int
	// Likely is the number that is most likely, where bounds are known; else Low.
	Likely int
	// Width is the number of values of a point, and of bytes of an image; 0 if it is not
	// known.
	Width int
	// Storage is where the points are read to.
	Storage Storage
	// Nonzeros is the number of values that are held of sparse points; 0 for dense ones.
	Nonzeros int
}

// A Storage is where the points of a Dataset are.
type Storage int

const (
	InMemory Storage = iota // as float32
	AsBytes                 // in memory, a byte for each value
	InFiles                 // in files that are read each time
)

// SizeOf is the size of n points, or images, of so many values.
func SizeOf(n, width int) Size { return Size{Low: n, High: n, Likely: n, Width: width} }

// Known reports whether the size is known exactly.
func (s Size) Known() bool { return s.Low == s.High && s.Width > 0 }

// UnknownSize is the size of what tells nothing of itself.
var UnknownSize = Size{Low: 1, High: math.MaxInt32, Likely: 1}

// Add returns the size of both together; the zero Size is that of nothing.
func (s Size) Add(t Size) Size {
	if s == (Size{}) {
		return t
	}
	s.Low, s.Likely, s.Nonzeros = s.Low+t.Low, s.Likely+t.Likely, s.Nonzeros+t.Nonzeros
	s.High = min(math.MaxInt32, s.High+t.High)
	s.Width = max(s.Width, t.Width)
	s.Storage = min(s.Storage, t.Storage)
	return s
}
