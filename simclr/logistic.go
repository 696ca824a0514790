package simclr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// LogisticOptions are the options for fitting a Logistic. The zero value is the linear
// probe of the paper: no penalty, and a tolerance of 1e-4. (Here, with L-BFGS, the
// tolerance bounds the derivatives. In the paper's program, with scikit-learn's SAGA, it
// bounds the change of the weights.)
type LogisticOptions struct {
	// Penalty is λ ≥ 0 in the objective: the mean loss of an image plus λ/2·‖W‖².
	// scikit-learn's C for n images is 1/(λn).
	Penalty float64
	// Tolerance ends the fit when no derivative of the objective exceeds it; 0 means 1e-4.
	// Tolerances below about 1e-7 may be unreachable.
	Tolerance float64
	// Iterations is the largest number of steps; 0 means 1000.
	Iterations int
}

// complete returns the options with the defaults filled in, or fails as kind.Expect does.
func (o LogisticOptions) complete() LogisticOptions {
	o.Tolerance, o.Iterations = cmp.Or(o.Tolerance, 1e-4), cmp.Or(o.Iterations, 1000)
	kind.Expect(o.Penalty >= 0 && o.Penalty <= 1e9 && o.Tolerance > 0 && o.Tolerance <= 1 && o.Iterations >= 1, ErrOption,
		"logistic regression: got penalty %g, tolerance %g and %d steps, want a penalty of at least 0, a tolerance in (0, 1] and at least 1 step",
		o.Penalty, o.Tolerance, o.Iterations)
	return o
}

// A Logistic is a multinomial logistic regression on standardised features: the
// probability of class c is proportional to exp(W_c·x + b_c).
type Logistic struct {
	// Weights [K, D] and Bias [K] are W and b for K classes and D features.
	// Each sums to 0 over the classes.
	Weights, Bias []float64
	// Scaler standardises features: with mean and standard deviation (the
	// population's) of the training images. A constant feature becomes 0.
	Scaler *data.Scaler
	// Loss is the final objective, in nats per image, and Gradient its largest derivative.
	// Steps is the number of steps taken. Converged reports whether the tolerance was met.
	Loss, Gradient float64
	Steps          int
	Converged      bool
}

// FitLogistic fits a multinomial logistic regression to the rows of features given (nil:
// all), where classes[i], from 0 to count−1, is the class of row i of features. It
// minimises the objective of LogisticOptions from W = 0 by L-BFGS (Nocedal, 1980),
// preconditioned by the inverse of the features' covariance. The Hessian is then at most
// I/2 (Böhning, 1992), and I/count at the start, so few steps are needed. Products are
// computed in float32; sums over images, and the steps, in float64.
//
// Without a penalty, classes that a plane separates have no finite optimum; the
// weights then grow until the derivatives are small.
//
// In addition to a standardised copy of the features it takes up to 256·count·D bytes, and
// about 24·D² for D up to 4096; wider features are not preconditioned, and need more steps.
// Errors wrap ErrOption, ErrShape, ErrLabels, ErrSplit (a class without a row) or
// ErrFeatures, or come from ctx. It is not an error if the tolerance is not
// met.
func FitLogistic(ctx context.Context, features *data.Matrix, classes []int32, rows []int32, count int,
	options LogisticOptions) (_ *Logistic, err error) {
	defer kind.Catch(&err)
	options = options.complete()
	checkFeatures(features, classes)
	if rows == nil {
		rows = selection.UpTo[int32](features.N)
	}
	checkClasses(classes, rows, count, func(c int) string { return fmt.Sprint("class ", c) })
	o := &objective{n: len(rows), d: features.D, k: count, penalty: options.Penalty}
	var x *data.Matrix
	x, o.class = pick(features, classes, rows)
	scaler, err := (&data.Dataset{Points: x}).Scale(ctx, data.ScaleStandard)
	kind.Check(cmp.Or(err, ctx.Err()))
	o.x = x.X
	o.prepare()
	l := &Logistic{Scaler: scaler}
	theta := kind.Got(o.minimize(ctx, options, l))
	l.Weights, l.Bias = theta[:count*o.d], theta[count*o.d:]
	return l, nil
}

