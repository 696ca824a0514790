#!/usr/bin/env bash
# github.com/apache/arrow-go v18.8.0: a small half-precision number is read as one 10^34 times smaller, and
# written as 0; other numbers are rounded towards 0.
#
# One would guess: the bits of a float16 below 2^-14 = 6.1e-5 stand for m·2^-24 (subnormal numbers, IEEE 754);
# making a float16 of a float32 gives the nearest one, as NumPy, C and hardware do it.
# What happens: Float32() copies a subnormal's bits into a float32 with exponent 0, a subnormal of the other
# format: 1e-5, written by another program, is read as 1.9e-39. All 2046 of them are 2^-112 of their value. New()
# makes 0 of everything below 2^-14, and else cuts bits off: 1.9999 is 1.999 where 2 is nine times as close, 2051
# is 2050 where the even one of two is 2052, and the mean of many numbers comes out too small. Printing, JSON
# and the arithmetic of these numbers use both; there is no error. Gradients, probabilities and weights are often
# that small. The values are compared with m·2^e, computed exactly.
# Source: github.com/apache/arrow-go v18.8.0, arrow/float16/float16.go (New, Num.Float32).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// value returns what the bits of a finite float16 stand for.
func value(bits int) float64 {
	sign, exponent, fraction := float64(1-bits>>15*2), bits>>10&31, float64(bits&1023)
	if exponent == 0 {
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// nearest returns the float16 that is closest to f, the even one of two.
func nearest(f float32) float64 {
	best := 0
	for bits := range 0x7c00 {
		d, least := math.Abs(value(bits)-float64(f)), math.Abs(value(best)-float64(f))
		if d < least || d == least && bits%2 == 0 {
			best = bits
		}
	}
	return value(best)
}

func main() {
	normal, subnormal := 0, 0
	for bits := range 1 << 16 {
		right := value(bits)
		if bits>>10&31 == 31 || float64(float16.FromBits(uint16(bits)).Float32()) == right {
			continue
		}
		if bits>>10&31 != 0 {
			normal++
		} else {
			subnormal++
		}
	}
	fmt.Println("finite float16s with another value: normal", normal, "of 61440, subnormal", subnormal, "of 2046")
	// A column as a reader makes it, of the bits of 1e-5, 6e-5 and 1.
	column := []byte{0xa8, 0x00, 0xef, 0x03, 0x00, 0x3c}
	a := array.NewFloat16Data(array.NewData(arrow.FixedWidthTypes.Float16, 3, []*memory.Buffer{nil, memory.NewBufferBytes(column)}, nil, 0, 0))
	fmt.Println("a column reads as     ", a)
	fmt.Printf("right:                 [%.4g %.4g %.4g]\n", value(0x00a8), value(0x03ef), value(0x3c00))
	parsed, _, err := array.FromJSON(memory.DefaultAllocator, arrow.FixedWidthTypes.Float16, strings.NewReader("[1e-5, 6e-5, 1.9999, 2051, 0.3]"))
	if err != nil {
		panic(err)
	}
	fmt.Println("1e-5 6e-5 1.9999 2051 0.3 become", parsed)
	fmt.Printf("right:                          [%.4g %.4g %.6g %.6g %.6g]\n", nearest(1e-5), nearest(6e-5), nearest(1.9999), nearest(2051), nearest(0.3))
	product := float16.New(0.005).Mul(float16.New(0.01)).Float32()
	fmt.Printf("0.005 times 0.01 is %g (right: %.4g)\n", product, nearest(5e-5))
	var mean, right float64
	for i := range 1000 {
		mean += float64(float16.New(1+float32(i)/1000).Float32()) / 1000
		right += nearest(1+float32(i)/1000) / 1000
	}
	fmt.Printf("the mean of 1, 1.001, ... 1.999 is %.5f (right: %.5f)\n", mean, right)
	if normal != 0 || subnormal != 2046 || product != 0 || right-mean < 0.0002 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/apache/arrow-go/v18@v18.8.0
go mod tidy >/dev/null 2>&1
echo "github.com/apache/arrow-go $(go list -m -f '{{.Version}}' github.com/apache/arrow-go/v18), $(go version)"
go run .
