package data

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
)

// A Size is what is known of points, or of images, before they are read.
type Size struct {
	// Low and High bound their number; they are equal where it is known.
	Low, High int
	// Likely is the number that is most likely, where bounds are known; else Low.
	Likely int
	// Width is the number of values of a point, and of bytes of an image; 0 if it is not
	// known.
	Width int
	// Storage is where Open leaves the points.
	Storage Storage
	// Nonzeros is the number of values that are held of sparse points; 0 for dense ones.
	Nonzeros int
}

// A Storage is where the points of a Dataset are: see Options.BlocksAbove.
type Storage int

const (
	InMemory Storage = iota // as float32
	AsBytes                 // in memory, a byte for each value
	InFiles                 // in files that are read each time
)

// SizeOf is the size of n points, or images, of so many values.
func SizeOf(n, width int) Size { return Size{Low: n, High: n, Likely: n, Width: width} }

// Known tells whether the size is known exactly.
func (s Size) Known() bool { return s.Low == s.High && s.Width > 0 }

// unknown is the size of what tells nothing of itself.
var unknown = Size{Low: 1, High: math.MaxInt32, Likely: 1}

const (
	// sampledValues is how many values of a table are read to estimate how many it has.
	sampledValues = 1 << 17
	// sampleMargin is the factor by which the rest of a table may have more or fewer
	// rows than the sample lets expect.
	sampleMargin = 1.5
)

// BuiltinSize returns the size of what Builtin returns.
func BuiltinSize(name string) (Size, error) {
	if name != "mnist10k" {
		_, err := Builtin(name)
		return unknown, err
	}
	s, err := newByteSource(context.Background(), bytes.NewReader(mnistTestImages))
	if err != nil {
		return unknown, err
	}
	a, err := idxHeader(s)
	if err != nil {
		return unknown, err
	}
	n, d := a.rows()
	return SizeOf(n, d), nil
}

// PointsSize returns what the heads of files tell of the points that Open would read from
// them: those of arrays all, and the first rows of a table that is not compressed how
// many there will be. It reads no further, and takes nothing from pipes, of which, as of
// counts and of what Open would refuse, nothing is known.
func PointsSize(ctx context.Context, paths []string, opt Options) Size {
	files, err := findFiles(paths, opt)
	if err != nil {
		return unknown
	}
	var all Size
	for _, f := range files {
		all = all.add(sizeOfFile(ctx, f, opt))
	}
	if !all.Known() || !opt.staysWhereItIs(all.Low, all.Width) || !canReadAgain(files) {
		all.Storage = InMemory
	}
	return all
}

// ImagesSize is PointsSize for images, which have three bytes for a pixel: what InColour
// makes of those in greyscale.
func ImagesSize(ctx context.Context, paths []string, opt ImageOptions) Size {
	var all Size
	for _, path := range paths {
		all = all.add(sizeOfImages(ctx, path, opt))
	}
	if opt.Size > 0 {
		all.Width = 3 * opt.Size * opt.Size
	}
	return all
}

// sizeOfImages is ImagesSize for one path.
func sizeOfImages(ctx context.Context, path string, opt ImageOptions) Size {
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.IsDir() && !info.Mode().IsRegular():
		return unknown
	case !info.IsDir():
		return sizeOfArray(ctx, file{path: path})
	}
	if files, err := expand([]string{path}); err == nil {
		var all Size
		for _, f := range files {
			all = all.add(sizeOfArray(ctx, f))
		}
		return all
	}
	if isCIFARFolder(path) {
		return unknown
	}
	list, err := listImages(path, opt.SkipBroken)
	if err != nil {
		return unknown
	}
	all := SizeOf(len(list.files), 3*opt.Size*opt.Size)
	if opt.SkipBroken {
		all.Low = min(all.Low, 1) // at worst, all but one are broken
	}
	return all
}

// sizeOfArray is sizeOfFile for images, which are no tables.
func sizeOfArray(ctx context.Context, f file) Size {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() {
		return unknown
	}
	st, err := openStream(ctx, f, Options{})
	if err != nil {
		return unknown
	}
	defer st.close()
	v, ok := st.values.(*arrayReader)
	if !ok {
		return unknown
	}
	s, err := v.pictures()
	if err != nil {
		return unknown
	}
	return SizeOf(v.total/st.d, 3*s.h*s.w)
}

// add returns the size of both together; the zero Size is that of nothing.
func (s Size) add(t Size) Size {
	if s == (Size{}) {
		return t
	}
	s.Low, s.Likely, s.Nonzeros = s.Low+t.Low, s.Likely+t.Likely, s.Nonzeros+t.Nonzeros
	s.High = min(math.MaxInt32, s.High+t.High)
	if s.Width != t.Width {
		s.Width = max(s.Width, t.Width)
	}
	s.Storage = min(s.Storage, t.Storage)
	return s
}

// sizeOfFile is PointsSize for one file.
func sizeOfFile(ctx context.Context, f file, opt Options) Size {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() || IsCounts(f.path) {
		return unknown
	}
	st, err := openStream(ctx, f, opt)
	if err != nil {
		return unknown
	}
	defer st.close()
	switch v := st.values.(type) {
	case *arrayReader:
		size := SizeOf(v.total/st.d, st.d)
		size.Storage = st.storage()
		return size
	case *parquetReader:
		return SizeOf(v.file.Rows, st.d)
	case *csrReader:
		size := SizeOf(v.n, v.d)
		size.Nonzeros = v.value.total
		return size
	case *table:
		return sizeOfTable(v, st.d)
	}
	return unknown
}

// sizeOfTable estimates the size of a table of rows of d values from the first of them.
func sizeOfTable(t *table, d int) Size {
	before := t.s.raw.n - int64(t.s.r.Buffered())
	buffer := make([]float32, max(d, sampledValues/d*d))
	got, err := t.read(buffer)
	rows := got / d
	if err == io.EOF {
		return SizeOf(rows, d)
	}
	taken := t.s.raw.n - int64(t.s.r.Buffered()) - before
	if err != nil || t.s.packed || t.s.size <= 0 || rows < 1 || taken < 1 {
		return Size{Low: max(1, rows), High: math.MaxInt32, Likely: max(1, rows), Width: d}
	}
	likely := float64(rows) * float64(t.s.size-before) / float64(taken)
	return Size{
		Low: max(rows, int(likely/sampleMargin)), High: int(min(math.MaxInt32, likely*sampleMargin+1)),
		Likely: int(min(math.MaxInt32, likely)), Width: d,
	}
}
