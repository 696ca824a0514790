package data

import (
	"archive/zip"
	"context"
	"fmt"
	"io"

	"cne/internal/text"
)

// A valueReader reads the points of one file, value after value.
type valueReader interface {
	// read fills dst with the values that come next, a table with as many
	// whole rows as there is room for, and returns their number. With the last
	// ones, or after them, comes io.EOF; other errors, too, may come with
	// values, which are then sound.
	read(dst []float32) (int, error)
	// step returns the least number of values that read needs room for, 0 at
	// the end.
	step() int
	// room returns for how many more values it is reasonable to make room
	// after done ones; at least step.
	room(done int) int
	// skip passes over so many of the rows that come next, or over all that there are, and
	// returns their number. Nothing must have been read.
	skip(rows int) (passed int, err error)
	// takeLabels returns the labels of the rows read since it was called last.
	takeLabels() []string
	// relate says, before anything is read, how values become float32.
	relate(to relation)
}

// A relation is how values become float32.
type relation struct {
	offset []float64 // subtracted from each column; nil: nothing
	sample *sample   // gets values as they are; nil: none are wanted
	before int       // rows of earlier files
	// table has what each byte becomes, in place of itself less the offset; nil for
	// values that are no bytes.
	table *[256]float32
}

// A stream is an open file of points.
type stream struct {
	part
	d       int      // values per point
	left    []string // names of columns that are none of Options.Columns
	counted bool     // the header counts 0, 1, 2, …, as points may
	labeled bool     // the points have labels, in the file or beside it
	values  valueReader
	array   string // the name of the points within an archive
	// Labels that are an array of their own, and the name of its file, or of
	// its file and itself; nil otherwise.
	beside     *arrayReader
	besideName string
	closers    []io.Closer
}

// maxStreams is how many files are open at the same time.
const maxStreams = 64

// streams are several files, to be read one after the other. The heads of as many
// as can be open at the same time are read at once, so that their faults and
// sizes are known before any of them is read; those of the others when their turn
// comes.
type streams struct {
	ctx    context.Context // of all reading
	opt    Options
	opened []*stream // and not yet taken
	files  []file    // not yet opened
}

// openStreams opens the first files. Errors name the file.
func openStreams(ctx context.Context, files []file, opt Options) (*streams, error) {
	s := &streams{ctx: ctx, opt: opt}
	for len(files) > 0 && len(s.opened) < maxStreams {
		st, err := openStream(ctx, files[0], opt)
		if err != nil {
			s.close()
			return nil, err
		}
		s.opened, files = append(s.opened, st), files[1:]
	}
	s.files = files
	return s, nil
}

// next returns the next file, which the caller closes.
func (s *streams) next() (st *stream, err error) {
	if len(s.opened) > 0 {
		st, s.opened = s.opened[0], s.opened[1:]
		return st, nil
	}
	st, err = openStream(s.ctx, s.files[0], s.opt)
	s.files = s.files[1:]
	return st, err
}

// more tells whether next has another file.
func (s *streams) more() bool { return len(s.opened)+len(s.files) > 0 }

// room returns the number of values in those files that are open and tell it,
// as far as the sizes of the files vouch for them.
func (s *streams) room() (values int) {
	for _, st := range s.opened {
		switch v := st.values.(type) {
		case *arrayReader, *parquetReader:
			values += v.room(0)
		}
	}
	return values
}

// close closes the files that have not been taken.
func (s *streams) close() {
	for _, st := range s.opened {
		st.close()
	}
	s.opened = nil
}

