// Package file reads and writes files of points.
//
// Open recognizes the format of each file and returns Rows, to be read in blocks. Read
// returns a data.Dataset, ReadRows a Dataset of some rows, Count the number of points, and
// Size an estimate of their size. Each format has one file here, and a line in format.go.
// WriteNPY and WriteCSV write points. NPYWriter and CSVWriter write them in
// blocks. BuiltinPrefix begins the paths of data embedded in the program.
//
// Errors name the file and, in text, the line, and are of package data's kinds.
package file

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"cne/data"
	"cne/internal/hdf5"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

// Rows are points that are read a block at a time, so their memory depends only on the
// width of the points; sparse ones are held in memory. Values may be NaN or infinite; see CheckFinite. Rows are not safe
// for use by several goroutines at once.
type Rows interface {
	// Width returns the number of values of a point. A file header can claim any number, so
	// check it before allocating a block.
	Width() int
	// Columns returns the names of the values; nil if they have none.
	Columns() []string
	// Len returns the number of all points, if it is known before they are read.
	Len() (n int, known bool)
	// Next fills dst with the next rows and returns their number, which is less than dst.N
	// only in the last block. After the last row every call returns 0 and io.EOF. After an
	// error every call returns 0 and that error; rows returned before an error are valid. dst
	// gets the Columns and the Offset of the points. The error wraps data.ErrShape for a dst
	// of another width, and data.ErrEmpty for one without rows; reading can then continue.
	Next(dst *data.Matrix) (n int, err error)
	// Labeled reports whether the points have labels.
	Labeled() bool
	// Labels returns the labels of the last block's rows as written, without surrounding
	// white space, or nil. Next overwrites them.
	Labels() []string
	// Skip skips rows, or all if there are fewer, and returns their number. If the format
	// allows seeking, it does not read them.
	Skip(rows int) (skipped int, err error)
	// RowName names row i, counted from 0 over all points, for a message.
	RowName(i int) string
	// Close closes the files. No other method may be called after it.
	Close() error
}

// Bytes is Rows of unsigned bytes in arrays, such as images.
type Bytes interface {
	Rows
	// Shapes returns the shapes of the open arrays. It returns none if a file is not an array
	// of unsigned bytes.
	Shapes() [][]int
	// ReadBytes reads all values, not converted, and the labels.
	ReadBytes() (values []byte, labels []string, err error)
	// Parts returns the files opened so far, with the number of rows read of each.
	Parts() []data.Part
}

// Sparse is Rows of points that are sparse in their files: a matrix of scipy or in the
// Matrix Market format.
type Sparse interface {
	Rows
	// ReadSparse reads all points (Matrix.CSR). For dense points the error wraps
	// data.ErrUnsupported.
	ReadSparse() (*data.Matrix, error)
}

// CheckFinite returns an error wrapping data.ErrNotFinite that names the first NaN or
// infinity of a block, or nil. first is the index of the block's first row.
func CheckFinite(rows Rows, first int, block *data.Matrix) error {
	if at := simd.FirstNotFinite(block.X); at >= 0 {
		return data.NotFinite(rows.RowName(first+at/block.D), block.Columns, at%block.D, block.X[at])
	}
	return nil
}

// Open opens files. They are read one after the other in the order of paths, until ctx is
// done. The format of each is recognized from its content and name: IDX, npy, CSV and TSV
// or Matrix Market, each plain or compressed with gzip; npz, as np.savez or
// scipy.sparse.save_npz writes it; or Parquet. A folder stands for the four files of MNIST
// (all 70 000 points), Kuzushiji-49 (270 912) or Kuzushiji-MNIST (70 000) under their
// published names, train before test, with labels.
//
// Labels come from Options.LabelColumn, from a folder or from an npz file; all files or
// none must have labels. For Options.Labels the error wraps data.ErrOption, because its
// headings can be recognized only after all points are counted. Sparse and dense points
// cannot be mixed.
//
// Errors name the file and are of package data's kinds or of the file system's. Open reads
// only the headers of the first 64 files; other faults are found when the rows are read.
func Open(ctx context.Context, paths []string, o Options) (_ Rows, err error) {
	defer kind.Catch(&err)
	if len(o.Labels) > 0 {
		return nil, errorf(data.ErrOption, "labels: got the file %s, want a column for points in blocks", o.Labels[0])
	}
	return kind.Got(open(ctx, kind.Got(find(paths, &o)), o)), nil
}

