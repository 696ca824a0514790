package neighbors

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"cne/data/file"
	"cne/internal/atomicfile"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/npy"
	"cne/internal/selection"
	"cne/internal/simd"
)

// checkValid fails as kind.Need does for an error of a file, which then wraps ErrInvalidGraph.
func checkValid(err error) {
	kind.Need(err == nil, ErrInvalidGraph, "invalid graph: %w", err)
}

// dropZeros removes the edges of weight 0, and the weights if they are then all equal.
func (g *Graph) dropZeros() {
	kept, start, unequal := 0, int64(0), false
	for i := range g.N {
		for e := start; e < g.Indptr[i+1]; e++ {
			if w := g.Weights[e]; w != 0 {
				g.Indices[kept], g.Weights[kept] = g.Indices[e], w
				unequal = unequal || w != g.Weights[0]
				kept++
			}
		}
		start, g.Indptr[i+1] = g.Indptr[i+1], int64(kept)
	}
	if g.Indices, g.Weights = g.Indices[:kept], g.Weights[:kept]; !unequal {
		g.Weights = nil
	}
}

// decodeCSR reads a CSR matrix, or fails as kind.Need does. Weights may be 0, where the matrix
// stores zeros.
func decodeCSR(r io.ReaderAt, size int64) *Graph {
	g := &Graph{Indptr: []int64{0}}
	type edge struct {
		tail   int32
		weight float32
	}
	var row []edge
	var least, largest float64
	var atLeast [2]int // its row and column
	err := file.SparseRows(r, size, func(n, d int) {
		kind.Need(n == d, ErrInvalidGraph, "matrix: got %d rows and %d columns, want as many of both", n, d)
		g.N = n
	}, func(i int, columns []int32, values []float64) {
		row = row[:0]
		for k, v := range values {
			switch {
			case !simd.IsFinite(v):
				kind.Fail(ErrInvalidGraph, "data.npy: row %d, column %d (counted from 0): got NaN or infinity", i, columns[k])
			case int(columns[k]) == i && v == 0:
				continue
			case int(columns[k]) == i:
				kind.Fail(ErrInvalidGraph, "row %d (counted from 0): got an edge to itself, want none (g.setdiag(0), g.eliminate_zeros())", i)
			case v < least:
				least, atLeast = v, [2]int{i, int(columns[k])}
				fallthrough
			case v != 0:
				largest = max(largest, v)
				v = min(max(math.Abs(v), math.SmallestNonzeroFloat32), math.MaxFloat32)
			}
			row = append(row, edge{columns[k], float32(v)})
		}
		slices.SortStableFunc(row, func(a, b edge) int { return cmp.Compare(a.tail, b.tail) })
		start := len(g.Indices)
		for _, e := range row {
			if last := len(g.Indices) - 1; last >= start && g.Indices[last] == e.tail {
				g.Weights[last] = min(g.Weights[last]+e.weight, math.MaxFloat32)
				continue
			}
			g.Indices, g.Weights = append(g.Indices, e.tail), append(g.Weights, e.weight)
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	})
	checkValid(err)
	kind.Need(!belowZero(least, largest), ErrInvalidGraph,
		"data.npy: row %d, column %d (counted from 0): got %.6g, want weights or distances of at least 0 (g.multiply(g > 0))", atLeast[0], atLeast[1], least)
	return g
}

// belowZero reports whether the least and the largest of some values show that they are neither
// weights nor distances, which rounding may bring a little below 0.
func belowZero(least, largest float64) bool { return least < -1e-6*max(1, largest) }

// WriteNPZ writes the graph to a file. scipy.sparse.load_npz reads it as a CSR matrix of
// the weights (1 without weights) in float32, and ReadFile reads it as the same graph.
// The file appears under its name only when it is complete. An invalid graph is an error.
func (g *Graph) WriteNPZ(path string) error {
	if err := atomicfile.Write(path, g.EncodeNPZ); err != nil {
		return fmt.Errorf("neighbors: writing %s: %w", path, err)
	}
	return nil
}

// EncodeNPZ writes the contents of WriteNPZ's file to w. Equal graphs give equal bytes.
func (g *Graph) EncodeNPZ(w io.Writer) (err error) {
	defer kind.Catch(&err)
	kind.Check(g.Validate())
	// scipy wants the same type for indices and indptr.
	wide := len(g.Indices) > math.MaxInt32
	descr := selection.If(wide, "<i8", "<i4")
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
		shape       []int // of one dimension, or none
		item        func(b []byte, i int) []byte
	}{
		{"indices.npy", descr, edges, func(b []byte, e int) []byte { return put(b, int64(g.Indices[e])) }},
		{"indptr.npy", descr, []int{g.N + 1}, func(b []byte, i int) []byte { return put(b, g.Indptr[i]) }},
		{"format.npy", "|S3", nil, func(b []byte, _ int) []byte { return append(b, "csr"...) }},
		{"shape.npy", "<i8", []int{2}, func(b []byte, _ int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(g.N)) }},
		{"data.npy", "<f4", edges, func(b []byte, e int) []byte {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(g.Weight(int64(e))))
		}},
	} {
		err := writeArray(z, member.name, member.descr, member.shape, member.item)
		kind.Checkf(err, "neighbors: writing %s: %w", member.name, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("neighbors: %w", err)
	}
	return nil
}

