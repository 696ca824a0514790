package neighbors

import (
	"math"

	"cne/data"
	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/parallel"
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

// Compare returns a function that compares points i and j of m. Its values have the order of
// their distances.
func Compare(m *data.Matrix) func(i, j int) float64 {
	m = lift(m)
	k := measureOf(m)
	return func(i, j int) float64 { return k.of(m.Row(i), m.Row(j), math.Inf(1)) }
}

// on returns the device, or nil if it does not compare points so.
func (k measure) on(d *device.Device, m *data.Matrix) *device.Device {
	if k == euclidean || d.OnHost() {
		return d
	}
	d.Note("distances of the metric " + string(m.Metric) + " are computed on the CPU")
	return nil
}

// of returns the value for two points, or some value above limit if it exceeds limit.
func (k measure) of(a, b []float32, limit float64) float64 {
	if k == euclidean {
		return dist2(a, b, limit)
	}
	return k.other(a, b, limit)
}

func (k measure) other(a, b []float32, limit float64) float64 {
	b = b[:len(a)]
	switch k {
	case chord:
		var s float64
		for l := range 3 {
			d := float64(a[l]) - float64(b[l]) + (float64(a[l+3]) - float64(b[l+3]))
			s += float64(d * d)
		}
		return s
	case manhattan:
		s := 0.
		for len(a) > 0 && s <= limit {
			some := min(16, len(a))
			for l, v := range a[:some] {
				s += math.Abs(float64(v) - float64(b[l]))
			}
			a, b = a[some:], b[some:]
		}
		return s
	case jaccard:
		both, either := 0, 0
		for l, v := range a {
			in, other := toBit(v != 0), toBit(b[l] != 0)
			both, either = both+in&other, either+(in|other)
		}
		return 1 - share(both, either)
	}
	differ := 0
	for l, v := range a {
		differ += toBit(v != b[l])
	}
	return float64(differ)
}

func toBit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// share returns both/either, and 1 for two empty sets.
func share(both, either int) float64 {
	if either == 0 {
		return 1
	}
	return float64(both) / float64(either)
}

// bound returns a lower bound of the value for a point and any point in a box. It adds in
// the order of the function of: every term is at most the term of such a point, and rounding
// keeps that order.
func (k measure) bound(point, low, high []float32) float64 {
	gap := func(l int) float64 {
		return max(0, float64(low[l])-float64(point[l]), float64(point[l])-float64(high[l]))
	}
	s := 0.
	switch k {
	case chord:
		for l := range 3 {
			g := max(0, gap(l)-0x1p-23) // both may be up to 2⁻²⁵ from their roundings
			s += float64(g * g)
		}
	case jaccard:
		both, either := 0, 0 // at most, and at least
		for l, v := range point {
			may, must := low[l] != 0 || high[l] != 0, low[l] > 0 || high[l] < 0
			both, either = both+toBit(v != 0 && may), either+toBit(v != 0 || must)
		}
		return 1 - share(both, either)
	default:
		for l := range point {
			if g := gap(l); k == manhattan {
				s += g
			} else if g > 0 {
				s++
			}
		}
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

// coordinate returns what panels hold of a coordinate of points that are not euclidean.
func (nm *normalization) coordinate(v float32) float32 {
	switch nm.measure {
	case manhattan:
		return v * float32(nm.scale)
	case twoValued, jaccard:
		return float32(toBit(v != 0))
	}
	return v
}

// normalizeFor changes the normalization of points that are not euclidean, such that s has
// the order of the values of their measure.
func (nm *normalization) normalizeFor(m *data.Matrix) {
	nm.measure = measureOf(m)
	switch nm.measure {
	case euclidean:
		return
	case chord:
		nm.bound.distance += nm.scale * 0x1p-22 // what lift rounds
		return
	}
	clear(nm.mean)
	nm.bound = newDifferenceBound(nm.d)
	nm.bound.shift = 0
	switch nm.measure {
	case manhattan:
		nm.factor = 2 * nm.scale
	case twoValued:
		nm.scale, nm.factor = 1, 1
		nm.one, _ = theOther(m.X)
	default:
		nm.scale, nm.factor = 1, 2
	}
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

// ties returns the ties of collectors.
func (nm *normalization) ties() uint32 { return uint32(toBit(nm.measure > manhattan)) }

// compare sets products to s for the first points of a panel (rows) and the points of block
// J (columns) where a product of matrices does not do so; for jaccard it has half the number
// of values that differ.
func (p *panels) compare(products, panel []float32, rows, blockJ int) {
	of, columns, most := p.of(blockJ), p.rows(blockJ), float32(1)
	scale := float32(math.MaxFloat32)
	if p.measure == manhattan {
		scale, most = 1, math.MaxFloat32
	}
	for r := range rows {
		row := products[r*blockSize:][:blockSize]
		switch p.measure {
		case euclidean, chord, twoValued:
		case jaccard:
			for c, half := range row[:columns] {
				if half != 0 {
					row[c] = 2 * half / (panel[r] + of[c] + half)
				}
			}
		default:
			clear(row)
			for l := 2; l < 2+p.d; l++ {
				simd.AddDistances(row, of[l*blockSize:][:blockSize], panel[l*blockSize+r], scale, most)
			}
			for c := columns; c < blockSize; c++ {
				row[c] = 2 * aboveAll
			}
		}
	}
}

// scalar reports whether an approximate search compares pairs one by one.
func (c *pointSet) scalar() bool { return c.measure == manhattan || c.measure == mismatches }

// value returns the value for points p and q from the squared Euclidean distance.
func (c *pointSet) value(d2 float32, p, q int32) float32 {
	if c.sizes == nil {
		return d2
	}
	return c.valueOf(d2, c.sizes[p], q)
}

// valueOf is value for a set of the given size.
func (c *pointSet) valueOf(d2, size float32, q int32) float32 {
	if c.sizes == nil || d2 == 0 {
		return d2
	}
	return 2 * d2 / (size + c.sizes[q] + d2)
}

// setSizes returns the numbers of values of points that are not 0.
func setSizes(x []float32, d int) []float32 {
	sizes := make([]float32, len(x)/d)
	for i := range sizes {
		for _, v := range x[i*d : (i+1)*d] {
			sizes[i] += float32(toBit(v != 0))
		}
	}
	return sizes
}