// maxOpen is the largest number of files open at a time.
const maxOpen = 64

// files are Rows of several files. The headers of the first files are read at once, so
// their errors and sizes are known early. Other headers are read in turn.
type files struct {
	ctx     context.Context // of all reading
	o       Options
	list    sources   // not yet opened
	opened  []*opened // and not yet begun
	current *opened
	first   *head // of the first file
	begun   []*head
	parts   []data.Part
	isByte  bool // all values so far are unsigned bytes
	labels  []string
	conversion
	sums []uint32 // checksums of the files that have been read
	err  error    // what Next returns from now on
}

var (
	_ Bytes  = (*files)(nil)
	_ Sparse = (*files)(nil)
)

// An opened is a file whose header has been read.
type opened struct {
	reader
	source
	io.Closer
}

// open opens the first files of a list.
func open(ctx context.Context, list sources, o Options) (_ *files, err error) {
	f := &files{ctx: ctx, o: o, list: list, isByte: true}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	defer kind.Catch(&err)
	for len(f.list) > 0 && len(f.opened) < maxOpen {
		f.openNext()
	}
	f.first = f.opened[0].about()
	kind.Check(f.begin())
	return f, nil
}

// openNext opens the next file, and reads just enough to know the width of its points. It
// fails as kind.Need does.
func (f *files) openNext() {
	from := f.list[0]
	f.list = f.list[1:]
	file := kind.Got(from.open(f.ctx, &f.o))
	f.opened = append(f.opened, file)
	h := file.about()
	if len(f.opened) == 1 && f.first == nil { // where fields are ambiguous, other files have the same codings
		f.o.Codings = slices.Concat(f.o.Codings, h.used)
	}
	h.name = from.path
	if from.labels != "" && len(f.o.Labels) == 0 {
		h.labeled, h.beside = true, func() ([]string, error) { return from.readLabels(f.ctx, h.n) }
	}
	h.need(f.o.Offset == nil || h.sparse == nil, data.ErrSparse, "points: got sparse ones, want dense ones as in training (m.toarray())")
	h.need(f.o.Offset == nil || h.width == len(f.o.Offset), data.ErrShape,
		"values per point: got %d, want %d as in training", h.width, len(f.o.Offset))
}

// need fails as kind.Need does, with the name of the file.
func (h *head) need(ok bool, of error, format string, args ...any) {
	if !ok {
		kind.Check(h.named(errorf(of, format, args...)))
	}
}

// begin starts the next file, or returns io.EOF after the last one.
func (f *files) begin() (err error) {
	defer kind.Catch(&err)
	if f.current != nil {
		h := f.current.about()
		f.sums = append(f.sums, h.sum)
		for _, c := range h.coded {
			if c.unknown != "" && f.o.Log != nil {
				f.o.Log.Warn("values that training did not have are 0 in all columns of their category", "file", h.name, "column", c.Column, "value",
					text.Shorten(c.unknown))
			}
		}
		f.current.Close()
		f.current = nil
	}
	if len(f.opened) == 0 {
		if len(f.list) == 0 {
			return io.EOF
		}
		f.openNext()
	}
	f.current, f.opened = f.opened[0], f.opened[1:]
	h := f.current.about()
	h.follow(f.first)
	if h.beside != nil {
		h.labels = kind.Got(h.beside())
	}
	if f.begun = append(f.begun, h); !f.o.later {
		f.o.logReading(h, h == f.first)
	}
	f.convert(f.conversion)
	f.isByte = f.isByte && h.isByte
	f.parts = append(f.parts, data.Part{Name: h.name, Lines: h.lines})
	return nil
}

// convert sets the conversion to float32 for this file and the following ones. It must be
// called before any value is read.
func (f *files) convert(c conversion) {
	f.conversion = c
	h := f.current.about()
	h.conversion = c
	h.offset, h.before = f.o.Offset, f.rows()
}

// readLabels reads the separate file with the labels of n points, as MNIST has.
func (from source) readLabels(ctx context.Context, n int) ([]string, error) {
	labels, _, err := readItems(ctx, from.labels, false)
	if err == nil && len(labels) != n {
		err = miscounted(len(labels), n, fmt.Sprintf("%s: %d", from.labels, len(labels)))
	}
	return labels, err
}