// Classify returns the most probable class of each row of features given (nil: all). For
// features of another width the error wraps ErrShape.
func (l *Logistic) Classify(features *data.Matrix, rows []int32) (_ []int32, err error) {
	defer kind.Catch(&err)
	d, k := len(l.Scaler.Mean), len(l.Bias)
	if rows == nil {
		rows = selection.UpTo[int32](features.N)
	}
	kind.Expect(features.D == d && len(features.X) == features.N*d, ErrShape, "features: got %d values each, want %d", features.D, d)
	w := make([]float32, k*d)
	selection.Convert(w, l.Weights)
	for _, row := range rows {
		if row < 0 || int(row) >= features.N {
			kind.Expect(false, ErrShape, "row: got %d, want 0 to %d", row, features.N-1)
		}
	}
	found := make([]int32, len(rows))
	const chunk = 1024
	for lo := 0; lo < len(rows); lo += chunk {
		hi := min(lo+chunk, len(rows))
		x, _ := pick(features, nil, rows[lo:hi])
		kind.Check(l.Scaler.Apply(x))
		z := make([]float32, (hi-lo)*k)
		blas.Gemm(false, true, hi-lo, k, d, 1, x.X, d, w, d, 0, z, k)
		for i := range hi - lo {
			best := math.Inf(-1)
			for c, v := range z[i*k : (i+1)*k] {
				if s := float64(v) + l.Bias[c]; s > best {
					best, found[lo+i] = s, int32(c)
				}
			}
		}
	}
	return found, nil
}

// An objective is the function that logistic regression minimises. Its argument θ is W
// [k, d], then b [k].
type objective struct {
	n, d, k int
	x       []float32 // [n, d], standardised
	class   []int32
	penalty float64

	// grain is the number of images whose losses one core computes at a time.
	// Their part of the gradient is summed in float32.
	grain int

	w       []float32 // [k, d]: W in float32
	bias    []float64 // [k]
	losses  []float64 // of each piece of images
	biases  []float64 // [pieces, k]: derivatives
	partial []float32 // [pieces, k, d]
	scratch parallel.Pool[[]float32]
	inverse *preconditioner // nil for features that are too wide
}

// prepare allocates memory and computes the preconditioner.
func (o *objective) prepare() {
	// At most 64 pieces, each with its own gradient.
	o.grain = max(512, (o.n+63)/64)
	pieces := parallel.Pieces(o.n, o.grain)
	o.w, o.bias = make([]float32, o.k*o.d), make([]float64, o.k)
	o.losses, o.biases = make([]float64, pieces), make([]float64, pieces*o.k)
	o.partial = make([]float32, pieces*o.k*o.d)
	o.scratch.New = func() *[]float32 {
		z := make([]float32, o.grain*o.k)
		return &z
	}
	if o.d <= maxPreconditioned {
		o.inverse = newPreconditioner(o.x, o.n, o.d, float64(o.k)*o.penalty)
	}
}

// evaluate returns the objective and writes its gradient.
func (o *objective) evaluate(theta, gradient []float64) float64 {
	d, k := o.d, o.k
	selection.Convert(o.w, theta[:k*d])
	copy(o.bias, theta[k*d:])
	parallel.For(o.n, o.grain, o.piece)

	loss := selection.Sum(o.losses) / float64(o.n)
	pieces, scale := len(o.losses), 1/float64(o.n)
	const grain = 1 << 12
	parallel.For(k*d, grain, func(_, lo, hi int) {
		g := gradient[lo:hi]
		clear(g)
		for p := range pieces {
			for i, v := range o.partial[p*k*d+lo : p*k*d+hi] {
				g[i] += float64(v)
			}
		}
		for i, w := range theta[lo:hi] {
			g[i] = float64(g[i]*scale) + float64(o.penalty*w)
		}
	})
	bias := gradient[k*d:]
	clear(bias)
	for i, v := range o.biases {
		bias[i%k] += float64(v * scale)
	}
	if o.penalty > 0 {
		loss += float64(o.penalty / 2 * dot(theta[:k*d], theta[:k*d]))
	}
	return loss
}

