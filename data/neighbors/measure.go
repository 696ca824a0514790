package neighbors

import (
	"math"
	"slices"

	"cne/data"
	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// A measure is how two points are compared. Its value is the squared distance for euclidean
// and chord, and otherwise the distance.
type measure int

const (
	euclidean measure = iota
	chord             // between points on a sphere: see lift
	manhattan
	mismatches // Hamming's distance
	twoValued  // the same, between points whose values are 0 or one other number
	jaccard
	given // value j of a point is its distance from base point j
)

// measureOf returns the measure of points.
func measureOf(m *data.Matrix) measure {
	switch m.Metric {
	case data.Manhattan:
		return manhattan
	case data.Jaccard:
		return jaccard
	case data.Haversine:
		return chord
	case data.Precomputed:
		return given
	case data.Hamming:
		if _, ok := theOther(m.X); ok {
			return twoValued
		}
		return mismatches
	}
	return euclidean
}

// theOther returns the only value other than 0, or 0 if there is none. ok is false if there
// are several.
func theOther(x []float32) (one float32, ok bool) {
	for _, v := range x {
		if one == 0 {
			one = v
		}
		if v != 0 && v != one {
			return 0, false
		}
	}
	return one, true
}

// lift returns the points as their measure compares them: m itself, or for latitudes and
// longitudes their coordinates x, y and z on the unit sphere, rounded to float32, and what
// the rounding has left out.
func lift(m *data.Matrix) *data.Matrix {
	if m.Metric != data.Haversine || m.D != 2 {
		return m
	}
	lifted := data.NewMatrix(m.N, 6)
	lifted.Metric = m.Metric
	parallel.For(m.N, blockSize, func(_, first, last int) {
		for i := first; i < last; i++ {
			row := lifted.Row(i)
			const halfTurns = data.HaversineUnit / 180.
			lat, lon := float64(m.At(i, 0)*halfTurns), float64(m.At(i, 1)*halfTurns)
			r := elementary.CosPi(lat)
			for l, v := range [3]float64{float64(r * elementary.CosPi(lon)), float64(r * elementary.CosPi(lon-0.5)), elementary.CosPi(lat - 0.5)} {
				row[l] = float32(v)
				row[l+3] = float32(v - float64(row[l]))
			}
		}
	})
	return lifted
}

// Compare returns a function that compares point i of queries with point j of base, by the
// Metric of base. Its values have the order of their distances; one above limit may be any number
// above limit.
func Compare(queries, base *data.Matrix) func(i, j int, limit float64) float64 {
	relative := *queries.Relative(base.Offset)
	relative.Metric = base.Metric
	from, to := lift(&relative), lift(base)
	k := measureOf(to)
	if to.CSR != nil {
		a := from.Sparse().CSR
		return func(i, j int, _ float64) float64 { return k.ofRows(a, i, to.CSR, j) }
	}
	if k == given {
		return func(i, j int, _ float64) float64 { return float64(from.Row(i)[j]) }
	}
	return func(i, j int, limit float64) float64 { return k.of(from.Row(i), to.Row(j), limit) }
}

// Tie returns the relative tolerance within which two points of m are equally near. It is 0
// unless there are at most 64 different coordinates, such as answers on a scale. Many
// distances are then equal, but scaled coordinates are rounded to float32.
func Tie(m *data.Matrix) float64 {
	const few = 64
	different, x := make([]float32, 0, few), m.X
	if m.CSR != nil {
		x = m.CSR.Value
		if len(x) < m.N*m.D {
			different = append(different, 0)
		}
	}
	for _, v := range x {
		if slices.Contains(different, v) {
			continue
		}
		if len(different) == few {
			return 0
		}
		different = append(different, v)
	}
	return 0x1p-16 // a step of 1/64 of the largest coordinate is exact to 2⁻¹⁷
}

// deviceFor returns the device, or nil for points that it does not compare.
func deviceFor(d *device.Device, m *data.Matrix) *device.Device {
	of := selection.If(m.CSR == nil, "the metric "+string(m.Metric), "sparse points")
	if d.OnHost() || m.CSR == nil && !m.Metric.Direct() {
		return d
	}
	d.Note("distances of " + of + " are computed on the CPU")
	return nil
}

// of returns the value for two points, or some value above limit if it exceeds limit.
func (k measure) of(a, b []float32, limit float64) float64 {
	if k == euclidean {
		return dist2(a, b, limit)
	}
	return k.other(a, b, limit)
}

func (k measure) other(a, b []float32, limit float64) (s float64) {
	b = b[:len(a)]
	switch k {
	case chord:
		for l := range 3 {
			d := float64(a[l]) - float64(b[l]) + (float64(a[l+3]) - float64(b[l+3]))
			s += float64(d * d)
		}
	case manhattan:
		for l := 0; l < len(a) && s <= limit; l++ {
			s += math.Abs(float64(a[l]) - float64(b[l]))
		}
	case jaccard:
		differ, either := uint32(0), uint32(0)
		for l, v := range a {
			in, other := math.Float32bits(v)>>29, math.Float32bits(b[l])>>29 // 1 for 1
			differ, either = differ+(in^other), either+(in|other)
		}
		s = float64(differ) / float64(max(1, either))
	default:
		differ := 0
		for l, v := range a {
			differ += toInt(v != b[l])
		}
		s = float64(differ)
	}
	return s
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bound returns a lower bound of the value for a point and any point in a box. It adds in
// the order of the function of: every term is at most the term of such a point, and rounding
// keeps that order.
func (k measure) bound(point, low, high []float32) (s float64) {
	for l, v := range point {
		gap := max(0, float64(low[l])-float64(v), float64(v)-float64(high[l]))
		switch k {
		case chord:
			gap = max(0, gap-0x1p-23) // each is within 2⁻²⁵ of its rounding, and what that leaves out adds nothing
			gap = float64(gap * gap)
		case jaccard:
			gap = 0
		case mismatches, twoValued:
			gap = float64(toInt(gap > 0))
		}
		s += gap
	}
	return s
}

// finish sets Dist2 from values of the measure to squared distances.
func (k measure) finish(nb *Neighbors) *Neighbors {
	if k != euclidean && k != chord {
		for i, v := range nb.Dist2 {
			nb.Dist2[i] = float64(v * v)
		}
	}
	return nb
}

// normalizeFor changes the normalization of points that are not euclidean, such that s has
// the order of the values of their measure.
func (nm *normalization) normalizeFor(m *data.Matrix) {
	nm.measure = measureOf(m)
	switch nm.measure {
	case euclidean:
		return
	case chord:
		nm.bound.distance += float64(nm.scale * 0x1p-22) // what lift rounds
		return
	case manhattan:
		nm.factor = 2 * nm.scale
	case twoValued:
		nm.scale, nm.factor = 1, 1
		if one, _ := theOther(m.X); one != 0 {
			nm.scale = 1 / float64(one)
		}
	default:
		nm.scale, nm.factor = 1, 2
	}
	clear(nm.mean)
	nm.bound = newDifferenceBound(nm.d)
	nm.bound.shift = 0
}

// maxExactUnion is the largest union of two sets for which different shares of a set's
// unions differ in float32.
const maxExactUnion = 1 << 11

// ordered reports whether s has exactly the order of the values for a point of norm a.
func (nm *normalization) ordered(a float64) bool {
	switch nm.measure {
	case jaccard:
		return float64(a*a)+float64(nm.maxNorm*nm.maxNorm) < maxExactUnion
	case twoValued, mismatches:
		return nm.d < 1<<23
	}
	return false
}

// addUp sets products to s for the first points of a panel (rows) and the points of block J
// (columns), for manhattan and mismatches.
func (p *panels) addUp(products, panel []float32, rows, blockJ int) {
	of, scale, most := p.of(blockJ).x, float32(math.MaxFloat32), float32(1)
	if p.measure == manhattan {
		scale, most = most, scale
	}
	for r := range rows {
		row := products[r*blockSize:][:blockSize]
		copy(row, of) // 0, or far above all for columns without a point
		for l := 2; l < 2+p.d; l++ {
			simd.AddDistances(row, of[l*blockSize:][:blockSize], panel[l*blockSize+r], scale, most)
		}
	}
}

// divide sets products, half the numbers of values that differ, to s for jaccard.
func (p *panels) divide(products, panel []float32, rows, blockJ int) {
	of := p.of(blockJ).x
	for r := range rows {
		for c, half := range products[r*blockSize:][:p.rows(blockJ)] {
			products[r*blockSize+c] = 2 * half / max(1, panel[r]+of[c]+half)
		}
	}
}

// scalar reports whether an approximate search compares pairs one by one.
func (c *pointSet) scalar() bool { return c.measure == manhattan || c.measure == mismatches }

// ofSets returns the value for two sets from their sizes and the number of values that
// differ.
func ofSets(differ, size, other float32) float32 { return 2 * differ / max(1, size+other+differ) }

// sizes returns the numbers of values of points that are not 0.
func sizes(x []float32, d int) []float32 {
	all := make([]float32, len(x)/d)
	for i, v := range x {
		all[i/d] += float32(toInt(v != 0))
	}
	return all
}

// Contrast says how alike the distances of points are, by their Metric: it is the median, over
// up to 200 points, of the distance to the fifth nearest of up to 2000 points, divided by the
// root mean square of the distances to these. Close to 1, as where most columns are noise,
// neighbours are hardly nearer than other points, and say little (Beyer et al., 1999). It is 0 for
// fewer than seven points, and if most have copies.
func Contrast(m *data.Matrix) float64 {
	const asked, others, nearest = 200, 2000, 5
	base := min(m.N, others)
	ratios, value := make([]float64, min(m.N, asked)), Compare(m, m)
	if m.N < nearest+2 {
		return 0
	}
	parallel.For(len(ratios), 1, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			own := i * base / len(ratios) * m.N / base
			total, d2 := 0.0, make([]float64, 0, base)
			for b := range base {
				if other := b * m.N / base; other != own {
					v := value(own, other, math.Inf(1))
					if !m.Metric.Squared() {
						v = float64(v * v)
					}
					d2 = append(d2, v)
					total += v
				}
			}
			slices.Sort(d2)
			if total > 0 {
				ratios[i] = math.Sqrt(d2[nearest-1] * float64(len(d2)) / total)
			}
		}
	})
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
