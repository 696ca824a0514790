package pca

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/kind"
	"cne/internal/parallel"
)

// The values of most images are whole numbers from 0 to 255, or these divided by 255, and
// many counts are as small. bfloat16 holds whole numbers up to 256, and float32 the sums of
// 256 products of them, so their products are exact wherever and in whatever order they are
// computed, and cost a fraction of others.

const (
	// largestWhole bounds the magnitude of the numbers, and sliceOfWhole is the number of rows
	// whose products have sums of at most 2²⁴.
	largestWhole, sliceOfWhole = 256, 256
	// strip is the number of columns whose products are computed at a time. It is a multiple of a
	// panel's columns, so that the panels from one of its columns on are a factor, too.
	strip = 32
)

var errNotWhole = errors.New("there are other values")

// A wholeProducts adds up the products of columns of whole numbers.
type wholeProducts struct {
	columns []int32
	// values are the whole numbers from −largestWhole to largestWhole, each divided by unit.
	values [2*largestWhole + 1]float32
	unit   float32
	// Columns are followed by one of ones, whose products are the columns' sums, and by zeros.
	// width is the number of all.
	ones, width int
	numbers     []float32 // of some slices, row by row
	// panels is the form of pairs, the same numbers as factors of products of bfloat16. There are
	// none if float32 is as fast.
	panels blas.Panels
	pairs  []uint32
	sum    []float64                // [width, width], left of the diagonal unspecified
	parts  parallel.Pool[[]float32] // some rows of the sum for a slice
}

// wholeProducts returns the upper triangle of XᵀX for the centred points X if all values are
// whole numbers divided by unit, and none is too large. It fails as kind.Need does.
func (f *pcaFit) wholeProducts(ctx context.Context, unit float32) (products []float64, ok bool) {
	w := &wholeProducts{columns: f.columns, unit: unit, ones: len(f.columns), width: parallel.Pieces(len(f.columns)+1, 16) * 16}
	for i := range w.values {
		w.values[i] = float32(i-largestWhole) / unit
	}
	rows := max(1, min(data.BlockRows(w.width), f.n)/sliceOfWhole) * sliceOfWhole
	w.numbers = make([]float32, rows*w.width)
	if f.pairs {
		w.panels, w.pairs = blas.NewPairPanels(sliceOfWhole/2, w.width), make([]uint32, rows/2*w.width)
	}
	err := f.points.Each(ctx, rows, func(_ int, block *data.Matrix) error {
		count := parallel.Pieces(block.N, sliceOfWhole)
		var others atomic.Bool
		parallel.For(count, 1, func(_, s, _ int) { others.CompareAndSwap(false, !w.fill(s, block)) })
		if others.Load() {
			return errNotWhole
		}
		if w.sum == nil {
			w.sum = make([]float64, w.width*w.width)
		}
		parallel.For(w.width, strip, func(_, i, end int) { w.add(count, i, end-i) })
		return nil
	})
	if errors.Is(err, errNotWhole) {
		return nil, false
	}
	kind.Check(err)
	return w.centred(f.n), true
}

// slice returns the numbers of a slice of rows, and their pairs.
func (w *wholeProducts) slice(s int) (numbers []float32, pairs []uint32) {
	const half = sliceOfWhole / 2
	if w.pairs != nil {
		pairs = w.pairs[s*half*w.width:][:half*w.width]
	}
	return w.numbers[2*s*half*w.width:][:2*half*w.width], pairs
}

// fill writes a slice of rows of a block, and reports whether they are whole numbers.
func (w *wholeProducts) fill(slice int, block *data.Matrix) bool {
	numbers, pairs := w.slice(slice)
	clear(numbers)
	for i := range min(sliceOfWhole, block.N-slice*sliceOfWhole) {
		row, to := block.Row(slice*sliceOfWhole+i), numbers[i*w.width:][:w.width]
		for b, j := range w.columns {
			number := int(float32(row[j]*w.unit) + (largestWhole + 0.5))
			if uint(number) >= uint(len(w.values)) || w.values[number] != row[j] {
				return false
			}
			to[b] = float32(number - largestWhole)
		}
		to[w.ones] = 1
	}
	for l := 0; pairs != nil && l < sliceOfWhole/2; l++ {
		first, second := numbers[2*l*w.width:][:w.width], numbers[(2*l+1)*w.width:][:w.width]
		for j := 0; j < w.width; j += strip {
			at, stride := w.panels.At(j)
			to := pairs[at+l*stride:][:min(strip, w.width-j)]
			for b := range to { // the lower halves of the numbers are 0
				to[b] = math.Float32bits(first[j+b])>>16 | math.Float32bits(second[j+b])
			}
		}
	}
	return true
}

// add adds the products of some columns, from column i on, with those right of them.
func (w *wholeProducts) add(count, i, columns int) {
	width := w.width - i
	space, form := w.parts.Get(), blas.NewPairPanels(sliceOfWhole/2, width)
	defer w.parts.Put(space)
	*space = slices.Grow((*space)[:0], columns*width)[:columns*width]
	part := *space
	for s := range count {
		if x, pairs := w.slice(s); pairs == nil {
			blas.GemmSerial(true, false, columns, width, sliceOfWhole, 1, x[i:], w.width, x[i:], w.width, 0, part, width)
		} else {
			at, stride := w.panels.At(i)
			blas.MultiplyPairs(form, columns, pairs[at:], 1, stride, pairs[at:], false, part, width)
		}
		for r := range columns {
			sum := w.sum[(i+r)*w.width+i:][:width]
			for j, v := range part[r*width:][:width] {
				sum[j] += float64(v)
			}
		}
	}
}

// centred returns Σ(x−x̄)(y−ȳ) = (n·Σxy − Σx·Σy)/n for all pairs of columns and n rows, divided
// by unit². The numerator is computed with the errors of both its products, so columns that
// hardly vary lose nothing.
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
