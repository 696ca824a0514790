package data

import (
	"context"

	"cne/internal/parallel"
)

// columnMoments returns the means of the columns and the sums of the squared deviations from
// them, which keep their digits where a mean is far from zero, and tells which columns are
// constant. It goes through the points twice.
func columnMoments(ctx context.Context, points Source) (mean, squares []float64, constant []bool, err error) {
	if mean, constant, err = ColumnMeans(ctx, points); err != nil {
		return nil, nil, nil, err
	}
	sums := newPieceSums(points)
	err = points.Each(ctx, 0, func(lo int, block *Matrix) error {
		sums.each(lo, block, func(_, from int, sum []float64, row []float32) {
			mean := mean[from : from+len(row)]
			for j, v := range row {
				d := float64(v) - mean[j]
				sum[j] += d * d
			}
		})
		return nil
	})
	return mean, sums.total(), constant, err
}

// ColumnMeans returns the means of the columns, and reports which columns are constant.
// Its errors are those of Each.
func ColumnMeans(ctx context.Context, points Source) (mean []float64, constant []bool, err error) {
	n, d := points.Dims()
	sums := newPieceSums(points)
	varies := make([]bool, len(sums.sums))
	first := make([]float32, d)
	err = points.Each(ctx, 0, func(lo int, block *Matrix) error {
		if lo == 0 {
			copy(first, block.X)
		}
		sums.each(lo, block, func(piece, from int, sum []float64, row []float32) {
			vary, first := varies[piece*d+from:][:len(row)], first[from:from+len(row)]
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
		return nil, nil, err
	}
	mean, constant = sums.total(), make([]bool, d)
	for j := range mean {
		mean[j] /= float64(n)
		constant[j] = true
		for at := j; at < len(varies); at += d {
			constant[j] = constant[j] && !varies[at]
		}
		if constant[j] {
			mean[j] = float64(first[j]) // without the rounding of the sum
		}
	}
	return mean, constant, nil
}

// A pieceSums adds up what is made of the columns' values, in pieces of rows whose sums are
// added in the order of the pieces.
type pieceSums struct {
	d, grain int
	sums     []float64 // [pieces, d]
}

func newPieceSums(points Source) *pieceSums {
	n, d := points.Dims()
	// At least so many rows that there are no more than 256 pieces.
	grain := max(256, (n+255)/256)
	return &pieceSums{d, grain, make([]float64, parallel.Pieces(n, grain)*d)}
}

func (s *pieceSums) total() []float64 {
	total := make([]float64, s.d)
	for i, v := range s.sums {
		total[i%s.d] += v
	}
	return total
}

// columnTile is the number of columns of which the sums of a piece are formed together,
// where a block has too few pieces for all cores.
const columnTile = 128

// each calls add for all rows of a block whose first is row lo of all, in the order of a
// piece's rows: with the number of the piece, and with values of a row from a column on and
// their sums in the piece.
func (s *pieceSums) each(lo int, block *Matrix, add func(piece, from int, sum []float64, row []float32)) {
	first := lo / s.grain
	pieces := (lo+block.N-1)/s.grain - first + 1
	tile := block.D
	if pieces < 64 {
		tile = min(tile, columnTile)
	}
	tiles := parallel.Pieces(block.D, tile)
	parallel.For(pieces*tiles, 1, func(_, k, _ int) {
		p, from := first+k/tiles, k%tiles*tile
		to := min(block.D, from+tile)
		sum := s.sums[p*s.d+from : p*s.d+to]
		for i := max(lo, p*s.grain); i < min(lo+block.N, (p+1)*s.grain); i++ {
			add(p, from, sum, block.Row(i - lo)[from:to])
		}
	})
}
