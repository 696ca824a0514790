package data

import (
	"io"

	"cne/internal/finite"
)

// A body reads the values of an array piece by piece, once the header has
// been read.
type body struct {
	array
	s     *source
	total int // values that the header announces
	done  int // values read so far
	buf   []byte
}

// newBody begins to read n·d values, having checked that the source can hold
// them as far as its size is known.
func newBody(a array, s *source) (*body, error) {
	n, d := a.rows()
	b := &body{array: a, s: s, total: n * d}
	if left := s.left(); left >= 0 && int64(b.total) > left/int64(a.size) {
		return nil, errorf(ErrFormat, "the header announces %d values (shape %s, %d bytes each), but only %d bytes follow it; the file is truncated, fetch or write it again",
			b.total, shapeText(a.shape), a.size, left)
	}
	return b, nil
}

// next returns the bytes of the next values, at most limit of them, and their
// number; or io.EOF after the last one, if the file ends there too. The bytes
// are valid until it is called again.
func (b *body) next(limit int) (src []byte, n int, err error) {
	if b.done == b.total {
		if err := b.s.atEnd(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	if b.buf == nil {
		b.buf = make([]byte, readBuffer)
	}
	n = min(limit, b.total-b.done, len(b.buf)/b.size)
	got, err := b.s.full(b.buf[:n*b.size])
	if err == errShort {
		return nil, 0, errorf(ErrFormat, "the file ends after %d of the %d values that its header announces (shape %s); it is truncated, fetch or write it again",
			b.done+got/b.size, b.total, shapeText(b.shape))
	}
	if err != nil {
		return nil, 0, err
	}
	b.done += n
	return b.buf, n, nil
}

// read implements valueReader.
func (b *body) read(dst []float32) (int, error) {
	for filled := 0; ; {
		if filled == len(dst) && b.done < b.total {
			return filled, nil
		}
		src, n, err := b.next(len(dst) - filled)
		if err != nil {
			return filled, err
		}
		b.float32s(dst[filled:filled+n], src)
		filled += n
	}
}

// step implements valueReader.
func (b *body) step() int { return min(1, b.total-b.done) }

// room implements valueReader. Without a size that vouches for the header,
// room grows by doubling.
func (b *body) room(done int) int {
	if done == 0 {
		return b.s.trusted(b.total)
	}
	return min(b.total-b.done, max(done, readBuffer))
}

// takeLabels implements valueReader: an array has none among its values.
func (b *body) takeLabels() []string { return nil }

// appendLabels reads values, at most limit of them, as labels; after the last
// one it returns io.EOF, if the file ends there too.
func (b *body) appendLabels(labels []string, limit int) ([]string, error) {
	first := b.done
	src, n, err := b.next(limit)
	if err != nil {
		return labels, err
	}
	for i := range n {
		if b.kind == 'f' {
			if v := b.float(src, i); !finite.Is(v) {
				return labels, errorf(ErrNotFinite, "label %d (counted from 1) is %v; give every point a finite label", first+i+1, v)
			}
		}
		labels = append(labels, b.text(src, i))
	}
	return labels, nil
}

// readLabels reads all values as labels.
func (b *body) readLabels() ([]string, error) {
	labels := make([]string, 0, b.s.trusted(b.total))
	for {
		var err error
		labels, err = b.appendLabels(labels, b.total)
		if err == io.EOF {
			return labels, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
