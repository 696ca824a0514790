package neighbors

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"cne/data/file"
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
	if archive, err := zip.NewReader(r, size); err == nil {
		has := func(name string) bool {
			return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
		}
		if !has("indices.npy") || has("indptr.npy") || has("format.npy") {
			return DecodeNPZ(r, size)
		}
	}
	n, kept, rows := 0, []int32(nil), []int{0}
	err := file.IntegerRows(r, size, "indices", func(all int, values []int64) error {
		if n = all; n > math.MaxInt32 {
			return fmt.Errorf("rows: got %d, want at most %d", n, math.MaxInt32)
		}
		i := len(rows) - 1
		for place, j := range values {
			if j < -1 || j >= int64(n) {
				return fmt.Errorf("neighbour %d of row %d (both counted from 0): got %d, want 0 to %d, or -1", place, i, j, n-1)
			}
			if j >= 0 && j != int64(i) {
				kept = append(kept, int32(j))
			}
		}
		rows = append(rows, len(kept))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidGraph, err)
	}
	return symmetric(n, func(i int) []int32 { return kept[rows[i]:rows[i+1]] }), nil
}
