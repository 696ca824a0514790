package elementary_test

import (
	"hash/fnv"
	"math"
	"math/big"
	"testing"

	"cne/internal/elementary"
	"cne/internal/rng"
)

// A function is one of the package with a reference, the domain it is tested on, and the
// hash of its results there.
type function struct {
	name      string
	f, std    func(float64) float64
	reference func(x *big.Float) *big.Float
	domain    func(s *rng.Stream) float64
	hash      uint64  // of results
	limit     float64 // of the error, in units in the last place
}

const precision = 240

func number(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func add(x, y *big.Float) *big.Float { return new(big.Float).Add(x, y) }
func sub(x, y *big.Float) *big.Float { return new(big.Float).Sub(x, y) }
func mul(x, y *big.Float) *big.Float { return new(big.Float).Mul(x, y) }
func quo(x, y *big.Float) *big.Float { return new(big.Float).Quo(x, y) }

// series returns the sum of x^n/n! for n = from, from+by, …, with alternating signs if by is 2.
func series(x *big.Float, from, by int) *big.Float {
	sum, term := number(0), number(1)
	for n := 0; n < 120; n++ {
		if n > 0 {
			term = quo(mul(term, x), number(float64(n)))
		}
		if n >= from && (n-from)%by == 0 {
			if by == 2 && (n-from)%4 == 2 {
				sum = sub(sum, term)
			} else {
				sum = add(sum, term)
			}
			if sum.MantExp(nil)-term.MantExp(nil) > precision+16 { // the rest changes no bit
				break
			}
		}
	}
	return sum
}

// exponential returns e^x, as the 1024th power of e^(x/1024).
func exponential(x *big.Float) *big.Float {
	y := series(quo(x, number(1024)), 0, 1)
	for range 10 {
		y = mul(y, y)
	}
	return y
}

// logarithm returns log x, by Newton's steps.
func logarithm(x *big.Float) *big.Float {
	f, _ := x.Float64()
	y := number(math.Log(f))
	for range 3 {
		y = add(y, sub(quo(x, exponential(y)), number(1)))
	}
	return y
}

var bigPi = func() *big.Float { // 16·atan(1/5) − 4·atan(1/239), by Machin
	atan := func(inverse float64) *big.Float {
		power, square, sum := quo(number(1), number(inverse)), number(inverse*inverse), number(0)
		for n := 0; n < 200; n++ {
			term := quo(power, number(float64(2*n+1)))
			if n%2 == 1 {
				term = term.Neg(term)
			}
			sum, power = add(sum, term), quo(power, square)
		}
		return sum
	}
	return sub(mul(number(16), atan(5)), mul(number(4), atan(239)))
}()

func uniform(lo, hi float64) func(s *rng.Stream) float64 {
	return func(s *rng.Stream) float64 { return lo + float64((hi-lo)*s.Float64()) }
}

// near returns a draw from both sides of a number, of any distance from it down to 2^-40 of it.
func near(x float64) func(s *rng.Stream) float64 {
	return func(s *rng.Stream) float64 {
		return x + float64(math.Ldexp(s.Float64()-0.5, -s.IntN(40))*max(1, x))
	}
}

// positive returns any positive finite float64.
func positive(s *rng.Stream) float64 {
	return math.Float64frombits(1 + s.Uint64()%math.Float64bits(math.MaxFloat64))
}

func functions() []function {
	expm1 := func(x *big.Float) *big.Float { return sub(exponential(x), number(1)) }
	log1p := func(x *big.Float) *big.Float { return logarithm(add(x, number(1))) }
	log2 := func(x *big.Float) *big.Float { return quo(logarithm(x), logarithm(number(2))) }
	cosPi := func(x *big.Float) *big.Float { return series(mul(x, bigPi), 0, 2) }
	cosPiStd := func(x float64) float64 { return math.Cos(math.Pi * x) }
	pow := func(name string, y float64, domain func(s *rng.Stream) float64, hash uint64) function {
		return function{
			name: name, f: func(x float64) float64 { return elementary.Pow(x, y) }, std: func(x float64) float64 { return math.Pow(x, y) },
			reference: func(x *big.Float) *big.Float { return exponential(mul(number(y), logarithm(x))) },
			domain:    domain, hash: hash, limit: 1.7,
		}
	}
	return []function{
		{"Exp", elementary.Exp, math.Exp, exponential, uniform(-745, 709.78), 0x8348901ef4ac3369, 0.9},
		{"Exp near 0", elementary.Exp, math.Exp, exponential, near(0), 0xa41b2156afc945fb, 0.9},
		{"Expm1", elementary.Expm1, math.Expm1, expm1, uniform(-45, 45), 0x7e71f87fe3b6a9ee, 1.3},
		{"Expm1 near 0", elementary.Expm1, math.Expm1, expm1, near(0), 0xa4132600789dc970, 1.3},
		{"Log", elementary.Log, math.Log, logarithm, positive, 0xc61581e608cbc41, 0.9},
		{"Log near 1", elementary.Log, math.Log, logarithm, near(1), 0x16451150bd3e6d22, 0.9},
		{"Log1p", elementary.Log1p, math.Log1p, log1p, uniform(-0.9999, 1000), 0x33d6ca75261a81e2, 0.9},
		{"Log1p near 0", elementary.Log1p, math.Log1p, log1p, near(0), 0x7d21cb55606aab8, 0.9},
		{"Log2", elementary.Log2, math.Log2, log2, positive, 0x15eecce758792798, 0.9},
		{"Log2 near 1", elementary.Log2, math.Log2, log2, near(1), 0xf5a6749bcb4b7992, 0.9},
		{"CosPi", elementary.CosPi, cosPiStd, cosPi, uniform(-2, 2), 0x2f156e848ca2ed67, 0.9},
		{"CosPi near 1/2", elementary.CosPi, cosPiStd, cosPi, near(0.5), 0x535685f4fc005676, 0.9},
		pow("Pow of -0.7", -0.7, positive, 0xd557a553ff119286),
		pow("Pow of 1e6 near 1", 1e6, func(s *rng.Stream) float64 { return 1 - 1e-5*s.Float64() }, 0x38d310cffe953005),
		pow("Pow of 200", 200, uniform(0.03, 30), 0x6ba1ef94385e3468),
		pow("Pow of -1990", -1990, uniform(1.39, 1.4142), 0xd09c3e4773c1a761),
		{"Expm1 near log(2)/2", elementary.Expm1, math.Expm1, expm1, uniform(0.3465, 0.3525), 0xd92aa2d7a0416fec, 1.3},
	}
}

// ulp returns the distance from a number to the next.
func ulp(x float64) *big.Float {
	x = math.Abs(x)
	if x == math.MaxFloat64 {
		return sub(number(x), number(math.Nextafter(x, 0)))
	}
	return sub(number(math.Nextafter(x, math.Inf(1))), number(x))
}

func TestErrors(t *testing.T) {
	for i, c := range functions() {
		s := rng.New(1, rng.Sample, uint64(i))
		worst, at := 0., 0.
		for range 500 {
			x := c.domain(&s)
			want := c.reference(number(x))
			nearest, _ := want.Float64()
			if got := c.f(x); got != nearest {
				if math.IsNaN(got) || math.IsInf(got, 0) {
					t.Fatalf("%s(%x): %g, want %g", c.name, x, got, nearest)
				}
				e, _ := quo(sub(number(got), want), ulp(nearest)).Float64()
				if e = math.Abs(e); e > worst {
					worst, at = e, x
				}
			}
		}
		if worst > c.limit {
			t.Errorf("%s(%x) is off by %.3f units in the last place", c.name, at, worst)
		}
	}
}

// The bits are the same on every architecture: they are kept here.
func TestBits(t *testing.T) {
	for i, c := range functions() {
		s, hash := rng.New(2, rng.Sample, uint64(i)), fnv.New64a()
		for range 20000 {
			b := math.Float64bits(c.f(c.domain(&s)))
			hash.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24), byte(b >> 32), byte(b >> 40), byte(b >> 48), byte(b >> 56)})
		}
		if hash.Sum64() != c.hash {
			t.Errorf("%s: the hash of the results is %#x, want %#x", c.name, hash.Sum64(), c.hash)
		}
	}
	for _, c := range []struct{ got, want float64 }{
		{elementary.Exp(1), math.E}, {elementary.Exp(-10), 0x1.7cd79b5647c9bp-15}, {elementary.Expm1(0.3), 0x1.6641632306a56p-02},
		{elementary.Log(3), 0x1.193ea7aad030ap+00}, {elementary.Log(0.3), -0x1.34378fcbda721p+00}, {elementary.Log1p(-0.25), -0x1.269621134db92p-02},
		{elementary.Log2(10), 0x1.a934f0979a371p+01}, {elementary.CosPi(0.1), 0x1.e6f0e134454ffp-01}, {elementary.Pow(0.999, 12345), 0x1.22391fb94567ep-18},
	} {
		if c.got != c.want {
			t.Errorf("got %x, want %x", c.got, c.want)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, special := math.Inf(1), []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, 0x1p-1022, 1e-17, -1e-17,
		0x1p53, -0x1p53, 0x1p53 + 2, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	same := func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*math.Abs(b) // math.Pow is not precise
	}
	for _, c := range functions() {
		if c.name[:3] == "Cos" {
			continue // math.Cos rounds its argument π·x
		}
		for _, x := range special {
			if got, want := c.f(x), c.std(x); !same(got, want) {
				t.Errorf("%s(%g) = %g, want %g", c.name, x, got, want)
			}
		}
	}
	for _, x := range special {
		for _, y := range special {
			if got, want := elementary.Pow(x, y), math.Pow(x, y); !same(got, want) {
				t.Errorf("Pow(%g, %g) = %g, want %g", x, y, got, want)
			}
		}
	}
	for _, c := range []struct{ x, want float64 }{{0, 1}, {0.5, 0}, {1, -1}, {-1.5, 0}, {2, 1}, {-3, -1}, {0x1p53 - 1, -1}, {1e300, 1}, {-inf, math.NaN()}, {math.NaN(), math.NaN()}} {
		if got := elementary.CosPi(c.x); !same(got, c.want) {
			t.Errorf("CosPi(%g) = %g, want %g", c.x, got, c.want)
		}
	}
	// What has exact results has them.
	for _, c := range []struct{ got, want float64 }{
		{elementary.Exp(710), inf}, {elementary.Exp(-745), 5e-324}, {elementary.Exp(-746), 0}, {elementary.Exp(709.782712893384), math.MaxFloat64},
		{elementary.Log(5e-324), -744.4400719213812}, {elementary.Log2(1024), 10}, {elementary.Log2(5e-324), -1074}, {elementary.Pow(10, 22), 1e22}, {elementary.Pow(3, 20), 3486784401},
		{elementary.Pow(0.25, -1.5), 8}, {elementary.Pow(-2, 1023), -0x1p1023}, {elementary.Pow(2, -1074), 5e-324},
	} {
		if c.got != c.want && !(c.want == math.MaxFloat64 && c.got > 0.999*c.want) {
			t.Errorf("got %g, want %g", c.got, c.want)
		}
	}
}

var sink float64

func Benchmark(b *testing.B) {
	s := rng.New(1, rng.Sample)
	x := make([]float64, 1024)
	for i := range x {
		x[i] = 0.1 + 3*s.Float64()
	}
	for _, c := range functions() {
		for name, f := range map[string]func(float64) float64{"here": c.f, "math": c.std} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for i := range b.N {
					sink += f(x[i%len(x)])
				}
			})
		}
	}
}
