package file

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
)

// Read reads points from files into memory; see Open for the files and their errors.
// Values become float32. If float32 would make different values equal, they are relative
// to an Offset, and the files are read twice; from a pipe they are rounded, and
// Options.Log says so. Points of scipy's npz files stay sparse (Matrix.CSR), at 8 bytes
// per nonzero value. Their columns may be out of order, and values for the same column are
// added up. Labels may also come from Options.Labels. Every value must be finite.
func Read(ctx context.Context, paths []string, o Options) (_ *data.Dataset, err error) {
	defer kind.Catch(&err)
	return readTable(ctx, kind.Got(find(paths, &o)), o, choice{})
}

// ReadRows is Read for the given rows of n points; data.CheckRows must accept rows. The
// result is as if the files held only these points, but Dataset.Origin and messages have
// the rows in the files. All values in the files must be finite. The points are held in
// memory: as bytes in Dataset.Stored if all files are arrays of bytes and
// Options.StreamAbove would leave this number of points in files. Sparse files are first
// read completely into memory. The error wraps data.ErrUnsupported for a pipe, and
// data.ErrChanged for another number of points than n.
func ReadRows(ctx context.Context, paths []string, o Options, rows []int, n int) (_ *data.Dataset, err error) {
	defer kind.Catch(&err)
	kind.Check(data.CheckRows(rows, n))
	return readTable(ctx, findAgain(paths, &o), o, choice{rows, n})
}

// Decode reads points from a stream as Read reads a file. The dataset has no name. Points
// that need an Offset are read twice if r is an io.Seeker. Otherwise they are rounded to
// float32, and Options.Log says so.
func Decode(r io.Reader, o Options) (*data.Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	from := source{stream: r}
	if s, ok := r.(io.Seeker); ok {
		from.start, _ = s.Seek(0, io.SeekCurrent) // a pipe has no position
	}
	return read(context.Background(), sources{from}, o, choice{})
}

// Count returns the number of points that Read would read from files. It uses their
// headers if possible, and otherwise skips over the rows. For a pipe the error wraps
// data.ErrUnsupported; other errors are as for Open.
func Count(ctx context.Context, paths []string, o Options) (_ int, err error) {
	defer kind.Catch(&err)
	o.Labels, o.Log = nil, nil
	f := kind.Got(open(ctx, findAgain(paths, &o), o))
	defer f.Close()
	if n, known := f.Len(); known {
		return n, nil
	}
	return f.Skip(math.MaxInt)
}

// findAgain is find for files that will be read several times. It fails as kind.Need does.
func findAgain(paths []string, o *Options) sources {
	list := kind.Got(find(paths, o))
	kind.Need(list.again(), data.ErrUnsupported, "%s: sample of the points: got a pipe, want a file, which can be read again", list[0].path)
	return list
}

// A choice has some rows of points, ascending, and the number of all points. The zero value
// means all rows.
type choice struct {
	rows []int
	n    int
}

// read reads the wanted points.
func read(ctx context.Context, list sources, o Options, wanted choice) (_ *data.Dataset, err error) {
	defer kind.Catch(&err)
	o.later = true
	f := kind.Got(open(ctx, list, o))
	defer f.Close()
	ds, labels := f.stream(list, wanted)
	if ds == nil {
		ds, labels = f.collect(list, wanted)
	}
	ds.Name, ds.Parts, ds.Codings, ds.Rows = o.Name, f.parts, f.first.used, wanted.rows
	if f.Labeled() {
		ds.Labels = data.NewLabels(labels)
		kind.Check(CheckClasses(list[0].path, ds.Labels))
	}
	if o.Columns == nil {
		f.first.checkEmpty(ds.Points, o.AllowMissing)
	}
	o.checkPoints(ctx, ds)
	for i, h := range f.begun {
		o.logReading(h, i == 0)
	}
	if s, ok := ds.Stored.(*stored); ok {
		s.finite = true // this has been checked
	}
	n := f.rows()
	if wanted.rows != nil {
		list.need(n, wanted.n)
	}
	if len(o.Labels) > 0 {
		ds.Labels = data.NewLabels(wanted.of(kind.Got(ReadLabels(ctx, o.Labels, n, o.NA))))
	}
	return ds, nil
}

// need fails unless there are still as many points as before.
func (list sources) need(got, want int) {
	kind.Need(got == want, data.ErrChanged, "%s: points: got %d, want %d as a moment ago", list[0].path, got, want)
}

// of returns the labels of the wanted points.
func (c choice) of(all []string) []string {
	if c.rows == nil {
		return all
	}
	return selection.Pick(all, c.rows)
}

