package data

import (
	"cmp"
	"context"
	"errors"
	"math"
)

// A Source holds points that need not be in memory. They can be read in order any number
// of times. A *Matrix is a Source; file.Read makes others, see file.Options.StreamAbove.
// Results have the same bits for a Source and for a Matrix of its points.
type Source interface {
	// Dims returns the number of points and the number of values per point.
	Dims() (n, d int)
	// Block returns n points of zeros that have the Offset and the Columns of the points.
	Block(n int) *Matrix
	// Each calls f with consecutive blocks of the given number of rows (the last may have
	// fewer); 0 lets the source choose the number. lo is the index of a block's first point.
	// A block is valid until f returns; f must not change a block of a *Matrix.
	//
	// Each returns the first error of f, ctx's error, or an error wrapping ErrChanged if
	// files have changed since they were opened.
	Each(ctx context.Context, rows int, f func(lo int, block *Matrix) error) error
}

// Block implements Source.
func (m *Matrix) Block(n int) *Matrix { return m.like(n, make([]float32, n*m.D), nil) }

// Each implements Source. If rows is 0, there is one block. Blocks share m's memory.
func (m *Matrix) Each(ctx context.Context, rows int, f func(lo int, block *Matrix) error) error {
	rows = cmp.Or(rows, m.N)
	for lo := 0; lo < m.N; lo += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(lo, m.Rows(lo, min(m.N, lo+rows))); err != nil {
			return err
		}
	}
	return nil
}

// Collect returns the points of a source as a matrix. A *Matrix, dense or sparse, is returned
// itself. Other points are read into memory, with four bytes for each value.
func Collect(ctx context.Context, s Source) (*Matrix, error) {
	if err := CheckPoints(s); err != nil {
		return nil, err
	}
	if m, ok := s.(*Matrix); ok {
		return m, nil
	}
	n, _ := s.Dims()
	m := s.Block(n)
	return m, s.Each(ctx, 0, func(lo int, block *Matrix) error {
		copy(m.X[lo*m.D:], block.X)
		return nil
	})
}

const (
	// blockValues is the default number of values of a block: 8 MB as float64.
	blockValues = 1 << 20
	// blockRows is the largest number of rows in a block. It matters only for narrow data.
	blockRows = 1 << 13
)

// BlockRows returns the number of rows of the given width that are read or computed at a
// time.
func BlockRows(width int) int { return min(blockRows, max(1, blockValues/width)) }

// errStop ends Each when the result is known.
var errStop = errors.New("enough is known")

// AllEqual reports whether all points of a source are equal. Errors are as for Each.
func AllEqual(ctx context.Context, s Source) (bool, error) {
	var first *Matrix
	err := s.Each(ctx, 0, func(_ int, block *Matrix) error {
		if first == nil {
			first = block.Take([]int{0})
		}
		for i := range block.N {
			if !equalRows(first, 0, block, i) {
				return errStop
			}
		}
		return nil
	})
	if err == errStop {
		return false, nil
	}
	return err == nil, err
}

// CheckDense is CheckPoints for points that must be dense: for sparse points the error
// wraps ErrSparse.
func CheckDense(s Source) error {
	err := CheckPoints(s)
	if m, ok := s.(*Matrix); ok && err == nil && m.CSR != nil {
		err = errorf(ErrSparse, "points: got sparse ones, want dense ones (Matrix.Dense), or their principal components")
	}
	return err
}

// CheckPoints is Matrix.Check for any source.
func CheckPoints(s Source) error {
	if m, ok := s.(*Matrix); ok || s == nil {
		return m.Check()
	}
	if n, d := s.Dims(); n < 1 || d < 1 {
		return errorf(ErrEmpty, "data: points: got %d×%d, want at least one row and one column", n, d)
	}
	return nil
}

// A Described is a Source that knows the storage of its points, and whether all values are
// finite. Other sources, except a *Matrix, are assumed to be InFiles and scanned for NaN
// and infinity.
type Described interface {
	Describe() (storage Storage, finite bool)
}

// A Divider is a Source of unsigned bytes that can divide them during the conversion to
// float32.
type Divider interface {
	// Divided returns the source with all values divided, or nil if its values are not bytes.
	Divided(divisor float32) Source
}

// describe returns the description of a source that is not a *Matrix.
func describe(s Source) (storage Storage, finite bool) {
	if d, ok := s.(Described); ok {
		return d.Describe()
	}
	return InFiles, false
}

// A rowSubset has some of the points of a source: rows, in ascending order.
type rowSubset struct {
	Source
	rows []int
}

// Dims implements Source.
func (s *rowSubset) Dims() (n, d int) {
	_, d = s.Source.Dims()
	return len(s.rows), d
}

// Describe implements Described.
func (s *rowSubset) Describe() (Storage, bool) { return describe(s.Source) }

// Each implements Source.
func (s *rowSubset) Each(ctx context.Context, rows int, f func(lo int, block *Matrix) error) error {
	n, d := s.Dims()
	out := s.Block(min(cmp.Or(rows, BlockRows(d)), n))
	done, filled := 0, 0 // rows passed to f, and rows collected for the next call
	deliver := func() error {
		lo := done
		done, filled = done+filled, 0
		return f(lo, out.Rows(0, done-lo))
	}
	err := s.Source.Each(ctx, 0, func(lo int, block *Matrix) error {
		for ; done+filled < n && s.rows[done+filled] < lo+block.N; filled++ {
			if filled == out.N {
				if err := deliver(); err != nil {
					return err
				}
			}
			copy(out.Row(filled), block.Row(s.rows[done+filled]-lo))
		}
		return nil
	})
	if err != nil || filled == 0 {
		return err
	}
	return deliver()
}

// A transformed source applies change to each block of another source whenever it is
// read. The other source is not a *Matrix.
type transformed struct {
	Source
	offset []float64 // the Offset after change
	change func(block *Matrix) error
}

// Describe implements Described.
func (s *transformed) Describe() (Storage, bool) { return describe(s.Source) }

// Block implements Source.
func (s *transformed) Block(n int) *Matrix {
	block := s.Source.Block(n)
	block.Offset = s.offset
	return block
}

// Each implements Source.
func (s *transformed) Each(ctx context.Context, rows int, f func(lo int, block *Matrix) error) error {
	return s.Source.Each(ctx, rows, func(lo int, block *Matrix) error {
		if err := s.change(block); err != nil {
			return err
		}
		return f(lo, block)
	})
}

// A Size describes the size of points, or of images, before they are read.
type Size struct {
	// Low and High bound the number of points. They are equal if it is known.
	Low, High int
	// Likely is the most likely number of points if only bounds are known; otherwise it is
	// Low.
	Likely int
	// Width is the number of values of a point, and of bytes of an image; 0 if it is not
	// known.
	Width int
	// Storage is the place of the points after reading.
	Storage Storage
	// Nonzeros is the number of nonzero values of sparse points; 0 for dense points.
	Nonzeros int
}

// A Storage is the place of a Dataset's points.
type Storage int

const (
	InMemory Storage = iota // as float32
	AsBytes                 // in memory, a byte for each value
	InFiles                 // in files that are read each time
)

// SizeOf returns the size of n points, or images, of width values each.
func SizeOf(n, width int) Size { return Size{Low: n, High: n, Likely: n, Width: width} }

// Known reports whether the size is known exactly.
func (s Size) Known() bool { return s.Low == s.High && s.Width > 0 }

// UnknownSize is the size of points about which nothing is known.
var UnknownSize = Size{Low: 1, High: math.MaxInt32, Likely: 1}

// Add returns the sum of both sizes.
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
