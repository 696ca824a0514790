package simd

import "math"

// The loops here convert each product, which keeps the compiler from fusing it with the
// addition that follows.

// Descend subtracts step times the gradient, clipped to ±clip, from x.
func Descend[T Float](x, grad []T, step, clip T) {
	grad = grad[:len(x)]
	if f, whole := wholeVectors(x); whole > 0 {
		descendVector(f, any(grad).([]float32), float32(step), float32(clip))
		x, grad = x[whole:], grad[whole:]
	}
	for i, g := range grad {
		x[i] -= T(step * bounded(g, clip))
	}
}

// DescendRows is Descend for those rows of table, [n, d], that rows names:
// row i of grad belongs to row rows[i]. A row that is named more than once takes the
// steps one after the other.
func DescendRows[T Float](table, grad []T, d int, rows []int32, step, clip T) {
	if f, ok := float32s(table); ok && d == 2 && len(rows) >= lanes {
		whole := len(rows) - len(rows)%lanes
		descendRows2Vector(f, any(grad).([]float32), rows[:whole], float32(step), float32(clip))
		grad, rows = grad[2*whole:], rows[whole:]
	}
	for i, r := range rows {
		Descend(row(table, d, int(r)), row(grad, d, i), step, clip)
	}
}

// Momentum holds the numbers of a step of gradient descent with momentum.
type Momentum struct {
	// Step is the learning rate.
	Step float64
	// Clip bounds the elements of the gradient, ±Clip; +Inf leaves them.
	Clip float64
	// WeightDecay times the parameter is added to the clipped gradient.
	WeightDecay float64
	// Momentum is the factor of the buffer before the gradient is added.
	Momentum float64
}

// MomentumStep moves w against its gradient g. buf holds the running sum of the
// gradients, zeros before the first step.
func MomentumStep[T Float](w, g, buf []T, p *Momentum) {
	g, buf = g[:len(w)], buf[:len(w)]
	if f, whole := wholeVectors(w); whole > 0 {
		momentumStepVector(f, any(g).([]float32), any(buf).([]float32),
			float32(p.Step), float32(p.Clip), float32(p.WeightDecay), float32(p.Momentum))
		w, g, buf = w[whole:], g[whole:], buf[whole:]
	}
	step, clip, decay, keep := T(p.Step), T(p.Clip), T(p.WeightDecay), T(p.Momentum)
	for i, x := range w {
		b := T(keep*buf[i]) + (bounded(g[i], clip) + T(decay*x))
		buf[i] = b
		w[i] = x - T(step*b)
	}
}

// Adam holds the numbers of a step of Adam.
type Adam struct {
	// Step is the learning rate, divided by 1 − Beta1ᵗ in step t = 1, 2, ….
	Step float64
	// Clip bounds the elements of the gradient, ±Clip; +Inf leaves them.
	Clip float64
	// WeightDecay times the parameter is added to the clipped gradient.
	WeightDecay float64
	// Beta1 and Beta2 are the decay rates of the running means of the gradient and its
	// square.
	Beta1, Beta2 float64
	// Scale is 1/√(1 − Beta2ᵗ), and Epsilon is added to Scale times the root of the mean
	// square.
	Scale, Epsilon float64
}

// AdamStep moves w against its gradient g. m and v hold the running means of
// the gradient and of its square, zeros before the first step. All forms give
// the same bits.
func AdamStep[T Float](w, g, m, v []T, p *Adam) {
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	if f, whole := wholeVectors(w); whole > 0 {
		adamStepVector(f, any(g).([]float32), any(m).([]float32), any(v).([]float32), float32(p.Step), float32(p.Clip),
			float32(p.WeightDecay), float32(1-p.Beta1), float32(p.Beta2), float32(1-p.Beta2), float32(p.Scale), float32(p.Epsilon))
		w, g, m, v = w[whole:], g[whole:], m[whole:], v[whole:]
	}
	step, clip, decay, scale, epsilon := T(p.Step), T(p.Clip), T(p.WeightDecay), T(p.Scale), T(p.Epsilon)
	ofG, keep, ofG2 := T(1-p.Beta1), T(p.Beta2), T(1-p.Beta2)
	for i, x := range w {
		d := bounded(g[i], clip) + T(decay*x)
		mean := m[i] + T(ofG*(d-m[i]))
		square := T(keep*v[i]) + T(T(ofG2*d)*d)
		m[i], v[i] = mean, square
		w[i] = x - T(step*mean)/(T(T(math.Sqrt(float64(square)))*scale)+epsilon)
	}
}

// bounded clips g to ±clip and keeps NaNs.
func bounded[T Float](g, clip T) T { return min(max(g, -clip), clip) }
