#!/usr/bin/env bash
# Gorgonia v0.9.18: AveragePool1D is a maximum, and the gradient of AveragePool2D is not that of an average.
#
# One would guess: AveragePool1D with a window of 2 makes 2 and 6 of 1 3 5 7; the gradient of a mean of four
# values is 1/4 for each of them.
# What happens: AveragePool1D calls MaxPool2D and gives 3 and 7. AveragePool2D is right forwards, but its
# gradient adds up each window's gradient at one place, and then averages these, in place, over windows that
# begin at stride times the place of the input: of sixteen values that all count 1/4, four get 1/4 and
# twelve 0. No error is returned.
# Source: gorgonia.org/gorgonia v0.9.18, op_avg_pool.go (AveragePool1D, avgPoolDiffOp).
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

// pool returns the pooled numbers 1, 3, 5 … of an image of the given size and the gradient of
// their sum.
func pool(f func(*Node) (*Node, error), height, width int) (pooled, gradient []float64) {
	values := make([]float64, height*width)
	for i := range values {
		values[i] = float64(2*i + 1)
	}
	g := NewGraph()
	x := NewTensor(g, Float64, 4, WithShape(1, 1, height, width), WithName("x"), WithValue(tensor.New(tensor.WithShape(1, 1, height, width), tensor.WithBacking(values))))
	y := Must(f(x))
	grads, err := Grad(Must(Sum(y)), x)
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
	return out.Data().([]float64), grad.Data().([]float64)
}

func main() {
	line, _ := pool(func(x *Node) (*Node, error) { return AveragePool1D(x, 2, 0, 2) }, 1, 4)
	plane, gradient := pool(func(x *Node) (*Node, error) {
		return AveragePool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
	}, 4, 4)
	fmt.Println("AveragePool1D of 1 3 5 7:", line, "(right: 2 6)")
	fmt.Println("AveragePool2D of 1 3 … 31:", plane, "(right: 6 10 22 26)")
	fmt.Println("gradient of its sum:", gradient, "(right: 0.25 each)")
	if !slices.Equal(line, []float64{3, 7}) || !slices.Equal(plane, []float64{6, 10, 22, 26}) || len(slices.DeleteFunc(slices.Clone(gradient), func(x float64) bool { return x == 0 })) != 4 {
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
