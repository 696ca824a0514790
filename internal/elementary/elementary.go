// Package elementary computes elementary functions with the same bits on every processor.
// Package math uses assembly on some architectures; on others the compiler fuses products
// with sums, which changes the rounding. Here every product that is added is either converted
// explicitly, which prevents fusing, or computed by math.FMA, which rounds once everywhere. So
// is a product that is doubled, since the compiler adds it to itself. Errors are below one unit
// in the last place, of Expm1 below 1.3 and of Pow below 1.7. Special values are as in package
// math.
//
// The argument reductions follow FreeBSD's msun and Tang (1989, 1990). The polynomials
// interpolate the functions at Chebyshev nodes.
package elementary

import "math"

const (
	// ln2Hi has few enough bits that its products with exponents are exact.
	ln2Hi = 0x1.62e42fefap-1
	ln2Lo = 1.6465949582897082e-12
	// log2E + log2ELo is 1/ln 2 to twice the precision, and pi + piLo is π.
	log2E   = 0x1.71547652b82fep+0
	log2ELo = 2.0355273740931033e-17
	pi      = 0x1.921fb54442d18p+1
	piLo    = 1.2246467991473532e-16

	// shift is added to a number and subtracted again to round it to an integer.
	shift = 0x1.8p52
	// tiny is the size below which log(1+x) and e^x − 1 round to x.
	tiny = 0x1p-54
	// expMost and expLeast bound the numbers whose exponentials are neither infinite nor 0.
	expMost, expLeast = 710, -746
	// rootHalf holds the bits of √½.
	rootHalf = 0x3fe6a09e667f3bcd
)

// step is a step of Horner's rule, p·z + c, rounded twice.
func step(p, z, c float64) float64 { return float64(p*z) + c }

// Exp returns e^x.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > expMost:
		return math.Inf(1)
	case x < expLeast:
		return 0
	}
	return exp(x, 0)
}

// exp returns e^(x+low) for a small low and an x between expLeast and expMost.
func exp(x, low float64) float64 {
	k, r, q := expParts(x, low)
	sum := 1 + r
	y := sum + (1 - sum + r + q)
	if k > 1023 {
		y *= 2
		k--
	}
	if k < -1021 {
		return y * power2(k+54) * 0x1p-54
	}
	return y * power2(k)
}

// expParts returns k, r and q with e^(x+low) = 2^k·(1 + r + q), where |r| is hardly larger
// than ln(2)/2 and q is small against r.
func expParts(x, low float64) (k int, r, q float64) {
	n := float64(x*log2E) + shift - shift
	exact := x - float64(n*ln2Hi)
	low -= float64(n * ln2Lo)
	r = exact + low
	low += exact - r
	z := r * r
	z2 := z * z
	// (e^r − 1 − r)/r²
	p0 := step(0.1666666666666667, r, 0.5) + float64(step(0.008333333333326141, r, 0.04166666666666667)*z)
	p1 := step(0.00019841269874800683, r, 0.0013888888888883752) + float64(step(2.75572554255029e-06, r, 2.4801587325533502e-05)*z)
	p2 := step(2.5105206475334834e-08, r, 2.7557273661174726e-07) + float64(2.091467944897855e-09*z)
	return int(n), r, step(step(step(p2, z2, p1), z2, p0), z, low)
}

// power2 returns 2^k for −1022 ≤ k ≤ 1023.
func power2(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// Expm1 returns e^x − 1, precise for small x.
func Expm1(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.Abs(x) < tiny:
		return x
	case x > 40:
		return Exp(x) // 1 is less than half an ulp of e^x
	case x < -40:
		return -1
	}
	k, r, q := expParts(x, 0)
	t := power2(k)
	less := t - 1
	sum := less + float64(t*r)
	return sum + (less - sum + float64(t*r) + (t - less - 1) + float64(t*q))
}

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return logSpecial(x)
	}
	m, k := split(x)
	return logSum(float64(k), m-1, 0)
}

// logSpecial returns log x for an x that is not both positive and finite.
func logSpecial(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	}
	return x
}

// Log1p returns log(1+x), precise for small x.
func Log1p(x float64) float64 {
	switch {
	case !(x > -1) || x > math.MaxFloat64:
		return logSpecial(1 + x)
	case math.Abs(x) < tiny:
		return x
	case -0.29 < x && x < 0.41:
		return logSum(0, x, 0)
	}
	sum := 1 + x
	rounded := x - (sum - 1)
	if x > 1 {
		rounded = 1 - (sum - x)
	}
	m, k := split(sum)
	return logSum(float64(k), m-1, rounded/sum)
}

// split returns m and k with x = 2^k·m and √½ ≤ m < √2, for a positive finite x.
func split(x float64) (m float64, k int) {
	if x < 0x1p-1022 {
		x *= 0x1p54
		k = -54
	}
	b := math.Float64bits(x)
	e := int64(b-rootHalf) >> 52
	return math.Float64frombits(b - uint64(e)<<52), k + int(e)
}

