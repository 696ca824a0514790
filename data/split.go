package data

import (
	"cmp"
	"math"
	"slices"

	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/selection"
)

// Split holds out a random share of the points: round(n·share) of them, at least one and
// at most all but one. If the labels are Categorical, the split is stratified, to within
// one point per class; otherwise all points have the same probability. The draw depends on
// the seed. Both parts keep the order of the points and the class numbers of ds. heldRows
// has the held-out rows of ds, in that order. Points in memory are copied; Stored ones stay
// where they are. ds does not change.
//
// The error wraps ErrOption if share is not between 0 and 1, and ErrEmpty if there are
// fewer than two points. Other errors are as for Check.
func (ds *Dataset) Split(share float64, seed uint64) (train, held *Dataset, heldRows []int, err error) {
	defer kind.Catch(&err)
	kind.Check(ds.Check())
	n, _ := ds.Dims()
	rest, heldRows, err := HoldOut(n, ds.Labels, share, seed)
	kind.Check(err)
	return ds.take(rest), ds.take(heldRows), heldRows, nil
}

// HoldOut draws the rows that Dataset.Split holds out of n with labels, or nil.
func HoldOut(n int, l *Labels, share float64, seed uint64) (rest, held []int, err error) {
	defer kind.Catch(&err)
	kind.Need(share > 0 && share < 1, ErrOption, "share of the points to hold out: got %v, want a number between 0 and 1", share)
	kind.Need(n > 1, ErrEmpty, "points to split: got %d, want at least 2", n)
	rest, held = hold(selection.UpTo[int](n), strata(n, l), HeldOut(n, share), seed)
	return rest, held, nil
}

// HeldOut returns how many of n points, at least 2, HoldOut holds out.
func HeldOut(n int, share float64) int { return min(max(1, int(math.Round(float64(n)*share))), n-1) }

// Split divides rows of the labels (nil means all) into two parts: held has count of them,
// and rest has the others. The split is stratified, to within one row per class, and
// depends on the seed. Every label counts as a class, even if the labels are not
// Categorical. Both parts are in the order of rows.
//
// The error wraps ErrOption if count is below 1 or not below the number of rows, ErrEmpty
// if there are fewer than two rows, and ErrLabels if a row has no label or is repeated.
func (l *Labels) Split(rows []int32, count int, seed uint64) (rest, held []int32, err error) {
	defer kind.Catch(&err)
	if rows == nil {
		rows = selection.UpTo[int32](len(l.Class))
	}
	kind.Need(len(rows) > 1, ErrEmpty, "points to split: got %d, want at least 2", len(rows))
	kind.Need(count > 0 && count < len(rows), ErrOption, "points to hold out: got %d, want 1 to %d", count, len(rows)-1)
	strata := make([][]int, len(l.Names))
	seen := make([]bool, len(l.Class))
	for i, row := range rows {
		if row < 0 || int(row) >= len(l.Class) || seen[row] {
			return nil, nil, errorf(ErrLabels, "rows to split: got row %d twice, or as none of %d, want each row once", row, len(l.Class))
		}
		seen[row] = true
		c := l.Class[row]
		if c < 0 || int(c) >= len(strata) {
			return nil, nil, errorf(ErrLabels, "class of row %d: got %d, want 0 to %d", row, c, len(strata)-1)
		}
		strata[c] = append(strata[c], i)
	}
	rest, held = hold(rows, strata, count, seed)
	return rest, held, nil
}

// hold draws count of the rows, from each stratum, which has indices of rows, its share.
func hold[T any](rows []T, strata [][]int, count int, seed uint64) (rest, held []T) {
	stream := rng.New(seed, rng.Split)
	isHeld := make([]bool, len(rows))
	for s, quota := range apportion(strata, count, &stream) {
		for _, i := range stream.Perm(len(strata[s]))[:quota] {
			isHeld[strata[s][i]] = true
		}
	}
	for i, row := range rows {
		if isHeld[i] {
			held = append(held, row)
		} else {
			rest = append(rest, row)
		}
	}
	return rest, held
}

