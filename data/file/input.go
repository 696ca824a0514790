package file

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"cne/data"
	"cne/internal/ctxio"
	"cne/internal/hdf5"
	"cne/internal/kind"
	"cne/internal/parquet"
)

const (
	// readBuffer is the number of bytes read and converted at a time.
	readBuffer = 1 << 16
	// longBuffer is the number of bytes of the first rows of a table if they are long.
	longBuffer = 1 << 21
	// freeValues is the number of values that memory is allocated for when only a header
	// announces them.
	freeValues = 1 << 18
	// valuesPerPackedByte bounds the memory allocated in advance for a compressed file. MNIST
	// has 5 values for each byte, very sparse data some hundreds. Beyond the bound, memory
	// grows as values arrive.
	valuesPerPackedByte = 64
)

// An Input reads a file, or another stream of bytes, and decompresses gzip.
type Input struct {
	io.Closer // closes the stream; a no-op if the caller opened it
	r         *bufio.Reader
	at        io.ReaderAt // reads the bytes in any order, from 0; nil if that is impossible
	raw       *counter    // the bytes before decompression
	size      int64       // bytes there at the beginning, -1 if unknown
	packed    bool        // the stream, or what is in it, is compressed, so size bounds nothing
	sealed    bool        // the stream, though not compressed, has a checksum at its end
	taken     int64       // bytes read through full, after decompression
}

// A counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// newInput returns an Input that reads r. Errors come from a damaged gzip header or from r.
func newInput(r io.Reader) (*Input, error) {
	s := &Input{Closer: io.NopCloser(r), raw: &counter{r: r}, size: bytesOf(r)}
	if at, ok := r.(interface {
		io.ReaderAt
		io.Seeker
	}); ok && s.size >= 0 {
		if start, err := at.Seek(0, io.SeekCurrent); err == nil {
			s.at = io.NewSectionReader(at, start, s.size)
		}
	}
	s.r = bufio.NewReaderSize(s.raw, readBuffer)
	if magic, _ := s.r.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(s.r)
		if err != nil {
			return nil, explain(err)
		}
		s.r = bufio.NewReaderSize(z, readBuffer)
		s.packed, s.at = true, nil
	}
	if _, err := s.r.Peek(1); err != nil && err != io.EOF {
		return nil, explain(err)
	}
	return s, nil
}

// OpenInput opens a file, or embedded data. It is read until ctx is done. The error names
// the file.
func OpenInput(ctx context.Context, path string) (*Input, error) {
	var f io.ReadCloser
	var err error
	if name := builtinFiles[path]; name != "" {
		f, err = builtin.Open(name)
	} else {
		f, err = ctxio.Open(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	s, err := newInput(f)
	if err != nil {
		f.Close()
		return nil, kind.Named(path, err)
	}
	s.Closer = f
	return s, nil
}

// Read implements io.Reader. Its errors say what is wrong with a compressed file.
func (s *Input) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.taken += int64(n)
	if err != nil && err != io.EOF {
		err = explain(err)
	}
	return n, err
}

// Peek returns up to n of the next bytes without reading them, at most as many as are buffered.
func (s *Input) Peek(n int) []byte {
	b, _ := s.r.Peek(n)
	return b
}

// bytesOf returns the number of bytes that r can still deliver, or -1.
func bytesOf(r io.Reader) int64 {
	switch r := r.(type) {
	case interface{ Len() int }:
		return int64(r.Len())
	case interface {
		io.Seeker
		Stat() (fs.FileInfo, error)
	}:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			if at, err := r.Seek(0, io.SeekCurrent); err == nil {
				return max(0, info.Size()-at)
			}
		}
	}
	return -1
}

// left returns the number of bytes left, or -1 if it is unknown.
func (s *Input) left() int64 {
	if s.packed || s.size < 0 {
		return -1
	}
	return max(0, s.size-s.taken)
}

// errShort means that a stream ended before all requested bytes were read.
var errShort = errors.New("the file ends early")

// full fills p. Otherwise it returns the number of bytes read and errShort or another
// error.
func (s *Input) full(p []byte) (int, error) {
	n, err := io.ReadFull(s.r, p)
	s.taken += int64(n)
	return n, explainShort(err)
}

// pass skips n bytes. Otherwise it returns the number of bytes skipped and errShort or
// another error. It seeks if the file can seek and has no checksum.
func (s *Input) pass(n int64) (int64, error) {
	if s.at != nil && !s.sealed {
		got := min(n, max(0, s.size-s.taken))
		s.taken += got
		s.r.Reset(io.NewSectionReader(s.at, s.taken, s.size-s.taken))
		if got < n {
			return got, errShort
		}
		return got, nil
	}
	got, err := io.CopyN(io.Discard, s.r, n)
	s.taken += got
	return got, explainShort(err)
}