// follow fails unless a file's points have the kind, columns and labels of the first file's.
func (h *head) follow(first *head) {
	is := selection.If(h.sparse != nil, "sparse ones, want dense ones", "dense ones, want sparse ones")
	h.need((h.sparse != nil) == (first.sparse != nil), data.ErrShape, "points: got %s as in %s", is, first.name)
	h.need(h.width == first.width, data.ErrShape, "values per point: got %d, want %d as in %s", h.width, first.width, first.name)
	without := selection.If(h.labeled, first, h)
	without.need(h.labeled == first.labeled, data.ErrLabels, "labels: got none, want some as in other files, or none in any")
	if h.columns != nil && first.columns != nil && !slices.Equal(h.columns, first.columns) {
		i := slices.IndexFunc(selection.UpTo[int](h.width), func(i int) bool { return h.columns[i] != first.columns[i] })
		h.need(false, data.ErrShape, "data column %d: got %q, want %q as in %s", i+1, h.columns[i], first.columns[i], first.name)
	}
}

// take reads up to want rows with read. read reads from the current file after done rows,
// and returns io.EOF with or after its last row.
func (f *files) take(want int, read func(r reader, done int) (int, error)) (n int, err error) {
	f.labels = f.labels[:0]
	for n < want && f.err == nil {
		got, err := read(f.current, n)
		f.labels = append(f.labels, f.passed(got, err)...)
		n += got
	}
	if n == 0 {
		return 0, f.err
	}
	return n, nil
}

// passed counts rows of the current file that have been read or skipped, and returns their
// labels. At io.EOF it begins the next file.
func (f *files) passed(rows int, err error) (labels []string) {
	h := f.current.about()
	labels = h.takeLabels(rows)
	f.parts[len(f.parts)-1].Rows += rows
	switch f.err = err; {
	case err == io.EOF:
		f.err = f.begin()
	case err != nil:
		f.err = h.explain(err)
	}
	return labels
}

// Next implements Rows.
func (f *files) Next(dst *data.Matrix) (int, error) {
	if err := data.CheckDense(dst); err != nil {
		return 0, err
	}
	if d := f.first.width; dst.D != d {
		return 0, errorf(data.ErrShape, "values per row of the block: got %d, want %d", dst.D, d)
	}
	dst.Columns, dst.Offset = f.first.columns, f.o.Offset
	return next(f, dst.X, reader.read)
}

// next calls read to fill dst with the values of whole rows, and returns the number of
// rows.
func next[T float32 | byte](f *files, dst []T, read func(r reader, dst []T) (int, error)) (int, error) {
	d := f.first.width
	return f.take(len(dst)/d, func(r reader, done int) (int, error) {
		n, err := read(r, dst[done*d:len(dst)/d*d])
		return n / d, err
	})
}

// Skip implements Rows.
func (f *files) Skip(rows int) (skipped int, err error) {
	for f.err == nil && skipped < rows {
		left := rows - skipped
		got, err := f.current.skip(left)
		if err == nil && got < left {
			err = io.EOF
		}
		f.passed(got, err)
		skipped += got
	}
	if f.err == io.EOF {
		return skipped, nil
	}
	return skipped, f.err
}

// Width implements Rows.
func (f *files) Width() int { return f.first.width }

// Columns implements Rows.
func (f *files) Columns() []string { return f.first.columns }

// Labeled implements Rows.
func (f *files) Labeled() bool { return f.first.labeled }

// Labels implements Rows.
func (f *files) Labels() []string { return f.labels }

// Shapes implements Bytes.
func (f *files) Shapes() (shapes [][]int) {
	heads, _ := f.heads()
	for _, h := range heads {
		if h.bytes == nil {
			return nil
		}
		shapes = append(shapes, h.shape)
	}
	return shapes
}

// Parts implements Bytes.
func (f *files) Parts() []data.Part { return f.parts }

// heads returns the heads of all files before any has been read. ok is false if some are
// not open yet.
func (f *files) heads() (heads []*head, ok bool) {
	return append([]*head{f.current.about()}, selection.Map(f.opened, func(o *opened) *head { return o.about() })...), len(f.list) == 0
}

// Len implements Rows.
func (f *files) Len() (n int, known bool) {
	if f.current == nil {
		return f.rows(), true
	}
	n = f.rows() - f.parts[len(f.parts)-1].Rows
	heads, known := f.heads()
	for _, h := range heads {
		n, known = n+h.n, known && !h.open
	}
	return n, known
}

// rows returns the number of rows read so far.
func (f *files) rows() (n int) {
	for _, p := range f.parts {
		n += p.Rows
	}
	return n
}

