package neighbors

import (
	"cmp"
	"context"
	"math"
	"slices"

	"cne/data"
	"cne/internal/parallel"
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
	// values, unless it is frequent.
	column []int
	point  []int32
	value  []float32
	// number has, for each column, its number among the frequent ones, counted from 1, or 0; it
	// is nil if there are none. frequent has the values of the points in them, with numbers as
	// columns, and rest the points' lengths there.
	number   []int32
	frequent *data.CSR
	rest     []float64
}

// Columns that more than one of frequentShare points have are frequent, the most frequent
// first, as long as they have less than one part in restShare of all squares.
const (
	frequentShare = 32
	restShare     = 64
)

// newSparseIndex returns an index of checked points. If leave is set, it has frequent columns.
func newSparseIndex(m *data.Matrix, leave bool) *sparseIndex {
	x := &sparseIndex{CSR: m.CSR, measure: measureOf(m), weight: make([]float64, m.N), column: make([]int, m.D+1)}
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
	end := 0
	for c, count := range x.column {
		end += count
		x.column[c] = end
	}
	x.point, x.value = make([]int32, end), make([]float32, end)
	for i := m.N - 1; i >= 0; i-- {
		columns, values := x.Row(i)
		for l, c := range columns {
			if x.number == nil || x.number[c] == 0 {
				x.column[c]--
				x.point[x.column[c]], x.value[x.column[c]] = int32(i), values[l]
			}
		}
	}
	return x
}

// leaveOut chooses the frequent columns. column has the numbers of points that have each
// column, and then 0 for frequent ones.
func (x *sparseIndex) leaveOut() {
	var often []int
	left, squares := 0., make([]float64, len(x.column))
	for c, count := range x.column {
		if count > len(x.weight)/frequentShare {
			often = append(often, c)
		}
	}
	for l, c := range x.Column {
		w := float64(x.Value[l]) * float64(x.Value[l])
		squares[c] += w
		left += w / restShare
	}
	slices.SortStableFunc(often, func(a, b int) int { return cmp.Compare(x.column[b], x.column[a]) })
	numbers := int32(0)
	for _, c := range often {
		if squares[c] > left {
			continue
		}
		if left -= squares[c]; x.number == nil {
			x.number = make([]int32, len(x.column))
		}
		numbers++
		x.number[c], x.column[c] = numbers, 0
	}
	if x.number == nil {
		return
	}
	x.frequent, x.rest = &data.CSR{Start: make([]int, 1, len(x.Start))}, make([]float64, len(x.weight))
	for i := range x.weight {
		columns, values := x.Row(i)
		for l, c := range columns {
			if x.number[c] > 0 {
				x.frequent.Column, x.frequent.Value = append(x.frequent.Column, x.number[c]), append(x.frequent.Value, values[l])
			}
		}
		x.frequent.Start = append(x.frequent.Start, len(x.frequent.Value))
		_, values = x.frequent.Row(i)
		x.rest[i] = length(euclidean.weigh(values), len(values))
	}
}

// length returns the length of a point from the sum of some squares, or a little more.
func length(sum float64, squares int) float64 {
	return math.Sqrt(sum) * (1 + float64(squares+8)*0x1p-52)
}

// weigh returns the value of the measure for a row and one of zeros; for jaccard, the size of
// the set.
func (k measure) weigh(values []float32) (sum float64) {
	switch k {
	case euclidean:
		for _, v := range values {
			sum += float64(v) * float64(v) // exact products
		}
	case manhattan:
		for _, v := range values {
			sum += math.Abs(float64(v))
		}
	default:
		sum = float64(len(values))
	}
	return sum
}

// start sets values to the sums of the weights of a row and of each base point.
func (x *sparseIndex) start(values []float64, weight float64) {
	for j, w := range x.weight {
		values[j] = weight + w
	}
}

// subtract subtracts from all values what the columns of a row contribute that are not
// frequent. A column that a base point has, too, contributes twice the product of the values,
// twice the smaller of their amounts if they have the same sign (manhattan), 2 (jaccard), or
// 2 if the values are equal and 1 otherwise (Hamming's distance).
func (x *sparseIndex) subtract(from []float64, columns []int32, values []float32) {
	for l, c := range columns {
		v := values[l]
		rows, others := x.point[x.column[c]:x.column[c+1]], x.value[x.column[c]:x.column[c+1]]
		others = others[:len(rows)]
		switch x.measure {
		case euclidean:
			twice := 2 * float64(v)
			for e, j := range rows {
				from[j] -= float64(twice * float64(others[e]))
			}
		case manhattan:
			for e, j := range rows {
				if w := others[e]; (v > 0) == (w > 0) {
					from[j] -= 2 * float64(min(max(v, -v), max(w, -w)))
				}
			}
		case jaccard:
			for _, j := range rows {
				from[j] -= 2
			}
		default:
			for e, j := range rows {
				from[j] -= float64(1 + toInt(v == others[e]))
			}
		}
	}
}

