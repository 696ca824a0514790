package pca

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// The values of most images are whole numbers from 0 to 255, or these divided by 255, and
// many counts are as small. bfloat16 holds whole numbers up to 256, and float32 the sums of
// 256 products of them, so their products are exact wherever and in whatever order they are
// computed, and cost a fraction of others.

const (
	// largestWhole bounds the magnitude of the numbers, and sliceOfWhole is the number of rows
	// whose products have sums of at most 2²⁴.
	largestWhole = 256
	sliceOfWhole = 256
	// strip is the number of columns whose products are computed at a time.
	strip = 32
)

var errNotWhole = errors.New("there are other values")

// A wholeProducts adds up the products of columns of whole numbers.
type wholeProducts struct {
	columns []int32
	// values are those of the whole numbers from −largestWhole on, and unit is 1 divided by the
	// distance between them.
	values [2*largestWhole + 1]float32
	unit   float32
	// Columns are followed by one of ones, whose products are the columns' sums, and by zeros.
	// width is the number of all.
	ones, width int
	// pairs are rows as factors of a product, whose form is panels; or, where there is no such
	// product, doubles are.
	panels  blas.Panels
	pairs   []uint32
	doubles []float64
	rows    []float32 // one for each slice that is filled
	parts   []float32 // like sum, of a slice
	sum     []float64 // [width, width], left of the diagonal unspecified
}

// wholeProducts returns the upper triangle of XᵀX for the centred points X if all values are
// whole numbers divided by unit, and none is too large. It fails as kind.Need does.
func (f *pcaFit) wholeProducts(ctx context.Context, unit float32) (products []float64, ok bool) {
	order := len(f.columns)
	w := &wholeProducts{columns: f.columns, unit: unit, ones: order, width: parallel.Pieces(order+1, 16) * 16}
	for i := range w.values {
		w.values[i] = float32(i-largestWhole) / unit
	}
	w.panels = blas.NewPairPanels(sliceOfWhole/2, w.width)
	rows := max(1, min(data.BlockRows(w.width), f.n)/sliceOfWhole) * sliceOfWhole
	if f.pairs {
		w.pairs = make([]uint32, rows/2*w.width)
	} else {
		w.doubles = make([]float64, rows*w.width)
	}
	w.rows = make([]float32, rows/sliceOfWhole*w.width)
	err := f.points.Each(ctx, rows, func(_ int, block *data.Matrix) error {
		slices := parallel.Pieces(block.N, sliceOfWhole)
		var others atomic.Bool
		parallel.For(slices, 1, func(_, s, _ int) {
			if !others.Load() && !w.fill(s, block) {
				others.Store(true)
			}
		})
		if others.Load() {
			return errNotWhole
		}
		if w.sum == nil {
			w.parts, w.sum = make([]float32, w.width*w.width), make([]float64, w.width*w.width)
		}
		parallel.For(parallel.Pieces(w.width, strip), 1, func(_, i, _ int) { w.add(i*strip, slices) })
		return nil
	})
	if errors.Is(err, errNotWhole) {
		return nil, false
	}
	kind.Check(err)
	return w.centred(f.n), true
}

// fill writes a slice of rows of a block as factors, and reports whether they are whole numbers.
func (w *wholeProducts) fill(slice int, block *data.Matrix) bool {
	row := w.rows[slice*w.width:][:w.width]
	for i := slice * sliceOfWhole; i < (slice+1)*sliceOfWhole; i++ {
		if !w.numbers(row, block, i) {
			return false
		}
		if w.doubles != nil {
			selection.Convert(w.doubles[i*w.width:][:w.width], row)
			continue
		}
		// The first of a pair is in the lower half. The numbers' own lower halves are 0.
		kept, shift := uint32(0), 16
		if i%2 == 1 {
			kept, shift = 0xffff, 0
		}
		for j := 0; j < w.width; j += strip {
			at, stride := w.panels.At(j)
			to := w.slice(slice)[at+i%sliceOfWhole/2*stride:][:min(strip, w.width-j)]
			for b := range to {
				to[b] = to[b]&kept | math.Float32bits(row[j+b])>>shift
			}
		}
	}
	return true
}

// numbers writes the whole numbers of a row of a block, or zeros if it has no such row. It
// reports whether they are whole numbers.
func (w *wholeProducts) numbers(to []float32, block *data.Matrix, number int) bool {
	if number >= block.N {
		clear(to)
		return true
	}
	row := block.Row(number)
	for b, j := range w.columns {
		v := row[j]
		i := int(float32(v*w.unit) + (largestWhole + 0.5))
		if uint(i) >= uint(len(w.values)) || w.values[i] != v {
			return false
		}
		to[b] = float32(i - largestWhole)
	}
	to[w.ones] = 1
	return true
}

// slice returns the factors of a slice of rows.
func (w *wholeProducts) slice(s int) []uint32 {
	size := sliceOfWhole / 2 * w.width
	return w.pairs[s*size : (s+1)*size]
}

// add adds the products of the columns of a strip, from column i on, with those right of them.
func (w *wholeProducts) add(i, slices int) {
	rows, width := min(strip, w.width-i), w.width-i
	if w.doubles != nil {
		x := w.doubles[i:]
		blas.GemmSerial(true, false, rows, width, slices*sliceOfWhole, 1, x, w.width, x, w.width, 1, w.sum[i*w.width+i:], w.width)
		return
	}
	c, form := w.parts[i*w.width:][:rows*width], blas.NewPairPanels(sliceOfWhole/2, width)
	for s := range slices {
		at, stride := w.panels.At(i)
		x := w.slice(s)[at:]
		blas.MultiplyPairs(form, rows, x, 1, stride, x, false, c, width)
		for r := range rows {
			sum := w.sum[(i+r)*w.width+i:][:width]
			for j, v := range c[r*width:][:width] {
				sum[j] += float64(v)
			}
		}
	}
}

// centred returns the products of the columns' differences from their means, for n rows: those
// of the columns, less those of their sums divided by n. The difference is rounded at its end
// only, so that columns that hardly vary keep what they have.
func (w *wholeProducts) centred(n int) []float64 {
	sums := make([]float64, w.ones)
	for i := range sums {
		sums[i] = w.sum[i*w.width+w.ones]
	}
	count, scale := float64(n), float64(n)*float64(w.unit)*float64(w.unit)
	products := w.sum[:w.ones*w.ones]
	for i, a := range sums {
		for j := i; j < w.ones; j++ {
			all, both := float64(w.sum[i*w.width+j]*count), float64(a*sums[j])
			rest := math.FMA(w.sum[i*w.width+j], count, -all) - math.FMA(a, sums[j], -both)
			products[i*w.ones+j] = ((all - both) + rest) / scale
		}
	}
	return products
}
