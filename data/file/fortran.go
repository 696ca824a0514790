package file

import (
	"bytes"
	"io"
	"slices"
)

const (
	// turnBytes is the number of bytes of an array in Fortran order that are transposed at a
	// time, but at least turnRows rows. Each piece of a column is a separate read.
	turnBytes = 1 << 22
	turnRows  = 64
	// turnColumns is the number of columns that are transposed together. They fill a line of
	// the processor's cache.
	turnColumns = 16
)

// A fortranReader transposes an array in Fortran order, stored column by column, into
// rows. If the source allows reading in any order, it reads some rows of all columns at a
// time. Otherwise it holds the whole array in memory.
type fortranReader struct {
	a     array
	s     *Input
	at    io.ReaderAt // the columns, one after the other; nil until it is read
	n, d  int
	order []int  // of each value of a row: its column; nil if these are in order
	rows  []byte // turned, and not yet delivered
	block []byte // memory for rows
	piece []byte // memory for pieces of columns
	done  int    // rows turned
}

// newFortranReader returns a reader of an array's values. The caller has checked the
// array's size against the file's size, if that is known.
func newFortranReader(a array, s *Input) *fortranReader {
	c := &fortranReader{a: a, s: s}
	c.n, c.d = a.rows()
	if s.at != nil {
		c.at = io.NewSectionReader(s.at, s.taken, int64(c.n)*int64(c.d)*int64(a.size))
	}
	return c
}

// full fills p with the next values in row order, like Input.full.
func (c *fortranReader) full(p []byte) (int, error) {
	if c.at == nil {
		if got, err := c.hold(); err != nil {
			return got, err
		}
	}
	filled := 0
	for filled < len(p) {
		if len(c.rows) == 0 {
			if err := c.turn(); err != nil {
				return filled, err
			}
		}
		n := copy(p[filled:], c.rows)
		filled, c.rows = filled+n, c.rows[n:]
	}
	return filled, nil
}

// pass skips n bytes of whole rows, before any row has been transposed.
func (c *fortranReader) pass(n int64) (int64, error) {
	if c.at == nil {
		if got, err := c.hold(); err != nil {
			return int64(got), err
		}
	}
	c.done += int(n / int64(c.d*c.a.size))
	return n, nil
}

// hold reads the whole array. Memory grows as values arrive.
func (c *fortranReader) hold() (int, error) {
	var all bytes.Buffer
	total := int64(c.n * c.d * c.a.size)
	n, err := all.ReadFrom(io.LimitReader(c.s.r, total))
	c.s.taken += n
	c.at = bytes.NewReader(all.Bytes())
	switch {
	case err != nil:
		return int(n), explain(err)
	case n < total:
		return int(n), errShort
	}
	return 0, nil
}

// turn makes the next rows from the columns.
func (c *fortranReader) turn() error {
	size := c.a.size
	if c.block == nil {
		most := max(turnRows, turnBytes/(c.d*size))
		c.block = make([]byte, min(c.n, most)*c.d*size)
		c.piece = make([]byte, turnColumns*min(c.n, most)*size)
		c.order = c.a.columnOrder()
	}
	count := min(c.n-c.done, len(c.block)/(c.d*size))
	for from := 0; from < c.d; from += turnColumns {
		columns := min(turnColumns, c.d-from)
		for k := range columns {
			column := from + k
			if c.order != nil {
				column = c.order[column]
			}
			start := (int64(column)*int64(c.n) + int64(c.done)) * int64(size)
			piece := c.piece[k*count*size : (k+1)*count*size]
			if n, err := c.at.ReadAt(piece, start); n < len(piece) {
				return explainShort(err)
			}
		}
		for k := range columns {
			to, piece := c.block[(from+k)*size:], c.piece[k*count*size:]
			for i := range count {
				copy(to[i*c.d*size:][:size], piece[i*size:])
			}
		}
	}
	c.rows = c.block[:count*c.d*size]
	c.done += count
	return nil
}

// atEnd returns nil if nothing follows the values, once all have been delivered.
func (c *fortranReader) atEnd() error {
	if rest := int64(c.n) * int64(c.d) * int64(c.a.size); c.s.at != nil && !c.s.sealed {
		if c.s.left() > rest {
			return errTrailing
		}
		return nil
	} else if c.s.at != nil {
		// The checksum needs the bytes in file order.
		if _, err := io.CopyN(io.Discard, c.s.r, rest); err != nil {
			return explain(err)
		}
	}
	return c.s.atEnd()
}

// columnOrder returns, for each value of a row in C order, its column in Fortran order. It
// returns nil if the two are the same.
func (a array) columnOrder() []int {
	if len(a.shape) <= 2 {
		return nil
	}
	_, d := a.rows()
	order := make([]int, d)
	for e := range order {
		rest, stride := e, d
		for _, n := range slices.Backward(a.shape[1:]) {
			stride /= n
			order[e] += rest % n * stride
			rest /= n
		}
	}
	return order
}
