package plot

import (
	"math"
	"slices"
)

// Bounds of the outliers that FrameOf leaves out.
const (
	outside  = 400 // one point in so many may lie beyond a side
	farAlone = 0.1 // distance of outliers from a quantile, as a share of the distance between the quantiles
)

// FrameOf returns the lower left and upper right corner of the part of a plane that shows
// the points, whose x and y alternate, without outliers. Along each axis it ends at the
// outermost points that lie beyond the 0.25 % and 99.75 % quantiles by at most a tenth of
// the distance between these. So it holds at least 99 % of the points, and all if there
// are fewer than 400.
func FrameOf(xy []float64) (low, high [2]float64) {
	b := boundsOf(xy)
	low, high = [2]float64{b.x0, b.y0}, [2]float64{b.x1, b.y1}
	k := len(xy) / 2 / outside
	if k == 0 {
		return low, high
	}
	for axis := range 2 {
		first, last := quantile(xy[axis:], k, 1), quantile(xy[axis:], k, -1)
		far := farAlone * (last - first)
		if far == 0 || low[axis] >= first-far && high[axis] <= last+far {
			continue // most points are at one place, or none is an outlier
		}
		low[axis], high[axis] = first, last
		for i := axis; i < len(xy); i += 2 {
			if v := xy[i]; v >= first-far && v <= last+far {
				low[axis], high[axis] = min(low[axis], v), max(high[axis], v)
			}
		}
	}
	return low, high
}

// quantile returns the value that k of every second number are below or, with the sign
// −1, above. It keeps about k numbers.
func quantile(of []float64, k int, sign float64) float64 {
	least, bound := make([]float64, 0, 2*(k+1)), math.Inf(1)
	for i := 0; i < len(of); i += 2 {
		v := sign * of[i]
		if v >= bound {
			continue
		}
		if least = append(least, v); len(least) == cap(least) {
			slices.Sort(least)
			least, bound = least[:k+1], least[k]
		}
	}
	slices.Sort(least)
	return sign * least[k]
}
