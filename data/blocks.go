package data

import (
	"context"
	"fmt"
	"io"

	"cne/internal/finite"
)

// Blocks reads points from files as Open does, but a block of rows at a time,
// so that the memory it takes depends on the width of the points alone and
// not on their number. Rows that hold NaN or infinite values are delivered
// like all others, for the caller to refuse (CheckFinite) or to leave out.
//
// Blocks is not safe for use by several goroutines at once.
type Blocks struct {
	files   *streams // those whose turn has not come
	labelOf []string // files with the labels of these, "" for none
	several bool
	first   *stream // the first file, for comparison with the others
	current *stream
	parts   []part // of all files opened so far, without their labels
	begun   int    // rows delivered before the last block
	rows    int    // rows delivered in all
	labels  []string
	opt     Options
	err     error // what Next returns from now on
}

// OpenBlocks opens files as Open does, with the same options, formats and
// errors, for reading in blocks. Labels come from Options.LabelColumn, from a
// folder or from an npz file; Options.Labels, whose headings can be recognised
// only when all points have been counted, gives ErrOption.
//
// Much of what can be wrong with a file shows only when it is read; the heads of
// the first 64 files, however, are all looked at now. When ctx ends, so does reading,
// with its error.
func OpenBlocks(ctx context.Context, paths []string, opt Options) (*Blocks, error) {
	if len(opt.Labels) > 0 {
		return nil, errorf(ErrOption, "labels from a file of their own (%s) cannot be read along with blocks of points; give the labels as a column of a table, or leave them out", opt.Labels[0])
	}
	files, err := findFiles(paths, opt)
	if err != nil {
		return nil, err
	}
	b := &Blocks{several: len(files) > 1, opt: opt}
	for _, f := range files {
		b.labelOf = append(b.labelOf, f.labels)
	}
	if b.files, err = openStreams(ctx, files, opt); err != nil {
		return nil, err
	}
	if err := b.open(); err != nil {
		b.files.close()
		return nil, err
	}
	return b, nil
}

// open goes on to the next file.
func (b *Blocks) open() error {
	st, err := b.files.next()
	if err != nil {
		return err
	}
	labels := b.labelOf[0]
	b.labelOf = b.labelOf[1:]
	if b.first == nil {
		b.first = st
	}
	err = st.follows(b.first)
	if err == nil && labels != "" {
		err = st.pairLabels(b.files.ctx, labels)
	}
	if err != nil {
		st.close()
		return err
	}
	st.remark(b.opt, st == b.first)
	if t, ok := st.values.(*table); ok {
		t.lenient = true
	}
	b.current = st
	b.parts = append(b.parts, st.part)
	return nil
}

// goOn leaves the current file, of which nothing more is wanted, for the next; io.EOF
// tells that there is none.
func (b *Blocks) goOn() error {
	if !b.files.more() {
		return io.EOF
	}
	b.current.close()
	return b.open()
}

// D returns the number of values per point. A header can claim any number:
// who expects a certain one compares before making room for a block.
func (b *Blocks) D() int { return b.first.d }

// Next fills dst, whose width is D and whose number of rows is that of the
// largest block wanted, with the rows that come next, and returns how many it
// has filled: all of them but in the last block. After the last row it
// returns 0 and io.EOF, after an error 0 and that error, again and again. An
// error in a file takes nothing back of the rows before it, which have been
// delivered. A dst of another width or without rows gives ErrShape or
// ErrEmpty, and reading can go on. The rows have the Columns of the points, and the
// Offset of the options.
func (b *Blocks) Next(dst *Matrix) (n int, err error) {
	if err := dst.check(); err != nil {
		return 0, err
	}
	if dst.D != b.D() {
		return 0, errorf(ErrShape, "the block has rows of %d values, the points have %d; make it %d×%[2]d", dst.D, b.D(), dst.N)
	}
	dst.Columns, dst.Offset = b.first.columns, b.opt.Offset
	b.begun = b.rows
	b.labels = b.labels[:0]
	for n < dst.N && b.err == nil {
		var got int
		got, b.err = b.current.readRows(dst.X[n*dst.D:], &b.labels)
		n += got
		b.rows += got
		b.parts[len(b.parts)-1].rows += got
		if b.err == io.EOF {
			b.err = b.goOn()
		}
	}
	if n == 0 {
		return 0, b.err
	}
	return n, nil
}

