package file

import (
	"archive/zip"
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/npy"
	"cne/internal/selection"
	"cne/internal/text"
)

// maxListed is the largest number of arrays that an error names.
const maxListed = 10

// An npz is NumPy's archive of arrays, a zip file with an npy file for each.
type npz struct {
	*zip.Reader
	at   io.ReaderAt // the archive
	size int64
}

// newNPZ reads the list of the arrays in an archive of the given size in bytes.
func newNPZ(at io.ReaderAt, size int64) *npz {
	z, err := zip.NewReader(at, size)
	kind.Need(err == nil, data.ErrFormat, "the npz archive cannot be read: %w", err)
	kind.Need(len(z.File) == 0 || slices.ContainsFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, ".npy") }), data.ErrUnsupported,
		"the file is a zip archive without arrays (.npy); unpack it, and name a file in it")
	return &npz{z, at, size}
}

// choose returns the first of the named arrays that exists. Otherwise it returns the
// array that np.savez calls arr_0, or the only array.
func (z *npz) choose(names ...string) *zip.File {
	f := z.find(append(names, "arr_0")...)
	if f == nil && len(z.File) == 1 && strings.HasSuffix(z.File[0].Name, ".npy") {
		f = z.File[0]
	}
	kind.Need(f != nil, data.ErrFormat,
		"arrays: got %s, want one of %s (np.savez(file, x=points, labels=y))", z.list(), strings.Join(names, ", "))
	return f
}

// find returns the first of the named arrays that exists, or nil.
func (z *npz) find(names ...string) *zip.File {
	for _, name := range names {
		if i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name+".npy" }); i >= 0 {
			return z.File[i]
		}
	}
	return nil
}

// list returns the names of an archive's arrays, for an error.
func (z *npz) list() string {
	name := func(f *zip.File) string { return fmt.Sprintf("%.40q", strings.TrimSuffix(f.Name, ".npy")) }
	return cmp.Or(text.List(selection.Map(z.File, name), maxListed, nil), "nothing")
}

// MatrixRows reads a two-dimensional array of integers, or for float64 of any real numbers, from
// an npy file of the given size, or the named array from an npz archive, and calls row for each
// of its n rows. values is valid until row returns, which may fail as kind.Need does; unsigned
// integers above 2⁶³−1 are passed as −2⁶³.
func MatrixRows[T int64 | float64](r io.ReaderAt, size int64, name string, row func(n int, values []T)) error {
	kinds, want, value := "fiu", "numbers", func(a array, src []byte, i int) T { return T(a.number(src, i)) }
	if _, whole := any(T(0)).(int64); whole {
		kinds, want = "iu", "whole numbers, the neighbours of a point in each row"
		value = func(a array, src []byte, i int) T {
			if v := a.integer(src, i); v >= 0 || a.kind == 'i' {
				return T(v)
			}
			return math.MinInt64
		}
	}
	rows := func(in *Input) bool {
		a := readNPYHeader(in)
		kind.Need(len(a.shape) == 2 && strings.IndexByte(kinds, a.kind) >= 0 && a.shape[1] > 0, data.ErrShape,
			"array: got %s of type %c%d, want n×k %s", shapeText(a.shape), a.kind, a.size, want)
		var values []T
		for r := newArrayReader(a, in); ; {
			src, n, err := r.next(math.MaxInt)
			if err == io.EOF {
				return true
			}
			kind.Check(err)
			for i := range n {
				if values = append(values, value(a, src, i)); len(values) == a.shape[1] {
					row(a.shape[0], values)
					values = values[:0]
				}
			}
		}
	}
	return caught(func() {
		in := &Input{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), readBuffer), at: r, size: size}
		if string(in.Peek(len(npy.Magic))) == npy.Magic {
			rows(in)
			return
		}
		z := newNPZ(r, size)
		f := z.find(name)
		kind.Need(f != nil, data.ErrFormat, "arrays: got %s, want %s", z.list(), name)
		openArray(z, f, rows)
	})
}

// open opens an array for reading. It trusts the size of the array in the archive's list
// only if the archive can hold that much.
func (z *npz) open(f *zip.File) *Input {
	r, err := f.Open() // needs no Close: the archive stays open
	kind.Need(err == nil, data.ErrFormat, "%w", err)
	s := kind.Got(newInput(r))
	if !s.packed && f.Method == zip.Store && f.UncompressedSize64 <= uint64(z.size) {
		s.size = int64(f.UncompressedSize64)
		if start, err := f.DataOffset(); err == nil {
			s.at, s.sealed = io.NewSectionReader(z.at, start, s.size), true
		}
	} else {
		s.packed = true
		s.size = int64(min(f.CompressedSize64, uint64(z.size)))
	}
	return s
}

// openArray opens an array of an archive. read reads the head of the array.
func openArray[T any](z *npz, f *zip.File, read func(in *Input) T) (opened T) {
	kind.Check(inArray(f.Name, caught(func() { opened = read(z.open(f)) })))
	return opened
}

// inArray adds the name of an array, if any, to an error.
func inArray(name string, err error) error {
	if name == "" {
		return err
	}
	return kind.Named("the array "+name, err)
}

// openNPZ opens the points in an archive of arrays and, if wanted and not given
// elsewhere, the labels in it. The points are the array named images (otherwise x or X),
// the unnamed array (arr_0), or the only array, or a matrix written by
// scipy.sparse.save_npz. Labels are the array named labels (otherwise y).
func openNPZ(in *Input, o *Options) reader {
	z := newNPZ(in.at, in.size)
	var r reader
	var points *zip.File
	if z.isSparse() {
		r = z.openCSR()
	} else {
		points = z.choose("images", "x", "X")
		r = z.openMember(points)
	}
	h, labels := r.about(), z.find("labels", "y")
	if labels == nil || labels == points || len(o.Labels) > 0 {
		return r
	}
	l := openArray(z, labels, npyHeader.labels)
	if l.total != h.n {
		kind.Check(inArray(labels.Name, miscounted(l.total, h.n)))
	}
	h.labeled, h.beside = true, func() ([]string, error) {
		all, err := l.allLabels()
		return all, h.named(inArray(labels.Name, err))
	}
	return r
}

// openMember begins to read points from an array of an archive.
func (z *npz) openMember(f *zip.File) reader {
	r := openArray(z, f, func(in *Input) reader { return npyHeader.open(in, nil) })
	h := r.about()
	h.member = f.Name
	if h.storage == data.InFiles { // an array within an archive is not opened again
		h.storage = selection.If(h.isByte, data.AsBytes, data.InMemory)
	}
	return r
}

// npzLabels begins to read labels from an archive of labels only.
func npzLabels(in *Input) *arrayReader {
	z := newNPZ(in.at, in.size)
	return openArray(z, z.choose("labels", "y"), npyHeader.labels)
}
