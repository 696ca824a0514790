package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// A CSR holds the values of a matrix that are not 0, row after row (compressed sparse
// rows). It takes 8 bytes for each.
type CSR struct {
	// Start has an entry more than there are rows: the values of row i are
	// Value[Start[i]] to Value[Start[i+1]-1], none of them 0, and Column has the
	// columns that they are in, counted from 0, in ascending order and each once.
	Start  []int
	Column []int32
	Value  []float32
}

// csrGrain is how many rows of a sparse matrix make a task.
const csrGrain = 256

// Row returns the columns and values of row i, which share memory with c.
func (c *CSR) Row(i int) (column []int32, value []float32) {
	lo, hi := c.Start[i], c.Start[i+1]
	return c.Column[lo:hi:hi], c.Value[lo:hi:hi]
}

// rows returns rows lo to hi−1, which share memory with c but for Start.
func (c *CSR) rows(lo, hi int) *CSR {
	begin, end := c.Start[lo], c.Start[hi]
	start := slices.Clone(c.Start[lo : hi+1])
	for i := range start {
		start[i] -= begin
	}
	return &CSR{start, c.Column[begin:end:end], c.Value[begin:end:end]}
}

// take returns copies of some rows.
func (c *CSR) take(rows []int) *CSR {
	t := &CSR{Start: make([]int, len(rows)+1)}
	for k, i := range rows {
		t.Start[k+1] = t.Start[k] + c.Start[i+1] - c.Start[i]
	}
	t.Column, t.Value = make([]int32, t.Start[len(rows)]), make([]float32, t.Start[len(rows)])
	for k, i := range rows {
		column, value := c.Row(i)
		copy(t.Column[t.Start[k]:], column)
		copy(t.Value[t.Start[k]:], value)
	}
	return t
}

// ConcatCSR puts the rows of several matrices one after the other, of which it lets
// columns and values go.
func ConcatCSR(parts []*CSR) *CSR {
	c := &CSR{Start: []int{0}}
	columns, values := make([][]int32, len(parts)), make([][]float32, len(parts))
	for i, p := range parts {
		begin := c.Start[len(c.Start)-1]
		for _, s := range p.Start[1:] {
			c.Start = append(c.Start, begin+s)
		}
		columns[i], values[i] = p.Column, p.Value
		p.Column, p.Value = nil, nil
	}
	c.Column = slices.Concat(columns...)
	clear(columns)
	c.Value = slices.Concat(values...)
	return c
}

// Fault says what is inconsistent of a matrix of n rows of d columns, as a clause; it is
// empty if nothing is. It looks at every column.
func (c *CSR) Fault(n, d int) string {
	switch {
	case len(c.Start) != n+1 || c.Start[0] != 0 || c.Start[n] != len(c.Value) || len(c.Column) != len(c.Value):
		return fmt.Sprintf("there are %d rows, %d columns of values and %d values, but Start has %d entries", n, len(c.Column), len(c.Value), len(c.Start))
	case !slices.IsSorted(c.Start):
		return "Start is not in ascending order"
	}
	faults := make([]string, parallel.Pieces(n, csrGrain))
	parallel.For(n, csrGrain, func(piece, lo, hi int) {
		for i := lo; i < hi && faults[piece] == ""; i++ {
			if column, _ := c.Row(i); len(column) > 0 && (column[0] < 0 || int(column[len(column)-1]) >= d || !ascending(column)) {
				faults[piece] = fmt.Sprintf("the columns of row %d (counted from 0) are not in ascending order from 0 to %d", i, d-1)
			}
		}
	})
	return cmp.Or(faults...)
}

// firstNotFinite returns the row and the index of the first value that is NaN or
// infinite; ok is false if all are finite.
func (c *CSR) firstNotFinite() (row, at int, ok bool) {
	if at = simd.FirstNotFinite(c.Value); at < 0 {
		return 0, 0, false
	}
	return sort.SearchInts(c.Start, at+1) - 1, at, true
}

// Tidy puts the columns of each row in ascending order, adds up the values of those
// that occur twice, and leaves values of 0 out.
func (c *CSR) Tidy() {
	n := len(c.Start) - 1
	untidy := make([]bool, parallel.Pieces(n, csrGrain))
	parallel.For(n, csrGrain, func(piece, lo, hi int) {
		var keys []uint64
		for i := lo; i < hi; i++ {
			column, value := c.Row(i)
			untidy[piece] = untidy[piece] || slices.Contains(value, 0)
			if ascending(column) {
				continue
			}
			// Equal columns are in the order of their values' bits, so that sums do
			// not depend on the order of the file.
			keys = keys[:0]
			for k, j := range column {
				keys = append(keys, uint64(j)<<32|uint64(math.Float32bits(value[k])))
			}
			slices.Sort(keys)
			for k, key := range keys {
				column[k], value[k] = int32(key>>32), math.Float32frombits(uint32(key))
				untidy[piece] = untidy[piece] || k > 0 && column[k] == column[k-1]
			}
		}
	})
	if !slices.Contains(untidy, true) {
		return
	}
	kept := 0
	for i := range n {
		column, value := c.Row(i)
		c.Start[i] = kept
		for k := 0; k < len(column); {
			j, sum := column[k], value[k]
			for k++; k < len(column) && column[k] == j; k++ {
				sum += value[k]
			}
			if sum != 0 {
				c.Column[kept], c.Value[kept] = j, sum
				kept++
			}
		}
	}
	c.Start[n] = kept
	c.Column, c.Value = c.Column[:kept], c.Value[:kept]
}

// ascending tells whether each number is larger than the one before it.
func ascending(x []int32) bool {
	for i := 1; i < len(x); i++ {
		if x[i] <= x[i-1] {
			return false
		}
	}
	return true
}
