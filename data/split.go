package data

import (
	"cmp"
	"math"
	"slices"

	"cne/internal/rng"
)

// Split holds a random share of the points out: round(n·share) of them, at
// least one and at most all but one. Where the labels are Categorical, each
// class gives its share, to within one point; otherwise all points are drawn
// alike. The seed decides which. Both parts keep the order of the files, and
// their labels the class numbers of ds; heldRows has the rows of ds that are
// held out, in that order. The parts share no points with ds, which stays as
// it is.
//
// A share that is not between 0 and 1 gives ErrOption, fewer than two points
// ErrEmpty, and unusable data the errors of Check.
func (ds *Dataset) Split(share float64, seed uint64) (train, held *Dataset, heldRows []int, err error) {
	if err := ds.Check(); err != nil {
		return nil, nil, nil, err
	}
	n, _ := ds.Dims()
	switch {
	case !(share > 0 && share < 1):
		return nil, nil, nil, errorf(ErrOption, "a share of %v of the points cannot be held out; give a number between 0 and 1", share)
	case n < 2:
		return nil, nil, nil, errorf(ErrEmpty, "a single point cannot be split into two parts; give at least two")
	}
	count := min(max(1, int(math.Round(float64(n)*share))), n-1)
	isHeld := hold(ds.strata(), n, count, seed)
	heldRows = make([]int, 0, count)
	trainRows := make([]int, 0, n-count)
	for i, h := range isHeld {
		if h {
			heldRows = append(heldRows, i)
		} else {
			trainRows = append(trainRows, i)
		}
	}
	return ds.take(trainRows), ds.take(heldRows), heldRows, nil
}

// Split divides rows of what is labelled (nil: all of it) into two parts: count
// of them, drawn so that each class gives its share, to within one, and the
// others. The seed decides which. Every label is taken for a class, whether the
// labels are Categorical or not. Both parts are in the order of rows.
//
// A count of less than one or of all rows gives ErrOption, fewer than two rows
// ErrEmpty, a row without a label or one that comes twice ErrLabels.
func (l *Labels) Split(rows []int32, count int, seed uint64) (rest, held []int32, err error) {
	if rows == nil {
		rows = make([]int32, len(l.Class))
		for i := range rows {
			rows[i] = int32(i)
		}
	}
	if len(rows) < 2 {
		return nil, nil, errorf(ErrEmpty, "%d points cannot be split into two parts; give at least two", len(rows))
	}
	if count < 1 || count >= len(rows) {
		return nil, nil, errorf(ErrOption, "%d of %d cannot be held out; give a number from 1 to %d", count, len(rows), len(rows)-1)
	}
	strata := make([][]int, len(l.Names))
	seen := make([]bool, len(l.Class))
	for i, row := range rows {
		if row < 0 || int(row) >= len(l.Class) || seen[row] {
			return nil, nil, errorf(ErrLabels, "row %d is to be divided, but comes twice or is none of the %d that have labels; name each row once, counted from 0", row, len(l.Class))
		}
		seen[row] = true
		c := l.Class[row]
		if c < 0 || int(c) >= len(strata) {
			return nil, nil, errorf(ErrLabels, "row %d is of class %d, but there are names for %d classes only; number the classes from 0", row, c, len(strata))
		}
		strata[c] = append(strata[c], i)
	}
	for i, isHeld := range hold(strata, len(rows), count, seed) {
		if isHeld {
			held = append(held, rows[i])
		} else {
			rest = append(rest, rows[i])
		}
	}
	return rest, held, nil
}

// hold draws count of n items, of each stratum its share, and tells of every
// item whether it was drawn.
func hold(strata [][]int, n, count int, seed uint64) []bool {
	stream := rng.New(seed, rng.Split)
	isHeld := make([]bool, n)
	for s, quota := range apportion(strata, count, &stream) {
		for _, i := range stream.Perm(len(strata[s]))[:quota] {
			isHeld[strata[s][i]] = true
		}
	}
	return isHeld
}

// strata returns the rows of each class, or all rows as one stratum.
func (ds *Dataset) strata() [][]int {
	l := ds.Labels
	if l == nil || !l.Categorical() {
		n, _ := ds.Dims()
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return [][]int{all}
	}
	strata := make([][]int, len(l.Names))
	for i, c := range l.Class {
		strata[c] = append(strata[c], i)
	}
	return strata
}

// apportion shares count out among the strata in proportion to their sizes, by
// the method of the largest remainder: everyone gets the whole part of their
// share, and those with the largest fractions get one more. Which of equal ones
// do is drawn, so that small strata have their chance.
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

// take returns a dataset of copies of these rows, which know their names. Rows that are
// not in memory stay where they are.
func (ds *Dataset) take(rows []int) *Dataset {
	part := &Dataset{Name: ds.Name, Bytes: ds.Bytes, Parts: ds.Parts, Rows: make([]int, len(rows))}
	if ds.Stored != nil {
		part.Stored = &rowSubset{ds.Stored, rows}
	} else {
		part.Points = ds.Points.Take(rows)
	}
	for to, from := range rows {
		part.Rows[to] = ds.Origin(from)
	}
	if ds.Names != nil {
		part.Names = make([]string, len(rows))
		for to, from := range rows {
			part.Names[to] = ds.Names[from]
		}
	}
	if l := ds.Labels; l != nil {
		part.Labels = &Labels{Class: make([]int32, len(rows)), Names: slices.Clone(l.Names)}
		for to, from := range rows {
			part.Labels.Class[to] = l.Class[from]
		}
		if l.Value != nil {
			part.Labels.Value = make([]float64, len(rows))
			for to, from := range rows {
				part.Labels.Value[to] = l.Value[from]
			}
		}
	}
	return part
}
