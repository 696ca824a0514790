package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"cne/data"
	"cne/internal/selection"
)

// Read reads points from files into memory; see Open for the files and their errors.
// Values become float32. If float32 would make different values equal, they are relative
// to an Offset, and the files are read twice; from a pipe they are rounded, and
// Options.Log says so. Points of scipy's npz files stay sparse (Matrix.CSR), at 8 bytes
// per nonzero value. Their columns may be out of order, and values for the same column are
// added up. Labels may also come from Options.Labels. Every value must be finite.
func Read(ctx context.Context, paths []string, o Options) (*data.Dataset, error) {
	list, err := find(paths, &o)
	if err != nil {
		return nil, err
	}
	return readTable(ctx, list, o, nil)
}

// ReadRows is Read for the given rows of n points; data.CheckRows must accept rows. The
// result is as if the files held only these points, but Dataset.Origin and messages have
// the rows in the files. All values in the files must be finite. The points are held in
// memory: as bytes in Dataset.Stored if all files are arrays of bytes and
// Options.StreamAbove would leave this number of points in files. Sparse files are first
// read completely into memory. The error wraps data.ErrUnsupported for a pipe, and
// data.ErrChanged for another number of points than n.
func ReadRows(ctx context.Context, paths []string, o Options, rows []int, n int) (*data.Dataset, error) {
	if err := data.CheckRows(rows, n); err != nil {
		return nil, err
	}
	list, err := findAgain(paths, &o)
	if err != nil {
		return nil, err
	}
	return readTable(ctx, list, o, &choice{rows, n})
}

// Decode reads points from a stream as Read reads a file. The dataset has no name. Points
// that need an Offset are read twice if r is an io.Seeker. Otherwise they are rounded to
// float32, and Options.Log says so.
func Decode(r io.Reader, o Options) (*data.Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return read(context.Background(), sources{{stream: r}}, o, nil)
}

// Count returns the number of points that Read would read from files. It uses their
// headers if possible, and otherwise skips over the rows. For a pipe the error wraps
// data.ErrUnsupported; other errors are as for Open.
func Count(ctx context.Context, paths []string, o Options) (int, error) {
	o.Labels, o.Log = nil, nil
	list, err := findAgain(paths, &o)
	if err != nil {
		return 0, err
	}
	f, err := open(ctx, list, o)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if n, known := f.Len(); known {
		return n, nil
	}
	return f.Skip(math.MaxInt)
}

// findAgain is find for files that will be read several times.
func findAgain(paths []string, o *Options) (sources, error) {
	list, err := find(paths, o)
	if err == nil && !list.again() {
		err = errorf(data.ErrUnsupported, "%s: sample of the points: got a pipe, want a file, which can be read again", list[0].path)
	}
	return list, err
}

// A choice has some rows of points, ascending, and the number of all points. nil means
// all rows.
type choice struct {
	rows []int
	n    int
}

