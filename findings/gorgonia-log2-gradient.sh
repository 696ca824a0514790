#!/usr/bin/env bash
# Gorgonia v0.9.18: the gradients of Log2 and InverseSqrt are wrong.
#
# One would guess: the derivative of log₂x is 1/(x·ln 2), that of 1/√x is −1/(2·x·√x).
# What happens: the symbolic derivative of Log2 is ln 2/x, as x is divided by ln 2 instead of multiplied:
# all gradients through it are 0.48 times what they should be. That of InverseSqrt is −1/(2y³) for
# y = 1/√x, where −y³/2 is right: x = 4 gets −4 instead of −1/16, x = 1 is right by chance. Losses in
# bits and layers that normalise by a length are affected. The derivative of Sqrt is right.
# Source: gorgonia.org/gorgonia v0.9.18, operatorPointwise_unary.go (log2DiffExpr, inverseSqrtDiffExpr).
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

	. "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// gradient returns the derivatives of f at 1, 2 and 4.
func gradient(f func(*Node) (*Node, error)) []float64 {
	g := NewGraph()
	x := NewVector(g, Float64, WithShape(3), WithName("x"), WithValue(tensor.New(tensor.WithBacking([]float64{1, 2, 4}))))
	grads, err := Grad(Must(Sum(Must(f(x)))), x)
	if err != nil {
		panic(err)
	}
	var out Value
	Read(grads[0], &out)
	m := NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		panic(err)
	}
	return out.Data().([]float64)
}

// difference returns the derivatives of f at 1, 2 and 4 by finite differences.
func difference(f func(float64) float64) (d []float64) {
	for _, x := range []float64{1, 2, 4} {
		d = append(d, (f(x+1e-5)-f(x-1e-5))/2e-5)
	}
	return d
}

func main() {
	log2, inverse, root := gradient(Log2), gradient(InverseSqrt), gradient(Sqrt)
	right := difference(math.Log2)
	rightInverse := difference(func(x float64) float64 { return 1 / math.Sqrt(x) })
	fmt.Printf("Log2 at 1, 2, 4:        %.4f, finite differences %.4f\n", log2, right)
	fmt.Printf("InverseSqrt at 1, 2, 4: %.4f, finite differences %.4f\n", inverse, rightInverse)
	if math.Abs(log2[2]/right[2]-math.Ln2*math.Ln2) > 1e-6 || math.Abs(inverse[2]/rightInverse[2]-64) > 1e-4 || math.Abs(root[2]-0.25) > 1e-12 {
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