// openStream opens a file and reads as much of it as it takes to know the
// width of its points. Errors name the file.
func openStream(ctx context.Context, f file, opt Options) (*stream, error) {
	st := &stream{part: part{name: f.path}, labeled: f.labels != "" && len(opt.Labels) == 0}
	if err := st.open(ctx, f, opt); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (st *stream) open(ctx context.Context, f file, opt Options) error {
	s, format, c, err := openFile(ctx, f.path, false)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, c)
	if err := st.begin(s, format, opt); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if err := st.relate(opt); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// relate has points become relative to the offset of the options, if there is one.
func (st *stream) relate(opt Options) error {
	if opt.Offset == nil {
		return nil
	}
	if _, sparse := st.values.(*csrReader); sparse {
		return errorf(ErrSparse, "the points are sparse, but those that were trained on are relative to an offset, for their values were far from zero; make them dense (m.toarray())")
	}
	if st.d != len(opt.Offset) {
		return errorf(ErrShape, "the points have %d values, but those that were trained on have %d; give points of the same kind", st.d, len(opt.Offset))
	}
	st.values.relate(relation{offset: opt.Offset})
	return nil
}

// remark logs what a person may not expect of how the file is read. Which columns
// are taken is said of the first file alone: others have the same.
func (st *stream) remark(opt Options, first bool) {
	if opt.Log == nil {
		return
	}
	if st.counted {
		opt.Log.Info("the first line counts 0, 1, 2, … and is taken for column names; if it is a point, say that there is no header", "file", st.name)
	}
	switch {
	case first && len(opt.Columns) == 0 && len(st.left) > 0:
		opt.Log.Info("columns that are taken for no part of the points are left out", "file", st.name, "columns", text.Few(st.left, text.Printable))
	case !first || len(opt.Columns) == 0:
	case st.columns == nil:
		opt.Log.Info("the columns have no names and are taken in the order of training", "file", st.name)
	case len(st.left) > 0:
		opt.Log.Info("columns that were not trained on are left out", "file", st.name, "columns", text.Few(st.left, text.Printable))
	}
}

// begin reads the head of a file.
func (st *stream) begin(s *byteSource, format format, opt Options) error {
	switch format {
	case formatText:
		return st.beginTable(s, opt)
	case formatParquet:
		return st.beginParquet(s, opt)
	}
	if opt.LabelColumn != "" || len(opt.Drop)+len(opt.Only) > 0 {
		return errorf(ErrOption, "a label column or columns to take or drop are set, but this is an array whose columns have no names; use CSV or Parquet, or give the labels as a file of their own")
	}
	if format == formatNPZ {
		return st.beginArchive(s, len(opt.Labels) == 0)
	}
	return st.beginArray(s, format)
}

// beginArchive begins to read the points in an archive of arrays and, if they
// are wanted and there are no others, the labels beside them.
func (st *stream) beginArchive(s *byteSource, wanted bool) error {
	z, err := openNPZ(s)
	if err != nil {
		return err
	}
	var points *zip.File
	if z.isSparse() {
		err = st.beginSparse(z)
	} else if points, err = z.points(); err == nil {
		err = st.beginMember(z, points)
	}
	if err != nil {
		return err
	}
	labels := z.labels()
	if labels == nil || labels == points || !wanted || st.labeled {
		return nil
	}
	inner, c, err := z.open(labels)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, c)
	if st.beside, err = npyLabels(inner); err != nil {
		return inArray(labels.Name, err)
	}
	if n := st.announced(); st.beside.total != n {
		return errorf(ErrLabels, "the array %s has %d labels for %d points; give one label per point", labels.Name, st.beside.total, n)
	}
	st.besideName = fmt.Sprintf("%s: the array %s", st.name, labels.Name)
	st.labeled = true
	return nil
}

// beginMember begins to read the points that are an array of an archive.
func (st *stream) beginMember(z *npz, points *zip.File) error {
	inner, c, err := z.open(points)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, c)
	st.array = points.Name
	if err := st.beginArray(inner, formatNPY); err != nil {
		return inArray(points.Name, err)
	}
	return nil
}

// beginSparse begins to read the points that an archive holds as a sparse matrix.
func (st *stream) beginSparse(z *npz) error {
	r, err := z.beginCSR()
	if err != nil {
		return err
	}
	st.closers = append(st.closers, r)
	switch {
	case r.n == 0 || r.d == 0:
		return errorf(ErrEmpty, "the sparse matrix has %d rows and %d columns; points need at least one of each", r.n, r.d)
	case r.value.kind == 'c':
		return inArray(r.value.name, errorf(ErrUnsupported, "its values are complex numbers; convert it with m.real.astype('float32')"))
	}
	st.values, st.d, st.bytes = r, r.d, r.value.isByte()
	return nil
}

