#!/usr/bin/env bash
# github.com/gomlx/gomlx v0.26.0: the gradient of ReduceMax and ReduceMin grows with the number of
# values that are equally large.
#
# One would guess: the gradient goes to one of the largest values or is shared by them, as in PyTorch's
# max and amax; its sum is 1, since raising all values by h raises the maximum by h.
# What happens: every value that equals the maximum gets the whole gradient. Three equal maxima get 1 each,
# so that the gradient's product with (1, 1, 1, 1) is 3, where the finite difference is 1. Equal maxima are
# common: zeros behind ReLU, pixels at 255, 8-bit data; steps of training are too large by their number.
# Source: github.com/gomlx/gomlx v0.26.0, pkg/core/graph/rev_autodiff.go (reduceMaxVJP, reduceMinVJP).
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

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

func main() {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	out := MustExecOnceN(backend, func(x *Node) []*Node {
		up, down := ReduceAllMax(AddScalar(x, 0.25)), ReduceAllMax(AddScalar(x, -0.25))
		return []*Node{Gradient(ReduceAllMax(x), x)[0], MulScalar(Sub(up, down), 2)}
	}, []float32{1, 1, 1, 0})
	gradient, along := out[0].Value().([]float32), out[1].Value().(float32)
	fmt.Println("gradient of the maximum of 1 1 1 0:", gradient)
	fmt.Println("finite difference along (1, 1, 1, 1):", along)
	if !slices.Equal(gradient, []float32{1, 1, 1, 0}) || along != 1 {
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