// read reads the wanted points.
func read(ctx context.Context, list sources, o Options, wanted *choice) (*data.Dataset, error) {
	o.later = true
	f, err := open(ctx, list, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ds, labels, err := f.stream(list, wanted)
	if ds == nil && err == nil {
		ds, labels, err = f.collect(list, wanted)
	}
	if err != nil {
		return nil, err
	}
	ds.Name, ds.Parts, ds.Codings = o.Name, f.parts, f.first.used
	if f.Labeled() {
		ds.Labels = data.NewLabels(labels)
		if err := CheckClasses(list[0].path, ds.Labels); err != nil {
			return nil, err
		}
	}
	if wanted != nil {
		ds.Rows = wanted.rows
	}
	if o.Columns == nil {
		if err := f.first.checkEmpty(ds.Points, o.AllowMissing); err != nil {
			return nil, err
		}
	}
	if err := o.checkPoints(ctx, ds); err != nil {
		return nil, err
	}
	for i, h := range f.begun {
		o.logReading(h, i == 0)
	}
	if s, ok := ds.Stored.(*stored); ok {
		s.finite = true // this has been checked
	}
	n := f.rows()
	if wanted != nil && n != wanted.n {
		return nil, errChanged(list, n, wanted.n)
	}
	if len(o.Labels) > 0 {
		labels, err := ReadLabels(ctx, o.Labels, n)
		if err != nil {
			return nil, err
		}
		ds.Labels = data.NewLabels(wanted.of(labels))
	}
	return ds, nil
}

func errChanged(list sources, got, want int) error {
	return errorf(data.ErrChanged, "%s: points: got %d, want %d as a moment ago", list[0].path, got, want)
}

// of returns the labels of the wanted points.
func (c *choice) of(all []string) []string {
	if c == nil {
		return all
	}
	return selection.Pick(all, c.rows)
}

// collect reads the wanted points and their labels into memory.
func (f *files) collect(list sources, wanted *choice) (*data.Dataset, []string, error) {
	m := &data.Matrix{D: f.Width(), Columns: f.Columns(), Offset: f.o.Offset}
	if f.first.sparse == nil && m.Offset == nil {
		var rows []int
		if wanted != nil {
			rows = wanted.rows
		}
		f.convert(conversion{sample: data.NewSample(m.D, rows)})
	}
	labels, err := f.fill(m, wanted)
	if err != nil {
		return nil, nil, err
	}
	if f.sample != nil {
		m.Offset = f.sample.Offset()
		once := m.Offset != nil && !list.again()
		if once {
			m.Offset = nil
		}
		f.sample.LogRounding(f.o.Log, m.Columns, m.Offset, once)
		if m.Offset != nil {
			if labels, err = f.fillAgain(list, m, wanted); err != nil {
				return nil, nil, err
			}
		}
	}
	return &data.Dataset{Points: m, Bytes: f.isByte && m.Offset == nil}, labels, nil
}

// fillAgain reads the points once more, relative to the Offset of m.
func (f *files) fillAgain(list sources, m *data.Matrix, wanted *choice) ([]string, error) {
	for _, from := range list {
		if s, ok := from.stream.(io.Seeker); ok {
			if _, err := s.Seek(from.start, io.SeekStart); err != nil {
				return nil, fmt.Errorf("reading failed: %w", err)
			}
		}
	}
	o := f.o
	o.Offset, o.Log = m.Offset, nil
	again, err := open(f.ctx, list, o)
	if err != nil {
		return nil, err
	}
	defer again.Close()
	m.X = m.X[:0]
	labels, err := again.fill(m, wanted)
	if err == nil && again.rows() != f.rows() {
		err = errChanged(list, again.rows(), f.rows())
	}
	return labels, err
}

// checkPoints is ds.CheckContext, but lets values that are not finite pass with AllowMissing.
func (o *Options) checkPoints(ctx context.Context, ds *data.Dataset) error {
	err := ds.CheckContext(ctx)
	if o.AllowMissing && errors.Is(err, data.ErrNotFinite) {
		return nil
	}
	return err
}

// fill reads the wanted rows into the empty matrix m, and returns their labels.
func (f *files) fill(m *data.Matrix, wanted *choice) (labels []string, err error) {
	if f.first.sparse != nil {
		return f.fillSparse(m, wanted)
	}
	check := func(first int, block []float32) error {
		if f.o.AllowMissing {
			return nil
		}
		return CheckFinite(f, first, &data.Matrix{D: m.D, X: block, Columns: m.Columns})
	}
	m.X, labels, err = appendRows(f, m.X, wanted, reader.read, check)
	m.N = len(m.X) / m.D
	return labels, err
}

// appendRows appends the wanted rows to the empty slice x, and returns their labels. read
// reads values of a file. check, if not nil, is called for every block, including rows
// that are not wanted.
func appendRows[T float32 | byte](f *files, x []T, wanted *choice, read func(r reader, dst []T) (int, error),
	check func(first int, block []T) error) ([]T, []string, error) {
	if wanted == nil {
		return appendAll(f, x, read)
	}
	d := f.Width()
	x = slices.Grow(x, len(wanted.rows)*d)
	block := make([]T, data.BlockRows(d)*d)
	var labels []string
	for first := 0; ; {
		n, err := next(f, block, read)
		if err == nil && check != nil {
			err = check(first, block[:n*d])
		}
		if err == io.EOF {
			return x, labels, nil
		}
		if err != nil {
			return nil, nil, err
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
func appendAll[T float32 | byte](f *files, x []T, read func(r reader, dst []T) (int, error)) ([]T, []string, error) {
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
		if err != nil && err != io.EOF {
			return nil, nil, h.explain(err)
		}
		if err == nil {
			continue
		}
		f.labels = append(f.labels, f.passed((len(x)-begin)/h.width, err)...)
		begin = len(x)
	}
	if f.err != io.EOF {
		return nil, nil, f.err
	}
	return x, f.labels, nil
}

// fillSparse reads the wanted rows of sparse points.
func (f *files) fillSparse(m *data.Matrix, wanted *choice) (labels []string, err error) {
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
	if f.err != io.EOF {
		return nil, f.err
	}
	m.CSR = data.ConcatCSR(parts)
	m.N = len(m.CSR.Start) - 1
	if wanted == nil {
		return labels, nil
	}
	if m.N != wanted.n { // read then returns an error
		return nil, nil
	}
	all := &data.Dataset{Name: f.o.Name, Points: m, Parts: f.parts}
	if err := f.o.checkPoints(f.ctx, all); err != nil { // also checks rows that are not wanted
		return nil, err
	}
	some := m.Take(wanted.rows)
	m.N, m.CSR = some.N, some.CSR
	if labels != nil {
		labels = wanted.of(labels)
	}
	return labels, nil
}

// ReadSparse implements Sparse.
func (f *files) ReadSparse() (*data.Matrix, error) {
	if f.first.sparse == nil {
		return nil, f.first.named(errorf(data.ErrUnsupported, "points: got dense ones, want sparse ones"))
	}
	m := &data.Matrix{D: f.Width(), Columns: f.Columns()}
	_, err := f.fillSparse(m, nil)
	return m, err
}

// ReadBytes implements Bytes.
func (f *files) ReadBytes() (values []byte, labels []string, err error) {
	return appendRows(f, nil, nil, readBytes, nil)
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
	if info, err := os.Stat(from.path); err != nil || !info.Mode().IsRegular() {
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