// announced returns how many points the head of an array, or of a sparse matrix, says
// that there are.
func (st *stream) announced() int {
	if r, ok := st.values.(*csrReader); ok {
		return r.n
	}
	return st.values.(*arrayReader).shape[0]
}

func (st *stream) beginArray(s *byteSource, f format) error {
	a, err := f.header(s)
	if err != nil {
		return err
	}
	if _, st.d, err = a.points(); err != nil {
		return err
	}
	b, err := newArrayReader(a, s)
	if err != nil {
		return err
	}
	st.values, st.bytes = b, a.isByte()
	return nil
}

func (st *stream) beginTable(s *byteSource, opt Options) error {
	t, err := newTable(s, opt)
	if err != nil {
		return err
	}
	st.values, st.d, st.columns, st.left, st.counted = t, t.width, t.columns, t.left, t.counted
	st.labeled = st.labeled || t.labeled
	return nil
}

// pairLabels opens the file with the labels of the points, an array beside
// another one, as those of MNIST are.
func (st *stream) pairLabels(ctx context.Context, path string) error {
	s, format, c, err := openFile(ctx, path, false)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, c)
	var inner io.Closer
	if st.beside, inner, err = labelArray(s, format); inner != nil {
		st.closers = append(st.closers, inner)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if n := st.announced(); st.beside.total != n {
		return miscounted(st.beside.total, n, fmt.Sprintf("%s: %d", path, st.beside.total))
	}
	st.besideName = path
	return nil
}

// follows checks that the points of st can stand below those of first.
func (st *stream) follows(first *stream) error {
	switch {
	case st.d != first.d:
		return errorf(ErrShape, "%s: its points have %d values, those of %s have %d; files that are read together must have points of one width", st.name, st.d, first.name, first.d)
	case st.labeled != first.labeled:
		without := st
		if st.labeled {
			without = first
		}
		return errorf(ErrLabels, "%s: this file has no labels although others have; give labels for all files or for none", without.name)
	case st.columns == nil || first.columns == nil:
		return nil
	}
	for i, name := range first.columns {
		if st.columns[i] != name {
			return errorf(ErrShape, "%s: its data column %d (counted from 1, without labels and dropped columns) is %q, that of %s is %q; files that are read together must have the same columns in the same order", st.name, i+1, st.columns[i], first.name, name)
		}
	}
	return nil
}

// explain adds the file's name, if it has one, to an error of reading.
func (st *stream) explain(err error) error {
	if st.array != "" {
		err = inArray(st.array, err)
	}
	if st.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", st.name, err)
}

// readAll appends all points of the file to b.
func (st *stream) readAll(b *builder) error {
	if r, sparse := st.values.(*csrReader); sparse {
		return st.readSparse(b, r)
	}
	if b.rows != nil {
		return errorf(ErrShape, "%s: these points are dense, but others are sparse; files that are read together must hold points of one kind", st.name)
	}
	b.d = st.d
	before := len(b.x)
	for {
		done := len(b.x) - before
		if cap(b.x)-len(b.x) < st.values.step() {
			b.reserve(st.values.room(done))
		}
		n, err := st.values.read(b.x[len(b.x):cap(b.x)])
		b.x = b.x[:len(b.x)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return st.explain(err)
		}
	}
	st.rows = (len(b.x) - before) / st.d
	st.labels = st.values.takeLabels()
	return st.readBeside()
}

// readSparse is readAll of sparse points.
func (st *stream) readSparse(b *builder, r *csrReader) error {
	if len(b.x) > 0 {
		return errorf(ErrShape, "%s: these points are sparse, but others are dense; files that are read together must hold points of one kind", st.name)
	}
	rows, err := r.all()
	if err != nil {
		return st.explain(err)
	}
	b.d, b.rows = st.d, append(b.rows, rows)
	st.rows = r.n
	return st.readBeside()
}

// readBeside reads the labels that are an array of their own.
func (st *stream) readBeside() error {
	if st.beside != nil {
		var err error
		if st.labels, err = st.beside.readLabels(); err != nil {
			return fmt.Errorf("%s: %w", st.besideName, err)
		}
	}
	return nil
}

func (st *stream) close() error {
	var first error
	for _, c := range st.closers {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	st.closers = nil
	return first
}