// piece computes the losses of a piece of the images and their gradient.
func (o *objective) piece(piece, lo, hi int) {
	d, k, n := o.d, o.k, hi-lo
	scratch := o.scratch.Get()
	z := (*scratch)[:n*k]
	x := o.x[lo*d : hi*d]
	blas.GemmSerial(false, true, n, k, d, 1, x, d, o.w, d, 0, z, k)
	biases := o.biases[piece*k : (piece+1)*k]
	clear(biases)
	var loss float64
	for i := range n {
		row, class := z[i*k:(i+1)*k], o.class[lo+i]
		highest := math.Inf(-1)
		for c, v := range row {
			highest = max(highest, float64(v)+o.bias[c])
		}
		var sum float64
		for c, v := range row {
			sum += elementary.Exp(float64(v) + o.bias[c] - highest)
		}
		loss += highest + elementary.Log(sum) - float64(row[class]) - o.bias[class]
		for c, v := range row {
			r := elementary.Exp(float64(v)+o.bias[c]-highest) / sum
			if c == int(class) {
				r--
			}
			biases[c] += r
			row[c] = float32(r)
		}
	}
	o.losses[piece] = loss
	blas.GemmSerial(true, false, k, d, n, 1, z, k, x, d, 0, o.partial[piece*k*d:(piece+1)*k*d], d)
	o.scratch.Put(scratch)
}

// pastSteps is the number of past steps that L-BFGS estimates the curvature from.
const pastSteps = 20

// noise bounds the rounding error of the objective, relative to it.
const noise = 1e-7

// minimize finds the minimum, starting from θ = 0, and sets the results in l.
func (o *objective) minimize(ctx context.Context, options LogisticOptions, l *Logistic) (_ []float64, err error) {
	defer kind.Catch(&err)
	size := o.k*o.d + o.k
	theta, gradient := make([]float64, size), make([]float64, size)
	next, nextGradient := make([]float64, size), make([]float64, size)
	direction := make([]float64, size)
	l.Loss = o.evaluate(theta, gradient)
	// The gradient of the bias stays as it is.
	h := &history{precondition: func(v []float64) { o.inverse.apply(v[:o.k*o.d], o.k) }, scale: float64(o.k)}
	for {
		l.Gradient = floats.Norm(gradient, math.Inf(1))
		l.Converged = l.Gradient <= options.Tolerance
		if l.Converged || l.Steps == options.Iterations {
			return theta, nil
		}
		h.direction(direction, gradient)
		slope := dot(direction, gradient)
		loss, err := o.search(ctx, theta, direction, l.Loss, slope, next, nextGradient)
		if errors.Is(err, errNoStep) {
			if len(h.steps) == 0 {
				return theta, nil // as near as float32 comes
			}
			h.steps = h.steps[:0]
			continue
		}
		kind.Check(err)
		h.add(theta, next, gradient, nextGradient)
		theta, next = next, theta
		gradient, nextGradient = nextGradient, gradient
		l.Loss = loss
		l.Steps++
	}
}

// errNoStep means that no step along a direction meets the conditions.
var errNoStep = errors.New("no step decreases the objective")

