package neighbors

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"cne/internal/atomicfile"
	"cne/internal/ctxio"
)

// ReadNPZ reads a graph from a file that scipy.sparse.save_npz wrote of a
// square CSR matrix with at most 2³¹−1 rows, compressed or not. Every stored
// entry is a directed edge from its row to its column, except that an explicit zero is
// none, and that NaN and infinite ones are refused. Its magnitude, as float32, is the
// edge's weight, unless all entries are equal. Unsorted columns are sorted, and
// entries for the same edge added up. The graph need not be symmetric.
//
// Self loops are refused rather than dropped, so that the graph has the edges
// that the file has. Errors name the file and say what to do; those about its
// contents wrap ErrInvalidGraph. Memory is taken as data arrive, never on the
// word of a header. When ctx ends, so does reading, with its error.
func ReadNPZ(ctx context.Context, path string) (*Graph, error) {
	return readGraph(ctx, path, DecodeNPZ)
}

// readGraph decodes a file, which its errors name.
func readGraph(ctx context.Context, path string, decode func(r io.ReaderAt, size int64) (*Graph, error)) (*Graph, error) {
	f, err := ctxio.OpenRegular(ctx, path, "a graph is an archive, which is read in any order")
	if err != nil {
		return nil, fmt.Errorf("neighbors: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("neighbors: %w", err)
	}
	g, err := decode(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("neighbors: %s: %w", path, err)
	}
	return g, nil
}

// DecodeNPZ is ReadNPZ for a file's contents of the given size in bytes. Its
// errors do not name a file.
func DecodeNPZ(r io.ReaderAt, size int64) (*Graph, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: not an .npz archive (%w); write it with scipy.sparse.save_npz", ErrInvalidGraph, err)
	}
	g, err := decodeCSR(archive)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidGraph, err)
	}
	return g, nil
}

func decodeCSR(archive *zip.Reader) (*Graph, error) {
	format, err := readFormat(archive)
	if err != nil {
		return nil, err
	}
	if format != "csr" {
		return nil, fmt.Errorf("format.npy says %.20q, but only a matrix in csr format can be read; use g.tocsr()", format)
	}
	shape, err := readIntegers(archive, "shape.npy", 2)
	if err != nil {
		return nil, err
	}
	if shape[0] != shape[1] {
		return nil, fmt.Errorf("shape.npy says %d rows and %d columns, but a graph is a square matrix; give it one row and one column per point", shape[0], shape[1])
	}
	if shape[0] > math.MaxInt32 {
		return nil, fmt.Errorf("shape.npy says that there are %d points; at most %d can be numbered", shape[0], math.MaxInt32)
	}
	n := int(shape[0])
	indptr, err := readIntegers(archive, "indptr.npy", int64(n)+1)
	if err != nil {
		return nil, err
	}
	indices, err := readColumns(archive, indptr)
	if err != nil {
		return nil, err
	}
	g := &Graph{N: n, Indptr: indptr, Indices: indices}
	if err := g.dropZeros(archive); err != nil {
		return nil, err
	}
	return g, g.normalise()
}

// readFormat reads format.npy, a single string of bytes or characters.
func readFormat(archive *zip.Reader) (string, error) {
	a, err := openArray(archive, "format.npy")
	if err != nil {
		return "", err
	}
	defer a.Close()
	width := 1
	switch {
	case a.count != 1 || a.size > 256 || a.kind != 'S' && a.kind != 'U':
		return "", fmt.Errorf("format.npy is not a single short string; write the file with scipy.sparse.save_npz")
	case a.kind == 'U':
		width = 4
	}
	var format []byte
	err = a.each(func(item []byte) error {
		for c := 0; c < len(item); c += width {
			u := item[c]
			if width == 4 {
				u = byte(min(a.order.Uint32(item[c:]), 255))
			}
			if u != 0 {
				format = append(format, u)
			}
		}
		return nil
	})
	return string(format), err
}

// readIntegers reads a one-dimensional array of count non-negative integers.
func readIntegers(archive *zip.Reader, name string, count int64) ([]int64, error) {
	a, err := openIntegers(archive, name)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if a.count != count {
		return nil, fmt.Errorf("%s has %d entries, but needs %d for this matrix; write the file again", name, a.count, count)
	}
	var values []int64
	err = a.each(func(item []byte) error {
		v, ok := a.integer(item)
		if !ok {
			return fmt.Errorf("%s: entry %d (counted from 0) is negative or above 2⁶³−1; write the file again", name, len(values))
		}
		values = append(values, v)
		return nil
	})
	return values, err
}

// readColumns reads the column numbers of the rows that indptr bounds.
func readColumns(archive *zip.Reader, indptr []int64) ([]int32, error) {
	const name = "indices.npy"
	a, err := openIntegers(archive, name)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if err := checkIndptr(indptr, a.count); err != nil {
		return nil, fmt.Errorf("%w; save the matrix again after g.prune()", err)
	}
	n := len(indptr) - 1
	var columns []int32
	err = a.each(func(item []byte) error {
		v, ok := a.integer(item)
		if !ok || v >= int64(n) {
			return fmt.Errorf("%s: entry %d (counted from 0) is not a column of this matrix, whose columns are numbered from 0 to %d; make the graph again",
				name, len(columns), n-1)
		}
		columns = append(columns, int32(v))
		return nil
	})
	return columns, err
}

