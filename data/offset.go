package data

import (
	"log/slog"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

const (
	// sampleRows and sampleValues bound the sample that decides whether float32 is precise
	// enough for the points.
	sampleRows   = 1 << 9
	sampleValues = 1 << 17
	// roundingLimit bounds the mean rounding error of a column's values in float32, as a
	// share of their interquartile range. Beyond it an offset is subtracted first. This is
	// the case for values about 700 times as far from zero as that range.
	roundingLimit = 1. / (1 << 16)
	// sameValue is the relative difference below which float64 values count as equal.
	// Calculations that should give the same value may differ by this much.
	sameValue = 1. / (1 << 44)
	// wholeFloats is the magnitude beyond which not every whole number is a float64.
	wholeFloats = 1 << 53
)

// A Sample holds some rows of points as float64. A reader uses it to decide whether the
// points need an Offset. When the sample has too many rows, it drops a pseudo-random half
// of them, chosen by the numbers of the rows.
type Sample struct {
	d     int
	of    []int // the existing rows, ascending; nil: all
	most  int   // rows that it holds
	level int   // trailing zeros that the hash of a row's number has at least
	rows  []int
	x     []float64
	// columns caches the result of inexact.
	columns [][]float64
}

// NewSample returns a sample of points of d values. rows lists the existing rows in
// ascending order; nil means all rows.
func NewSample(d int, rows []int) *Sample {
	most := max(16, min(sampleRows, sampleValues/d))
	return &Sample{d: d, of: rows, most: most, x: make([]float64, 0, min(most*d, sampleValues))}
}

// Rows returns the rows that the sample holds, in ascending order.
func (s *Sample) Rows() []int { return s.rows }

// At returns the values of the k-th row in Rows.
func (s *Sample) At(k int) []float64 { return s.x[k*s.d : (k+1)*s.d] }

// Row returns the slice for the values of row i, or nil if the sample leaves out the row.
// Calls must be in the order of rows; several calls for one row may each fill a part. A
// nil sample holds no rows.
func (s *Sample) Row(i int) []float64 {
	if s == nil || s.levelOf(i) < s.level {
		return nil
	}
	if n := len(s.rows); n == 0 || s.rows[n-1] != i {
		if n == s.most {
			s.thin()
			return s.Row(i)
		}
		s.rows = append(s.rows, i)
		s.x = append(s.x, make([]float64, s.d)...)
	}
	return s.x[len(s.x)-s.d:]
}

// thin drops about half of the rows.
func (s *Sample) thin() {
	s.level++
	kept := 0
	for k, i := range s.rows {
		if s.levelOf(i) < s.level {
			continue
		}
		copy(s.x[kept*s.d:(kept+1)*s.d], s.x[k*s.d:])
		s.rows[kept] = i
		kept++
	}
	s.rows, s.x = s.rows[:kept], s.x[:kept*s.d]
}

// levelOf returns the level of a row, by its position in s.of if that is set. It returns
// −1 if the row is not in s.of. A pseudo-random share 1/2ᵏ⁺¹ of the rows has level k.
func (s *Sample) levelOf(row int) int {
	if s.of != nil {
		at, ok := slices.BinarySearch(s.of, row)
		if !ok {
			return -1
		}
		row = at
	}
	return bits.TrailingZeros64(rng.Mix(uint64(row) + 1))
}

// inexact returns, for each column that float32 does not hold exactly, its distinct values
// that are finite as float32, in ascending order; nil for other columns.
func (s *Sample) inexact() [][]float64 {
	if s.columns != nil {
		return s.columns
	}
	columns := make([][]float64, s.d)
	rows := len(s.x) / s.d
	parallel.For(s.d, 1, func(_, lo, hi int) {
		for j := lo; j < hi; j++ {
			v, exact := make([]float64, 0, rows), true
			for i := j; i < len(s.x); i += s.d {
				if x := s.x[i]; simd.IsFinite(float32(x)) {
					v, exact = append(v, x), exact && float64(float32(x)) == x
				}
			}
			if !exact {
				slices.Sort(v)
				columns[j] = slices.Compact(v)
			}
		}
	})
	s.columns = columns
	return columns
}

// Offset returns the number to subtract from each column before its values become
// float32, or nil if no column needs one. It is 0 for columns that float32 rounds only a
// little.
func (s *Sample) Offset() []float64 {
	offsets := selection.Map(s.inexact(), chooseOffset)
	if !slices.ContainsFunc(offsets, func(c float64) bool { return c != 0 }) {
		return nil
	}
	return offsets
}

func chooseOffset(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	center := v[len(v)/2]
	if len(v) == 1 {
		// A constant column needs no offset. But different whole numbers of this size may be the
		// same float64.
		if m := math.Abs(center); m < wholeFloats || m >= 1<<63 {
			return 0
		}
		return center
	}
	// The interquartile range of the distinct values is robust to outliers and to a value
	// that most points share.
	spread := v[3*len(v)/4] - v[len(v)/4]
	if rounded := rounding(v, 0); rounded <= roundingLimit*spread || rounding(v, center) > rounded/2 {
		return 0
	}
	return center
}

// rounding returns the mean change of values minus an offset when they become float32.
func rounding(v []float64, offset float64) float64 {
	sum := 0.0
	for _, x := range v {
		x -= offset
		sum += math.Abs(float64(float32(x)) - x)
	}
	return sum / float64(len(v))
}

// distinct returns how many different values there are among ascending ones, and how many
// are left when they become float32 relative to an offset.
func distinct(values []float64, offset float64) (before, after int) {
	last, lastRounded := math.NaN(), float32(math.NaN())
	for _, v := range values {
		if math.Abs(v-last) <= sameValue*math.Abs(v) {
			continue
		}
		before++
		last = v
		if r := float32(v - offset); r != lastRounded {
			after++
			lastRounded = r
		}
	}
	return before, after
}

// LogRounding logs which columns have an offset, and which still have values that become
// equal as float32. once reports whether there is no offset because the input could be
// read only once. names are the names of the columns, or nil.
func (s *Sample) LogRounding(log *slog.Logger, names []string, offset []float64, once bool) {
	if s == nil || log == nil {
		return
	}
	if names == nil {
		names = selection.Map(selection.UpTo[int](s.d), func(j int) string { return strconv.Itoa(j + 1) })
	}
	if offset == nil {
		offset = make([]float64, s.d)
	}
	var moved, affected []string
	worst, before, left := 0, 0, 1 // the column where the smallest share of its values is left
	for j, values := range s.inexact() {
		if offset[j] != 0 {
			moved = append(moved, names[j])
		}
		if b, l := distinct(values, offset[j]); 10*l < 9*b {
			affected = append(affected, names[j])
			if l*before < left*b {
				worst, before, left = j, b, l
			}
		}
	}
	if moved != nil {
		log.Info("columns that are far from zero for how little they vary are read relative to a value in their middle", "columns",
			text.Few(moved, text.Printable))
	}
	if affected == nil {
		return
	}
	const lost = "values of columns are equal once they are rounded to float32, so neighbours may be wrong; "
	advice := "subtract from each column what its values have in common"
	// The smallest float32 with all its digits is 2⁻¹²⁶.
	if v := s.inexact()[worst]; max(-v[0], v[len(v)-1]) < 0x1p-126 {
		advice = "multiply all values by a number that makes the largest about 1"
	} else if once {
		advice = "give files, which can be read twice"
	}
	log.Warn(lost+advice, "columns", text.Few(affected, text.Printable), "worst", text.Printable(names[worst]),
		"values_in_a_sample", before, "left", left)
}

// Relative returns the points with another offset: m itself if it has this offset
// already, otherwise a copy. The offset has a number for each column, or is nil for none.
func (m *Matrix) Relative(offset []float64) *Matrix {
	if slices.Equal(m.Offset, offset) {
		return m
	}
	c := m.Clone()
	c.rebase(offset)
	return c
}

// rebase changes the offset in place. Columns whose offset stays keep their bits.
func (m *Matrix) rebase(offset []float64) {
	if slices.Equal(m.Offset, offset) {
		return
	}
	change := make([]float64, m.D)
	copy(change, m.Offset)
	for j, c := range offset {
		change[j] -= c
	}
	parallel.For(m.N, max(1, scaleGrain/m.D), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := m.Row(i)
			for j, c := range change {
				if c != 0 {
					row[j] = float32(float64(row[j]) + c)
				}
			}
		}
	})
	m.Offset = slices.Clone(offset)
}