// strata returns the rows of each class, or all n rows as one stratum.
func strata(n int, l *Labels) [][]int {
	if l == nil || !l.Categorical() {
		return [][]int{selection.UpTo[int](n)}
	}
	strata := make([][]int, len(l.Names))
	for i, c := range l.Class {
		strata[c] = append(strata[c], i)
	}
	return strata
}

// apportion divides count among the strata in proportion to their sizes, by the method of
// the largest remainder. Every stratum gets the whole part of its share, and the strata
// with the largest fractions get one more. Ties are drawn at random, so small strata are
// not always last.
func apportion(strata [][]int, count int, stream *rng.Stream) []int {
	n := 0
	for _, s := range strata {
		n += len(s)
	}
	quota := make([]int, len(strata))
	left := count
	for s, rows := range strata {
		quota[s] = len(rows) * count / n
		left -= quota[s]
	}
	order := stream.Perm(len(strata))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(len(strata[b])*count%n, len(strata[a])*count%n)
	})
	for _, s := range order[:left] {
		quota[s]++
	}
	return quota
}

// take returns a dataset of copies of these rows, with their names. Rows that are not in
// memory stay where they are.
func (ds *Dataset) take(rows []int) *Dataset {
	part := &Dataset{Name: ds.Name, Bytes: ds.Bytes, Codings: ds.Codings, Parts: ds.Parts, Rows: selection.Map(rows, ds.Origin)}
	if ds.Stored != nil {
		part.Stored = &rowSubset{ds.Stored, rows}
	} else {
		part.Points = ds.Points.Take(rows)
	}
	part.Names = selection.Pick(ds.Names, rows)
	part.Labels = ds.Labels.Take(rows)
	return part
}

// Imbalance returns the rows that stay if a share of each class is kept, which falls linearly with
// the class's index, as in the paper's imbalanced MNIST. Of C classes with points, in the order of
// Names, the k-th (from 0) keeps the share 1−k/C, rounded down, but at least one point. For
// MNIST's digits 0 to 9 the shares are 1, 0.9, …, 0.1, so 38 829 of 70 000 points are kept. The
// draw depends on the seed. The draws of one class do not depend on the others.
//
// The rows ascend. The error wraps ErrLabels if there are no labels or they are not Categorical.
func (l *Labels) Imbalance(seed uint64) (rows []int, err error) {
	defer kind.Catch(&err)
	kind.Need(l != nil, ErrLabels, "labels: got none, want the class of each point")
	kind.Need(l.Categorical(), ErrLabels, "labels: got quantities (%d distinct numbers), want the class of each point", len(l.Names))
	strata := slices.DeleteFunc(strata(len(l.Class), l), func(rows []int) bool { return len(rows) == 0 })
	for k, members := range strata {
		stream := rng.New(seed, rng.Imbalance, uint64(k))
		count := max(1, len(members)*(len(strata)-k)/len(strata))
		rows = append(rows, selection.Pick(members, stream.Perm(len(members))[:count])...)
	}
	slices.Sort(rows)
	return rows, nil
}

// DrawRows draws count of n rows without replacement, all with the same probability, and
// returns them in ascending order. The draw depends on the seed. The error wraps ErrOption
// if count is below 1 or above n.
func DrawRows(n, count int, seed uint64) ([]int, error) {
	if count < 1 || count > n {
		return nil, errorf(ErrOption, "rows to draw: got %d, want 1 to %d", count, n)
	}
	stream := rng.New(seed, rng.Training)
	return stream.Choose(n, count), nil
}

// CheckRows returns an error wrapping ErrOption unless rows is a nonempty, strictly
// ascending list of indices from 0 to n−1.
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

// Take returns the points of some rows with their labels and names. CheckRows must accept
// rows. Points in memory are copied; others stay where they are.
func (ds *Dataset) Take(rows []int) (*Dataset, error) {
	n, _ := ds.Dims()
	if err := CheckRows(rows, n); err != nil {
		return nil, err
	}
	return ds.take(rows), nil
}
