// Package eigen computes eigenvectors of symmetric matrices, orthonormal bases and polar
// factors in float64. Unlike LAPACK's, the results have the same bits on every processor and
// for any number of cores: the order of each sum depends only on sizes. Matrices are
// row-major.
package eigen

import (
	"cmp"
	"math"
	"slices"

	"cne/internal/parallel"
	"cne/internal/selection"
)

const (
	// ulp is the distance from 1 to the next float64.
	ulp = 0x1p-52
	// work is about how many numbers a core handles at once.
	work = 1 << 15
	// columnBlock is the number of columns that rotations take together, so that they stay
	// in the cache.
	columnBlock = 32
)

// scaled multiplies x by a power of two that brings its largest magnitude to [½, 1), so that
// sums of squares neither overflow nor vanish, and returns the power's negative exponent. It
// reports whether all numbers are finite.
func scaled(x []float64) (exponent int, finite bool) {
	largest := 0.
	for _, v := range x {
		largest = max(largest, math.Abs(v)) // NaN if one is
	}
	if !(largest <= math.MaxFloat64) {
		return 0, false
	}
	_, exponent = math.Frexp(largest)
	for i, v := range x {
		x[i] = math.Ldexp(v, -exponent)
	}
	return exponent, true
}

// Symmetric returns the eigenvalues of a symmetric n×n matrix in descending order, and
// orthonormal eigenvectors as consecutive rows: a = Σ values[i]·vᵢ·vᵢᵀ. Only the upper
// triangle of a is read; a is overwritten. ok reports whether a and the eigenvalues are finite
// and the implicit QL algorithm converged.
func Symmetric(a []float64, n int) (values, vectors []float64, ok bool) {
	for i := range n {
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
	exponent, finite := scaled(a)
	if !finite {
		return nil, nil, false
	}
	t := tridiagonal{n: n, values: make([]float64, n), offDiagonal: make([]float64, n)}
	t.reduce(a)
	if !t.diagonalize() {
		return nil, nil, false
	}
	order := selection.UpTo[int](n)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(t.values[j], t.values[i]) })
	values, vectors = make([]float64, n), make([]float64, n*n)
	for i, from := range order {
		if values[i] = math.Ldexp(t.values[from], exponent); math.IsInf(values[i], 0) {
			return nil, nil, false
		}
		copy(vectors[i*n:(i+1)*n], t.rows[from*n:])
	}
	return values, vectors, true
}

// A tridiagonal is a symmetric tridiagonal matrix T with the diagonal values; offDiagonal[i]
// is its element (i, i+1). The original matrix is rowsᵀ·T·rows.
type tridiagonal struct {
	n                         int
	values, offDiagonal, rows []float64
	sweeps                    []sweep
	rotations                 int // of all sweeps
}

// reduce makes T from a full matrix, which it overwrites with reflectors.
func (t *tridiagonal) reduce(a []float64) {
	n := t.n
	factors, product := make([]float64, n), make([]float64, n)
	v, w := make([]float64, n), make([]float64, n) // v·wᵀ + w·vᵀ is still to be subtracted from a
	for k := range n {
		row := a[k*n : (k+1)*n]
		for j := k; j < n; j++ {
			row[j] -= float64(v[k]*w[j]) + float64(w[k]*v[j])
		}
		t.values[k] = row[k]
		if k == n-1 {
			break
		}
		u := row[k+1:]
		factors[k], t.offDiagonal[k] = reflector(u)
		parallel.For(len(u), max(1, work/len(u)), func(_, lo, hi int) {
			for i := lo + k + 1; i < hi+k+1; i++ {
				product[i] = factors[k] * rank2Update(a[i*n+k+1:(i+1)*n], v[k+1:], w[k+1:], u, v[i], w[i])
			}
		})
		copy(v[k+1:], u)
		half := factors[k] / 2 * dot(product[k+1:], u)
		for i := k + 1; i < n; i++ {
			w[i] = product[i] - float64(half*v[i])
		}
	}
	t.rows = make([]float64, n*n)
	const block = 8 // rows that meet a reflector while it is in the cache
	parallel.For(n, block, func(_, lo, hi int) {
		for k := hi - 1; k >= 0; k-- {
			for i := max(lo, k); i < hi; i++ {
				if row := t.rows[i*n : (i+1)*n]; i == k {
					row[i] = 1
				} else {
					reflect(row[k+1:], a[k*n+k+1:(k+1)*n], factors[k])
				}
			}
		}
	})
}

