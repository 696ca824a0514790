package data

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
)

const (
	// storedBuffer is the number of bytes of an array that are read, and then converted
	// on all cores, at a time.
	storedBuffer = 1 << 22
	// convertGrain is the number of values that are converted in one piece.
	convertGrain = 1 << 16
)

// castagnoli is the polynomial for which processors have an instruction, so that a
// checksum takes less time than reading.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stored is points that stay where they are and are read again each time: in plain
// arrays, IDX or npy files, or as bytes in memory.
type stored struct {
	opt    Options // with which files are opened
	n, d   int
	offset []float64
	table  *[256]float32 // what bytes become; nil for what they are
	parts  []*storedPart
	finite bool // no value is NaN or infinite
}

// A storedPart is what one file contributes.
type storedPart struct {
	file
	array
	bytes []byte      // the values, where they are in memory
	info  fs.FileInfo // otherwise, of the file as it was first read
	sum   *uint32     // checksum of the values, once they have been read
}

// storage tells how the points of an open file can be left where they are, InMemory if
// they cannot.
func (st *stream) storage() Storage {
	a, ok := st.values.(*arrayReader)
	switch {
	case !ok, a.fortran && len(a.shape) > 1: // whose points are not one after the other
		return InMemory
	case a.s.at != nil && st.array == "":
		return InFiles
	case a.isByte():
		return AsBytes
	}
	return InMemory
}

// staysWhereItIs tells whether n points of d values are left where they are, if their
// storage lets them. Of fewer points than values the principal components need all at
// once.
func (opt Options) staysWhereItIs(n, d int) bool {
	return opt.BlocksAbove > 0 && d > opt.BlocksAbove && n >= d
}

// openStored leaves the points of files where they are, if the options want it and all
// can; if not, or if something is wrong with a file, which reading says best, it returns
// nil.
func openStored(ctx context.Context, files []file, opt Options) (*Dataset, error) {
	if opt.BlocksAbove < 1 || !canReadAgain(files) {
		return nil, nil
	}
	n, d := 0, 0
	for _, f := range files {
		st, err := openStream(ctx, f, opt)
		if err != nil {
			return nil, ctx.Err()
		}
		st.close()
		if st.storage() == InMemory || d != 0 && st.d != d {
			return nil, nil
		}
		n, d = n+st.values.(*arrayReader).total/st.d, st.d
	}
	if !opt.staysWhereItIs(n, d) {
		return nil, nil
	}

	s := &stored{opt: opt, d: d, offset: opt.Offset, finite: true}
	ds := &Dataset{Stored: s, Bytes: opt.Offset == nil}
	s.opt.Log = nil
	exact := true
	var first *stream
	var labels []string
	for _, f := range files {
		p, st, err := s.add(ctx, f)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = st
		}
		if err := st.follows(first); err != nil {
			return nil, err
		}
		st.remark(opt, st == first)
		labels, st.labels = append(labels, st.labels...), nil
		ds.parts = append(ds.parts, st.part)
		ds.Bytes = ds.Bytes && st.bytes
		exact = exact && p.isFloat32()
		s.finite = s.finite && p.kind != 'f'
	}
	if labels != nil {
		ds.Labels = NewLabels(labels)
	}
	if !exact && opt.Offset == nil {
		sampled := newSample(d)
		if err := s.each(ctx, 0, sampled, func(int, *Matrix) error { return nil }); err != nil {
			return nil, err
		}
		columns := sampled.inexact()
		s.offset = chooseOffsets(columns)
		remarkRounding(opt.Log, columns, nil, s.offset, false)
	}
	if err := ds.check(ctx); err != nil {
		return nil, err
	}
	s.finite = true
	return ds, nil
}

// add opens a further file, with its labels, and closes it.
func (s *stored) add(ctx context.Context, f file) (*storedPart, *stream, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, nil, fmt.Errorf("the data cannot be read (%w); check the path", err)
	}
	st, err := openStream(ctx, f, s.opt)
	if err != nil {
		return nil, nil, err
	}
	defer st.close()
	p := &storedPart{file: f, info: info}
	if st.storage() == InMemory || st.d != s.d { // unlike a moment ago
		return nil, nil, p.changed()
	}
	values := st.values.(*arrayReader)
	p.array = values.array
	if st.storage() == AsBytes {
		p.info = nil
		if p.bytes, err = values.readBytes(); err != nil {
			return nil, nil, st.explain(err)
		}
	}
	if st.rows = values.total / st.d; st.beside != nil {
		if st.labels, err = st.beside.readLabels(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", st.besideName, err)
		}
	} else if st.labeled {
		if st.labels, err = readLabelFiles(ctx, []string{f.labels}, st.rows); err != nil {
			return nil, nil, err
		}
	}
	s.n += st.rows
	s.parts = append(s.parts, p)
	return p, st, nil
}

