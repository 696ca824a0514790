package explorer

import (
	"fmt"

	"cne/data/neighbors"
)

// Bounds of the neighbours of a page. A million take about 3 MB.
const (
	mostNeighbors   = 10 // of a point
	fewestNeighbors = 3
	allNeighbors    = 1_000_000
)

// NeighborsShown returns how many neighbours a page of n points can have for each point: 10
// up to 100 000 points, fewer up to 333 333, and 0 above.
func NeighborsShown(n int) int {
	if k := min(mostNeighbors, allNeighbors/max(1, n)); k >= fewestNeighbors {
		return k
	}
	return 0
}

// checkNeighbors returns an error for neighbours that do not fit n points.
func checkNeighbors(nb *neighbors.Neighbors, n int) error {
	if nb.N != n || nb.K < 1 || len(nb.Index) != n*nb.K {
		return fmt.Errorf("%w: neighbours: got %d rows for %d points with %d neighbours each, want %d points with at least 1",
			ErrInput, len(nb.Index), nb.N, nb.K, n)
	}
	for e, j := range nb.Index {
		if i := e / nb.K; j < -1 || int(j) >= n || int(j) == i {
			return fmt.Errorf("%w: neighbours: row %d, neighbour %d (both counted from 0): got %d, want another row from 0 to %d, or -1 for none", ErrInput, i, e%nb.K, j, n-1)
		}
	}
	return nil
}

// addNeighbors adds the block of the neighbours, and returns how many a point has. The block
// has their rows, or the number of points for none, as appendPlanes writes them.
func (c *content) addNeighbors(nb *neighbors.Neighbors) int {
	k, width := min(nb.K, NeighborsShown(nb.N)), widthFor(nb.N)
	if k == 0 {
		return 0
	}
	out := appendPlanes(nil, nb.N*k, width, func(e int) uint64 {
		if j := nb.Of(e / k)[e%k]; j >= 0 {
			return uint64(j)
		}
		return uint64(nb.N)
	})
	c.Later = append(c.Later, packedBlock("neighbors", out))
	return k
}