// writeArray adds a member with an array of the given type, in NumPy's notation,
// and shape, whose items are appended by item. Flush returns the errors of the writes.
func writeArray(z *zip.Writer, name, descr string, shape []int, item func(b []byte, i int) []byte) error {
	member, err := z.CreateHeader(&zip.FileHeader{
		Name:   name,
		Method: zip.Store, // indices and weights hardly repeat: the fastest compression saves a sixth, in ten times the time
		// This is the earliest date that a zip file can hold. NumPy writes it, too.
		Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(member, 1<<16)
	w.Write(npy.Head(64, descr, shape...))
	for i := range append(slices.Clone(shape), 1)[0] {
		w.Write(item(w.AvailableBuffer(), i))
	}
	return w.Flush()
}

// ReadFile reads a graph from a file that scipy.sparse.save_npz wrote of a square CSR
// matrix with at most 2³¹−1 rows, compressed or not. Every stored entry is a directed
// edge from its row to its column. Explicit zeros are skipped; NaN and infinite entries
// are an error, and so are negative ones. An entry, as float32, is the edge's weight, unless
// all entries are equal. Unsorted columns are sorted, and entries for the same edge are added
// up. The graph need not be symmetric. Self loops are an error, and not dropped, so the
// graph has the same edges as the file.
//
// If the file has lists of neighbours from another program, ReadFile makes their
// symmetric graph, as FromNeighbors does. Such a file is an array of integers in NumPy's
// npy format, or an npz archive with an array named indices and without the other parts
// of a matrix, for umap-learn's precomputed_knn or pynndescent. Row i lists the
// neighbours of point i, counted from 0, in any order. The point itself is skipped, and
// so is −1, a neighbour that was not found.
//
// Errors name the file; errors about its contents wrap ErrInvalidGraph. Memory grows with
// the data that are read, not with the sizes in a header. If ctx is done first, the error
// is ctx's.
func ReadFile(ctx context.Context, path string) (*Graph, error) {
	g, _, err := ReadNearest(ctx, path, math.MaxInt, false, nil)
	return g, err
}

// ReadNearest is ReadFile for only the first k neighbours of each point. These are the
// nearest if they are sorted by distance, as umap-learn sorts them. most is the largest
// number of neighbours of a point in the file. If weighted is set and the archive has an
// array distances of the same shape, the edges get UMAP's weights, as from FuzzyGraph.
//
// A matrix is read completely, and most is 0, unless distances, if not nil, reports that
// its values are distances (see AreDistances). Then its rows list the neighbours of each
// point, and zeros that it stores are distances of equal points.
func ReadNearest(ctx context.Context, path string, k int, weighted bool, distances func(*Graph) (bool, error)) (g *Graph, most int, err error) {
	defer kind.Catch(&err)
	f, err := ctxio.OpenRegular(ctx, path)
	kind.Checkf(err, "neighbors: %w", err)
	defer f.Close()
	info, err := f.Stat()
	kind.Checkf(err, "neighbors: %w", err)
	g, most, err = decodeNearest(f, info.Size(), k, weighted, distances)
	return g, most, kind.Named("neighbors: "+path, err)
}

func decodeNearest(r io.ReaderAt, size int64, k int, weighted bool, are func(*Graph) (bool, error)) (g *Graph, most int, err error) {
	defer kind.Catch(&err)
	var distances []float64
	if archive, err := zip.NewReader(r, size); err == nil {
		has := func(name string) bool {
			return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
		}
		if !has("indices.npy") || has("indptr.npy") || has("format.npy") {
			if g = decodeCSR(r, size); are != nil && kind.Got(are(g)) {
				g, most = g.fromDistances(k, weighted)
				return g, most, nil
			}
			g.dropZeros()
			return g, 0, nil
		}
		if weighted && has("distances.npy") {
			err := file.MatrixRows(r, size, "distances", func(_ int, row []float64) { distances = append(distances, row...) })
			checkValid(err)
		}
	}
	n, width, l := 0, 0, lists{start: []int{0}}
	var least, largest float64 // distances
	err = file.MatrixRows(r, size, "indices", func(all int, values []int64) {
		n = all
		kind.Need(n <= math.MaxInt32, ErrInvalidGraph, "rows: got %d, want at most %d", n, math.MaxInt32)
		i, others := len(l.start)-1, 0
		width = len(values)
		for column, j := range values {
			if j < -1 || j >= int64(n) {
				kind.Fail(ErrInvalidGraph,
					"neighbour %d of row %d (both counted from 0): got %d, want 0 to %d, or -1", column, i, j, n-1)
			}
			if j < 0 || j == int64(i) {
				continue
			}
			if others++; others <= k {
				l.index = append(l.index, int32(j))
				if at := i*width + column; at < len(distances) {
					d := distances[at]
					l.dist2, least, largest = append(l.dist2, d*d), min(least, d), max(largest, d)
				}
			}
		}
		most = max(most, others)
		l.start = append(l.start, len(l.index))
	})
	checkValid(err)
	if distances == nil {
		return l.graph(), most, nil
	}
	kind.Need(len(distances) == n*width, ErrInvalidGraph, "distances.npy: got %d numbers, want %d as in indices.npy", len(distances), n*width)
	l.check()
	kind.Need(!belowZero(least, largest), ErrInvalidGraph, "distances.npy: got %.6g, want at least 0", least)
	return l.fuzzy(), most, nil
}
