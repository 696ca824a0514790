package file

import (
	"fmt"
	"hash/crc32"
	"io"

	"cne/data"
)

const (
	// arrayBuffer is the number of bytes of an array that are read, and then converted on
	// all cores, at a time.
	arrayBuffer = 1 << 22
)

// castagnoli is the polynomial for which processors have an instruction, so that a
// checksum takes less time than reading.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// valueBytes are the bytes of the values of an array, in C order.
type valueBytes interface {
	// full fills p, or returns how much of it came and errShort or another error.
	full(p []byte) (int, error)
	// pass passes over n bytes of whole rows, before any is read, likewise.
	pass(n int64) (int64, error)
	// atEnd returns nil if nothing follows.
	atEnd() error
}

// An arrayReader reads the values of an array piece by piece, once the header has
// been read.
type arrayReader struct {
	head
	array
	values  valueBytes // in C order
	total   int        // values that the header announces
	done    int        // values read so far
	buf     []byte
	missing bool // labels may be NaN, and are empty then
}

// newArrayReader begins to read an array, having checked that the input can hold it as far
// as its size is known.
func newArrayReader(a array, in *Input) (*arrayReader, error) {
	n, d := a.rows()
	r := &arrayReader{array: a, total: n * d, values: in}
	if left := in.left(); left >= 0 && int64(r.total) > left/int64(a.size) {
		return nil, r.truncated(int(left) / a.size)
	}
	inOrder := !a.fortran || len(a.shape) < 2
	if !inOrder {
		r.values = newFortranReader(a, in)
	}
	r.head = head{in: in, n: n, width: d, shape: a.shape, dtype: a.String(), isByte: a.isByte(), exact: a.isFloat32(), finite: a.kind != 'f'}
	if r.isByte {
		r.head.bytes = r
	}
	switch {
	case inOrder && in.at != nil:
		r.storage = data.InFiles
	case inOrder && r.isByte:
		r.storage = data.AsBytes
	}
	return r, nil
}

// An arrayFormat is a format of one array, of which it reads the head.
type arrayFormat func(in *Input) (array, error)

// open begins to read points: an array of two or more dimensions, whose rows are flattened.
func (f arrayFormat) open(in *Input, _ *Options) (reader, error) {
	a, err := f(in)
	if err == nil {
		err = a.checkPoints()
	}
	if err != nil {
		return nil, err
	}
	return newArrayReader(a, in)
}

// labels begins to read an array of labels.
func (f arrayFormat) labels(in *Input) (*arrayReader, error) {
	a, err := f(in)
	if err != nil {
		return nil, err
	}
	if len(a.shape) != 0 {
		if _, d := a.rows(); d == 1 {
			return newArrayReader(a, in)
		}
	}
	return nil, errorf(data.ErrShape, "labels: got an array of shape %s, want one dimension; are these the points?", shapeText(a.shape))
}

// next returns the bytes of the next values, at most limit of them, and their
// number; or io.EOF after the last one, if the file ends there too. The bytes
// are valid until it is called again.
func (r *arrayReader) next(limit int) (src []byte, n int, err error) {
	if r.done == r.total {
		if err := r.values.atEnd(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	left := r.total - r.done
	if r.buf == nil {
		r.buf = make([]byte, min(r.total*r.size, readBuffer/r.size*r.size))
	} else if most := min(arrayBuffer, r.total/16*r.size) / r.size * r.size; len(r.buf) < most && left*r.size > most {
		r.buf = make([]byte, most) // now that some values have come
	}
	n = min(limit, left, len(r.buf)/r.size)
	got, err := r.values.full(r.buf[:n*r.size])
	if err != nil {
		return nil, 0, r.short(err, got)
	}
	if r.summed {
		r.sum = crc32.Update(r.sum, castagnoli, r.buf[:got])
	}
	r.done += n
	return r.buf, n, nil
}

// short explains why only so many of the bytes came that were to follow.
func (r *arrayReader) short(err error, got int) error {
	if err != errShort {
		return err
	}
	return r.truncated(r.done + got/r.size)
}

func (r *arrayReader) truncated(got int) error {
	return errorf(data.ErrFormat, "values: got %d, want %d (shape %s); the file is truncated", got, r.total, shapeText(r.array.shape))
}

// skip implements reader.
func (r *arrayReader) skip(rows int) (passed int, err error) {
	rows = min(rows, (r.total-r.done)/r.width)
	got, err := r.values.pass(int64(rows) * int64(r.width) * int64(r.size))
	if err != nil {
		return 0, r.short(err, int(got))
	}
	r.done += rows * r.width
	return rows, nil
}

// read implements reader.
func (r *arrayReader) read(dst []float32) (int, error) {
	return r.each(len(dst), func(filled int, src []byte, n int) { r.convertAll(r.scalarType, dst[filled:filled+n], src, r.done-n) })
}

// readBytes implements byteReader.
func (r *arrayReader) readBytes(dst []byte) (int, error) {
	return r.each(len(dst), func(filled int, src []byte, n int) { copy(dst[filled:], src[:n]) })
}

// each gives so many of the next values to put, in pieces, and returns their number. After
// the last value it returns io.EOF.
func (r *arrayReader) each(want int, put func(filled int, src []byte, n int)) (filled int, err error) {
	for filled < want || r.done == r.total {
		src, n, err := r.next(want - filled)
		if err != nil {
			return filled, err
		}
		put(filled, src, n)
		filled += n
	}
	return filled, nil
}

// appendLabels reads values, at most limit of them, as labels; after the last
// one it returns io.EOF, if the file ends there too.
func (r *arrayReader) appendLabels(labels []string, limit int) ([]string, error) {
	first := r.done
	src, n, err := r.next(limit)
	if err != nil {
		return labels, err
	}
	for i := range n {
		label, err := r.label(src, i, r.missing)
		if err != nil {
			return labels, fmt.Errorf("label %d: %w", first+i+1, err)
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// allLabels reads all values as labels.
func (r *arrayReader) allLabels() ([]string, error) {
	labels := make([]string, 0, r.in.trusted(r.total, false))
	for {
		var err error
		if labels, err = r.appendLabels(labels, r.total); err == io.EOF {
			return labels, nil
		} else if err != nil {
			return nil, err
		}
	}
}