// dropZeros takes out the edges whose entry in data.npy is zero, and looks at the
// others.
func (g *Graph) dropZeros(archive *zip.Reader) error {
	const name = "data.npy"
	a, err := openArray(archive, name)
	if err != nil {
		return err
	}
	defer a.Close()
	isZero, err := a.zeroTest()
	if err != nil {
		return err
	}
	if a.dims != 1 || a.count != int64(len(g.Indices)) {
		return fmt.Errorf("%s has %d entries, but indices.npy has %d; the two must be equal", name, a.count, len(g.Indices))
	}
	var first []byte
	e, kept, row := 0, int64(0), 0
	weights, weighted := make([]float32, 0, len(g.Indices)), false
	err = a.each(func(item []byte) error {
		if !a.finite(item) {
			return fmt.Errorf("%s: entry %d (counted from 0) is NaN or infinite; give edges finite weights, or 1", name, e)
		}
		for row < g.N && g.Indptr[row+1] == int64(e) {
			row++
			g.Indptr[row] = kept
		}
		if !isZero(item) {
			if first == nil {
				first = bytes.Clone(item)
			}
			weighted = weighted || !bytes.Equal(item, first)
			weights = append(weights, a.weight(item))
			g.Indices[kept] = g.Indices[e]
			kept++
		}
		e++
		return nil
	})
	if err != nil {
		return err
	}
	for row < g.N {
		row++
		g.Indptr[row] = kept
	}
	g.Indices = g.Indices[:kept]
	if weighted {
		g.Weights = weights
	}
	return nil
}

// normalise sorts the rows, merges equal edges and refuses self loops.
func (g *Graph) normalise() error {
	if g.Weights != nil {
		return g.normaliseWeighted()
	}
	kept := int64(0)
	lo := int64(0)
	for i := range g.N {
		hi := g.Indptr[i+1]
		row := g.Indices[lo:hi]
		slices.Sort(row)
		last := int32(-1)
		for _, j := range row {
			if int(j) == i {
				return selfLoop(i)
			}
			if j != last {
				g.Indices[kept] = j
				kept++
				last = j
			}
		}
		lo = hi
		g.Indptr[i+1] = kept
	}
	g.Indices = g.Indices[:kept]
	return nil
}

func selfLoop(row int) error {
	return fmt.Errorf("row %d (counted from 0) has an edge to itself; take self loops out with g.setdiag(0) and g.eliminate_zeros()", row)
}

// normaliseWeighted is normalise of a graph with weights, which it adds up.
func (g *Graph) normaliseWeighted() error {
	type edge struct {
		tail   int32
		weight float32
	}
	var row []edge
	kept, lo := int64(0), int64(0)
	for i := range g.N {
		hi := g.Indptr[i+1]
		row = row[:0]
		for e := lo; e < hi; e++ {
			row = append(row, edge{g.Indices[e], g.Weights[e]})
		}
		slices.SortStableFunc(row, func(a, b edge) int { return cmp.Compare(a.tail, b.tail) })
		first := kept
		for _, e := range row {
			switch {
			case int(e.tail) == i:
				return selfLoop(i)
			case kept > first && g.Indices[kept-1] == e.tail:
				g.Weights[kept-1] = min(g.Weights[kept-1]+e.weight, math.MaxFloat32)
			default:
				g.Indices[kept], g.Weights[kept] = e.tail, e.weight
				kept++
			}
		}
		lo = hi
		g.Indptr[i+1] = kept
	}
	g.Indices, g.Weights = g.Indices[:kept], g.Weights[:kept]
	return nil
}

// WriteNPZ writes the graph to a file that scipy.sparse.load_npz reads as a
// CSR matrix of its weights, or of float32 ones, and ReadNPZ as the same graph. The file appears
// under its name only when it is complete. An invalid graph is refused.
func (g *Graph) WriteNPZ(path string) error {
	if err := atomicfile.Write(path, g.EncodeNPZ); err != nil {
		return fmt.Errorf("neighbors: writing %s: %w", path, err)
	}
	return nil
}

// EncodeNPZ writes what WriteNPZ does to w. Equal graphs give equal bytes.
func (g *Graph) EncodeNPZ(w io.Writer) error {
	if err := g.Validate(); err != nil {
		return err
	}
	// scipy wants the same type for indices and indptr.
	wide := len(g.Indices) > math.MaxInt32
	descr := "<i4"
	if wide {
		descr = "<i8"
	}
	put := func(b []byte, v int64) []byte {
		if wide {
			return binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	edges := []int{len(g.Indices)}
	z := zip.NewWriter(w)
	for _, member := range []struct {
		name, descr string
		shape       []int
		items       func(w *bufio.Writer)
	}{
		{"indices.npy", descr, edges, func(w *bufio.Writer) {
			for _, j := range g.Indices {
				w.Write(put(w.AvailableBuffer(), int64(j)))
			}
		}},
		{"indptr.npy", descr, []int{g.N + 1}, func(w *bufio.Writer) {
			for _, end := range g.Indptr {
				w.Write(put(w.AvailableBuffer(), end))
			}
		}},
		{"format.npy", "|S3", nil, func(w *bufio.Writer) { w.WriteString("csr") }},
		{"shape.npy", "<i8", []int{2}, func(w *bufio.Writer) {
			for range 2 {
				w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64(g.N)))
			}
		}},
		{"data.npy", "<f4", edges, func(w *bufio.Writer) {
			for e := range g.Indices {
				w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), math.Float32bits(g.weight(int64(e)))))
			}
		}},
	} {
		if err := writeArray(z, member.name, member.descr, member.shape, member.items); err != nil {
			return fmt.Errorf("neighbors: writing %s: %w", member.name, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("neighbors: %w", err)
	}
	return nil
}
