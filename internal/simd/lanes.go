package simd

import "math"

// This file has the arithmetic of the vector forms in plain Go: vectors of 16 numbers,
// sums in as many lanes, fused products where the assembly has them. See docs/arithmetic.md.

// A vector is 16 numbers, or as many sums.
type vector [lanes]float32

// fold adds up the lanes: lanes 8 apart, then those 4, 2 and 1 apart.
func (v *vector) fold() float32 {
	var s [8]float32
	for l := range s {
		s[l] = v[l] + v[l+8]
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

func ones() (v vector) {
	for l := range v {
		v[l] = 1
	}
	return v
}

// log32 returns log v for normal v > 0: v is 2^e·(1+f) with f in [√½−1, √2−1), and
// log(1+f) a polynomial (with the coefficients of Cephes' logf).
func log32(v float32) float32 {
	const half = 0x3f3504f3 // √½
	b := math.Float32bits(v) - half
	e := float32(int32(b) >> 23)
	f := math.Float32frombits(b&0x7fffff+half) - 1
	f2 := float32(f * f)
	y := fma32(7.0376836292e-2, f, -1.1514610310e-1)
	y = fma32(y, f, 1.1676998740e-1)
	y = fma32(y, f, -1.2420140846e-1)
	y = fma32(y, f, 1.4249322787e-1)
	y = fma32(y, f, -1.6668057665e-1)
	y = fma32(y, f, 2.0000714765e-1)
	y = fma32(y, f, -2.4999993993e-1)
	y = fma32(y, f, 3.3333331174e-1)
	y = float32(float32(y*f) * f2)
	y = fma32(-2.12194440e-4, e, y)
	y = f + fma32(-0.5, f2, y)
	y = fma32(0.693359375, e, y)
	return y + float32(0*v) // NaN if v is one
}

// exp32 returns exp t for t ≤ 0, 0 below −50: 2^n·exp r with r in [−½log 2, ½log 2] and
// exp r a polynomial (with the coefficients of Cephes' expf).
func exp32(t float32) float32 {
	const (
		lowest  = -50
		rounder = 3 << 22 // adding and subtracting it rounds to an integer
	)
	outside := t < lowest
	if outside {
		t = lowest
	}
	n := fma32(1.4426950408889634, t, rounder)
	k := n - rounder
	t = fma32(-0.693359375, k, t)
	t = fma32(2.12194440e-4, k, t)
	y := fma32(1.9875691500e-4, t, 1.3981999507e-3)
	y = fma32(y, t, 8.3334519073e-3)
	y = fma32(y, t, 4.1665795894e-2)
	y = fma32(y, t, 1.6666665459e-1)
	y = fma32(y, t, 5.0000001201e-1)
	y = 1 + fma32(y, float32(t*t), t)
	if y = math.Float32frombits(math.Float32bits(y) + math.Float32bits(n)<<23); t != t {
		y = t
	}
	if outside {
		return 0
	}
	return y
}

// A logSum32 adds up the logarithms of numbers from 1 to 8e37, lane by lane, by multiplying
// their mantissas and adding up their exponents.
type logSum32 struct{ product, exponents vector }

func (s *logSum32) add(l int, v float32) {
	e := math.Float32bits(v) & 0x7f800000
	s.exponents[l] += float32(int32(e>>23) - 127)
	s.product[l] *= float32(v * math.Float32frombits(0x7f000000-e)) // leaves a NaN one
}

// total returns the sums of the lanes.
func (s *logSum32) total() (sums vector) {
	for l, p := range s.product {
		sums[l] = fma32(math.Ln2, s.exponents[l], log32(p))
	}
	return sums
}

func negPositiveLanes(x []float32, c, limit, logLimit float32) (loss, dTheta float32) {
	var losses, slopes vector
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			cu := float32(c * (d2 + 1))
			v := cu + 1
			if v > limit {
				x[l] = 0
				losses[l] += logLimit
				continue
			}
			g := 1 / v
			slopes[l] += float32(cu * g)
			x[l] = c * g
			losses[l] += log32(v)
		}
	}
	return losses.fold(), slopes.fold()
}

func negNegativeLanes(x []float32, invC, limit float32) (loss, dTheta float32) {
	logs, slopes := logSum32{product: ones()}, vector{}
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			q := 1 / (d2 + 1)
			r := float32(invC * q)
			v := 1 + r
			if v > limit {
				x[l] = 0
				logs.add(l, limit)
				continue
			}
			share := r / v
			slopes[l] -= share
			x[l] = fma32(-share, q, 0)
			logs.add(l, v)
		}
	}
	sums := logs.total()
	return sums.fold(), slopes.fold()
}

