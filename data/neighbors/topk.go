package neighbors

import "math"

// topK collects the k smallest (distance, index) pairs of those offered to
// it, in lexicographic order, as a binary heap with the largest on top.
type topK struct {
	k     int
	dist2 []float64
	index []int32
	// Only pairs before (limit, limitIndex) are taken.
	limit      float64
	limitIndex int32
}

func newTopK(k int) *topK {
	return &topK{k: k, dist2: make([]float64, 0, k), index: make([]int32, 0, k)}
}

// reset empties the collection. Pairs from (limit, limitIndex) on are refused.
func (t *topK) reset(limit float64, limitIndex int32) {
	t.dist2, t.index = t.dist2[:0], t.index[:0]
	t.limit, t.limitIndex = limit, limitIndex
}

// resetAll empties the collection and sets no limit.
func (t *topK) resetAll() { t.reset(math.Inf(1), 0) }

// wants reports whether a pair would be taken.
func (t *topK) wants(d float64, i int32) bool {
	return d < t.limit || d == t.limit && i < t.limitIndex
}

// after reports whether entry a comes after entry b.
func (t *topK) after(a, b int) bool {
	return t.dist2[a] > t.dist2[b] || t.dist2[a] == t.dist2[b] && t.index[a] > t.index[b]
}

func (t *topK) swap(a, b int) {
	t.dist2[a], t.dist2[b] = t.dist2[b], t.dist2[a]
	t.index[a], t.index[b] = t.index[b], t.index[a]
}

// offer takes the pair if it is among the k smallest so far.
func (t *topK) offer(d float64, i int32) {
	if !t.wants(d, i) {
		return
	}
	if c := len(t.index); c < t.k {
		t.dist2, t.index = append(t.dist2, d), append(t.index, i)
		for c > 0 && t.after(c, (c-1)/2) {
			t.swap(c, (c-1)/2)
			c = (c - 1) / 2
		}
		if len(t.index) < t.k {
			return
		}
	} else {
		t.dist2[0], t.index[0] = d, i
		t.sink(t.k)
	}
	t.limit, t.limitIndex = t.dist2[0], t.index[0]
}

// sink moves the top entry down to its place among the first n.
func (t *topK) sink(n int) {
	for at := 0; ; {
		child := 2*at + 1
		if child >= n {
			return
		}
		if child+1 < n && t.after(child+1, child) {
			child++
		}
		if !t.after(child, at) {
			return
		}
		t.swap(at, child)
		at = child
	}
}

// store sorts the k pairs, which must be complete, and writes them as row i.
// The collection must be reset before it is used again.
func (t *topK) store(nb *Neighbors, i int) {
	for n := len(t.index) - 1; n > 0; n-- {
		t.swap(0, n)
		t.sink(n)
	}
	copy(nb.Index[i*nb.K:(i+1)*nb.K], t.index)
	copy(nb.Dist2[i*nb.K:(i+1)*nb.K], t.dist2)
}

// selectSmallest moves the k smallest of the keys to the front in no particular
// order and returns the largest of them; 1 ≤ k ≤ len(keys). (Hoare's selection with the median of three as pivot.)
func selectSmallest[T uint32 | uint64](keys []T, k int) T {
	lo, hi := 0, len(keys)-1
	for lo < hi {
		a, b, c := keys[lo], keys[lo+(hi-lo)/2], keys[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i++
				j--
			}
		}
		switch {
		case k-1 <= j:
			hi = j
		case k-1 >= i:
			lo = i
		default:
			return keys[k-1]
		}
	}
	return keys[k-1]
}
