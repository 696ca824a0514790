#!/usr/bin/env bash
# github.com/gomlx/gomlx v0.26.0, its backend in Go: the gradient of GatherSlices goes to the wrong elements
# where the slices do not span whole rows.
#
# One would guess: the gradient of the sum of a slice is 1 at the elements in the slice, and 0 elsewhere.
# What happens: the forward pass is right: columns 1 and 2 of (1 2 3; 4 5 6) are (2 3; 5 6). The gradient scatters
# the slice back, and the scatter walks through the output's memory without gaps: from the first element of the
# slice on, the next four elements get the gradient, that is 2, 3, 4 and 5. Finite differences say 2, 3, 5 and
# 6. No error is returned. Slices of whole rows, and those that Gather takes, are right.
# Source: github.com/gomlx/gomlx v0.26.0, backends/simplego/exec_special_ops.go (execScatterGeneric).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

var x = [][]float64{{1, 2, 3}, {4, 5, 6}}

// gradient prints a slice of x, the gradient of its sum, and finite differences.
func gradient(backend backends.Backend, axis, start, size int) string {
	slice := func(x *graph.Node) *graph.Node {
		return graph.GatherSlices(x, []int{axis}, graph.Const(x.Graph(), [][]int32{{int32(start)}}), []int{size}, true)
	}
	sum := func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(slice(x)) }
	value := graph.MustExecOnce(backend, slice, x).Value()
	got := graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node { return graph.Gradient(sum(x), x)[0] }, x).Value()
	var right [2][3]float64
	before := graph.MustExecOnce(backend, sum, x).Value().(float64)
	for i := range x {
		for j := range x[i] {
			x[i][j]++
			right[i][j] = graph.MustExecOnce(backend, sum, x).Value().(float64) - before
			x[i][j]--
		}
	}
	fmt.Printf("axis %d, %d from %d on: slice %v, gradient of its sum %v, finite differences %v\n", axis, size, start, value, got, right)
	return fmt.Sprint(got)
}

func main() {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	rows := gradient(backend, 0, 1, 1)
	left := gradient(backend, 1, 0, 2)
	right := gradient(backend, 1, 1, 2)
	if rows != "[[0 0 0] [1 1 1]]" || left != "[[1 1 1] [1 0 0]]" || right != "[[0 1 1] [1 1 0]]" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/gomlx/gomlx@v0.26.0
go mod tidy >/dev/null 2>&1
echo "github.com/gomlx/gomlx $(go list -m -f '{{.Version}}' github.com/gomlx/gomlx), $(go version)"
go run .