// rank2Update subtracts fv·w + fw·v from a row, and returns its scalar product with u.
func rank2Update(row, v, w, u []float64, fv, fw float64) float64 {
	v, w, u = v[:len(row)], w[:len(row)], u[:len(row)]
	var s0, s1, s2, s3 float64
	j := 0
	for ; j+4 <= len(row); j += 4 {
		x, v, w, u := (*[4]float64)(row[j:]), (*[4]float64)(v[j:]), (*[4]float64)(w[j:]), (*[4]float64)(u[j:])
		x0, x1 := x[0]-(float64(fv*w[0])+float64(fw*v[0])), x[1]-(float64(fv*w[1])+float64(fw*v[1]))
		x2, x3 := x[2]-(float64(fv*w[2])+float64(fw*v[2])), x[3]-(float64(fv*w[3])+float64(fw*v[3]))
		x[0], x[1], x[2], x[3] = x0, x1, x2, x3
		s0, s1, s2, s3 = s0+float64(x0*u[0]), s1+float64(x1*u[1]), s2+float64(x2*u[2]), s3+float64(x3*u[3])
	}
	for ; j < len(row); j++ {
		row[j] -= float64(fv*w[j]) + float64(fw*v[j])
		s0 += float64(row[j] * u[j])
	}
	return s0 + s1 + (s2 + s3)
}

// reflector replaces x by the vector v of a reflection 1 − factor·v·vᵀ that takes x to a
// multiple of the first unit vector, and returns the multiple.
func reflector(x []float64) (factor, multiple float64) {
	exponent, _ := scaled(x)
	first, tail2 := x[0], 0.
	for _, v := range x[1:] {
		tail2 += float64(v * v)
	}
	if tail2 == 0 {
		x[0] = 1
		return 0, math.Ldexp(first, exponent)
	}
	to := -math.Copysign(math.Sqrt(float64(first*first)+tail2), first)
	for i := range x {
		x[i] /= first - to
	}
	x[0] = 1
	return (to - first) / to, math.Ldexp(to, exponent)
}

// reflect applies a reflection to x.
func reflect(x, v []float64, factor float64) {
	if factor == 0 {
		return
	}
	f := factor * dot(v, x)
	for i, v := range v[:len(x)] {
		x[i] -= float64(f * v)
	}
}

func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		x, y := (*[4]float64)(x[i:]), (*[4]float64)(y[i:])
		s0, s1, s2, s3 = s0+float64(x[0]*y[0]), s1+float64(x[1]*y[1]), s2+float64(x[2]*y[2]), s3+float64(x[3]*y[3])
	}
	for ; i < len(x); i++ {
		s0 += float64(x[i] * y[i])
	}
	return s0 + s1 + (s2 + s3)
}

// A sweep is a series of rotations; rotations[i] is of the rows top−i−1 and top−i.
type sweep struct {
	top       int
	rotations [][2]float64 // cosine and sine
}