// open begins to read the values of a part.
func (p *storedPart) open(ctx context.Context) (*arrayReader, io.Closer, error) {
	if p.bytes != nil {
		raw := &counter{ctx: ctx, r: bytes.NewReader(p.bytes)} // in which no gzip is to be seen
		r, err := newArrayReader(p.array, &byteSource{r: bufio.NewReader(raw), raw: raw, size: int64(len(p.bytes))})
		return r, io.NopCloser(nil), err
	}
	if err := p.checkFile(); err != nil {
		return nil, nil, err
	}
	s, format, c, err := openFile(ctx, p.path, false)
	if err != nil {
		return nil, nil, err
	}
	a, err := format.header(s)
	if err == nil && (a.scalarType != p.scalarType || !slices.Equal(a.shape, p.shape)) {
		err = p.changed()
	}
	var r *arrayReader
	if err == nil {
		r, err = newArrayReader(a, s)
	}
	if err != nil {
		c.Close()
		return nil, nil, p.explain(err)
	}
	r.buf = make([]byte, min(storedBuffer, max(a.size, r.total*a.size)))
	return r, c, nil
}

// explain returns the error of reading a part, which may be that the file has changed.
func (p *storedPart) explain(err error) error {
	switch changed := p.checkFile(); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrChanged):
		return err
	case changed != nil:
		return changed
	}
	return fmt.Errorf("%s: %w", p.path, err)
}

// checkFile reports a file that is another than that which was first read.
func (p *storedPart) checkFile() error {
	if p.bytes != nil {
		return nil
	}
	info, err := os.Stat(p.path)
	if err == nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() && info.ModTime().Equal(p.info.ModTime()) {
		return nil
	}
	return p.changed()
}

// checkSum reports values that are others than those that were first read.
func (p *storedPart) checkSum(sum uint32) error {
	if p.sum == nil {
		p.sum = &sum
	}
	if *p.sum != sum {
		return p.changed()
	}
	return p.checkFile()
}

func (p *storedPart) changed() error {
	return errorf(ErrChanged, "%s has changed while it was read, which takes several passes; begin again, and leave the file as it is until its points are read", p.path)
}

// Dims implements Source.
func (s *stored) Dims() (n, d int) { return s.n, s.d }

// Block implements Source.
func (s *stored) Block(n int) *Matrix {
	m := NewMatrix(n, s.d)
	m.Offset = s.offset
	return m
}

// Each implements Source.
func (s *stored) Each(ctx context.Context, rows int, f func(lo int, block *Matrix) error) error {
	return s.each(ctx, rows, nil, f)
}

// each is Each; a sample of the values, if one is wanted, is taken on the way.
func (s *stored) each(ctx context.Context, rows int, sampled *sample, f func(lo int, block *Matrix) error) error {
	if rows <= 0 {
		rows = BlockRows(s.d)
	}
	block := s.Block(min(rows, s.n))
	delivered, filled := 0, 0 // rows, and values of the block
	deliver := func() error {
		lo, n := delivered, filled/s.d
		delivered, filled = lo+n, 0
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(lo, block.Rows(0, n))
	}
	before := 0
	for _, p := range s.parts {
		r, c, err := p.open(ctx)
		if err != nil {
			return err
		}
		sum := uint32(0)
		r.sum = &sum
		r.relate(relation{offset: s.offset, sample: sampled, before: before, table: s.table})
		var refused error // by f
		for err == nil && refused == nil {
			var got int
			got, err = r.read(block.X[filled:])
			if filled += got; filled == len(block.X) {
				refused = deliver()
			}
		}
		c.Close()
		if refused != nil {
			return refused
		}
		if err != io.EOF {
			return p.explain(err)
		}
		if err := p.checkSum(sum); err != nil {
			return err
		}
		before += r.total / s.d
	}
	if filled > 0 {
		return deliver()
	}
	return nil
}
