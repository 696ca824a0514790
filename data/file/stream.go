package file

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"cne/data"
	"cne/internal/kind"
)

// streamFrom is the default of Options.StreamFrom.
const streamFrom = 1 << 22

// stored is a data.Source of points that are read again for each pass: from plain IDX or
// npy files, or from bytes in memory.
type stored struct {
	list   sources
	infos  []fs.FileInfo // of the files as they were first read; none for bytes in memory
	types  []string      // of their arrays, with their shapes
	sums   []uint32      // checksums of their values, once they have been read
	n, d   int
	offset []float64
	table  *[256]float32 // the values of bytes; nil for their own values
	finite bool          // no value is NaN or infinite
}

var (
	_ data.Source    = (*stored)(nil)
	_ data.Described = (*stored)(nil)
	_ data.Divider   = (*stored)(nil)
)

// heldBytes is an array of unsigned bytes in memory.
type heldBytes struct {
	array
	x []byte
}

// open begins to read the bytes.
func (h *heldBytes) open() *arrayReader {
	raw := &counter{r: bytes.NewReader(h.x)} // never mistaken for gzip
	return newArrayReader(h.array, &Input{Closer: io.NopCloser(raw), r: bufio.NewReader(raw), raw: raw, size: int64(len(h.x))})
}

// storageOf returns how the points of files can stay outside memory, or InMemory if they
// cannot.
func storageOf(heads []*head) data.Storage {
	storage, bytes := data.InFiles, true
	for _, h := range heads {
		storage, bytes = min(storage, h.storage), bytes && h.bytes != nil
	}
	if storage == data.AsBytes && !bytes {
		return data.InMemory
	}
	return storage
}

// leaves returns the storage for n points of d values. Their files allow at most the
// given storage. With fewer points than values, principal components need all points in
// memory.
func (o *Options) leaves(n, d int, storage data.Storage) data.Storage {
	if o.StreamAbove > 0 && !o.AllowMissing && d > o.StreamAbove && n >= d && n*d >= cmp.Or(o.StreamFrom, streamFrom) {
		return storage
	}
	return data.InMemory
}

// stream returns a set whose points stay in their files or, for some rows, are held as
// bytes. It reads the labels. It returns nil unless the options ask for this and all
// files allow it. It fails as kind.Need does.
func (f *files) stream(list sources, wanted choice) (*data.Dataset, []string) {
	heads, all := f.heads()
	n, known := f.Len()
	storage := storageOf(heads)
	if wanted.rows != nil {
		n = len(wanted.rows)
		if storage = data.AsBytes; f.o.Offset != nil || slices.ContainsFunc(heads, func(h *head) bool { return h.bytes == nil }) {
			storage = data.InMemory
		}
	}
	storage = f.o.leaves(n, f.Width(), storage)
	if !all || !known || storage == data.InMemory || !list.again() {
		return nil, nil
	}
	s := &stored{list: list, n: n, d: f.Width(), offset: f.o.Offset, finite: true}
	exact := true
	for _, h := range heads {
		s.finite, exact = s.finite && h.finite, exact && h.exact
	}
	var labels []string
	if storage == data.AsBytes {
		held := &heldBytes{array: array{scalarType: scalarType{kind: 'u', size: 1}, shape: []int{n, s.d}}}
		held.x, labels = appendRows(f, nil, wanted, readBytes, nil)
		s.list = sources{{held: held}}
	} else {
		labels = s.note(f)
	}
	if !exact && s.offset == nil {
		s.chooseOffset(f.ctx, f.o.Log)
	}
	return &data.Dataset{Stored: s, Bytes: f.isByte && f.o.Offset == nil}, labels
}

// note records the current state of the files, and reads the labels of the points.
func (s *stored) note(f *files) (labels []string) {
	for ; f.err == nil; f.err = f.begin() {
		h := f.current.about()
		info, err := os.Stat(h.name)
		kind.Check(kind.Named("the data cannot be read", err))
		s.infos, s.types = append(s.infos, info), append(s.types, h.typeText())
		f.parts[len(f.parts)-1].Rows = h.n
		labels = append(labels, h.labels...)
	}
	f.checkEnd()
	return labels
}

func (h *head) typeText() string { return fmt.Sprint(h.dtype, h.shape) }

// chooseOffset reads the points and chooses an offset.
func (s *stored) chooseOffset(ctx context.Context, log *slog.Logger) {
	sampled := data.NewSample(s.d, nil)
	finite := true
	kind.Check(s.each(ctx, 0, sampled, func(_ int, block *data.Matrix) error {
		_, _, _, bad := block.FirstNotFinite()
		finite = finite && !bad
		return nil
	}))
	s.offset = sampled.Offset()
	s.finite = finite && s.offset == nil
	sampled.LogRounding(log, nil, s.offset, false)
}

// checkFiles returns an error if a file is not the same as when it was first read.
func (s *stored) checkFiles() error {
	for k, was := range s.infos {
		info, err := os.Stat(s.list[k].path)
		if err != nil || !os.SameFile(info, was) || info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()) {
			return s.changed(k)
		}
	}
	return nil
}

func (s *stored) changed(k int) error {
	return errorf(data.ErrChanged, "%s: the file has changed while its points were read", s.list[k].path)
}

// explain returns the error of reading, or one wrapping data.ErrChanged if a file has
// changed.
func (s *stored) explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return cmp.Or(s.checkFiles(), err)
}

// Dims implements data.Source.
func (s *stored) Dims() (n, d int) { return s.n, s.d }

// Block implements data.Source.
func (s *stored) Block(n int) *data.Matrix {
	m := data.NewMatrix(n, s.d)
	m.Offset = s.offset
	return m
}

// Each implements data.Source.
func (s *stored) Each(ctx context.Context, rows int, f func(lo int, block *data.Matrix) error) error {
	return s.each(ctx, rows, nil, f)
}

// each is Each. If sampled is not nil, it also samples the values.
func (s *stored) each(ctx context.Context, rows int, sampled *data.Sample, do func(lo int, block *data.Matrix) error) (err error) {
	defer kind.Catch(&err)
	kind.Check(s.checkFiles())
	f, err := open(ctx, s.list, Options{Offset: s.offset})
	if err != nil {
		return s.explain(err)
	}
	defer f.Close()
	heads, _ := f.heads()
	for k, is := range s.types {
		if heads[k].typeText() != is {
			return s.changed(k)
		}
	}
	f.convert(conversion{sample: sampled, table: s.table, summed: s.infos != nil})
	block := s.Block(min(cmp.Or(rows, data.BlockRows(s.d)), s.n))
	for lo := 0; ; {
		n, err := f.Next(block)
		if err == io.EOF {
			break
		}
		if err != nil {
			return s.explain(err)
		}
		kind.Check(ctx.Err())
		kind.Check(do(lo, block.Rows(0, n)))
		lo += n
	}
	if s.sums == nil {
		s.sums = f.sums
	}
	for k, sum := range f.sums {
		if sum != s.sums[k] {
			return s.changed(k)
		}
	}
	return s.checkFiles()
}

// Describe implements data.Described.
func (s *stored) Describe() (storage data.Storage, finite bool) {
	if s.infos == nil {
		return data.AsBytes, s.finite
	}
	return data.InFiles, s.finite
}

// Divided implements data.Divider.
func (s *stored) Divided(divisor float32) data.Source {
	if s.table != nil {
		return nil
	}
	divided := *s
	divided.table = new([256]float32)
	for b := range divided.table {
		divided.table[b] = float32(b) / divisor
	}
	return &divided
}