// diagonalize rotates rows into eigenvectors by the implicit QL algorithm (Wilkinson and
// Reinsch, 1971).
func (t *tridiagonal) diagonalize() bool {
	d, e := t.values, t.offDiagonal
	sweepsLeft := 50 * t.n // an eigenvalue usually takes fewer than two
	// The reduction is stable only relative to the whole matrix, whose largest element is in
	// [½, 1): what remains below ulp/4 is rounding. Relative to small neighbours it may never
	// vanish.
	for l := range d {
		for {
			m := l
			for m < t.n-1 && !(math.Abs(e[m]) <= float64(ulp/2*(math.Abs(d[m])+math.Abs(d[m+1])))+ulp/4) {
				m++
			}
			if m == l {
				break
			}
			if sweepsLeft--; sweepsLeft < 0 {
				return false
			}
			g := (d[l+1] - d[l]) / (2 * e[l])
			g = d[m] - d[l] + e[l]/(g+math.Copysign(hypotenuse(g, 1), g))
			s, c, p := 1., 1., 0.
			sw, i := sweep{m, make([][2]float64, 0, m-l)}, m-1
			for ; i >= l; i-- {
				f, b := s*e[i], float64(c*e[i])
				r := hypotenuse(f, g)
				e[i+1] = r
				if r == 0 {
					d[i+1] -= p
					break
				}
				s, c = f/r, g/r
				g = d[i+1] - p
				r = float64((d[i]-g)*s) + float64(2*c*b)
				p = float64(s * r)
				d[i+1] = g + p
				g = float64(c*r) - b
				sw.rotations = append(sw.rotations, [2]float64{c, s})
			}
			if i < l {
				d[l] -= p
				e[l] = g
			}
			e[m] = 0
			t.sweeps = append(t.sweeps, sw)
			if t.rotations += len(sw.rotations); t.rotations > columnBlock*t.n {
				t.rotate()
			}
		}
	}
	t.rotate()
	return true
}

// hypotenuse returns √(a²+b²) without overflow.
func hypotenuse(a, b float64) float64 {
	a, b = math.Abs(a), math.Abs(b)
	long, short := max(a, b), min(a, b)
	if long == 0 {
		return 0
	}
	short /= long
	return long * math.Sqrt(1+float64(short*short))
}

// rotate applies the sweeps to the rows, a block of columns at a time.
func (t *tridiagonal) rotate() {
	n := t.n
	parallel.For(n, columnBlock, func(_, lo, hi int) {
		row := func(i int) []float64 { return t.rows[i*n+lo : i*n+hi] }
		for _, s := range t.sweeps {
			i := 0
			for ; i+2 <= len(s.rotations); i += 2 {
				rotateRowsTwice(row(s.top-i-2), row(s.top-i-1), row(s.top-i), s.rotations[i], s.rotations[i+1])
			}
			if i < len(s.rotations) {
				rotateRows(row(s.top-i-1), row(s.top-i), s.rotations[i])
			}
		}
	})
	t.sweeps, t.rotations = t.sweeps[:0], 0
}

func rotateRows(x, y []float64, by [2]float64) {
	c, s := by[0], by[1]
	y = y[:len(x)]
	for k, v := range x {
		x[k], y[k] = float64(c*v)-float64(s*y[k]), float64(s*v)+float64(c*y[k])
	}
}

// rotateRowsTwice rotates y and z, and then x and y.
func rotateRowsTwice(x, y, z []float64, first, second [2]float64) {
	c, s, c2, s2 := first[0], first[1], second[0], second[1]
	y, z = y[:len(x)], z[:len(x)]
	for k, v := range x {
		middle := float64(c*y[k]) - float64(s*z[k])
		z[k] = float64(s*y[k]) + float64(c*z[k])
		x[k], y[k] = float64(c2*v)-float64(s2*middle), float64(s2*v)+float64(c2*middle)
	}
}