// logSum returns k·ln 2 + log(1+f) + c, where 1+f is between √½ and √2 and c is small.
func logSum(k, f, c float64) float64 {
	s := f / (2 + f)
	z := float64(s * s)
	z2 := z * z
	// (atanh(s)/s − 1)/s²
	p0 := step(0.2000000000000044, z, 0.3333333333333333) + float64(step(0.1111111119585696, z, 0.14285714285401807)*z2)
	p1 := step(0.07693119851409672, z, 0.0909089782006641) + float64(step(0.06543313074575988, z, 0.06634386569265721)*z2)
	half := float64(0.5 * f * f)
	// log(1+f) = f − f²/2 + s·(f²/2 + 2·z·p)
	tail := float64(s*(half+float64(2*z*step(p1, z2*z2, p0)))) + (float64(k*ln2Lo) + c)
	return float64(k*ln2Hi) - (half - tail - f)
}

// Log2 returns the binary logarithm of x, which is exact for powers of 2.
func Log2(x float64) float64 {
	if !(x > 0) || x > math.MaxFloat64 {
		return logSpecial(x)
	}
	m, k := split(x)
	hi, lo := logTwice(m, 0)
	p := float64(hi * log2E)
	low := math.FMA(hi, log2E, -p) + (float64(hi*log2ELo) + float64(lo*log2E))
	sum := float64(k) + p
	return sum + (float64(k) - sum + p + low)
}

// logTwice returns k·ln 2 + log m, for m between √½ and √2, as the sum of two numbers, which
// together have about 64 bits.
func logTwice(m, k float64) (hi, lo float64) {
	// With s = (m−1)/(m+1) it is k·ln 2 + 2·(s + s³/3 + s⁵·p).
	f, d := m-1, m+1
	s := f / d
	sLo := (math.FMA(-s, d, f) - float64(s*(m-(d-1)))) / d
	z := s * s
	z2 := z * z
	cube := float64(s * z)
	cubeLo := math.FMA(s, z, -cube) + float64(s*math.FMA(s, s, -z)) + float64(3*z*sLo)
	third := cube / 3
	thirdLo := (math.FMA(-3, third, cube) + cubeLo) / 3
	p0 := step(0.14285714285714682, z, 0.2) + float64(step(0.09090909167657202, z, 0.11111111110828116)*z2)
	p1 := step(0.06667402119114793, z, 0.0769229748544769) + float64(step(0.058615255146430366, z, 0.058531242704043786)*z2)
	tail := float64(cube * z * step(p1, z2*z2, p0))

	high := float64(k * ln2Hi)
	sum := high + (s + s)
	all := sum + (third + third)
	low := sLo + thirdLo + tail
	low += low + float64(k*ln2Lo) + (high - sum + (s + s)) + (sum - all + (third + third))
	hi = all + low
	return hi, all - hi + low
}

// Pow returns x^y.
func Pow(x, y float64) float64 {
	if y == 0 || x == 1 {
		return 1
	}
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN()
	}
	size, sign := math.Abs(x), 1.
	if whole := y == math.Trunc(y); math.Signbit(x) && whole && math.Abs(math.Mod(y, 2)) == 1 {
		sign = -1
	} else if x < 0 && !whole && x >= -math.MaxFloat64 {
		return math.NaN()
	}
	switch {
	case size == 1:
		return sign
	case size == 0 || size > math.MaxFloat64 || math.IsInf(y, 0):
		if (size > 1) == (y > 0) {
			return sign * math.Inf(1)
		}
		return sign * 0
	}
	m, k := split(size)
	hi, lo := logTwice(m, float64(k))
	p := float64(y * hi)
	switch {
	case p > expMost:
		return sign * math.Inf(1)
	case p < expLeast:
		return sign * 0
	}
	return sign * exp(p, math.FMA(y, hi, -p)+float64(y*lo))
}

// CosPi returns cos(π·x).
func CosPi(x float64) float64 {
	x = math.Abs(x)
	if x > 0x1p50 {
		x = math.Mod(x, 2) // NaN if infinite
	}
	n := x + x + shift - shift
	r := x - float64(n/2)
	a := float64(r * pi)
	low := math.FMA(r, pi, -a) + float64(r*piLo)
	switch int64(n) & 3 {
	case 1:
		return 0 - sin(a, low)
	case 2:
		return -cos(a, low)
	case 3:
		return sin(a, low)
	}
	return cos(a, low)
}

// cos returns the cosine of a+low for |a| ≤ π/4.
func cos(a, low float64) float64 {
	z := a * a
	p := step(step(-1.1382632341807706e-11, z, 2.0876146267241254e-09), z, -2.755731727172422e-07)
	p = step(step(step(p, z, 2.4801587298765676e-05), z, -0.0013888888888887398), z, 0.041666666666666664)
	half := float64(z / 2)
	less := 1 - half
	return less + (1 - less - half + (float64(z*z*p) - float64(a*low)))
}

// sin returns the sine of a+low for |a| ≤ π/4.
func sin(a, low float64) float64 {
	z := a * a
	p := step(step(1.591812916105078e-10, z, -2.505113184314626e-08), z, 2.755731610254353e-06)
	p = step(step(step(p, z, -0.00019841269836758557), z, 0.008333333333330948), z, -0.16666666666666666)
	return a + (float64(a*z*p) + float64(low*(1-float64(z/2))))
}
