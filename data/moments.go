package data

import (
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

// columnMoments looks at m twice: for the means, and for the deviations from
// them, which keeps its digits where the mean is far from zero. The partial
// sums of pieces of rows are added in the order of the pieces.
func columnMoments(m *Matrix) *moments {
	// At least so many rows that there are no more than 256 pieces, each of
	// which has sums of its own.
	grain := max(256, (m.N+255)/256)
	pieces := parallel.Pieces(m.N, grain)
	c := &moments{
		mean:     make([]float64, m.D),
		squares:  make([]float64, m.D),
		constant: make([]bool, m.D),
	}
	sums := make([]float64, pieces*m.D)
	varies := make([]bool, pieces*m.D)
	first := m.Row(0)
	parallel.For(m.N, grain, func(p, lo, hi int) {
		sum, vary := sums[p*m.D:(p+1)*m.D], varies[p*m.D:(p+1)*m.D]
		for i := lo; i < hi; i++ {
			for j, v := range m.Row(i) {
				sum[j] += float64(v)
				if v != first[j] {
					vary[j] = true
				}
			}
		}
	})
	for j := range c.mean {
		vary := false
		for p := range pieces {
			c.mean[j] += sums[p*m.D+j]
			vary = vary || varies[p*m.D+j]
		}
		c.mean[j] /= float64(m.N)
		if c.constant[j] = !vary; c.constant[j] {
			c.mean[j] = float64(first[j]) // without the rounding of the sum
		}
	}

	parallel.For(m.N, grain, func(p, lo, hi int) {
		square := sums[p*m.D : (p+1)*m.D]
		clear(square)
		for i := lo; i < hi; i++ {
			for j, v := range m.Row(i) {
				d := float64(v) - c.mean[j]
				square[j] += d * d
			}
		}
	})
	for j := range c.squares {
		for p := range pieces {
			c.squares[j] += sums[p*m.D+j]
		}
	}
	return c
}
