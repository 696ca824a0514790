package neighbors

import (
	"context"
	"math/bits"
	"slices"

	"cne/data"
	"cne/internal/selection"
)

// One of otherShare neighbours that SpreadCopies gives a point is no copy of it. With more of
// them, rows that are all equally far from each other mix in the map.
const otherShare = 5

// SpreadCopies returns nb, the neighbours of the points m, with other neighbours for points
// whose neighbours are copies of few rows: copies of each other would otherwise be linked to
// nothing else, and their positions would be arbitrary. Such a point gets some of its copies,
// and copies of its k/2 nearest distinct rows, which the copies share among them. So a row
// counts as often as it has copies. distinct is the number of distinct rows, and points the
// number of points with other neighbours. Both are 0 if nb is returned unchanged, as for
// matrices of distances. Errors are as for KNN.
func SpreadCopies(ctx context.Context, m *data.Matrix, nb *Neighbors, opt Options) (spread *Neighbors, distinct, points int, err error) {
	k := nb.K
	half := k / 2
	filled := false // whether copies of a point fill half of its neighbourhood
	for e := half; e < len(nb.Dist2) && !filled; e += k {
		filled = nb.Dist2[e] == 0
	}
	if m.Metric == data.Precomputed || k < 2 || !filled {
		return nb, 0, 0, nil
	}
	group, members := rowGroups(m)
	if len(members) < 2 {
		return nb, 0, 0, nil
	}
	first := selection.Map(members, func(rows []int32) int { return int(rows[0]) })
	near, err := KNN(ctx, m.Take(first), min(max(half, 1), len(members)-1), opt)
	if err != nil {
		return nil, 0, 0, err
	}
	rank := make([]int, nb.N) // among the copies
	for _, rows := range members {
		for r, i := range rows {
			rank[i] = r
		}
	}
	spread = &Neighbors{N: nb.N, K: k, Index: slices.Clone(nb.Index), Dist2: slices.Clone(nb.Dist2)}
	seen := make([]int32, len(members))
	for i := range nb.N {
		different := 0
		for _, j := range nb.Of(i) {
			if g := group[j]; seen[g] != int32(i)+1 {
				seen[g] = int32(i) + 1
				different++
			}
		}
		if different > half {
			continue
		}
		points++
		index, dist2 := spread.Index[i*k:i*k], spread.Dist2[i*k:i*k]
		g := group[i]
		copies := members[g]
		own := 0
		add := func() {
			index, dist2 = append(index, copies[(rank[i]+step(own, len(copies)))%len(copies)]), append(dist2, 0)
			own++
		}
		for own < min(k-k/otherShare, len(copies)-1) {
			add()
		}
		// Copies share the nearest rows among them. Rounds take further copies of the same rows
		// where there are fewer rows than neighbours.
		rows, to := near.Of(int(g)), near.Dist2[int(g)*near.K:]
		for round, more := 0, true; more && len(index) < k; round++ {
			more = false
			for c := range rows {
				c = (c + rank[i]*(k-own)) % len(rows)
				if other := members[rows[c]]; round < len(other) && len(index) < k {
					index, dist2 = append(index, other[(rank[i]+int(g)*int(rows[c])+round)%len(other)]), append(dist2, to[c])
					more = true
				}
			}
		}
		for len(index) < k && own < len(copies)-1 {
			add()
		}
		if len(index) < k { // the nearest rows have too few copies
			copy(index[:k], nb.Of(i))
			copy(dist2[:k], nb.Dist2[i*k:(i+1)*k])
			points--
		}
	}
	return spread, len(members), points, nil
}

// step returns the s-th of n−1 steps to the other members of a ring of n: powers of 2 first,
// so that few of them lead from any member to any other, then 3, 5, 6, 7, 9, …
func step(s, n int) int {
	powers := bits.Len(uint(n - 1))
	if s < powers {
		return 1 << s
	}
	below := 2 // powers of 2 below the step
	for bits.Len(uint(s-powers+1+below)) > below {
		below++
	}
	return s - powers + 1 + below
}

// rowGroups returns the number of the distinct row of each point, and the points that have
// it, both in the order of the points.
func rowGroups(m *data.Matrix) (group []int32, members [][]int32) {
	group = make([]int32, m.N)
	byHash := make(map[uint64][]int32, m.N)
	for i, hash := range m.RowHashes() {
		group[i] = -1
		for _, g := range byHash[hash] {
			if m.EqualRows(int(members[g][0]), i) {
				group[i] = g
				members[g] = append(members[g], int32(i))
			}
		}
		if group[i] < 0 {
			group[i] = int32(len(members))
			byHash[hash] = append(byHash[hash], group[i])
			members = append(members, []int32{int32(i)})
		}
	}
	return group, members
}
