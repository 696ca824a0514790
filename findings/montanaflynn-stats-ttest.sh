#!/usr/bin/env bash
# github.com/montanaflynn/stats v0.14.0: TTest calls samples different because they are almost equal.
#
# One would guess: the closer two means are, the closer the p-value is to 1; where they are equal it is 1.
# What happens: for a t below about 0.1 the p-value falls with t, towards 0: two samples of ten values whose
# means are 0.0001 standard deviations apart have p = 0.02 (right: 0.9998), 10^-6 apart p = 0.0002, and with equal
# means p = 1. So samples that differ in the sixth decimal are reported as significantly different.
# The incomplete beta function of a number close to 1 is computed by a continued fraction that converges
# slowly there, and that ends after 200 terms as if it had converged; the mirrored function, which converges
# at once, is not used. A test of one sample against a mean is affected as well.
# Here the p-value is compared with the finite sum that Student's distribution has for an even number of
# degrees of freedom (Abramowitz and Stegun, 26.7.4).
# Source: github.com/montanaflynn/stats v0.14.0, ttest.go (regIncBeta).
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

	"github.com/montanaflynn/stats"
)

// student is the two-sided p-value of t for an even number of degrees of freedom.
func student(t float64, freedom int) float64 {
	angle := math.Atan(math.Abs(t) / math.Sqrt(float64(freedom)))
	sum, term := 0., 1.
	for k := 0; k <= freedom-2; k += 2 {
		sum += term
		term *= float64(k+1) / float64(k+2) * math.Cos(angle) * math.Cos(angle)
	}
	return 1 - math.Sin(angle)*sum
}

// sample returns n values with mean m and variance 1.
func sample(n int, m float64) []float64 {
	x := make([]float64, n)
	d := math.Sqrt(float64(n-1) / float64(n))
	for i := range x {
		x[i] = m + d*float64(i%2*2-1)
	}
	return x
}

func main() {
	p := map[float64]float64{}
	for _, n := range []int{10, 1000, 100000} {
		for _, apart := range []float64{0, 1e-6, 0.0001, 0.001, 0.01} {
			t, pvalue, err := stats.TTest(sample(n, 0), sample(n, apart), 0)
			if err != nil {
				panic(err)
			}
			fmt.Printf("%6d values each, means %-6g apart: t = %-10.3g p = %-9.4g (right: %.4g)\n", n, apart, t, pvalue, student(t, 2*n-2))
			if n == 10 {
				p[apart] = pvalue
			}
		}
	}
	if p[0] != 1 || p[1e-6] > 0.001 || p[0.0001] > 0.1 || p[0.001] > 0.5 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/montanaflynn/stats@v0.14.0
go mod tidy >/dev/null 2>&1
echo "github.com/montanaflynn/stats $(go list -m -f '{{.Version}}' github.com/montanaflynn/stats), $(go version)"
go run .
