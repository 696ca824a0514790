package cne

import (
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
)

// A Division says what becomes of the rows of the points, counted from 0. Each list is
// ascending, and no row is in two. Rows in none are placed after the training.
type Division struct {
	// Trained are the rows that are trained on.
	Trained []int
	// Held are held out: they are placed after the training, too, and measured by themselves.
	Held []int
	// Left are left out: they get no position.
	Left []int
}

// DivisionRules say how rows are divided. The zero value trains on all.
type DivisionRules struct {
	// Imbalance leaves out a part of each class (data.Labels.Imbalance).
	Imbalance bool
	// Holdout is the share of the rows that is held out, stratified by known classes
	// (data.Dataset.Split).
	Holdout float64
	// Sample is the number, from 2 on, or the share of the remaining rows to train on; 0 is
	// all. Listed, if not nil, has these rows instead.
	Sample float64
	Listed []int
	// Seed seeds the draws.
	Seed uint64
}

// Divide divides n rows: it leaves out the missing rows (ascending), then rows by Imbalance,
// holds rows out, and chooses the rows to train on. labels are the labels of all rows, or
// nil. Errors wrap ErrOption, and name the key of a configuration.
func (r DivisionRules) Divide(n int, labels *data.Labels, missing []int) (_ *Division, err error) {
	defer kind.Catch(&err)
	check := func(key string, err error) {
		if err != nil {
			kind.Check(fmt.Errorf("%w: %w", ErrOption, fmt.Errorf("%s: %w", key, err)))
		}
	}
	check("data.labels", labels.Check(n))
	d, rows, left := new(Division), []int(nil), n // nil: all rows, which may be very many
	if len(missing) > 0 {
		if rows = without(n, missing); len(rows) == 0 {
			check("data.missing", fmt.Errorf("points: got none without a missing value, want at least one"))
		}
		labels, left = labels.Take(rows), len(rows)
	}
	if r.Imbalance {
		kept, err := labels.Imbalance(r.Seed)
		check("data.imbalance", err)
		rows, labels, left = pick(rows, kept), labels.Take(kept), len(kept)
	}
	if rows != nil {
		d.Left = without(n, rows)
	}
	if r.Holdout > 0 {
		rest, held, err := data.HoldOut(left, labels, r.Holdout, r.Seed)
		check("data.holdout", err)
		d.Held, rows, left = pick(rows, held), pick(rows, rest), len(rest)
	}
	switch {
	case r.Listed != nil:
		check("data.sample", data.CheckRows(r.Listed, n))
		d.Trained = slices.DeleteFunc(slices.Clone(r.Listed), func(row int) bool { return contains(d.Held, row) || contains(d.Left, row) })
		if len(d.Trained) == 0 {
			check("data.sample", fmt.Errorf("all its rows are held out (data.holdout) or left out"))
		}
	case r.Sample > float64(left):
		check("data.sample", fmt.Errorf("got %v, want at most the number of points (%d)", r.Sample, left))
	case r.Sample > 0:
		count, _ := DivisionRules{Sample: r.Sample}.Count(left)
		drawn, err := data.DrawRows(left, count, r.Seed)
		check("data.sample", err)
		d.Trained = pick(rows, drawn)
	case rows == nil:
		d.Trained = without(n)
	default:
		d.Trained = rows
	}
	return d, nil
}

// Count returns how many of n rows Divide trains on and holds out, if none is left out or
// listed.
func (r DivisionRules) Count(n int) (trained, held int) {
	if r.Holdout > 0 && n > 1 {
		held = data.HeldOut(n, r.Holdout)
	}
	switch trained = n - held; {
	case r.Sample > 1:
		trained = min(trained, int(r.Sample))
	case r.Sample > 0:
		trained = max(1, int(math.Round(r.Sample*float64(trained))))
	}
	return trained, held
}

// Placed returns those of n rows that are neither held out nor left out.
func (d *Division) Placed(n int) []int { return without(n, d.Held, d.Left) }

// check returns an error if the lists are invalid for n rows.
func (d *Division) check(n int) error {
	all := slices.Sorted(slices.Values(slices.Concat(d.Trained, d.Held, d.Left)))
	err := data.CheckRows(d.Trained, n)
	for _, rows := range [][]int{d.Held, d.Left, all} {
		if err == nil && len(rows) > 0 {
			err = data.CheckRows(rows, n)
		}
	}
	if err != nil {
		return badOption("Division: %v", err)
	}
	return nil
}

// without returns the rows from 0 to n−1 that are in none of the ascending lists.
func without(n int, lists ...[]int) []int {
	return selection.Where(n, func(row int) bool {
		return !slices.ContainsFunc(lists, func(list []int) bool { return contains(list, row) })
	})
}

// contains reports whether a row is in an ascending list.
func contains(rows []int, row int) bool {
	_, found := slices.BinarySearch(rows, row)
	return found
}

// pick returns some of the rows; nil are all.
func pick(rows, some []int) []int {
	if rows == nil {
		return some
	}
	return selection.Pick(rows, some)
}
