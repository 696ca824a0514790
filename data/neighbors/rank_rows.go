package neighbors

import (
	"context"
	"fmt"

	"cne/data"
)

// RanksOf is Ranks for some of the points, those with the given rows: entries q·k to
// q·k+k−1 of index and of the result are about point rows[q]. It takes O(rn(D+k))
// operations for r rows, on the CPU.
//
// Errors are those of Ranks, and a row that m does not have is one (ErrInput).
func RanksOf(ctx context.Context, m *data.Matrix, rows []int, index []int32, k int) ([]int32, error) {
	if err := checkSizes(m, "matrix"); err != nil {
		return nil, err
	}
	if k < 1 || len(rows) == 0 || len(index)/k != len(rows) || len(index)%k != 0 {
		return nil, fmt.Errorf("neighbors: %w: %d indices are not %d for each of %d rows", ErrInput, len(index), k, len(rows))
	}
	for q, i := range rows {
		if i < 0 || i >= m.N {
			return nil, fmt.Errorf("neighbors: %w: there is no point %d; give rows from 0 to %d", ErrInput, i, m.N-1)
		}
		for _, j := range index[q*k : (q+1)*k] {
			if err := checkTarget(i, j, m.N); err != nil {
				return nil, err
			}
		}
	}
	if err := checkFinite(m, ""); err != nil {
		return nil, err
	}
	return ranksOnHost(ctx, m, rows, index, k)
}
