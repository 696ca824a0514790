#!/usr/bin/env bash
# Gorgonia v0.9.18: SoftMax along the rows of a matrix gives NaN for large values in all
# rows but the first.
#
# One would guess: SoftMax subtracts each row's maximum, so that it is finite for any
# finite row; (1000, 0) becomes (1, 0) wherever the row stands.
# What happens: the search for a row's maximum begins with the matrix' very first value
# where the row's own should stand. A row of values that are far below the first value
# becomes 0/0: NaN.
# Source: gorgonia.org/gorgonia v0.9.18, op_softmax.go.
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

func rows(values ...float64) []float64 {
	g := NewGraph()
	x := NewMatrix(g, Float64, WithShape(len(values)/2, 2), WithName("x"), WithValue(tensor.New(tensor.WithShape(len(values)/2, 2), tensor.WithBacking(values))))
	var out Value
	Read(Must(SoftMax(x)), &out)
	m := NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		panic(err)
	}
	return out.Data().([]float64)
}

func main() {
	low := rows(0, 0, -1000, -1001)
	alone := rows(-1000, -1001)
	fmt.Printf("SoftMax of the row (-1000, -1001): %.3f; the same as the second row after (0, 0): %.3f\n", alone, low[2:])
	if math.IsNaN(alone[0]) || !math.IsNaN(low[2]) {
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
