#!/usr/bin/env bash
# Gorgonia's tensor v0.9.24: the product of a slice of columns with a matrix has wrong
# numbers.
#
# One would guess: MatMul of a view has the numbers that the view shows, as element-wise
# functions of it have, or an error.
# What happens: the two columns of a 3 x 3 matrix that a slice shows are printed and added
# right, but MatMul reads its memory as if the view had no gaps. Norm does, too. A copy
# (Materialize) gives the right product.
# Source: gorgonia.org/tensor v0.9.24, defaultengine_linalg.go.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"slices"

	"gorgonia.org/tensor"
)

func main() {
	x := tensor.New(tensor.WithShape(3, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}))
	one := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 0, 0, 1}))
	view, err := x.Slice(nil, tensor.S(0, 2))
	if err != nil {
		panic(err)
	}
	product := func(t tensor.Tensor) []float64 {
		p, err := tensor.MatMul(t, one)
		if err != nil {
			panic(err)
		}
		return p.Data().([]float64)
	}
	of, copied := product(view), product(view.Materialize())
	fmt.Printf("the first two columns:\n%v\n", view)
	fmt.Println("times the unit matrix:", of)
	fmt.Println("a copy of them times the unit matrix:", copied)
	if !slices.Equal(copied, []float64{1, 2, 4, 5, 7, 8}) || slices.Equal(of, copied) {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gorgonia.org/tensor@v0.9.24 -require=go4.org/unsafe/assume-no-moving-gc@v0.0.0-20231121144256-b99613f794b6
go mod tidy >/dev/null 2>&1
echo "gorgonia.org/tensor $(go list -m -f '{{.Version}}' gorgonia.org/tensor), $(go version)"
go run .