// errTrailing is the error for data after the end given by the header.
var errTrailing = errorf(data.ErrFormat, "got more bytes than the header announces, want the end of the file")

// atEnd returns nil if there is nothing more to read. With gzip it also verifies the
// checksum.
func (s *Input) atEnd() error {
	switch _, err := s.r.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return errTrailing
	default:
		return explain(err)
	}
}

// trusted returns the number of values to allocate memory for at once, given the number
// in a header.
func (s *Input) trusted(values int) int {
	switch {
	case s.left() >= 0:
		return values // the caller has compared them with the size
	case s.size >= 0:
		return min(values, max(freeValues, int(s.size)*valuesPerPackedByte))
	}
	return min(values, freeValues)
}

// expectedCap returns the number of values to allocate after done values of a table in
// text. It extrapolates from the part of the file that has been read, and adds a quarter.
// Allocated pages that are never written take no memory.
func (s *Input) expectedCap(done int) int {
	limit := int64(s.size/2 + 1) // a value takes a digit and a separator
	if s.packed {
		limit = s.size * valuesPerPackedByte
	}
	if s.size <= 0 || s.raw.n <= 0 || done < freeValues {
		return 2 * done
	}
	expected := 1.25 * float64(done) * float64(s.size) / float64(s.raw.n)
	return max(done+done/8, int(min(expected, float64(limit))))
}

// explainShort is explain, but returns errShort where the file ends, and nil for no error.
func explainShort(err error) error {
	switch err {
	case nil:
		return nil
	case io.EOF, io.ErrUnexpectedEOF:
		return errShort
	}
	return explain(err)
}

// input opens a source, not one in memory, and recognizes its format; the caller closes it.
// Errors name the file.
func (from source) input(ctx context.Context) (in *Input, f *format, err error) {
	if from.stream != nil {
		in, err = newInput(from.stream)
	} else {
		in, err = OpenInput(ctx, from.path)
	}
	if err != nil {
		return nil, nil, err
	}
	if f, err = recognize(from.path, in); err != nil {
		in.Close()
	}
	return in, f, named(from.path, err)
}

// explain turns an error of reading into a sentence.
func explain(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errorf(data.ErrFormat, "the compressed data end early; fetch or make the file again")
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, zip.ErrChecksum):
		return errorf(data.ErrFormat, "the compressed data are damaged (%w); fetch or make the file again", err)
	}
	return fmt.Errorf("reading failed: %w", err)
}

// errorf is fmt.Errorf for an error of a kind.
func errorf(of error, format string, args ...any) error {
	return kind.Errorf(of, format, args...)
}

// named adds the name of a file, if any, to an error: NAME, or NAME:LINE if the error is
// about a line.
func named(name string, err error) error {
	if name == "" || err == nil {
		return err
	}
	if e, ok := err.(*lineError); ok {
		return fmt.Errorf("%s:%d: %w", name, e.line, e.error)
	}
	return kind.Named(name, err)
}

// named adds the name of the file to an error.
func (h *head) named(err error) error { return named(h.name, err) }

// caught calls do, and returns the error that it fails with (see package kind), with a kind
// of package data and the remedy.
func caught(do func()) (err error) {
	defer func() {
		switch {
		case errors.Is(err, hdf5.ErrUnsupported):
			err = errorf(data.ErrUnsupported, "%w; write the file again in Python: anndata.read_h5ad(\"OLD.h5ad\").write_h5ad(\"NEW.h5ad\", compression=\"gzip\")", err)
		case errors.Is(err, hdf5.ErrDamaged):
			err = errorf(data.ErrFormat, "%w; fetch or make the file again", err)
		case errors.Is(err, hdf5.ErrNotFound):
			err = errorf(data.ErrFormat, "%w; write the file again with anndata or Cell Ranger", err)
		case errors.Is(err, parquet.ErrUnsupported):
			err = errorf(data.ErrUnsupported, "%w", err)
		case errors.Is(err, parquet.ErrDamaged):
			err = errorf(data.ErrFormat, "Parquet: %w", err)
		case errors.Is(err, parquet.ErrRow):
			err = errorf(data.ErrFormat, "%w", err)
		}
	}()
	defer kind.Catch(&err)
	do()
	return nil
}
