package data

import (
	"hash/crc32"
	"io"
	"math"

	"cne/internal/finite"
	"cne/internal/parallel"
)

// valueBytes are the bytes of the values of an array, in C order.
type valueBytes interface {
	// full fills p, or returns how much of it came and errShort or another error.
	full(p []byte) (int, error)
	// skip passes over n bytes of whole rows, before any is read, likewise.
	skip(n int64) (int64, error)
	// atEnd returns nil if nothing follows.
	atEnd() error
}

// An arrayReader reads the values of an array piece by piece, once the header has
// been read.
type arrayReader struct {
	array
	s     *byteSource // as it is stored
	bytes valueBytes  // in C order
	d     int         // values per row
	total int         // values that the header announces
	done  int         // values read so far
	buf   []byte
	sum   *uint32 // checksum of the bytes read so far; nil if none is wanted
	relation
	missing bool // labels may be NaN, and are empty then
}

// newArrayReader begins to read n·d values, having checked that the source can hold
// them as far as its size is known.
func newArrayReader(a array, s *byteSource) (*arrayReader, error) {
	n, d := a.rows()
	r := &arrayReader{array: a, s: s, d: d, total: n * d}
	if left := s.left(); left >= 0 && int64(r.total) > left/int64(a.size) {
		return nil, errorf(ErrFormat, "the header announces %d values (shape %s, %d bytes each), but only %d bytes follow it; the file is truncated, fetch or write it again",
			r.total, shapeText(a.shape), a.size, left)
	}
	r.bytes = s
	if a.fortran && len(a.shape) > 1 {
		r.bytes = newColumnOrder(a, s)
	}
	return r, nil
}

// next returns the bytes of the next values, at most limit of them, and their
// number; or io.EOF after the last one, if the file ends there too. The bytes
// are valid until it is called again.
func (r *arrayReader) next(limit int) (src []byte, n int, err error) {
	if r.done == r.total {
		if err := r.bytes.atEnd(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	if r.buf == nil {
		r.buf = make([]byte, readBuffer)
	}
	n = min(limit, r.total-r.done, len(r.buf)/r.size)
	got, err := r.bytes.full(r.buf[:n*r.size])
	if err != nil {
		return nil, 0, r.short(err, got)
	}
	if r.sum != nil {
		*r.sum = crc32.Update(*r.sum, castagnoli, r.buf[:got])
	}
	r.done += n
	return r.buf, n, nil
}

// short explains why only so many of the bytes came that were to follow.
func (r *arrayReader) short(err error, got int) error {
	if err != errShort {
		return err
	}
	return errorf(ErrFormat, "the file ends after %d of the %d values that its header announces (shape %s); it is truncated, fetch or write it again",
		r.done+got/r.size, r.total, shapeText(r.shape))
}

// skip implements valueReader.
func (r *arrayReader) skip(rows int) (passed int, err error) {
	rows = min(rows, (r.total-r.done)/r.d)
	got, err := r.bytes.skip(int64(rows) * int64(r.d) * int64(r.size))
	if err != nil {
		return 0, r.short(err, int(got))
	}
	r.done += rows * r.d
	return rows, nil
}

// read implements valueReader.
func (r *arrayReader) read(dst []float32) (int, error) {
	for filled := 0; ; {
		if filled == len(dst) && r.done < r.total {
			return filled, nil
		}
		src, n, err := r.next(len(dst) - filled)
		if err != nil {
			return filled, err
		}
		r.convertAll(dst[filled:filled+n], src, r.done-n)
		filled += n
	}
}

// convertAll is convert on all cores, unless a sample is taken on the way.
func (r *arrayReader) convertAll(dst []float32, src []byte, first int) {
	if r.sample != nil {
		r.convert(dst, src, first)
		return
	}
	parallel.For(len(dst), convertGrain, func(_, lo, hi int) { r.convert(dst[lo:hi], src[lo*r.size:], first+lo) })
}

// convert converts the values in src, the first of which is value first of all.
func (r *arrayReader) convert(dst []float32, src []byte, first int) {
	if r.sample != nil && !r.isFloat32() {
		r.sampleFrom(src, first, len(dst))
	}
	if r.table != nil {
		for i := range dst {
			dst[i] = r.table[src[i]]
		}
		return
	}
	r.float32s(dst, src)
	if r.offset == nil {
		return
	}
	j := first % r.d
	for i := range dst {
		if c := r.offset[j]; c != 0 {
			dst[i] = float32(r.less(src, i, c))
		}
		if j++; j == r.d {
			j = 0
		}
	}
}

// sampleFrom adds those of the n values in src to the sample that are in one of its
// rows.
func (r *arrayReader) sampleFrom(src []byte, first, n int) {
	for i := first / r.d; i*r.d < first+n; i++ {
		row := r.sample.row(r.before + i)
		if row == nil {
			continue
		}
		from := max(0, i*r.d-first)
		for k := from; k < min(n, (i+1)*r.d-first); k++ {
			row[first+k-i*r.d] = r.less(src, k, 0)
		}
	}
}

// step implements valueReader.
func (r *arrayReader) step() int { return min(1, r.total-r.done) }

// room implements valueReader. Without a size that vouches for the header,
// room grows by doubling.
func (r *arrayReader) room(done int) int {
	if done == 0 {
		return r.s.trusted(r.total)
	}
	return min(r.total-r.done, max(done, readBuffer))
}

// relate implements valueReader.
func (r *arrayReader) relate(to relation) { r.relation = to }

// takeLabels implements valueReader: an array has none among its values.
func (r *arrayReader) takeLabels() []string { return nil }

// readBytes returns the values, which are bytes, as they are.
func (r *arrayReader) readBytes() ([]byte, error) {
	x := make([]byte, 0, r.room(0))
	for {
		src, n, err := r.next(r.total)
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return nil, err
		}
		x = append(x, src[:n]...)
	}
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
		if r.kind == 'f' {
			if v := r.float(src, i); r.missing && math.IsNaN(v) {
				labels = append(labels, "")
				continue
			} else if !finite.Is(v) {
				return labels, errorf(ErrNotFinite, "label %d (counted from 1) is %v; give every point a finite label", first+i+1, v)
			}
		}
		label, err := r.text(src, i)
		if err != nil {
			return labels, errorf(ErrFormat, "label %d (counted from 1) %w", first+i+1, err)
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// readLabels reads all values as labels.
func (r *arrayReader) readLabels() ([]string, error) {
	labels := make([]string, 0, r.s.trusted(r.total))
	for {
		var err error
		labels, err = r.appendLabels(labels, r.total)
		if err == io.EOF {
			return labels, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
