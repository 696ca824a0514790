package data

import (
	"context"
	"sync/atomic"

	"cne/internal/blas"
	"cne/internal/parallel"
)

// exactRows is the number of rows of bytes whose products, up to 255², add up
// in float32 without rounding: the sums stay below 2²⁴.
const exactRows = 256

// checkGrain is the number of values that areBytes looks at in one piece.
const checkGrain = 1 << 18

// areBytes tells whether all values of points are whole numbers from 0 to 255, as pixels
// are.
func areBytes(ctx context.Context, points Source) (bool, error) {
	err := points.Each(ctx, 0, func(_ int, block *Matrix) error {
		if !allBytes(block.X) {
			return errStop
		}
		return nil
	})
	if err == errStop {
		return false, nil
	}
	return err == nil, err
}

func allBytes(x []float32) bool {
	var refuted atomic.Bool
	parallel.For(len(x), checkGrain, func(_, lo, hi int) {
		if refuted.Load() {
			return
		}
		for _, v := range x[lo:hi] {
			if !(v >= 0 && v <= 255) || v != float32(uint8(v)) {
				refuted.Store(true)
				return
			}
		}
	})
	return !refuted.Load()
}

// upperByteProducts does what upperProducts does for the points as rows, whose
// values are bytes. It multiplies in float32, which is several times faster than
// float64, and yet exact: the products of exactRows rows at a time are added up
// in float32, and these sums in float64, without rounding.
func (f *pcaFit) upperByteProducts(ctx context.Context) ([]float64, error) {
	n, width := f.n, len(f.columns)
	c := make([]float64, width*width)
	chunk := min(n, 4*exactRows)
	x := make([]float32, chunk*width)
	sums := make([]float32, parallel.Pieces(width, tile)*tile*width) // of a strip each
	err := f.points.Each(ctx, chunk, func(_ int, block *Matrix) error {
		rows := block.N
		parallel.For(rows, fillGrain, func(_, from, to int) {
			for i := from; i < to; i++ {
				row, out := block.Row(i), x[i*width:(i+1)*width]
				for a, j := range f.columns {
					out[a] = row[j]
				}
			}
		})
		parallel.For(width, tile, func(strip, from, to int) {
			sum := sums[strip*tile*width:][:(to-from)*(width-from)]
			for i := 0; i < rows; i += exactRows {
				x := x[i*width+from:]
				blas.Gemm(true, false, to-from, width-from, min(exactRows, rows-i), 1, x, width, x, width, 0, sum, width-from)
				for a := range to - from {
					row := c[(from+a)*width+from : (from+a+1)*width]
					for b, v := range sum[a*(width-from) : (a+1)*(width-from)] {
						row[b] += float64(v)
					}
				}
			}
		})
		return nil
	})
	return c, err
}
