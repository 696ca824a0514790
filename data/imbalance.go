package data

import (
	"slices"

	"cne/internal/rng"
)

// Imbalance keeps of each class a share that falls linearly with the class, as
// in the paper's imbalanced MNIST: of C classes that have points, in the order
// of Labels.Names, the k-th (from 0) keeps the share 1−k/C, rounded down, but
// at least one point. Of MNIST's digits 0 to 9 these are all, nine tenths, …,
// one tenth, which makes 38 829 points of 70 000. The seed decides which; the
// draws of one class do not depend on the others.
//
// The points that are kept stay in their order and keep their class numbers;
// rows has their rows in ds, in that order. They share no memory with ds, which
// stays as it is.
//
// Points without labels, or whose labels are not Categorical, give ErrLabels,
// unusable data the errors of Check.
func (ds *Dataset) Imbalance(seed uint64) (kept *Dataset, rows []int, err error) {
	if err := ds.Check(); err != nil {
		return nil, nil, err
	}
	if ds.Labels == nil {
		return nil, nil, errorf(ErrLabels, "classes cannot be thinned out, for the points have no labels; give a label for each")
	}
	if !ds.Labels.Categorical() {
		return nil, nil, errorf(ErrLabels, "classes cannot be thinned out, for the labels are quantities (%d distinct numbers) and not classes; give the class of each point as its label", len(ds.Labels.Names))
	}
	strata := slices.DeleteFunc(ds.strata(), func(rows []int) bool { return len(rows) == 0 })
	for k, members := range strata {
		stream := rng.New(seed, rng.Imbalance, uint64(k))
		count := max(1, len(members)*(len(strata)-k)/len(strata))
		for _, i := range stream.Perm(len(members))[:count] {
			rows = append(rows, members[i])
		}
	}
	slices.Sort(rows)
	return ds.take(rows), rows, nil
}
