package data

import (
	"context"
	"math"

	"cne/internal/parallel"
)

// moments holds what scaling and PCA need to know about the columns of a
// matrix.
type moments struct {
	mean     []float64
	squares  []float64 // sum of the squared deviations from the mean
	constant []bool    // all values are equal
}

// sd returns the standard deviation of column j, whose sum of squares is
// divided by divisor.
func (c *moments) sd(j, divisor int) float64 { return math.Sqrt(c.squares[j] / float64(divisor)) }

// columnMoments goes through the points twice: for the means, and for the deviations from
// them, which keeps its digits where the mean is far from zero. The partial
// sums of pieces of rows are added in the order of the pieces.
func columnMoments(ctx context.Context, points Source) (*moments, error) {
	n, d := points.Dims()
	// At least so many rows that there are no more than 256 pieces, each of
	// which has sums of its own.
	grain := max(256, (n+255)/256)
	pieces := parallel.Pieces(n, grain)
	c := &moments{
		mean:     make([]float64, d),
		squares:  make([]float64, d),
		constant: make([]bool, d),
	}
	sums := make([]float64, pieces*d)
	varies := make([]bool, pieces*d)
	first := make([]float32, d)
	err := points.Each(ctx, 0, func(lo int, block *Matrix) error {
		if lo == 0 {
			copy(first, block.X)
		}
		eachPiece(block, lo, grain, func(p, from, to int, row []float32) {
			sum, vary, first := sums[p*d+from:p*d+to], varies[p*d+from:p*d+to], first[from:to]
			for j, v := range row {
				sum[j] += float64(v)
				if v != first[j] {
					vary[j] = true
				}
			}
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for j := range c.mean {
		vary := false
		for p := range pieces {
			c.mean[j] += sums[p*d+j]
			vary = vary || varies[p*d+j]
		}
		c.mean[j] /= float64(n)
		if c.constant[j] = !vary; c.constant[j] {
			c.mean[j] = float64(first[j]) // without the rounding of the sum
		}
	}

	clear(sums)
	err = points.Each(ctx, 0, func(lo int, block *Matrix) error {
		eachPiece(block, lo, grain, func(p, from, to int, row []float32) {
			square, mean := sums[p*d+from:p*d+to], c.mean[from:to]
			for j, v := range row {
				d := float64(v) - mean[j]
				square[j] += d * d
			}
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for j := range c.squares {
		for p := range pieces {
			c.squares[j] += sums[p*d+j]
		}
	}
	return c, nil
}

// columnTile is the number of columns of which the sums of a piece are formed together,
// where a block has too few pieces for all cores.
const columnTile = 128

// eachPiece calls f for all rows of a block whose first is row lo of all, in their order
// for a piece of so many rows: with the number of the piece and columns from to to−1 of
// the row.
func eachPiece(block *Matrix, lo, grain int, f func(p, from, to int, row []float32)) {
	first := lo / grain
	pieces := (lo+block.N-1)/grain - first + 1
	tile := block.D
	if pieces < 64 {
		tile = min(tile, columnTile)
	}
	tiles := parallel.Pieces(block.D, tile)
	parallel.For(pieces*tiles, 1, func(_, k, _ int) {
		p, from := first+k/tiles, k%tiles*tile
		to := min(block.D, from+tile)
		for i := max(lo, p*grain); i < min(lo+block.N, (p+1)*grain); i++ {
			f(p, from, to, block.Row(i - lo)[from:to])
		}
	})
}
