package neighbors

import (
	"archive/zip"
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"cne/internal/npy"
)

// ReadFile reads a graph as ReadNPZ does, or makes the symmetric graph (as FromNeighbors
// does) of neighbours that another program has found: an array of whole numbers in NumPy's
// npy format, or one called indices in an npz archive without the other parts of a matrix,
// such as umap-learn's precomputed_knn and pynndescent give. Row i lists the neighbours of
// point i, counted from 0, in any order; the point itself is passed over, and so is −1,
// which stands for a neighbour that was not found. Distances beside them are not read.
//
// Errors are those of ReadNPZ. Memory is taken as data arrive.
func ReadFile(ctx context.Context, path string) (*Graph, error) {
	return readGraph(ctx, path, DecodeFile)
}

// DecodeFile is ReadFile for a file's contents of the given size in bytes. Its errors do
// not name a file.
func DecodeFile(r io.ReaderAt, size int64) (*Graph, error) {
	magic := make([]byte, len(npy.Magic))
	if n, _ := r.ReadAt(magic, 0); n == len(magic) && string(magic) == npy.Magic {
		a := &array{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16), name: "the array", most: 2}
		if err := a.readHeader(uint64(size)); err != nil {
			return nil, fmt.Errorf("%w: the array: %w", ErrInvalidGraph, err)
		}
		return a.graph()
	}
	const name = "indices.npy"
	has := func(archive *zip.Reader, name string) bool {
		return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
	}
	archive, err := zip.NewReader(r, size)
	if err != nil || !has(archive, name) || has(archive, "indptr.npy") || has(archive, "format.npy") {
		return DecodeNPZ(r, size)
	}
	a, err := openArrayOf(archive, name, 2)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidGraph, err)
	}
	defer a.Close()
	return a.graph()
}

// graph makes the symmetric graph of the neighbours in an array.
func (a *array) graph() (*Graph, error) {
	if a.dims != 2 || a.kind != 'i' && a.kind != 'u' {
		return nil, fmt.Errorf("%w: %s is no table of whole numbers; give the numbers of each point's neighbours in a row, as an array of n×k", ErrInvalidGraph, a.name)
	}
	n, k := a.shape[0], a.shape[1]
	if k == 0 {
		return nil, fmt.Errorf("%w: %s has no columns; give points a neighbour at least", ErrInvalidGraph, a.name)
	}
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %s has %d rows; at most %d points can be numbered", ErrInvalidGraph, a.name, n, math.MaxInt32)
	}
	var all []int32
	none := ^uint64(0) >> (64 - 8*a.size)
	err := a.each(func(item []byte) error {
		v, ok := a.integer(item)
		e := len(all)
		row, place := e/k, e%k
		if a.fortran {
			row, place = e%n, e/n
		}
		switch {
		case ok && v < int64(n):
			all = append(all, int32(v))
		case !ok && a.kind == 'i' && uint64(v) == none:
			all = append(all, -1)
		default:
			return fmt.Errorf("neighbour %d of row %d (both counted from 0) is no row of this array of %d, and not -1; count points from 0", place, row, n)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalidGraph, a.name, err)
	}
	// What is left of each row moves to its front.
	at := func(i, c int) int {
		if a.fortran {
			return c*n + i
		}
		return i*k + c
	}
	kept, rows := make([]int32, 0, len(all)), make([]int, n+1)
	for i := range n {
		for c := range k {
			if j := all[at(i, c)]; j >= 0 && int(j) != i {
				kept = append(kept, j)
			}
		}
		rows[i+1] = len(kept)
	}
	return symmetric(n, func(i int) []int32 { return kept[rows[i]:rows[i+1]] }), nil
}
