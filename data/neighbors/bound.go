package neighbors

import (
	"math"

	"cne/data"
	"cne/internal/parallel"
)

// A frame is the coordinate system in which base points are searched: moved to
// their mean and scaled by a power of two such that no coordinate exceeds 1.
type frame struct {
	n, d    int
	mean    []float64 // of the points
	scale   float64   // z = scale·(x − mean)
	norm    []float64 // ‖z‖ per point
	maxNorm float64
	bound   errorBound // of the s that are computed from z
}

// newFrame returns the frame of points, without their norms.
func newFrame(m *data.Matrix, bound errorBound) frame {
	n, d := m.N, m.D
	f := frame{n: n, d: d, norm: make([]float64, n), bound: bound}
	blocks := parallel.Pieces(n, blockSize)
	sums := make([]float64, blocks*d)
	parallel.For(n, blockSize, func(b, lo, hi int) {
		sum := sums[b*d : (b+1)*d]
		for i := lo; i < hi; i++ {
			for l, v := range m.Row(i) {
				sum[l] += float64(v)
			}
		}
	})
	f.mean = sums[:d:d]
	for b := 1; b < blocks; b++ {
		for l, s := range sums[b*d : (b+1)*d] {
			f.mean[l] += s
		}
	}
	for l := range f.mean {
		f.mean[l] /= float64(n)
	}

	largest := make([]float64, blocks)
	parallel.For(n, blockSize, func(b, lo, hi int) {
		for i := lo; i < hi; i++ {
			for l, v := range m.Row(i) {
				largest[b] = max(largest[b], math.Abs(float64(v)-f.mean[l]))
			}
		}
	})
	width := 0.0
	for _, v := range largest {
		width = max(width, v)
	}
	_, exp := math.Frexp(width)
	f.scale = math.Ldexp(1, -exp)
	return f
}

// move moves and scales coordinate l of a point.
func (f *frame) move(v float32, l int) float32 {
	return float32((float64(v) - f.mean[l]) * f.scale)
}

// setMaxNorm sets the largest of the norms.
func (f *frame) setMaxNorm() {
	for _, a := range f.norm {
		f.maxNorm = max(f.maxNorm, a)
	}
}

// proves reports whether all base points with s from the threshold on, whose errors are
// within a bound, are certainly farther from a query of norm a than the square root of
// dist2.
func (f *frame) proves(bound errorBound, threshold float32, a, dist2 float64) bool {
	return bound.certain(float64(threshold), f.scale*math.Sqrt(dist2), a, f.maxNorm)
}

// An errorBound bounds the difference between the computed s and the distances
// they stand for. With u = 2⁻²⁴, the rounding of float32, K = D+2 the length
// of the inner products and a = ‖z‖ of the rounded z:
//
//   - An inner product of K terms is off by at most γ = Ku/(1−Ku) times the
//     sum of its terms' magnitudes, in whatever order it is added up and
//     whether or not multiplications and additions are fused (Higham,
//     Accuracy and Stability of Numerical Algorithms, section 3.1). Here that
//     sum is at most hᵢ+hⱼ+aᵢaⱼ = (aᵢ+aⱼ)²/2. The rounding of h adds u(hᵢ+hⱼ).
//     Together: less than γ(aᵢ+aⱼ)²/2, with K+4 for K.
//   - The z are themselves rounded, which moves each point by at most ua, and
//     hence changes a distance by at most u(aᵢ+aⱼ).
//   - Underflow adds at most 2⁻¹²⁶ per term to each, or to a coordinate.
//
// In few dimensions a device computes s from differences instead
// (newDifferenceBound): the difference of two coordinates is off by at most a
// share u of itself, its square by 3u, and the sum by D·u more. So s is off by
// γs at most, with D+4 for K, however far the points are from the mean.
type errorBound struct {
	gamma, relative, shift, product, distance float64
}

