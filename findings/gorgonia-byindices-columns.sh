#!/usr/bin/env bash
# Gorgonia v0.9.18: the gradient of ByIndices along axis 1 is wrong.
#
# One would guess: the gradient of columns 2 and 0 of a matrix goes to columns 2 and 0.
# What happens: along axis 0 it is right, repeated indices included. Along axis 1 the address
# of a column is computed in the shape of the result, so that the gradient of a column whose
# number is not below the number of chosen columns goes to column 0, without an error.
# Source: gorgonia.org/tensor v0.9.24, defaultengine_selbyidx.go (selectByIndicesB).
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

	. "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// gradient returns the gradient of the sum of the rows or columns 2 and 1 of a 3 x 3
// matrix with respect to the matrix.
func gradient(axis int) []float64 {
	g := NewGraph()
	x := NewMatrix(g, Float64, WithShape(3, 3), WithName("x"), WithValue(tensor.New(tensor.WithShape(3, 3), tensor.WithBacking(tensor.Range(tensor.Float64, 0, 9)))))
	i := NewVector(g, tensor.Int, WithShape(2), WithName("i"), WithValue(tensor.New(tensor.WithBacking([]int{2, 1}))))
	grads, err := Grad(Must(Sum(Must(ByIndices(x, i, axis)))), x)
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

func main() {
	rows, columns := gradient(0), gradient(1)
	fmt.Println("rows 2 and 1, gradient by row:", rows)
	fmt.Println("columns 2 and 1, gradient by row:", columns, "(right: 0 1 1 in each row)")
	if !slices.Equal(rows, []float64{0, 0, 0, 1, 1, 1, 1, 1, 1}) || slices.Equal(columns, []float64{0, 1, 1, 0, 1, 1, 0, 1, 1}) {
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
