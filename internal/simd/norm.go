package simd

import "math"

// A Norm maps images, whose channels are the columns of a matrix [rows, c], to
// max(Floor, Scale·(x−Pivot) + Shift), channel by channel.
type Norm[T Float] struct {
	Pivot, Scale, Shift []T // [c]
	// Floor is 0 for a ReLU and −∞ without.
	Floor T
}

// normRows is the number of rows handled channel by channel at a time, so that the cache
// lines that channels share stay in the cache.
const normRows = 32

// ColumnMoments adds Σ (x−pivot) and Σ (x−pivot)² of the channels of x to sums
// and squares, in float64.
func ColumnMoments[T Float](sums, squares []float64, x, pivot []T) {
	c := len(pivot)
	first := strips(x, c, func(x []float32, at, column, rows int) {
		columnMomentsVector(x[at:], rows, c, any(pivot).([]float32)[column:], sums[column:], squares[column:])
	})
	for at := 0; at < len(x); at += normRows * c {
		rows := x[at:min(at+normRows*c, len(x))]
		for k := first; k < c; k++ {
			var sum, square float64
			for i := k; i < len(rows); i += c {
				d := float64(rows[i]) - float64(pivot[k])
				sum += d
				square = math.FMA(d, d, square)
			}
			sums[k] += sum
			squares[k] += square
		}
	}
}

// Apply sets dst to what x is mapped to. dst may be x.
func (n *Norm[T]) Apply(dst, x []T) {
	c := len(n.Pivot)
	first := strips(x, c, func(x []float32, at, column, rows int) {
		n, dst := any(n).(*Norm[float32]), any(dst).([]float32)
		columnApplyVector(dst[at:], x[at:], rows, c, n.Pivot[column:], n.Scale[column:], n.Shift[column:], n.Floor)
	})
	if first == c {
		return
	}
	for at := 0; at < len(x); at += c {
		for k, v := range x[at+first : at+c] {
			y := n.value(first+k, v)
			if y < n.Floor { // a NaN is not
				y = n.Floor
			}
			dst[at+first+k] = y
		}
	}
}

// value maps x in channel k, without the floor.
func (n *Norm[T]) value(k int, x T) T { return FMA(n.Scale[k], x-n.Pivot[k], n.Shift[k]) }

// Products adds Σ g and Σ g·(x−pivot) of the channels to sums and products, in
// float64, where g is the gradient of the result, or 0 where the result is the
// floor.
func (n *Norm[T]) Products(sums, products []float64, g, x []T) {
	c := len(n.Pivot)
	first := strips(x, c, func(x []float32, at, column, rows int) {
		n, g := any(n).(*Norm[float32]), any(g).([]float32)
		columnProductsVector(g[at:], x[at:], rows, c, n.Pivot[column:], n.Scale[column:], n.Shift[column:], n.Floor,
			sums[column:], products[column:])
	})
	for at := 0; at < len(x); at += normRows * c {
		rows := x[at:min(at+normRows*c, len(x))]
		for k := first; k < c; k++ {
			var sum, product float64
			for i := k; i < len(rows); i += c {
				if v := rows[i]; !(n.value(k, v) <= n.Floor) {
					gradient := float64(g[at+i])
					sum += gradient
					product = math.FMA(gradient, float64(v-n.Pivot[k]), product)
				}
			}
			sums[k] += sum
			products[k] += product
		}
	}
}

// Gradient sets dst to a·g + b·(x−pivot) + o, channel by channel, with g as in
// Products. dst may be g or x.
func (n *Norm[T]) Gradient(dst, g, x, a, b, o []T) {
	c := len(n.Pivot)
	first := strips(x, c, func(x []float32, at, column, rows int) {
		n, g, dst := any(n).(*Norm[float32]), any(g).([]float32), any(dst).([]float32)
		a, b, o := any(a).([]float32), any(b).([]float32), any(o).([]float32)
		columnGradientVector(dst[at:], g[at:], x[at:], rows, c, n.Pivot[column:], n.Scale[column:], n.Shift[column:], n.Floor,
			a[column:], b[column:], o[column:])
	})
	if first == c {
		return
	}
	for at := 0; at < len(x); at += c {
		for k := first; k < c; k++ {
			v := x[at+k]
			var passed T
			if !(n.value(k, v) <= n.Floor) {
				passed = g[at+k]
			}
			dst[at+k] = FMA(a[k], passed, FMA(b[k], v-n.Pivot[k], o[k]))
		}
	}
}

// strips calls a vector form for strips of a few rows and a vector of columns of a matrix x of c
// columns, each with the index of its first element. It returns the first column that is left.
func strips[T Float](x []T, c int, form func(x []float32, at, column, rows int)) (first int) {
	f, ok := float32s(x)
	if !ok || len(f) == 0 {
		return 0
	}
	width := [...]int{AVX2: lanes / 2, AVX512: lanes, NEON: lanes / 4}[current]
	first = c &^ (lanes - 1)
	for rows := len(f) / c; rows > 0; rows -= normRows {
		for column := 0; column < first; column += width {
			form(f, len(f)-rows*c+column, column, min(normRows, rows))
		}
	}
	return first
}

// AddReLU sets dst[i] to a[i]+b[i], or to 0 if the sum is negative. dst may be
// a or b.
func AddReLU[T Float](dst, a, b []T) {
	dst, b = dst[:len(a)], b[:len(a)]
	if f, whole := wholeVectors(a); whole > 0 {
		addReLUVector(any(dst).([]float32)[:whole], f, any(b).([]float32))
		dst, a, b = dst[whole:], a[whole:], b[whole:]
	}
	for i, v := range a {
		v += b[i]
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}