func newErrorBound(d int) errorBound {
	const u = 0x1p-24
	terms := float64(d + 2)
	e := errorBound{
		gamma: math.Inf(1),
		// The norms a are float64 sums and the bounds below are computed in
		// float64: a thousandth more covers their own rounding many times.
		shift:    1.001 * u,
		product:  terms * 0x1p-124,
		distance: terms * 0x1p-124,
	}
	if ku := (terms + 4) * u; ku < 0.5 {
		e.gamma = 1.001 * ku / (1 - ku)
	}
	return e
}

// newRoundedBound is newErrorBound for points on a device whose coordinates were rounded to
// TF32's eleven bits of mantissa before norms and products were computed of them, and were
// thereby moved by at most a share change of their norm.
//
// Of such numbers the products of tensor cores are exact, whether these cut off the digits
// that are too many or round them, and the error of s is again one of sums, but of sums that
// are cut off, too: a step adds a few products, of which each is shifted to the exponent of
// the largest and loses what is then below the last bit (Fasi, Higham, Mikaitis and Pranesh,
// Numerical behavior of NVIDIA tensor cores, 2021). A step of m products with those before
// thus errs by at most 2(m+2)u of the sum of all magnitudes, and K/m steps by 2(1+2/m)Ku,
// with an m of at least 4. That sum is at most aᵢaⱼ ≤ (aᵢ+aⱼ)²/4, half of what newErrorBound
// takes, so that twice its γ would do; four times allow for m = 1.
func newRoundedBound(d int, change float64) errorBound {
	e := newErrorBound(d)
	e.shift += 1.001 * change
	if e.gamma = 4 * e.gamma * (1 + change) * (1 + change); e.gamma > 1 {
		e.gamma = math.Inf(1)
	}
	e.product, e.distance = 2*e.product, 2*e.distance // rounding may move what is next to nothing, too
	return e
}

// roundTF32 returns the number with ten digits after the point that is nearest to v, as the
// kernel neighbors_round does.
func roundTF32(v float32) float32 {
	return math.Float32frombits((math.Float32bits(v) + 0x1000) &^ 0x1fff)
}

// newDifferenceBound is newErrorBound for sums of squared differences.
func newDifferenceBound(d int) errorBound {
	e := newErrorBound(d)
	e.gamma, e.relative = 0, e.gamma
	return e
}

// certain reports whether every point j whose s with a point of norm a is at
// least this one lies farther from that point than r (both on the scale of z).
// No point has a norm above maxNorm.
//
// From s follows ‖xᵢ−xⱼ‖ ≥ √(2s − γ(a+b)²) − u(a+b) less the effects of
// underflow, which is useless for a point of large norm b. But such a point
// is far anyway: ‖xᵢ−xⱼ‖ ≥ b − a − u(a+b). So the first has to be used only
// up to the b from which the second exceeds r.
func (e errorBound) certain(s, r, a, maxNorm float64) bool {
	r = r*(1+1e-9) + e.distance // the float64 distance that r is from is rounded, too
	b := min(maxNorm, (1+1e-9)*((1+e.shift)*a+r)/(1-e.shift))
	w := a + b
	return math.Sqrt(max(0, 2*(s-e.product)*(1-e.relative)-e.gamma*w*w))-e.shift*w > r
}

// between returns, for two points whose norms add up to at most w, an s below
// which they are certainly nearer to each other than r, and one from which on
// they are certainly not. R is a distance that was itself computed in float64.
// This is certain, solved for s.
func (e errorBound) between(r, w float64) (lo, hi float32) {
	const ulps, underflow = 0x1p-22, 0x1p-126 // more than the limits' own rounding
	margin := e.gamma*w*w/2 + e.product + underflow
	shift := e.shift*w + e.distance
	least, most := max(0, r*(1-1e-9)-shift), r*(1+1e-9)+shift
	below, above := least*least/2-margin, most*most/2+margin
	return float32(below - ulps*math.Abs(below)), float32(above + ulps*above)
}