// finish sets the values for a row of the given weight to jaccard's, from the numbers of
// columns that differ. The value for base point self, if not negative, becomes infinite.
func (x *sparseIndex) finish(values []float64, weight float64, self int) {
	if x.measure == jaccard {
		for j, differ := range values {
			values[j] = differ / max(1, (weight+x.weight[j]+differ)/2)
		}
	}
	if self >= 0 {
		values[self] = math.Inf(1)
	}
}

// exact reports whether the values are without rounding errors, because they count columns.
func (x *sparseIndex) exact() bool { return x.measure != euclidean && x.measure != manhattan }

// rounding returns a factor of the sum of two points' weights that bounds the difference
// between a value and ofRows, for a row of some values. With m values in both rows and
// u = 2⁻⁵³, the weights are off by at most mu times themselves, the value by 2mu times their
// sum, and ofRows by (m+6)u times at most twice this sum; see errorBound.
func (x *sparseIndex) rounding(count int) float64 {
	if x.exact() {
		return 0
	}
	return float64(6*(count+x.most)+32) * 0x1p-53
}

// ofRows returns the value of the measure for two sparse rows. It adds in the order of the
// function dist2, or of, so that it has the same bits.
func (k measure) ofRows(columns []int32, values []float32, otherColumns []int32, others []float32) float64 {
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
	case euclidean:
		return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
	case manhattan:
		return lanes[0]
	case jaccard:
		return float64(differ) / float64(max(1, either))
	}
	return float64(differ)
}

// A sparseWork has one goroutine's buffers for a query.
type sparseWork struct {
	values   []float64 // for each base point
	doubt    []int32
	frequent []float64 // the row's values in the frequent columns, doubled, by their number
}

func (x *sparseIndex) newWork() *sparseWork {
	w := &sparseWork{values: make([]float64, len(x.weight))}
	if x.number != nil {
		w.frequent = make([]float64, 1+slices.Max(x.number))
	}
	return w
}

// find sets nb to the nearest neighbours of all queries.
func (x *sparseIndex) find(ctx context.Context, nb *Neighbors, q queries) error {
	points := q.points.Sparse().CSR
	pool := parallel.Pool[sparseWork]{New: x.newWork}
	return parallel.ForContext(ctx, nb.N, searchGrain, func(_, lo, hi int) {
		w, best := pool.Get(), newTopK(nb.K)
		defer pool.Put(w)
		for i := lo; i < hi && ctx.Err() == nil; i++ {
			self := -1
			if q.own {
				self = i
			}
			columns, values := points.Row(i)
			x.nearest(w, best, columns, values, self)
			best.store(nb, i)
		}
	})
}

// nearest sets best to the nearest base points of a row, but self.
func (x *sparseIndex) nearest(w *sparseWork, best *topK, columns []int32, values []float32, self int) {
	weight, rounding := x.measure.weigh(values), x.rounding(len(values))
	x.start(w.values, weight)
	x.subtract(w.values, columns, values)
	x.finish(w.values, weight, self)
	best.resetAll()
	for j, v := range w.values {
		if v < best.limit {
			best.offer(v, int32(j))
		}
	}
	if x.exact() {
		return
	}
	rest := 0.
	if x.number != nil {
		rest = 2 * x.takeFrequent(w, columns, values)
	}
	// Points whose value may be at most the largest of the k, if all are exact.
	limit := 0.
	for _, j := range best.index {
		limit = max(limit, w.values[j]-x.inFrequent(w, j)+rounding*(weight+x.weight[j]))
	}
	limit += rounding * (weight + x.heavy)
	w.doubt = w.doubt[:0]
	if rest == 0 {
		for j, v := range w.values {
			if v <= limit {
				w.doubt = append(w.doubt, int32(j))
			}
		}
	} else {
		for j, v := range w.values {
			if v-rest*x.rest[j] <= limit {
				w.doubt = append(w.doubt, int32(j))
			}
		}
		best.resetAll()
		for _, j := range w.doubt {
			w.values[j] -= x.inFrequent(w, j)
			best.offer(w.values[j], j)
		}
		limit = 0
		for l, j := range best.index {
			limit = max(limit, best.dist2[l]+rounding*(weight+x.weight[j]))
		}
	}
	best.resetAll()
	for _, j := range w.doubt {
		if w.values[j]-rounding*(weight+x.weight[j]) <= min(limit, best.limit) {
			best.offer(x.ofRow(columns, values, int(j)), j)
		}
	}
}

