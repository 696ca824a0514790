package neighbors

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"cne/data"
)

// Numbers of points are checked wherever they come in from outside: as graphs, as
// neighbours, and in files.
func TestPointsOutOfRange(t *testing.T) {
	const n, k = 40, 2
	m := data.NewMatrix(n, 3)
	for i := range m.X {
		m.X[i] = float32(i * i % 17)
	}
	good := func() []int32 {
		index := make([]int32, n*k)
		for e := range index {
			index[e] = int32((e/k + 1 + e%k) % n)
		}
		return index
	}
	graph := func(index []int32) *Graph {
		g := &Graph{N: n, Indptr: make([]int64, n+1), Indices: index}
		for i := range n {
			g.Indptr[i+1] = int64(k * (i + 1))
		}
		return g
	}
	rows := graph(good()) // whose tails ascend
	for i := range n {
		if row := rows.Tails(i); row[0] > row[1] {
			row[0], row[1] = row[1], row[0]
		}
	}
	must(t, rows.Validate())
	for _, bad := range []int32{-1, n, math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 37, n*k - 1} {
			index := good()
			index[at] = bad
			ordered := append([]int32(nil), rows.Indices...)
			ordered[at] = bad
			name := fmt.Sprintf("%d at %d", bad, at)
			if _, err := FromNeighbors(&Neighbors{N: n, K: k, Index: index, Dist2: make([]float64, n*k)}); !errors.Is(err, ErrInvalidGraph) {
				t.Errorf("FromNeighbors, %s: %v", name, err)
			}
			if err := graph(ordered).Validate(); !errors.Is(err, ErrInvalidGraph) {
				t.Errorf("Validate, %s: %v", name, err)
			}
			if err := graph(ordered).EncodeNPZ(new(bytes.Buffer)); !errors.Is(err, ErrInvalidGraph) {
				t.Errorf("EncodeNPZ, %s: %v", name, err)
			}
			if _, err := Ranks(t.Context(), m, index, k, Options{}); !errors.Is(err, ErrInput) {
				t.Errorf("Ranks, %s: %v", name, err)
			}
		}
	}
}
