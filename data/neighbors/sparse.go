package neighbors

import (
	"cmp"
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// This file finds exact neighbours and ranks of sparse points.
//
// The values of each column are in a list of base points. From the sum of the weights of a
// query and a base point, what each column of both contributes is subtracted. The result is
// the value of the measure, except for rounding in float64. Points that rounding leaves in
// doubt are compared once more, row by row and in the order of dense points (ofRows). So
// neighbours, ranks and distances have the same bits as those of the same points as dense ones.
//
// Most of the work would be about the few columns that nearly all points have, such as
// frequent words, which say little. A search for neighbours leaves such columns out at first.
// By the inequality of Cauchy and Schwarz they contribute at most twice the product of the
// lengths of both points in these columns. They are subtracted for the points that this
// leaves in doubt.

// A sparseIndex has the base points of a search among sparse points.
type sparseIndex struct {
	*data.CSR
	measure measure
	weight  []float64 // of each point: see weigh
	heavy   float64   // the largest weight
	most    int       // the most values in a row
	// Column c has the points point[column[c]:column[c+1]], in ascending order, with these
	// values, unless it is in often: the frequent columns, in ascending order. frequent has the
	// values of the points in these, and rest the points' lengths there.
	column   []int
	point    []int32
	value    []float32
	often    []int
	frequent *data.CSR
	rest     []float64
}

// Columns that more than one of frequentShare points have are frequent, the most frequent
// first, as long as they have less than one part in restShare of all squares.
const (
	frequentShare = 32
	restShare     = 64
)

// FilledShare is the least share of values other than 0 with which dense points are compared
// faster: by products of blocks.
const FilledShare = 0.2

// unlessFilled returns m, or filled sparse points as dense ones if memory allows. Results have
// the same bits.
func unlessFilled(m *data.Matrix) *data.Matrix {
	if m.CSR != nil && float64(len(m.CSR.Value)) > FilledShare*float64(m.N)*float64(m.D) {
		if dense, err := m.Dense(); err == nil {
			return dense
		}
	}
	return m
}

// newSparseIndex returns an index of checked points. It leaves frequent columns out if leave
// is set.
func newSparseIndex(m *data.Matrix, leave bool) *sparseIndex {
	x := &sparseIndex{CSR: m.CSR, measure: measureOf(m), weight: make([]float64, m.N), rest: make([]float64, m.N), column: make([]int, m.D+1)}
	for i := range m.N {
		_, values := x.Row(i)
		x.weight[i], x.most = x.measure.weigh(values), max(x.most, len(values))
	}
	x.heavy = slices.Max(x.weight)
	for _, c := range x.Column {
		x.column[c]++
	}
	if leave && x.measure == euclidean {
		x.leaveOut()
	}
	x.frequent = x.SelectColumns(x.often, m.D)
	for i := range x.rest {
		x.rest[i] = length(x.frequent.Row(i))
	}
	left := make([]bool, m.D)
	for _, c := range x.often {
		left[c], x.column[c] = true, 0
	}
	end := 0
	for c, count := range x.column {
		end += count
		x.column[c] = end
	}
	x.point, x.value = make([]int32, end), make([]float32, end)
	for i := m.N - 1; i >= 0; i-- {
		columns, values := x.Row(i)
		for l, c := range columns {
			if !left[c] {
				x.column[c]--
				x.point[x.column[c]], x.value[x.column[c]] = int32(i), values[l]
			}
		}
	}
	return x
}

// leaveOut chooses the frequent columns. column has the number of points in each.
func (x *sparseIndex) leaveOut() {
	x.often = selection.Where(len(x.column), func(c int) bool { return x.column[c] > len(x.weight)/frequentShare })
	squares, left := make([]float64, len(x.column)), 0.
	for l, c := range x.Column {
		w := float64(float64(x.Value[l]) * float64(x.Value[l]))
		squares[c] += w
		left += float64(w / restShare)
	}
	slices.SortStableFunc(x.often, func(a, b int) int { return cmp.Compare(x.column[b], x.column[a]) })
	kept := x.often[:0]
	for _, c := range x.often {
		if squares[c] <= left {
			left, kept = left-squares[c], append(kept, c)
		}
	}
	slices.Sort(kept)
	x.often = kept
}

// length returns the length of a row, or a little more.
func length(_ []int32, values []float32) float64 {
	return math.Sqrt(euclidean.weigh(values)) * (1 + float64(float64(len(values)+8)*0x1p-52))
}

// weigh returns the value of the measure for a row and one of zeros; for jaccard, the size of
// the set.
func (k measure) weigh(values []float32) (sum float64) {
	for _, v := range values {
		switch {
		case k == euclidean:
			sum += float64(float64(v) * float64(v))
		case k == manhattan:
			sum += math.Abs(float64(v))
		default:
			sum++
		}
	}
	return sum
}

// all sets to to the values for a row and each base point, without the frequent columns; the
// value for point self, if not negative, is infinite. The values of ofRows differ by at most
// half of slack. A column that both have contributes twice the product of the values, twice
// the smaller of their amounts if they have the same sign (manhattan), or 2 if the values are
// equal and 1 otherwise.
func (x *sparseIndex) all(to []float64, columns []int32, values []float32, self int) (slack float64) {
	weight := x.measure.weigh(values)
	for j, w := range x.weight {
		to[j] = weight + w
	}
	for l, c := range columns {
		v := values[l]
		points, others := x.point[x.column[c]:x.column[c+1]], x.value[x.column[c]:x.column[c+1]]
		others = others[:len(points)]
		switch x.measure {
		case euclidean:
			twice := 2 * float64(v)
			for e, j := range points {
				to[j] -= float64(twice * float64(others[e]))
			}
		case manhattan:
			for e, j := range points {
				if w := others[e]; (v > 0) == (w > 0) {
					to[j] -= 2 * float64(min(max(v, -v), max(w, -w)))
				}
			}
		default:
			for e, j := range points {
				to[j] -= float64(1 + toInt(v == others[e]))
			}
		}
	}
	if x.measure == jaccard {
		for j, differ := range to {
			to[j] = differ / max(1, (weight+x.weight[j]+differ)/2)
		}
	}
	if self >= 0 {
		to[self] = math.Inf(1)
	}
	if x.measure > manhattan { // counts are exact
		return 0
	}
	return float64(2*(weight+x.heavy)) * x.rounding(len(values))
}

// rounding returns a factor of the sum of two points' weights that bounds the difference
// between a value and ofRows, for a row of some values. With m values in both rows and
// u = 2⁻⁵³, the weights are off by at most mu times themselves, the value by 2mu times their
// sum, and ofRows by (m+6)u times at most twice this sum; see errorBound.
func (x *sparseIndex) rounding(count int) float64 { return float64(6*(count+x.most)+32) * 0x1p-53 }

// ofRows returns the value of the measure for row i of a and row j of b. It adds in the order
// of the function dist2, or of, so that it has the same bits.
func (k measure) ofRows(a *data.CSR, i int, b *data.CSR, j int) float64 {
	columns, values := a.Row(i)
	otherColumns, others := b.Row(j)
	var lanes [4]float64
	differ, either, p, q := 0, 0, 0, 0
	for p < len(columns) || q < len(otherColumns) {
		c, other := int32(math.MaxInt32), int32(math.MaxInt32)
		if p < len(columns) {
			c = columns[p]
		}
		if q < len(otherColumns) {
			other = otherColumns[q]
		}
		d := 0.
		if c <= other {
			d = float64(values[p])
			p++
		}
		if other <= c {
			d -= float64(others[q])
			q++
		}
		switch either++; {
		case k == euclidean:
			lanes[min(c, other)&3] += float64(d * d)
		case k == manhattan:
			lanes[0] += math.Abs(d)
		case d != 0:
			differ++
		}
	}
	switch k {
	case euclidean, manhattan:
		return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
	case jaccard:
		return float64(differ) / float64(max(1, either))
	}
	return float64(differ)
}

// A sparseWork has one goroutine's buffers for a query.
type sparseWork struct {
	values   []float64 // for each base point
	doubt    []int32
	frequent []float64 // the row's values in the frequent columns, doubled
}

func (x *sparseIndex) newWork() *sparseWork {
	return &sparseWork{values: make([]float64, len(x.weight)), frequent: make([]float64, len(x.often))}
}

// find sets nb to the nearest neighbours of all queries, or fails as kind.Need does.
func (x *sparseIndex) find(ctx context.Context, nb *Neighbors, q queries) {
	points, frequent := q.points.Sparse().CSR, x.frequent
	if !q.own {
		frequent = points.SelectColumns(x.often, q.points.D)
	}
	pool := parallel.Pool[sparseWork]{New: x.newWork}
	kind.Check(parallel.ForContext(ctx, nb.N, searchGrain, func(_, lo, hi int) {
		w, best := pool.Get(), newTopK(nb.K)
		defer pool.Put(w)
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			self := selection.If(q.own, i, -1)
			columns, values := points.Row(i)
			slack := x.all(w.values, columns, values, self)
			best.resetAll()
			for j, v := range w.values {
				if v < best.limit {
					best.offer(v, int32(j))
				}
			}
			if slack > 0 {
				x.settle(w, best, points, frequent, i, slack)
			}
			best.store(nb, i)
		}
	}))
}

