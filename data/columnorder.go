package data

import (
	"bytes"
	"encoding/binary"
	"io"
)

const (
	// turnBytes is how much of an array in Fortran order is turned into rows at a time,
	// at least turnRows of them: each piece of a column is a read of its own.
	turnBytes = 1 << 22
	turnRows  = 64
	// turnColumns is the number of columns that are turned together, which fill a line
	// of the processor's cache.
	turnColumns = 16
)

// A columnOrder turns an array in Fortran order, which is stored column by column, into
// rows. It reads pieces of all columns, of some rows at a time, where the source allows
// reading in any order, and else holds the whole array as it is stored.
type columnOrder struct {
	a     array
	s     *byteSource
	at    io.ReaderAt // the columns, one after the other; nil until it is read
	n, d  int
	place []int  // of each value of a row: its column; nil if these are in order
	rows  []byte // turned, and not yet delivered
	block []byte // memory for rows
	piece []byte // memory for pieces of columns
	done  int    // rows turned
}

// newColumnOrder prepares for reading the values of an array, whose sizes have been
// compared with that of the source as far as this is known.
func newColumnOrder(a array, s *byteSource) *columnOrder {
	c := &columnOrder{a: a, s: s}
	c.n, c.d = a.rows()
	if s.at != nil {
		c.at = io.NewSectionReader(s.at, s.taken, int64(c.n)*int64(c.d)*int64(a.size))
	}
	return c
}

// full fills p with the values that come next, row by row, as that of byteSource does.
func (c *columnOrder) full(p []byte) (int, error) {
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

// skip passes over n bytes of whole rows, before any has been turned.
func (c *columnOrder) skip(n int64) (int64, error) {
	if c.at == nil {
		if got, err := c.hold(); err != nil {
			return int64(got), err
		}
	}
	c.done += int(n / int64(c.d*c.a.size))
	return n, nil
}

// hold reads the whole array. Memory grows as values arrive.
func (c *columnOrder) hold() (int, error) {
	total := c.n * c.d * c.a.size
	all := make([]byte, 0, c.s.trusted(c.n*c.d)*c.a.size)
	for len(all) < total {
		if len(all) == cap(all) {
			all = append(make([]byte, 0, min(total, max(readBuffer, 2*len(all)))), all...)
		}
		got, err := c.s.full(all[len(all):min(cap(all), total)])
		all = all[:len(all)+got]
		if err != nil {
			return len(all), err
		}
	}
	c.at = bytes.NewReader(all)
	return 0, nil
}

// turn makes the next rows of the columns.
func (c *columnOrder) turn() error {
	size := c.a.size
	if c.block == nil {
		most := max(turnRows, turnBytes/(c.d*size))
		c.block = make([]byte, min(c.n, most)*c.d*size)
		c.piece = make([]byte, turnColumns*min(c.n, most)*size)
		c.place = c.a.places()
	}
	count := min(c.n-c.done, len(c.block)/(c.d*size))
	for from := 0; from < c.d; from += turnColumns {
		columns := min(turnColumns, c.d-from)
		for k := range columns {
			column := from + k
			if c.place != nil {
				column = c.place[column]
			}
			start := (int64(column)*int64(c.n) + int64(c.done)) * int64(size)
			if _, err := c.at.ReadAt(c.piece[k*count*size:(k+1)*count*size], start); err == io.EOF || err == io.ErrUnexpectedEOF {
				return errShort
			} else if err != nil {
				return explain(err)
			}
		}
		for k := range columns {
			transposeColumn(c.block[(from+k)*size:], c.piece[k*count*size:], count, c.d*size, size)
		}
	}
	c.rows = c.block[:count*c.d*size]
	c.done += count
	return nil
}

// transposeColumn puts count values of a size, which lie side by side in src, into dst
// at a distance of stride bytes.
func transposeColumn(dst, src []byte, count, stride, size int) {
	switch size {
	case 1:
		for i := range count {
			dst[i*stride] = src[i]
		}
	case 4:
		for i := range count {
			binary.NativeEndian.PutUint32(dst[i*stride:], binary.NativeEndian.Uint32(src[4*i:]))
		}
	case 8:
		for i := range count {
			binary.NativeEndian.PutUint64(dst[i*stride:], binary.NativeEndian.Uint64(src[8*i:]))
		}
	default:
		for i := range count {
			copy(dst[i*stride:i*stride+size], src[i*size:])
		}
	}
}

// atEnd returns nil if nothing follows the values, once all have been delivered.
func (c *columnOrder) atEnd() error {
	if rest := int64(c.n) * int64(c.d) * int64(c.a.size); c.s.at != nil && !c.s.sealed {
		if c.s.left() > rest {
			return errTrailing
		}
		return nil
	} else if c.s.at != nil {
		// The checksum is that of the bytes in their order.
		if _, err := io.CopyN(io.Discard, c.s.r, rest); err != nil {
			return explain(err)
		}
	}
	return c.s.atEnd()
}

// places returns for each value of a row, as it comes in C order, the column that holds
// it in Fortran order; nil where the two are the same.
func (a array) places() []int {
	if len(a.shape) <= 2 {
		return nil
	}
	_, d := a.rows()
	places := make([]int, d)
	index := make([]int, len(a.shape)-1)
	for e := range places {
		column := 0
		for k := len(index) - 1; k >= 0; k-- {
			column = column*a.shape[k+1] + index[k]
		}
		places[e] = column
		for k := len(index) - 1; k >= 0; k-- {
			if index[k]++; index[k] < a.shape[k+1] {
				break
			}
			index[k] = 0
		}
	}
	return places
}
