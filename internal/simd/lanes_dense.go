package simd

import "math"

// The dense kernels in plain Go, in the order of the assembly: 16 columns at a time with two
// heads. The fast variant divides once for both heads, the careful one twice.

// A headPair is two heads and what their pairs with 16 columns add to.
type headPair struct {
	three   bool // coordinates, not two
	careful bool
	heads   [2][MaxDenseWidth]float32
	masks   [2]*[lanes]int32
	sums    [2][MaxDenseWidth + 1]*vector
	// The coordinates and the gradient of the columns.
	columns, gradient [MaxDenseWidth]*vector
}

// eachHeadPair calls body for each two heads of a block and 16 columns, from column on. Each
// head has slots slots of sums. last reports whether these are the last heads for the
// columns.
func eachHeadPair(q *HeadBlock[float32], careful bool, slots int, body func(t *headPair, h, column int, r *ColumnRange, last bool)) {
	t := headPair{three: q.D == 3, careful: careful}
	for i := range q.Ranges {
		r := &q.Ranges[i]
		for column := r.First; column < r.First+r.N; column += lanes {
			for k := range q.D {
				t.columns[k] = (*vector)(q.Columns[k*q.Stride+column:])
				t.gradient[k] = t.columns[k]
				if slots == q.D {
					t.gradient[k] = (*vector)(q.Gradient[k*q.Stride+column:])
				}
			}
			for h := 0; h < BlockHeads; h += 2 {
				for g := range t.heads {
					copy(t.heads[g][:], q.Heads[(h+g)*q.D:(h+g+1)*q.D])
					t.masks[g] = (*[lanes]int32)(r.Masks[(h+g)*lanes:])
					for k := range slots {
						t.sums[g][k] = (*vector)(q.Sums[((h+g)*slots+k)*lanes:])
					}
				}
				body(&t, h, column, r, h+2 == BlockHeads)
			}
		}
	}
}

// differencesOf2 are the differences column − head of a column and two heads.
type differencesOf2 [2][MaxDenseWidth]float32

// set sets the differences of column l, and returns start plus the sums of their squares.
func (m *differencesOf2) set(t *headPair, l int, start float32) (u, w float32) {
	l &= 15
	x, y := t.columns[0][l], t.columns[1][l]
	ax, ay, bx, by := x-t.heads[0][0], y-t.heads[0][1], x-t.heads[1][0], y-t.heads[1][1]
	m[0][0], m[0][1], m[1][0], m[1][1] = ax, ay, bx, by
	u, w = fma32(ay, ay, fma32(ax, ax, start)), fma32(by, by, fma32(bx, bx, start))
	if t.three {
		z := t.columns[2][l]
		az, bz := z-t.heads[0][2], z-t.heads[1][2]
		m[0][2], m[1][2] = az, bz
		u, w = fma32(az, az, u), fma32(bz, bz, w)
	}
	return u, w
}

// inverses returns 1/p and 1/q, or 0 where the masks of the heads are not set.
func (t *headPair) inverses(l int, p, q float32) (r, s float32) {
	if t.careful {
		r, s = 1/p, 1/q
	} else {
		both := 1 / float32(p*q)
		r, s = float32(q*both), float32(p*both)
	}
	if t.masks[0][l&15] == 0 {
		r = 0
	}
	if t.masks[1][l&15] == 0 {
		s = 0
	}
	return r, s
}

// pull adds weights times the differences to the sums of the heads and to the gradient.
func (t *headPair) pull(l int, r, s float32, m *differencesOf2) {
	l &= 15
	a, b, g, x, y := t.sums[0][0], t.sums[1][0], t.gradient[0], m[0][0], m[1][0]
	a[l], b[l], g[l] = fma32(r, x, a[l]), fma32(s, y, b[l]), fma32(s, y, fma32(r, x, g[l]))
	a, b, g, x, y = t.sums[0][1], t.sums[1][1], t.gradient[1], m[0][1], m[1][1]
	a[l], b[l], g[l] = fma32(r, x, a[l]), fma32(s, y, b[l]), fma32(s, y, fma32(r, x, g[l]))
	if t.three {
		a, b, g, x, y = t.sums[0][2], t.sums[1][2], t.gradient[2], m[0][2], m[1][2]
		a[l], b[l], g[l] = fma32(r, x, a[l]), fma32(s, y, b[l]), fma32(s, y, fma32(r, x, g[l]))
	}
}

// multiplyIn multiplies the running product of a lane by v and moves its exponent to the sum
// of exponents.
func (b *HeadBlock[T]) multiplyIn(lane int, v float32) {
	product := float32(float32(b.State[lane]) * v)
	bits := math.Float32bits(product)
	b.State[lane] = T(math.Float32frombits(bits&0x7fffff | 0x3f800000))
	b.State[lanes+lane] += T(float32(int32(bits>>23)-127) + 0*product) // a NaN stays one
}