func umapPositiveLanes(x []float32, limit, logLimit float32) (loss float32) {
	var losses vector
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			u := d2 + 1
			if u > limit {
				x[l] = 0
				losses[l] += logLimit
				continue
			}
			x[l] = 1 / u
			losses[l] += log32(u)
		}
	}
	return losses.fold()
}

func umapNegativeLanes(x []float32, limit, logLimit float32) (loss float32) {
	var losses vector
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			r := 1 / d2
			v := 1 + r
			if v > limit {
				x[l] = 0
				losses[l] += logLimit
				continue
			}
			x[l] = -(r / (1 + d2))
			losses[l] += log32(v)
		}
	}
	return losses.fold()
}

func logTotalsLanes(total []float32, weight float32) (loss float32) {
	var losses vector
	for i := 0; i+lanes <= len(total); i += lanes {
		total := (*vector)(total[i:])
		for l, t := range total {
			total[l] = weight / t
			losses[l] += log32(t)
		}
	}
	return losses.fold()
}

func infoncPositiveLanes(q, share []float32, clamp float32) (loss float32) {
	var losses vector
	for i := 0; i+lanes <= len(q); i += lanes {
		q := (*vector)(q[i:])
		shares := (*vector)(share[i:])
		for l, v := range q {
			losses[l] -= log32(v)
			if q[l] = 0; !(v <= clamp) {
				q[l] = fma32(-v, float32(shares[l]*v), v)
			}
		}
	}
	return losses.fold()
}

func inverseSum2Lanes(xs, ys []float32, x, y float32) float32 {
	var sums vector
	for i := 0; i+lanes <= len(xs); i += lanes {
		xs := (*vector)(xs[i:])
		ys := (*vector)(ys[i:])
		for l, xi := range xs {
			sums[l] += 1 / near2(x-xi, y-ys[l])
		}
	}
	return sums.fold()
}

// near2 returns 1 + dx² + dy².
func near2(dx, dy float32) float32 { return fma32(dy, dy, fma32(dx, dx, 1)) }

func inverseSum2NearLanes(xs, ys []float32, x, y float32) float32 {
	var sums vector
	for i := 0; i+2*lanes <= len(xs); i += 2 * lanes {
		xs, ys := (*[2 * lanes]float32)(xs[i:]), (*[2 * lanes]float32)(ys[i:])
		for l := range sums {
			u, v := near2(x-xs[l], y-ys[l]), near2(x-xs[l+lanes], y-ys[l+lanes])
			sums[l] += (u + v) / float32(u*v)
		}
	}
	return sums.fold()
}

func inverseSumLanes(d2 []float32) float32 {
	var sums vector
	for i := 0; i+lanes <= len(d2); i += lanes {
		d2 := (*vector)(d2[i:])
		for l, v := range d2 {
			sums[l] += 1 / (v + 1)
		}
	}
	return sums.fold()
}

func rowSimilaritiesLanes(x []float32, clamp float32) float32 {
	var sums vector
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			if x[l] = 0; !(d2 < 0) {
				x[l] = max(clamp, 1/min(1+d2, 5e37))
			}
			sums[l] += x[l]
		}
	}
	return sums.fold()
}

func rowExpLanes(x []float32, top float32) float32 {
	var sums vector
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, v := range x {
			x[l] = exp32(v - top)
			sums[l] += x[l]
		}
	}
	return sums.fold()
}

func softmaxGradLanes(dst, y, g []float32, rest float32) float32 {
	var sums vector
	for i, v := range y {
		sums[i%lanes] += float32(v * g[i])
	}
	rest += sums.fold()
	for i, v := range y {
		dst[i] = v * (g[i] - rest)
	}
	return rest
}

func rowNegLanes(x []float32, c, invC, limit float32) (loss, dTheta float32) {
	logs, slopes := logSum32{product: ones()}, vector{}
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			u := 1 + min(d2, far)
			w := fma32(c, u, 1)
			t := 1 / min(float32(u*w), 5e37)
			if d2 > far {
				t = 0
			}
			v := fma32(invC, float32(t*w), 1)
			if v > limit {
				t = 0
			}
			logs.add(l, min(v, limit))
			slopes[l] = fma32(-t, u, slopes[l])
			x[l] = -t
		}
	}
	sums := logs.total()
	return sums.fold(), slopes.fold()
}

