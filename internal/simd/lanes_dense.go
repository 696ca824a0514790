package simd

import "math"

// denseLanes is the arithmetic of the vector forms of the dense kernels: column after column,
// with two heads at a time, whose inverses come from one division, or in the careful variant
// one by one.
type denseLanes struct {
	*HeadBlock[float32]
	careful bool
	heads   [BlockHeads][MaxDenseWidth]float32
}

func newDenseLanes(q *HeadBlock[float32], careful bool) *denseLanes {
	b := &denseLanes{HeadBlock: q, careful: careful}
	for h := range b.heads {
		copy(b.heads[h][:], q.Heads[h*q.D:(h+1)*q.D])
	}
	return b
}

// column loads a column's coordinates.
func (b *denseLanes) column(j int) (x [MaxDenseWidth]float32) {
	x[0], x[1] = b.Columns[j], b.Columns[b.Stride+j]
	if b.D == 3 {
		x[2] = b.Columns[2*b.Stride+j]
	}
	return x
}

// differences returns column − head, and start plus the sum of its squares.
func (b *denseLanes) differences(column *[MaxDenseWidth]float32, h int, start float32) (x [MaxDenseWidth]float32, u float32) {
	head := &b.heads[h]
	x[0], x[1] = column[0]-head[0], column[1]-head[1]
	u = FMA(x[1], x[1], FMA(x[0], x[0], start))
	if b.D == 3 {
		x[2] = column[2] - head[2]
		u = FMA(x[2], x[2], u)
	}
	return x, u
}

// inverses returns 1/p and 1/q, or 0 where the masks of heads h and h+1 are not set.
func (b *denseLanes) inverses(p, q float32, masks *Masks, h, lane int) (r, s float32) {
	if b.careful {
		r, s = 1/p, 1/q
	} else {
		both := 1 / float32(p*q)
		r, s = float32(q*both), float32(p*both)
	}
	if masks[h*lanes+lane] == 0 {
		r = 0
	}
	if masks[(h+1)*lanes+lane] == 0 {
		s = 0
	}
	return r, s
}

// pull adds the weights r and s times the differences x and y to the sums of heads h and h+1
// and to the column's gradient.
func (b *denseLanes) pull(h, j, lane int, r, s float32, x, y *[MaxDenseWidth]float32) {
	for k := range b.D {
		first, second := &b.Sums[(h*b.D+k)*lanes+lane], &b.Sums[((h+1)*b.D+k)*lanes+lane]
		*first, *second = FMA(r, x[k], *first), FMA(s, y[k], *second)
		g := &b.Gradient[k*b.Stride+j]
		*g = FMA(s, y[k], FMA(r, x[k], *g))
	}
}

// multiplyIn multiplies the running product by v and moves its exponent to the sum of
// exponents.
func (b *denseLanes) multiplyIn(lane int, v float32) {
	bits := math.Float32bits(b.State[lane] * v)
	b.State[lane] = math.Float32frombits(bits&0x7fffff | 0x3f800000)
	b.State[lanes+lane] += float32(int32(bits>>23) - 127)
}

func denseNegLanes(q *HeadBlock[float32], careful bool) {
	b := newDenseLanes(q, careful)
	c, invC, limit := q.constants[0], q.constants[1], q.constants[2]
	for _, s := range q.Ranges {
		for i := range s.N {
			j, lane := s.First+i, i%lanes
			column := b.column(j)
			shares, factors := q.State[2*lanes+lane], float32(1)
			for h := 0; h < BlockHeads; h += 2 {
				x, u := b.differences(&column, h, 1)
				y, w := b.differences(&column, h+1, 1)
				t, z := FMA(c, u, 1), FMA(c, w, 1)
				r, p := b.inverses(float32(u*t), float32(w*z), s.Masks, h, lane)
				f, g := FMA(invC, float32(t*r), 1), FMA(invC, float32(z*p), 1) // 1 + 1/(cu)
				if careful {
					if f > limit {
						r, f = 0, limit
					}
					if g > limit {
						p, g = 0, limit
					}
				}
				factors = float32(float32(factors*f) * g)
				shares = FMA(w, p, FMA(u, r, shares))
				b.pull(h, j, lane, r, p, &x, &y)
			}
			q.State[2*lanes+lane] = shares
			b.multiplyIn(lane, factors)
		}
	}
}

func denseUMAPLanes(q *HeadBlock[float32], least float32, careful bool) {
	b := newDenseLanes(q, careful)
	for _, s := range q.Ranges {
		for i := range s.N {
			j, lane := s.First+i, i%lanes
			column := b.column(j)
			for h := 0; h < BlockHeads; h += 2 {
				x, d := b.differences(&column, h, 0)
				y, e := b.differences(&column, h+1, 0)
				near, nearer := d <= least, e <= least
				d, e = max(d, least), max(e, least)
				u, w := 1+d, 1+e
				r, p := b.inverses(float32(u*d), float32(w*e), s.Masks, h, lane)
				u, w = FMA(r, u, 1), FMA(p, w, 1) // 1 + 1/x
				if near {
					r = 0
				}
				if nearer {
					p = 0
				}
				b.pull(h, j, lane, r, p, &x, &y)
				if careful {
					b.multiplyIn(lane, u)
					b.multiplyIn(lane, w)
				} else {
					b.multiplyIn(lane, float32(u*w))
				}
			}
		}
	}
}

func denseTotalsLanes(q *HeadBlock[float32], squares []float32, width int, clamp float32, careful bool) {
	b := newDenseLanes(q, careful)
	for _, s := range q.Ranges {
		for i := range s.N {
			lane := i % lanes
			column := b.column(s.First + i)
			for h := 0; h < BlockHeads; h += 2 {
				x, u := b.differences(&column, h, 1)
				y, w := b.differences(&column, h+1, 1)
				r, p := b.inverses(u, w, s.Masks, h, lane)
				squares[h*width+s.At+i] = b.total(h, lane, r, clamp, s.Masks, &x)
				squares[(h+1)*width+s.At+i] = b.total(h+1, lane, p, clamp, s.Masks, &y)
			}
		}
	}
}

// total adds a similarity, and its square times the difference x, to the sums of head h, and
// returns the square.
func (b *denseLanes) total(h, lane int, q, clamp float32, masks *Masks, x *[MaxDenseWidth]float32) float32 {
	sums := b.Sums[h*(b.D+1)*lanes+lane:]
	similarity := q
	if b.careful && masks[h*lanes+lane] != 0 && q <= clamp {
		similarity, q = clamp, 0
	}
	sums[b.D*lanes] += similarity
	square := float32(q * q)
	for k := range b.D {
		sums[k*lanes] = FMA(square, x[k], sums[k*lanes])
	}
	return square
}