// Skip skips so many rows before Next is called, or all if there are fewer, and returns
// their number. It does not read them where the format says where a row lies.
func (b *Blocks) Skip(rows int) (skipped int, err error) {
	for b.err == nil && b.rows < rows {
		var got int
		got, b.err = b.current.skipRows(rows - b.rows)
		b.rows += got
		b.parts[len(b.parts)-1].rows += got
		if b.err == nil && b.rows < rows {
			b.err = b.goOn()
		}
	}
	if b.err != io.EOF {
		err = b.err
	}
	return b.rows, err
}

// Labels returns the labels of the last block's rows, as they are written in
// the file but for white space around them, or nil if the points have none.
// The slice is overwritten by Next.
func (b *Blocks) Labels() []string {
	if !b.first.labeled {
		return nil
	}
	return b.labels
}

// Labeled tells whether the points have labels.
func (b *Blocks) Labeled() bool { return b.first.labeled }

// Bytes tells whether all files opened so far hold unsigned bytes, as images
// do. (See Dataset.Bytes.)
func (b *Blocks) Bytes() bool {
	for _, p := range b.parts {
		if !p.bytes {
			return false
		}
	}
	return true
}

// Row names row i, counted from 0 over all files, for a reader who counts
// from 1: with its file and its number there. Rows that Skip skipped count.
func (b *Blocks) Row(i int) string { return describeRow(b.parts, b.several, i) }

// CheckFinite returns an error of kind ErrNotFinite that names the first
// value among the n rows of the last block, which block holds, that is NaN or
// infinite; or nil.
func (b *Blocks) CheckFinite(block *Matrix, n int) error {
	if at := finite.First(block.X[:n*block.D]); at >= 0 {
		return notFinite(b.Row(b.begun+at/block.D), at%block.D, block.X[at])
	}
	return nil
}

// Close closes the files. Next must not be called after it.
func (b *Blocks) Close() error {
	b.files.close()
	if b.current == nil {
		return nil
	}
	return b.current.close()
}

// readRows fills dst with whole rows and appends their labels; with the last
// rows of the file, or after them, comes io.EOF.
func (st *stream) readRows(dst []float32, labels *[]string) (rows int, err error) {
	got, err := st.values.read(dst)
	rows = got / st.d
	if st.beside == nil {
		*labels = append(*labels, st.values.takeLabels()...)
	}
	if err != nil && err != io.EOF {
		err = st.explain(err)
	}
	if st.beside == nil {
		return rows, err
	}
	return st.besideRows(labels, rows, err)
}

// skipRows skips rows, at most to the end of the file, and their labels.
func (st *stream) skipRows(rows int) (skipped int, err error) {
	if skipped, err = st.values.skip(rows); err != nil {
		return skipped, st.explain(err)
	}
	if st.beside != nil {
		if _, err := st.beside.skip(skipped); err != nil {
			return skipped, fmt.Errorf("%s: %w", st.besideName, err)
		}
	}
	return skipped, nil
}

// besideRows appends the labels of the rows that were read last, which are an array of
// their own; err is that of reading the rows.
func (st *stream) besideRows(labels *[]string, rows int, err error) (int, error) {
	have := len(*labels)
	for len(*labels) < have+rows {
		var errLabels error
		if *labels, errLabels = st.beside.appendLabels(*labels, have+rows-len(*labels)); errLabels != nil {
			*labels = (*labels)[:have]
			return 0, fmt.Errorf("%s: %w", st.besideName, errLabels)
		}
	}
	if err == io.EOF {
		// The end of the labels is checked, too.
		if _, _, errLabels := st.beside.next(1); errLabels != io.EOF {
			err = fmt.Errorf("%s: %w", st.besideName, errLabels)
		}
	}
	return rows, err
}