// settle sets best to the nearest base points of row i of points, which has the values of
// frequent in the frequent columns. Before, best has those with the least values without these.
func (x *sparseIndex) settle(w *sparseWork, best *topK, points, frequent *data.CSR, i int, slack float64) {
	clear(w.frequent)
	numbers, values := frequent.Row(i)
	for l, c := range numbers {
		w.frequent[c] = 2 * float64(values[l])
	}
	limit, rest := 0., 2*float64(length(numbers, values))
	for _, j := range best.index {
		limit = max(limit, w.values[j]-x.inFrequent(w, j))
	}
	limit += slack
	w.doubt = w.doubt[:0]
	best.resetAll()
	for j, v := range w.values {
		if v-float64(rest*x.rest[j]) <= limit {
			w.doubt = append(w.doubt, int32(j))
			w.values[j] -= x.inFrequent(w, int32(j))
			best.offer(w.values[j], int32(j))
		}
	}
	limit = best.limit
	best.resetAll()
	for _, j := range w.doubt {
		if w.values[j]-slack <= min(limit, best.limit) {
			best.offer(x.measure.ofRows(points, i, x.CSR, int(j)), j)
		}
	}
}

// inFrequent returns what the frequent columns contribute to the value of point j.
func (x *sparseIndex) inFrequent(w *sparseWork, j int32) (sum float64) {
	numbers, values := x.frequent.Row(int(j))
	for l, c := range numbers {
		sum += float64(w.frequent[c] * float64(values[l]))
	}
	return sum
}

