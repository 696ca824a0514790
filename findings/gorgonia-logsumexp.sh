#!/usr/bin/env bash
# Gorgonia v0.9.18: LogSumExp adds the maximum before it takes the logarithm, and refuses matrices.
#
# One would guess: LogSumExp of 1, 2 and 3 is log(e + e² + e³) = 3.4076; adding 100 to all values adds 100 to the
# result; along the rows of a matrix there is one result for each row.
# What happens: the maximum is subtracted, as it should be, but it is added to the sum of the exponentials, and the
# logarithm is taken of both: log(1 + e⁻¹ + e⁻² + 3) = 1.5048. For 101, 102 and 103 it is 4.6492 instead of
# 103.4076. The result grows with the logarithm of the values, so that probabilities and free energies made with it
# are wrong, and so are their gradients, which should add up to 1. No error is returned. For a matrix there is an
# error about shapes, along either axis, since a matrix less its maxima has another shape.
# Source: gorgonia.org/gorgonia v0.9.18, operations.go (LogSumExp).
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

// logSumExp returns Gorgonia's LogSumExp of some values, and the sum of its gradient.
func logSumExp(values ...float64) (result, gradient float64) {
	g := G.NewGraph()
	x := G.NewVector(g, tensor.Float64, G.WithName("x"),
		G.WithValue(tensor.New(tensor.WithShape(len(values)), tensor.WithBacking(values))))
	y := G.Must(G.LogSumExp(x, 0))
	if _, err := G.Grad(y, x); err != nil {
		panic(err)
	}
	machine := G.NewTapeMachine(g, G.BindDualValues(x))
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		panic(err)
	}
	d, err := x.Grad()
	if err != nil {
		panic(err)
	}
	for _, v := range d.Data().([]float64) {
		gradient += v
	}
	return y.Value().Data().(float64), gradient
}

func main() {
	small, gradient := logSumExp(1, 2, 3)
	large, _ := logSumExp(101, 102, 103)
	right := math.Log(math.Exp(1) + math.Exp(2) + math.Exp(3))
	fmt.Printf("LogSumExp of 1 2 3: %.4f (right: %.4f), sum of the gradient %.4f (right: 1)\n", small, right, gradient)
	fmt.Printf("LogSumExp of 101 102 103: %.4f (right: %.4f)\n", large, right+100)
	g := G.NewGraph()
	matrix := G.NewMatrix(g, tensor.Float64, G.WithName("matrix"), G.WithShape(2, 3))
	_, err := G.LogSumExp(matrix, 1)
	fmt.Println("LogSumExp of each row of a 2 x 3 matrix:", err)
	wrong := math.Log(math.Exp(-2) + math.Exp(-1) + 1 + 3)
	if math.Abs(small-wrong) > 1e-9 || large > 5 || gradient > 0.5 || err == nil {
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