// collect reads the wanted points and their labels into memory. It fails as kind.Need does.
func (f *files) collect(list sources, wanted choice) (*data.Dataset, []string) {
	m := &data.Matrix{D: f.Width(), Columns: f.Columns(), Offset: f.o.Offset}
	if f.first.sparse == nil && m.Offset == nil {
		f.convert(conversion{sample: data.NewSample(m.D, wanted.rows)})
	}
	labels := f.fill(m, wanted)
	if f.sample != nil {
		m.Offset = f.sample.Offset()
		once := m.Offset != nil && !list.again()
		if once {
			m.Offset = nil
		}
		f.sample.LogRounding(f.o.Log, m.Columns, m.Offset, once)
		if m.Offset != nil {
			labels = f.fillAgain(list, m, wanted)
		}
	}
	return &data.Dataset{Points: m, Bytes: f.isByte && m.Offset == nil}, labels
}

// fillAgain reads the points once more, relative to the Offset of m.
func (f *files) fillAgain(list sources, m *data.Matrix, wanted choice) []string {
	for _, from := range list {
		if s, ok := from.stream.(io.Seeker); ok {
			_, err := s.Seek(from.start, io.SeekStart)
			kind.Check(kind.Named("reading failed", err))
		}
	}
	o := f.o
	o.Offset, o.Log = m.Offset, nil
	again := kind.Got(open(f.ctx, list, o))
	defer again.Close()
	m.X = m.X[:0]
	labels := again.fill(m, wanted)
	list.need(again.rows(), f.rows())
	return labels
}

// checkPoints fails with the error of ds.CheckContext, except for values that are not finite
// with AllowMissing.
func (o *Options) checkPoints(ctx context.Context, ds *data.Dataset) {
	if err := ds.CheckContext(ctx); !o.AllowMissing || !errors.Is(err, data.ErrNotFinite) {
		kind.Check(err)
	}
}

// fill reads the wanted rows into the empty matrix m, and returns their labels. It fails as
// kind.Need does, as the functions below do.
func (f *files) fill(m *data.Matrix, wanted choice) (labels []string) {
	if f.first.sparse != nil {
		return f.fillSparse(m, wanted)
	}
	m.X, labels = appendRows(f, m.X, wanted, reader.read, func(first int, block []float32) {
		if !f.o.AllowMissing {
			kind.Check(CheckFinite(f, first, &data.Matrix{D: m.D, X: block, Columns: m.Columns}))
		}
	})
	m.N = len(m.X) / m.D
	return labels
}

// appendRows appends the wanted rows to the empty slice x, and returns their labels. read
// reads values of a file. check, if not nil, is called for every block, including rows
// that are not wanted.
func appendRows[T float32 | byte](f *files, x []T, wanted choice, read func(r reader, dst []T) (int, error),
	check func(first int, block []T)) ([]T, []string) {
	if wanted.rows == nil {
		return appendAll(f, x, read)
	}
	d := f.Width()
	x = slices.Grow(x, len(wanted.rows)*d)
	block := make([]T, data.BlockRows(d)*d)
	var labels []string
	for first := 0; ; {
		n, err := next(f, block, read)
		if err == io.EOF {
			return x, labels
		}
		kind.Check(err)
		if check != nil {
			check(first, block[:n*d])
		}
		for k := len(x) / d; k < len(wanted.rows) && wanted.rows[k] < first+n; k++ {
			i := wanted.rows[k] - first
			x = append(x, block[i*d:(i+1)*d]...)
			if f.Labeled() {
				labels = append(labels, f.labels[i])
			}
		}
		first += n
	}
}

// appendAll is appendRows for all rows. It does not allocate memory only because a header
// announces many values.
func appendAll[T float32 | byte](f *files, x []T, read func(r reader, dst []T) (int, error)) ([]T, []string) {
	// Allocate once for all files, instead of growing and copying for each. The headers of
	// arrays have the sizes.
	if heads, _ := f.heads(); len(heads) > 1 {
		size := 0
		for _, h := range heads {
			if !h.open {
				size += h.capacity(0)
			}
		}
		x = slices.Grow(x, size)
	}
	begin := len(x) // of the current file
	f.labels = nil
	for f.err == nil {
		h := f.current.about()
		if done := len(x) - begin; cap(x)-len(x) < h.step(done) {
			x = append(make([]T, 0, len(x)+h.capacity(done)), x...)
		}
		n, err := read(f.current, x[len(x):cap(x)])
		x = x[:len(x)+n]
		if err != nil {
			f.labels = append(f.labels, f.passed((len(x)-begin)/h.width, err)...)
			begin = len(x)
		}
	}
	f.checkEnd()
	return x, f.labels
}