// takeFrequent sets w.frequent to a row's values, and returns its length in these columns.
func (x *sparseIndex) takeFrequent(w *sparseWork, columns []int32, values []float32) float64 {
	clear(w.frequent)
	sum := 0.
	for l, c := range columns {
		if to := x.number[c]; to > 0 {
			v := float64(values[l])
			w.frequent[to] = 2 * v
			sum += float64(v * v)
		}
	}
	return length(sum, len(values))
}

// inFrequent returns what the frequent columns of point j contribute to its value.
func (x *sparseIndex) inFrequent(w *sparseWork, j int32) (sum float64) {
	if x.number == nil {
		return 0
	}
	numbers, values := x.frequent.Row(int(j))
	for l, c := range numbers {
		sum += float64(w.frequent[c] * float64(values[l]))
	}
	return sum
}

// ofRow returns the value for a row and base point j.
func (x *sparseIndex) ofRow(columns []int32, values []float32, j int) float64 {
	otherColumns, others := x.Row(j)
	return x.measure.ofRows(columns, values, otherColumns, others)
}

// Distances returns a function that sets values to the distances of point i of sparse points
// from all of them, as KNN squares them for Dist2 or, by the metrics that are not Euclidean, as
// they are; its own is infinite. Distances that may differ by rounding only are equal.
func Distances(m *data.Matrix) func(i int, values []float64) {
	x := newSparseIndex(m, false)
	return func(i int, values []float64) {
		columns, row := x.Row(i)
		weight := x.measure.weigh(row)
		x.start(values, weight)
		x.subtract(values, columns, row)
		x.finish(values, weight, i)
		coarse := float64(x.heavy*x.rounding(x.most)) * 0x1p55
		for j, v := range values {
			values[j] = max(0, v+coarse-coarse)
		}
	}
}

// sparseRanks is RanksOf for sparse points. least is 1 less their Tie.
func sparseRanks(ctx context.Context, m *data.Matrix, rows []int, index []int32, k int, least float64) ([]int32, error) {
	x, ranks := newSparseIndex(m, false), make([]int32, len(index))
	pool := parallel.Pool[sparseWork]{New: x.newWork}
	return ranks, parallel.ForContext(ctx, len(rows), searchGrain, func(_, lo, hi int) {
		w, limits, nearer := pool.Get(), make([]float64, 2*k), make([]int32, k+1)
		defer pool.Put(w)
		limits, sorted := limits[:k], limits[k:]
		for r := lo; r < hi && ctx.Err() == nil; r++ {
			columns, values := x.Row(rows[r])
			weight, rounding := x.measure.weigh(values), x.rounding(len(values))
			x.start(w.values, weight)
			x.subtract(w.values, columns, values)
			x.finish(w.values, weight, rows[r])
			for l, j := range index[r*k : (r+1)*k] {
				limits[l] = least * x.ofRow(columns, values, int(j))
			}
			copy(sorted, limits)
			slices.Sort(sorted)
			most := sorted[k-1] + rounding*(weight+x.heavy)
			clear(nearer)
			for j, v := range w.values {
				if v > most {
					continue
				}
				slack := rounding * (weight + x.weight[j])
				at := firstAbove(sorted, v+slack)
				if slack > 0 && firstAbove(sorted, v-slack) != at {
					at = firstAbove(sorted, x.ofRow(columns, values, j))
				}
				nearer[at]++
			}
			for t := range k {
				nearer[t+1] += nearer[t]
			}
			for l, limit := range limits {
				t, _ := slices.BinarySearch(sorted, limit)
				ranks[r*k+l] = 1 + nearer[t]
			}
		}
	})
}

// firstAbove returns the index of the first of some sorted numbers that is above v, or their
// number.
func firstAbove(sorted []float64, v float64) int {
	lo, hi := 0, len(sorted)
	for lo < hi {
		if mid := (lo + hi) / 2; sorted[mid] > v {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
