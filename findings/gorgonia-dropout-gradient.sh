#!/usr/bin/env bash
# Gorgonia v0.9.18: the gradient of Dropout is scaled by 1/p, not by 1/(1-p).
#
# One would guess: Dropout(x, p) sets a share p of the values to 0 and multiplies the others
# by 1/(1-p), so the derivative of a kept value is 1/(1-p): 1.25 for p = 0.2.
# What happens: the forward pass does so, but the symbolic derivative of a kept value is
# 1/p: 5 for p = 0.2. Training with dropout gets gradients that are 4 times too large.
# Source: gorgonia.org/gorgonia v0.9.18, op_dropout.go (dropoutDiffOp).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	. "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func main() {
	const n, p = 1000, 0.2
	ones := tensor.New(tensor.WithShape(n), tensor.WithBacking(tensor.Range(tensor.Float64, 1, n+1)))
	for i := range ones.Data().([]float64) {
		ones.Data().([]float64)[i] = 1
	}
	g := NewGraph()
	x := NewVector(g, Float64, WithShape(n), WithName("x"), WithValue(ones))
	y := Must(Dropout(x, p))
	sum := Must(Sum(y))
	grads, err := Grad(sum, x)
	if err != nil {
		panic(err)
	}
	var out, grad Value
	Read(y, &out)
	Read(grads[0], &grad)
	m := NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		panic(err)
	}
	values, slopes := map[string]int{}, map[string]int{}
	for i, v := range out.Data().([]float64) {
		values[fmt.Sprintf("%.4g", v)]++
		slopes[fmt.Sprintf("value %.4g has derivative %.4g", v, grad.Data().([]float64)[i])]++
	}
	fmt.Println("values:", values)
	fmt.Println("derivatives:", slopes)
	if slopes["value 1.25 has derivative 5"] == 0 || slopes["value 1.25 has derivative 1.25"] != 0 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
	fmt.Println("a kept value is multiplied by 1.25, and its derivative is 5")
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gorgonia.org/gorgonia@v0.9.18 -require=gorgonia.org/tensor@v0.9.24 -require=go4.org/unsafe/assume-no-moving-gc@v0.0.0-20231121144256-b99613f794b6
go mod tidy >/dev/null 2>&1
echo "gorgonia.org/gorgonia $(go list -m -f '{{.Version}}' gorgonia.org/gorgonia), $(go version)"
go run .