// search finds a step along a direction that meets the strong Wolfe conditions, by
// bisection from 1. This works because the objective is convex. It allows for the
// rounding of the objective. If the decrease is smaller than the rounding, the gradient
// decides.
func (o *objective) search(ctx context.Context, theta, direction []float64, loss, slope float64,
	next, gradient []float64) (_ float64, err error) {
	defer kind.Catch(&err)
	const decrease, curvature = 1e-4, 0.9
	if !(slope < 0) {
		return 0, errNoStep
	}
	lo, hi, step := 0.0, math.Inf(1), 1.0
	for range 30 {
		kind.Check(ctx.Err())
		for i, v := range theta {
			next[i] = v + float64(step*direction[i])
		}
		reached := o.evaluate(next, gradient)
		switch at := dot(direction, gradient); {
		case !(reached <= loss+float64(decrease*step*slope)+float64(noise*math.Abs(loss))) || at > -curvature*slope:
			hi = step
		case at < curvature*slope:
			lo = step
		default:
			return reached, nil
		}
		if math.IsInf(hi, 1) {
			step *= 2
		} else {
			step = (lo + hi) / 2
		}
	}
	return 0, errNoStep
}

// A history is L-BFGS's memory of past steps.
type history struct {
	precondition func([]float64) // multiplies by a first guess of H⁻¹
	scale        float64         // of that guess
	steps        []pair
}

// A pair is a step s and the difference y that it made to the gradient.
type pair struct {
	s, y []float64
	rho  float64 // 1/(s·y)
}

// add stores a step. If the history is full, it replaces the oldest one.
func (h *history) add(from, to, fromGradient, toGradient []float64) {
	if len(h.steps) == pastSteps {
		h.steps = slices.Delete(h.steps, 0, 1)
	}
	p := pair{s: make([]float64, len(to)), y: make([]float64, len(to))}
	for i := range to {
		p.s[i], p.y[i] = to[i]-from[i], toGradient[i]-fromGradient[i]
	}
	curvature := dot(p.s, p.y)
	guess := slices.Clone(p.y)
	h.precondition(guess)
	square := dot(p.y, guess)
	if !(curvature > 0 && square > 0) {
		return // only rounding
	}
	p.rho = 1 / curvature
	h.scale = curvature / square
	h.steps = append(h.steps, p)
}

// direction writes the direction of the next step: −H⁻¹·gradient, with H estimated from
// the history.
func (h *history) direction(dst, gradient []float64) {
	for i, v := range gradient {
		dst[i] = -v
	}
	alpha := make([]float64, len(h.steps))
	for i := len(h.steps) - 1; i >= 0; i-- {
		p := h.steps[i]
		alpha[i] = p.rho * dot(p.s, dst)
		add(dst, -alpha[i], p.y)
	}
	h.precondition(dst)
	for i := range dst {
		dst[i] *= h.scale
	}
	for i, p := range h.steps {
		add(dst, alpha[i]-float64(p.rho*dot(p.y, dst)), p.s)
	}
}

func dot(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}

func add(dst []float64, factor float64, x []float64) {
	for i, v := range x {
		dst[i] += float64(factor * v)
	}
}

// maxPreconditioned is the largest width of features with a preconditioner. Its time
// grows as the cube of the width; at this width it is some seconds.
const maxPreconditioned = 4096

// leastVariance is added to the variance of standardised features in every direction,
// so directions with hardly any variance do no harm.
const leastVariance = 1e-5

// A preconditioner multiplies by the inverse of a covariance matrix C = LLᵀ.
type preconditioner struct {
	d       int
	inverse []float32 // [d, d]: L⁻¹
	half    []float32 // L⁻¹·v for some vectors v
	whole   []float32
}

// newPreconditioner returns the preconditioner of standardised features [n, d], with ridge
// added to their variances.
func newPreconditioner(x []float32, n, d int, ridge float64) *preconditioner {
	c := covariance(x, n, d)
	for j := range d {
		c[j*d+j] += leastVariance + ridge
	}
	inverse := make([]float64, d*d)
	invertFactor(c, inverse, make([]float64, d*d/2), d, d)
	w := &preconditioner{d: d, inverse: make([]float32, d*d)}
	selection.Convert(w.inverse, inverse)
	return w
}