// checkEnd fails unless all rows have been read.
func (f *files) checkEnd() {
	if f.err != io.EOF {
		kind.Check(f.err)
	}
}

// fillSparse reads the wanted rows of sparse points.
func (f *files) fillSparse(m *data.Matrix, wanted choice) (labels []string) {
	var parts []*data.CSR
	for f.err == nil {
		part, err := f.current.about().sparse.rest()
		if err != nil {
			f.passed(0, err)
			break
		}
		parts = append(parts, part)
		labels = append(labels, f.passed(len(part.Start)-1, io.EOF)...)
	}
	f.checkEnd()
	m.CSR = data.ConcatCSR(parts)
	m.N = len(m.CSR.Start) - 1
	if wanted.rows == nil || m.N != wanted.n { // read then fails
		return labels
	}
	all := &data.Dataset{Name: f.o.Name, Points: m, Parts: f.parts}
	f.o.checkPoints(f.ctx, all) // also checks rows that are not wanted
	*m = *m.Take(wanted.rows)
	return wanted.of(labels)
}

// ReadSparse implements Sparse.
func (f *files) ReadSparse() (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	f.first.need(f.first.sparse != nil, data.ErrUnsupported, "points: got dense ones, want sparse ones")
	m := &data.Matrix{D: f.Width(), Columns: f.Columns()}
	f.fillSparse(m, choice{})
	return m, nil
}

// ReadBytes implements Bytes.
func (f *files) ReadBytes() (values []byte, labels []string, err error) {
	defer kind.Catch(&err)
	values, labels = appendRows(f, nil, choice{}, readBytes, nil)
	return values, labels, nil
}

// readBytes reads the bytes of a file. Its values must be unsigned bytes.
func readBytes(r reader, dst []byte) (int, error) {
	b := r.about().bytes
	if b == nil {
		return 0, errorf(data.ErrUnsupported, "values: got others, want unsigned bytes")
	}
	return b.readBytes(dst)
}

const (
	// sampledValues is the number of values of a table that are read to estimate its size.
	sampledValues = 1 << 17
	// sampleMargin bounds the ratio of the number of rows to the estimate, and its inverse.
	sampleMargin = 1.5
)

// Size returns the size of the points that Read would read. It reads only the headers of
// arrays, and estimates the size of uncompressed tables from their first rows. The size
// is unknown for pipes, for counts and for files that Read would refuse.
func Size(ctx context.Context, paths []string, o Options) data.Size {
	list, err := find(paths, &o)
	if err != nil {
		return data.UnknownSize
	}
	var all data.Size
	var heads []*head
	for _, from := range list {
		size, h := sizeOf(ctx, from, &o)
		all, heads = all.Add(size), append(heads, h)
	}
	if all.Known() && list.again() {
		all.Storage = o.leaves(all.Low, all.Width, storageOf(heads))
	}
	return all
}

// sizeOf is Size for one file. It also returns the file's head.
func sizeOf(ctx context.Context, from source, o *Options) (data.Size, *head) {
	if info, err := Stat(from.path); err != nil || !info.Mode().IsRegular() {
		return data.UnknownSize, nil
	}
	f, err := from.open(ctx, o)
	if err != nil {
		return data.UnknownSize, nil
	}
	defer f.Close()
	h := f.about()
	switch {
	case h.counts:
		return data.UnknownSize, h
	case h.open:
		return estimate(f), h
	}
	size := data.SizeOf(h.n, h.width)
	size.Nonzeros = h.nonzeros
	return size, h
}

// estimate estimates the size of a table from its first rows.
func estimate(r reader) data.Size {
	h := r.about()
	in, d := h.in, h.width
	before := in.raw.n - int64(in.r.Buffered())
	buffer := make([]float32, max(d, sampledValues/d*d))
	got, err := r.read(buffer)
	rows := got / d
	if err == io.EOF {
		return data.SizeOf(rows, d)
	}
	taken := in.raw.n - int64(in.r.Buffered()) - before
	if err != nil || in.packed || in.size <= 0 || rows < 1 || taken < 1 {
		return data.Size{Low: max(1, rows), High: math.MaxInt32, Likely: max(1, rows), Width: d}
	}
	likely := float64(rows) * float64(in.size-before) / float64(taken)
	return data.Size{
		Low: max(rows, int(likely/sampleMargin)), High: int(min(math.MaxInt32, float64(likely*sampleMargin)+1)),
		Likely: int(min(math.MaxInt32, likely)), Width: d,
	}
}
