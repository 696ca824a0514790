package data

import "cne/internal/rng"

// DrawRows draws count of n rows without replacement, all alike, and returns them in
// ascending order. The seed decides which. A count below 1 or above n gives ErrOption.
func DrawRows(n, count int, seed uint64) ([]int, error) {
	if count < 1 || count > n {
		return nil, errorf(ErrOption, "rows to draw: got %d, want 1 to %d", count, n)
	}
	stream := rng.New(seed, rng.Training)
	rows := make([]int, 0, count)
	for i := 0; len(rows) < count; i++ {
		if stream.IntN(n-i) < count-len(rows) {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// CheckRows returns an error (ErrOption) unless rows, counted from 0, are some of n and
// ascend.
func CheckRows(rows []int, n int) error {
	for k, row := range rows {
		switch at := k + 1; {
		case row < 0 || row >= n:
			return errorf(ErrOption, "entry %d (counted from 1): got row %d, want 0 to %d", at, row, n-1)
		case k > 0 && row == rows[k-1]:
			return errorf(ErrOption, "entry %d (counted from 1): got row %d again, want each row once", at, row)
		case k > 0 && row < rows[k-1]:
			return errorf(ErrOption, "entry %d (counted from 1): got row %d after row %d, want ascending rows", at, row, rows[k-1])
		}
	}
	if len(rows) == 0 {
		return errorf(ErrOption, "rows: got none, want at least one")
	}
	return nil
}

// Take returns the points of some rows, which CheckRows accepts, with their labels and
// names. Points in memory are copied, others stay where they are.
func (ds *Dataset) Take(rows []int) (*Dataset, error) {
	n, _ := ds.Dims()
	if err := CheckRows(rows, n); err != nil {
		return nil, err
	}
	return ds.take(rows), nil
}