// far is a squared distance that only excluded pairs exceed.
const far = 1e18

func rowUMAPLanes(x []float32, limit float32) (loss float32) {
	logs := logSum32{product: ones()}
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, d2 := range x {
			near := min(d2, far)
			u := 1 + near
			t := 1 / max(float32(u*near), 1.2e-38) // whose inverse is beyond any limit
			if d2 > far {
				t = 0
			}
			v := fma32(u, t, 1)
			if v > limit {
				t = 0
			}
			logs.add(l, min(v, limit))
			x[l] = -t
		}
	}
	sums := logs.total()
	return sums.fold()
}

func rowLogisticLanes(x []float32, theta float32) (loss, dTheta float32) {
	logs, losses, slopes := logSum32{product: ones()}, vector{}, vector{}
	for i := 0; i+lanes <= len(x); i += lanes {
		x := (*vector)(x[i:])
		for l, v := range x {
			t := v - theta
			e := exp32(-abs32(t))
			u := 1 + e
			r := 1 / u
			if t > 0 {
				losses[l] += t
				e = 1
			} else {
				losses[l] += 0
			}
			x[l] = float32(e * r)
			slopes[l] -= x[l]
			logs.add(l, u)
		}
	}
	for l, v := range logs.total() {
		losses[l] += v
	}
	return losses.fold(), slopes.fold()
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func attractLanes(fx, fy, points []float32, edges []uint64, weights []float32) (loss float32) {
	var losses vector
	for i := 0; i+lanes <= len(fx); i += lanes {
		edges, weights := (*[lanes]uint64)(edges[i:]), (*vector)(weights[i:])
		for l, e := range edges {
			h, t := 2*int(uint32(e)), 2*int(e>>32)
			dx, dy, w := points[h]-points[t], points[h+1]-points[t+1], weights[l]
			u := near2(dx, dy)
			f := w / u
			fx[i+l], fy[i+l] = f*dx, f*dy
			losses[l] = fma32(w, log32(u), losses[l])
		}
	}
	return losses.fold()
}

func foldSlotsLanes(dst, src []float32) {
	for i := range dst {
		dst[i] = (*vector)(src[lanes*i:]).fold()
	}
}

// lesser is the kernels' minimum: v if either number is a NaN or both are 0.
func lesser[T Float](bound, v T) T {
	if bound < v {
		return bound
	}
	return v
}

// greater is the kernels' maximum.
func greater[T Float](bound, v T) T {
	if bound > v {
		return bound
	}
	return v
}

func extentsLanes(least, most, sum, src []float32, d int) {
	n := lanes * d
	copy(least, src[:n])
	copy(most, src[:n])
	copy(sum, src[:n])
	for src = src[n:]; len(src) >= n; src = src[n:] {
		for i, v := range src[:n] {
			least[i], most[i] = lesser(least[i], v), greater(most[i], v)
			sum[i] += v
		}
	}
}

// foldRow adds up the 16 sums of a row in the order of the assembly: within each four,
// lanes 2 apart, then those 1 apart; then the fours.
func (v *vector) foldRow() float32 {
	var part [4]float32
	for p := range part {
		part[p] = (v[4*p] + v[4*p+2]) + (v[4*p+1] + v[4*p+3])
	}
	return (part[0] + part[1]) + (part[2] + part[3])
}

func nearRowsLanes(dst []float32, found []uint64, x, row []float32, cols []int32, limit float32, limits []float32) {
	for c, j := range cols {
		other := x[int(j)*len(row):][:len(row)]
		var sums vector
		l := 0
		for ; l+lanes <= len(row) && l+lanes <= len(other); l += lanes {
			a, b := (*vector)(row[l:]), (*vector)(other[l:])
			for k := range sums {
				d := a[k] - b[k]
				sums[k] = fma32(d, d, sums[k])
			}
		}
		for k, v := range row[l:] {
			d := v - other[l+k]
			sums[k] = fma32(d, d, sums[k])
		}
		d2 := sums.foldRow()
		if dst[c] = d2; d2 <= limit || d2 <= limits[c] {
			found[c/64] |= 1 << (c % 64)
		}
	}
}

func projectRowsLanes(dst, x, from, along []float32, cols []int32) {
	for c, j := range cols {
		row := x[int(j)*len(from):][:len(from)]
		var sums vector
		for l, v := range row {
			sums[l%lanes] = fma32(along[l], v-from[l], sums[l%lanes])
		}
		dst[c] = sums.foldRow()
	}
}
