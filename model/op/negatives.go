package op

import (
	"cne/internal/kind"
	"cne/internal/parallel"
)

// A NegativeLayout says which rows of a batch are the negatives of its heads. It begins
// with one of
//
//   - ListedNegatives: the rows that are listed for each head, and ends there;
//   - AllNegatives: every row but the head and its tail, once, so m = r−2 of r rows
//     (train.Full, not train.All). It ends there, or with a divisor p of b: then ends of
//     edges whose numbers are equal modulo p belong to one image, and are no negatives of
//     each other, so m = r−2b/p;
//   - m > 1, and goes on with first₀, first₁, …: every GroupHeads consecutive heads share a
//     run of m rows, at most all. That of group k begins with row firstₖ; row 0 follows the
//     last row. A head's negatives are the rows of the run but the head itself: m or m−1.
//
// In the last two, the pairs are dense blocks. These are several times as fast as pairs
// whose rows must be looked up.
type NegativeLayout []int32

const (
	ListedNegatives = 0
	AllNegatives    = -1
	// GroupHeads is the number of consecutive heads that share their negatives. The last
	// group of a batch may be smaller.
	GroupHeads = 16
)

// listed reports whether negatives are listed.
func (l NegativeLayout) listed() bool { return l[0] == ListedNegatives }

// check returns an error unless the layout is valid for a batch of b edges and the given
// number of rows.
func (l NegativeLayout) check(b, rows int) error {
	m := int(l[0])
	groups := parallel.Pieces(b, GroupHeads)
	switch {
	case m == AllNegatives && len(l) == 2:
		if p := int(l[1]); p < 1 || b%p != 0 {
			return kind.Errorf(ErrInput, "op: layout of all negatives: got %d images for %d edges, want a divisor", p, b)
		}
		return nil
	case m == ListedNegatives || m == AllNegatives:
		groups = 0
	case m < 0 || m == 1: // a run of one row could be just the head
		return kind.Errorf(ErrInput, "op: layout of negatives: got %d at its beginning, want 0, −1 or the number of rows of runs, at least 2", m)
	}
	if len(l) != 1+groups {
		return kind.Errorf(ErrInput, "op: layout of negatives that begins with %d: got %d numbers, want %d for %d edges", m, len(l), 1+groups, b)
	}
	for k, first := range l[1:] {
		if first < 0 || int(first) >= rows || m > rows {
			return kind.Errorf(ErrInput,
				"op: negatives of group %d: got %d rows from row %d on, want no more than the %d rows that there are", k, m, first, rows)
		}
	}
	return nil
}

// images returns the distance of rows of one image, in a batch of b edges whose heads
// have all rows as negatives.
func (l NegativeLayout) images(b int) int {
	if len(l) == 2 && l[0] == AllNegatives {
		return int(l[1])
	}
	return b
}

// decode returns the number of negatives of a head in a dense batch, including the head
// itself if it is in a run, and the first rows of the groups' runs. There are none if all
// rows are negatives.
func (l NegativeLayout) decode(b, rows int) (m int, firsts []int32) {
	if l[0] == AllNegatives {
		return rows - 2*b/l.images(b), nil
	}
	return int(l[0]), l[1:]
}