// Orthonormalize replaces the columns of the n×width matrix x, width ≤ n, by orthonormal ones
// of the same span, or of a larger one if they are dependent. It returns, for each column, its
// distance from the span of the columns before it.
func Orthonormalize(x []float64, n, width int) (lengths []float64) {
	columns, factors := Transposed(x, n, width), make([]float64, width)
	column := func(of []float64, j int) []float64 { return of[j*n : (j+1)*n] }
	grain := max(1, work/n)
	for j := range width {
		v, multiple := column(columns, j)[j:], 0.
		factors[j], multiple = reflector(v)
		lengths = append(lengths, math.Abs(multiple))
		parallel.For(width-j-1, grain, func(_, lo, hi int) {
			for i := lo + j + 1; i < hi+j+1; i++ {
				reflect(column(columns, i)[j:], v, factors[j])
			}
		})
	}
	basis := make([]float64, len(columns))
	parallel.For(width, grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			q := column(basis, i)
			q[i] = 1
			for j := i; j >= 0; j-- {
				reflect(q[j:], column(columns, j)[j:], factors[j])
			}
		}
	})
	copy(x, Transposed(basis, width, n))
	return lengths
}

// Polar returns the orthogonal matrix U·Vᵀ and the sum of the singular values of the d×d matrix
// a = U·S·Vᵀ, by one-sided Jacobi rotations (Hestenes). For a singular matrix, U·Vᵀ is not
// unique. ok reports whether a is finite; a is overwritten.
func Polar(a []float64, d int) (orthogonal []float64, trace float64, ok bool) {
	row := func(of []float64, i int) []float64 { return of[i*d : (i+1)*d] }
	u := make([]float64, d*d) // a matrix times it gives a
	for i := range d {
		u[i*d+i] = 1
	}
	exponent, finite := scaled(a)
	if !finite {
		return nil, 0, false
	}
	for rotated, sweeps := true, 0; rotated && sweeps < 60; sweeps++ {
		rotated = false
		for i := range d {
			for j := range i {
				x, y := row(a, i), row(a, j)
				xx, yy, xy := dot(x, x), dot(y, y), dot(x, y)
				if !(math.Abs(xy) > ulp*math.Sqrt(xx)*math.Sqrt(yy)) || math.Abs(xy) < 0x1p-900 {
					continue
				}
				rotated = true
				zeta := (yy - xx) / (2 * xy)
				t := math.Copysign(1, zeta) / (math.Abs(zeta) + hypotenuse(1, zeta))
				c := 1 / hypotenuse(1, t)
				rotateRows(x, y, [2]float64{c, c * t})
				rotateRows(row(u, i), row(u, j), [2]float64{c, c * t})
			}
		}
	}
	// Rows of a are now orthogonal. The longest come first. Rows of length 0, up to rounding,
	// are replaced by any that complete the basis.
	lengths, order := make([]float64, d), make([]int, d)
	for i := range d {
		lengths[i], order[i] = math.Sqrt(dot(row(a, i), row(a, i))), i
		trace += lengths[i]
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lengths[j], lengths[i]) })
	v := make([]float64, d*d)
	for k, i := range order {
		for j, x := range row(a, i) {
			if lengths[i] > float64(ulp*float64(d)*lengths[order[0]]) {
				v[j*d+k] = x / lengths[i]
			}
		}
	}
	directions := Transposed(v, d, d)
	Orthonormalize(v, d, d)
	orthonormal := Transposed(v, d, d)
	orthogonal = make([]float64, d*d)
	for k, i := range order {
		sign := math.Copysign(1, dot(row(directions, k), row(orthonormal, k)))
		for p, f := range row(u, i) {
			for q, x := range row(orthonormal, k) {
				orthogonal[p*d+q] += float64(sign * f * x)
			}
		}
	}
	return orthogonal, math.Ldexp(trace, exponent), true
}

// Transposed returns the transpose of a rows×columns matrix.
func Transposed(x []float64, rows, columns int) []float64 {
	const block = 32
	y := make([]float64, len(x))
	for i0 := 0; i0 < rows; i0 += block {
		for j0 := 0; j0 < columns; j0 += block {
			for i := i0; i < min(rows, i0+block); i++ {
				for j := j0; j < min(columns, j0+block); j++ {
					y[j*rows+i] = x[i*columns+j]
				}
			}
		}
	}
	return y
}