func denseNegLanes(q *HeadBlock[float32], careful bool) {
	c, invC, limit := q.constants[0], q.constants[1], q.constants[2]
	factors := ones()
	shares := (*vector)(q.State[2*lanes:])
	eachHeadPair(q, careful, q.D, func(t *headPair, h, column int, _ *ColumnRange, last bool) {
		var m differencesOf2
		for l := range factors {
			u, w := m.set(t, l, 1)
			a, b := fma32(c, u, 1), fma32(c, w, 1)
			r, s := t.inverses(l, float32(u*a), float32(w*b))
			f, g := fma32(invC, float32(a*r), 1), fma32(invC, float32(b*s), 1) // 1 + 1/(cu)
			if careful {
				if f > limit {
					r, f = 0, limit
				}
				if g > limit {
					s, g = 0, limit
				}
			}
			factors[l] = float32(float32(factors[l]*f) * g)
			shares[l] = fma32(w, s, fma32(u, r, shares[l]))
			t.pull(l, r, s, &m)
		}
		if last {
			for l, f := range factors {
				q.multiplyIn(l, f)
			}
			factors = ones()
		}
	})
}

func denseUMAPLanes(q *HeadBlock[float32], least float32, careful bool) {
	eachHeadPair(q, careful, q.D, func(t *headPair, h, column int, _ *ColumnRange, _ bool) {
		var m differencesOf2
		for l := range lanes {
			d, e := m.set(t, l, 0)
			near, nearer := d <= least, e <= least
			d, e = max(d, least), max(e, least)
			u, w := 1+d, 1+e
			r, s := t.inverses(l, float32(u*d), float32(w*e))
			u, w = fma32(r, u, 1), fma32(s, w, 1) // 1 + 1/x
			if near {
				r = 0
			}
			if nearer {
				s = 0
			}
			t.pull(l, r, s, &m)
			if careful {
				q.multiplyIn(l, u)
				q.multiplyIn(l, w)
			} else {
				q.multiplyIn(l, float32(u*w))
			}
		}
	})
}

func denseTotalsLanes(q *HeadBlock[float32], squares []float32, width int, clamp float32, careful bool) {
	eachHeadPair(q, careful, q.D+1, func(t *headPair, h, column int, r *ColumnRange, _ bool) {
		at := r.At + column - r.First
		first, second := (*vector)(squares[h*width+at:]), (*vector)(squares[(h+1)*width+at:])
		ax, ay, as, bx, by, bs := t.sums[0][0], t.sums[0][1], t.sums[0][q.D], t.sums[1][0], t.sums[1][1], t.sums[1][q.D]
		az, bz := &unused, &unused
		if t.three {
			az, bz = t.sums[0][2], t.sums[1][2]
		}
		var m differencesOf2
		for l := range lanes {
			u, w := m.set(t, l, 1)
			p, s := t.inverses(l, u, w)
			if careful {
				p, s = clamped(p, clamp, t.masks[0][l], &as[l]), clamped(s, clamp, t.masks[1][l], &bs[l])
			} else {
				as[l] += p
				bs[l] += s
			}
			p, s = float32(p*p), float32(s*s)
			first[l], second[l] = p, s
			ax[l], ay[l] = fma32(p, m[0][0], ax[l]), fma32(p, m[0][1], ay[l])
			bx[l], by[l] = fma32(s, m[1][0], bx[l]), fma32(s, m[1][1], by[l])
			if t.three {
				az[l], bz[l] = fma32(p, m[0][2], az[l]), fma32(s, m[1][2], bz[l])
			}
		}
	})
}

// unused stands for the sums of a third coordinate where there is none.
var unused vector

// clamped adds a similarity to the total and returns it, or 0 where the clamp binds.
func clamped(q, clamp float32, mask int32, total *float32) float32 {
	if mask != 0 && q <= clamp {
		*total += clamp
		return 0
	}
	*total += q
	return q
}

// denseScatterLanes multiplies four heads at a time, whose coefficients stay in registers.
func denseScatterLanes(out []float32, d, n, stride int, squares []float32, width int, coefficients []float32) {
	heads := len(coefficients) / (1 + d)
	for k := range 1 + d {
		plane := out[k*stride:][:n]
		h := 0
		for ; h+4 <= heads; h += 4 {
			f := coefficients[h*(1+d)+k:]
			a, b, c, e := f[0], f[1+d], f[2*(1+d)], f[3*(1+d)]
			p, q, r, s := squares[h*width:][:n], squares[(h+1)*width:][:n], squares[(h+2)*width:][:n], squares[(h+3)*width:][:n]
			for j, v := range plane {
				plane[j] = fma32(e, s[j], fma32(c, r[j], fma32(b, q[j], fma32(a, p[j], v))))
			}
		}
		for ; h < heads; h++ {
			f := coefficients[h*(1+d)+k]
			for j, v := range squares[h*width:][:n] {
				plane[j] = fma32(f, v, plane[j])
			}
		}
	}
}
