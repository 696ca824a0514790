package simd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestFMA compares float32 results with exact ones, mostly where rounding twice differs
// from rounding once.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() float32 {
		for {
			bits := r.Uint32()
			if r.IntN(2) == 0 {
				bits &^= 1<<uint(r.IntN(24)) - 1 // few digits: sums often lie halfway
			}
			if v := math.Float32frombits(bits); !math.IsInf(float64(v), 0) && v == v {
				return v
			}
		}
	}
	for range 300_000 {
		x, y := number(), number()
		p := float64(x) * float64(y)
		z := number()
		switch r.IntN(3) {
		case 0: // of nearly the product's size
			z = float32(p * (1 + math.Ldexp(r.Float64(), -r.IntN(30))))
		case 1: // about half a unit of z
			z = float32(math.Ldexp(p, 24+r.IntN(3)))
		}
		if math.IsInf(float64(z), 0) {
			continue
		}
		exact := new(big.Float).SetPrec(1200).SetFloat64(p)
		want, _ := exact.Add(exact, big.NewFloat(float64(z))).Float32()
		if got := FMA(x, y, z); got != want {
			t.Fatalf("FMA(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
	}
	one := 1 + float32(r.Float64()*0) // not a constant, which the compiler would multiply itself
	tiny, minusTiny, inf := 1e-30*one, -1e-30*one, float32(math.Inf(1))*one
	if got := FMA(minusTiny, tiny, 0); got != 0 || !math.Signbit(float64(got)) {
		t.Errorf("-1e-60 becomes %g, want -0", got)
	}
	if got := FMA(0, minusTiny, 0); math.Signbit(float64(got)) {
		t.Errorf("-0 + 0 is %g, want 0", got)
	}
	if got := FMA(inf, tiny, -1); got != inf {
		t.Errorf("infinity times 1e-30 is %g", got)
	}
	if got := FMA(inf, 0, 1); got == got {
		t.Errorf("infinity times 0 is %g, want NaN", got)
	}
	x := float64(one) + 0x1p-30
	if FMA(x, x, -1-0x1p-29) != 0x1p-60 {
		t.Error("FMA of float64 rounds the product")
	}
}