// RowName implements Rows.
func (f *files) RowName(i int) string {
	return data.RowName(f.parts, len(f.parts) > 1 || len(f.opened)+len(f.list) > 0, i)
}

// Close implements Rows.
func (f *files) Close() error {
	var err error
	for _, file := range f.opened {
		file.Close()
	}
	f.opened, f.list = nil, nil
	if f.current != nil {
		err = f.current.Close()
		f.current = nil
	}
	return err
}

// A source of points is a file, a stream, or bytes in memory. A file from the folder of a
// collection also has a file of labels.
type source struct {
	path, labels string
	stream       io.Reader
	start        int64 // where the points begin in a stream that is an io.Seeker
	held         *heldBytes
}

// open opens a source and reads its head. Errors name the file.
func (from source) open(ctx context.Context, o *Options) (*opened, error) {
	if from.held != nil {
		r := from.held.open()
		return &opened{r, from, r.in}, nil
	}
	in, f, err := from.input(ctx)
	if err != nil {
		return nil, err
	}
	var r reader
	err = caught(func() {
		cells := f.magic == hdf5.Magic
		if f.table == nil || cells {
			kind.Check(o.CheckColumns(cells))
		}
		kind.Need(o.Layer+o.Obsm == "" || cells, data.ErrOption,
			"data.layer or data.obsm: got %q, want null for a file that is not one of AnnData or 10x", o.Layer+o.Obsm)
		r = f.open(in, o)
	})
	if err != nil {
		in.Close()
		return nil, named(from.path, err)
	}
	return &opened{r, from, in}, nil
}

// sources are files to be read one after the other.
type sources []source

// again reports whether the sources can be read again. Pipes cannot.
func (list sources) again() bool {
	for _, from := range list {
		if from.stream != nil {
			if _, ok := from.stream.(io.Seeker); !ok {
				return false
			}
		} else if info, err := Stat(from.path); from.held == nil && (err != nil || !info.Mode().IsRegular()) {
			return false
		}
	}
	return true
}

// logReading logs what a user may not expect about how a file is read. It logs the
// columns only for the first file, because the others have the same columns.
func (o *Options) logReading(h *head, first bool) {
	if o.Log == nil {
		return
	}
	info := func(ok bool, message string, columns []string) {
		switch {
		case !ok:
		case columns == nil:
			o.Log.Info(message, "file", h.name)
		default:
			o.Log.Info(message, "file", h.name, "columns", text.Few(columns, text.Printable))
		}
	}
	info(h.counted != "", h.counted+" taken for column names; "+
		"if the line is a point, set the header to no "+headerKeys, nil)
	if h.doubtful {
		o.Log.Warn("the first line may have numbers as column names, and is taken for a point; if it has names, --set data.header=yes "+
			"(--header yes of cne project) says so", "file", h.name)
	}
	if !first {
		return
	}
	info(h.indexed == 1, "the first column has no name and holds row numbers or names; it is left out, unless columns are listed", nil)
	info(h.indexed > 1, fmt.Sprintf("%d of the first columns have no names and hold row numbers or names; they are left out, unless columns are listed", h.indexed), nil)
	if !allDiffer(h.columns) {
		o.Log.Warn("several columns have the same name; if the line below theirs belongs to the header, too, remove it", "file", h.name)
	}
	if h.unnamed != nil {
		o.Log.Warn(fmt.Sprintf("columns without names at the beginning are part of all distances: %s; if they are row names or classes, "+
			"--set data.drop=%s leaves them out", strings.Join(h.unnamed, ", "), strings.Join(h.unnamed, ",")), "file", h.name)
	}
	for _, notice := range []struct {
		kind data.CodingKind
		read string
	}{
		{data.CodingPoint, "numbers with separators between thousands"}, {data.CodingComma, "numbers with decimal commas"},
		{data.CodingMonthDay, "dates with the month first"}, {data.CodingDayMonth, "dates with the day first"},
	} {
		columns := columnsOf(h.used, func(kind data.CodingKind) bool { return kind == notice.kind })
		info(columns != nil, "read "+notice.read, columns)
	}
	trained, isNamed := len(o.Columns) > 0, h.columns != nil
	info(!trained && len(h.left) > 0, "columns that do not belong to the points are left out", h.left)
	info(trained && !isNamed, "the columns have no names and are taken in the order of training", nil)
	info(trained && isNamed && len(h.left) > 0, "columns that were not trained on are left out", h.left)
}