// apply multiplies count vectors of d, one after the other, by C⁻¹, or by 1 if w is nil.
func (w *preconditioner) apply(v []float64, count int) {
	if w == nil {
		return
	}
	if w.half == nil {
		w.half, w.whole = make([]float32, len(v)), make([]float32, len(v))
	}
	// Scaled to size 1, so no gradient is too small for float32.
	size := floats.Norm(v, math.Inf(1))
	if size == 0 {
		return
	}
	for i, x := range v {
		w.whole[i] = float32(x / size)
	}
	d := w.d
	blas.Gemm(false, true, count, d, d, 1, w.whole, d, w.inverse, d, 0, w.half, d)
	blas.Gemm(false, false, count, d, d, 1, w.half, d, w.inverse, d, 0, w.whole, d)
	for i, x := range w.whole {
		v[i] = float64(x) * size
	}
}

// covariance returns XᵀX/n of X [n, d], only its lower triangle.
func covariance(x []float32, n, d int) []float64 {
	const chunk, strip = 4096, 512 // rows, columns
	c := make([]float64, d*d)
	product := make([]float32, d*min(d, strip))
	for lo := 0; lo < n; lo += chunk {
		rows := min(chunk, n-lo)
		for j := 0; j < d; j += strip {
			height, width := d-j, min(strip, d-j)
			part := x[lo*d+j:]
			blas.Gemm(true, false, height, width, rows, 1, part, d, part, d, 0, product, width)
			for r := range height {
				row := c[(j+r)*d+j:]
				for i, v := range product[r*width : (r+1)*width] {
					row[i] += float64(v)
				}
			}
		}
	}
	for i := range c {
		c[i] /= float64(n)
	}
	return c
}

// invertFactor writes L⁻¹ to the lower triangle of inverse, where LLᵀ is the
// positive definite matrix [n, n] whose lower triangle a holds; a is overwritten.
// Both have rows stride apart; work has room for n²/2. A pivot that rounding has
// brought below leastVariance is replaced by it.
//
// With A in quarters, L21 = A21·L11⁻ᵀ, L22 is the factor of A22 − L21·L21ᵀ, and
// the lower left quarter of L⁻¹ is −L22⁻¹·L21·L11⁻¹.
func invertFactor(a, inverse, work []float64, n, stride int) {
	const small = 48
	if n <= small {
		invertSmallFactor(a, inverse, n, stride)
		return
	}
	top := n / 2
	rest := n - top
	a21, a22 := a[top*stride:], a[top*stride+top:]
	i21, i22 := inverse[top*stride:], inverse[top*stride+top:]
	invertFactor(a, inverse, work, top, stride)
	l21 := work[:rest*top]
	blas.Gemm(false, true, rest, top, top, 1, a21, stride, inverse, stride, 0, l21, top)
	blas.Gemm(false, true, rest, rest, top, -1, l21, top, l21, top, 1, a22, stride)
	blas.Gemm(false, false, rest, top, top, 1, l21, top, inverse, stride, 0, a21, stride)
	invertFactor(a22, i22, work, rest, stride)
	blas.Gemm(false, false, rest, top, rest, -1, i22, stride, a21, stride, 0, i21, stride)
}

// invertSmallFactor is invertFactor for few rows.
func invertSmallFactor(a, inverse []float64, n, stride int) {
	for i := range n {
		for j := range i + 1 {
			s := a[i*stride+j] - dot(a[i*stride:i*stride+j], a[j*stride:])
			if i == j {
				a[i*stride+i] = math.Sqrt(max(s, leastVariance))
			} else {
				a[i*stride+j] = s / a[j*stride+j]
			}
		}
	}
	for j := range n {
		inverse[j*stride+j] = 1 / a[j*stride+j]
		for i := j + 1; i < n; i++ {
			var s float64
			for k := j; k < i; k++ {
				s += float64(a[i*stride+k] * inverse[k*stride+j])
			}
			inverse[i*stride+j] = -s / a[i*stride+i]
		}
	}
}
