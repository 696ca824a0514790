#!/usr/bin/env bash
# Gorgonia v0.9.18: the norm of a vector with negative numbers is wrong for an odd p: (−3, 4) has 1-norm 1, and
# (−4, 3) has a 3-norm that is not a number.
#
# One would guess: the p-norm is the p-th root of the sum of |x|^p, as the comment calls it: never negative, 0 for
# the zero vector alone, the same for x and −x.
# What happens: the values themselves are raised to the power p, without their absolute values. For odd p negative
# numbers are subtracted: the 1-norm of (−3, 4), which is 7, is 1, that of (−4, 4) is 0, that of (−4, 3) is −1.
# With p = 3 a negative sum has no real root, so that the result is NaN. The L1 penalty of weights, made with it,
# falls without a limit as weights become negative. For p = 2 and 4 all is right. No error is returned.
# Source: gorgonia.org/gorgonia v0.9.18, operations.go (Norm).
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

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// norm returns Gorgonia's p-norm of a vector.
func norm(p int, values ...float64) float64 {
	g := G.NewGraph()
	x := G.NewVector(g, tensor.Float64, G.WithName("x"),
		G.WithValue(tensor.New(tensor.WithShape(len(values)), tensor.WithBacking(values))))
	y := G.Must(G.Norm(x, 0, p))
	machine := G.NewTapeMachine(g)
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		panic(err)
	}
	return y.Value().Data().(float64)
}

func main() {
	changed := false
	for _, test := range []struct {
		p    int
		a, b float64
		is   float64
	}{{1, 3, 4, 7}, {1, -3, 4, 1}, {1, -4, 4, 0}, {1, -4, 3, -1}, {2, -3, 4, 5}, {3, 3, 4, math.Cbrt(91)},
		{3, -3, 4, math.Cbrt(37)}, {3, -4, 3, math.NaN()}, {4, -3, 4, math.Pow(337, 0.25)}} {
		got, p := norm(test.p, test.a, test.b), float64(test.p)
		right := math.Pow(math.Pow(math.Abs(test.a), p)+math.Pow(math.Abs(test.b), p), 1/p)
		fmt.Printf("%d-norm of (%g, %g): %.4f (right: %.4f)\n", test.p, test.a, test.b, got, right)
		changed = changed || math.IsNaN(got) != math.IsNaN(test.is) || math.Abs(got-test.is) > 1e-9
	}
	if changed {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gorgonia.org/gorgonia@v0.9.18 -require=gorgonia.org/tensor@v0.9.24 -require=go4.org/unsafe/assume-no-moving-gc@v0.0.0-20231121144256-b99613f794b6
go mod tidy >/dev/null 2>&1
echo "gorgonia.org/gorgonia $(go list -m -f '{{.Version}}' gorgonia.org/gorgonia), $(go version)"
go run .