// Distances returns a function that sets values to the distances of point i from the points
// after it, in the unit of Compare. The distances of sparse points have at least six digits.
func Distances(m *data.Matrix) func(i int, values []float64) {
	if m = unlessFilled(m); m.CSR == nil {
		compare := Compare(m, m)
		return func(i int, values []float64) {
			for j := i + 1; j < m.N; j++ {
				values[j] = compare(i, j, math.Inf(1))
			}
		}
	}
	x := newSparseIndex(m, false)
	return func(i int, values []float64) {
		columns, row := x.Row(i)
		if x.all(values, columns, row, i) == 0 {
			return
		}
		// Points that are much nearer than they are long are compared row by row.
		weight, doubt := x.measure.weigh(row), x.rounding(len(row))*0x1p20
		for j := i + 1; j < m.N; j++ {
			if values[j] <= float64((weight+x.weight[j])*doubt) {
				values[j] = x.measure.ofRows(x.CSR, i, x.CSR, j)
			}
		}
	}
}

// sparseRanks is RanksOf for sparse points. least is 1 less their Tie.
func sparseRanks(ctx context.Context, m *data.Matrix, rows []int, index []int32, k int, least float64) ([]int32, error) {
	x, ranks := newSparseIndex(m, false), make([]int32, len(index))
	pool := parallel.Pool[sparseWork]{New: x.newWork}
	return ranks, parallel.ForContext(ctx, len(rows), searchGrain, func(_, lo, hi int) {
		w, limits, nearer := pool.Get(), make([]float64, k), make([]int32, k+1)
		defer pool.Put(w)
		for r := lo; r < hi && ctx.Err() == nil; r++ {
			columns, values := x.Row(rows[r])
			slack := x.all(w.values, columns, values, rows[r])
			for l, j := range index[r*k : (r+1)*k] {
				limits[l] = least * x.measure.ofRows(x.CSR, rows[r], x.CSR, int(j))
			}
			sorted := slices.Sorted(slices.Values(limits))
			above := func(v float64) int { // the first limit above v, or k
				at, _ := slices.BinarySearch(sorted, math.Nextafter(v, math.Inf(1)))
				return at
			}
			clear(nearer)
			for j, v := range w.values {
				if v > sorted[k-1]+slack {
					continue
				}
				at := above(v + slack)
				if slack > 0 && above(v-slack) != at {
					at = above(x.measure.ofRows(x.CSR, rows[r], x.CSR, j))
				}
				nearer[at]++
			}
			selection.Accumulate(nearer)
			for l, limit := range limits {
				t, _ := slices.BinarySearch(sorted, limit)
				ranks[r*k+l] = 1 + nearer[t]
			}
		}
	})
}
