#!/usr/bin/env bash
# github.com/gomlx/gomlx v0.26.0, its backend in Go: sums of bfloat16 stop at 256, and every number is
# rounded towards 0.
#
# One would guess: bfloat16 is a format to store numbers in; they are rounded to the nearest, and sums are
# collected in float32, as PyTorch and JAX do it: the mean of 1000 ones is 1.
# What happens: the sum is rounded after each addition, so that 256 + 1 is 256, and the mean of 1000 ones
# 0.2559. A number becomes bfloat16 by cutting off its lower 16 bits: 0.999 is 0.9961, where 1 is three
# times as close, and errors do not cancel, since all have the same sign. Losses, norms and means over some
# hundreds of values are wrong without a warning.
# Source: github.com/gomlx/gomlx v0.26.0, backends/simplego/exec_special_ops.go (execReduceSumBFloat16)
# and pkg/core/dtypes/bfloat16/bfloat16.go (FromFloat32).
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
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

func main() {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	out := MustExecOnceN(backend, func(ones, near *Node) []*Node {
		short := func(x *Node) *Node { return ConvertDType(x, dtypes.BFloat16) }
		float := func(x *Node) *Node { return ConvertDType(x, dtypes.Float32) }
		return []*Node{float(ReduceAllSum(short(ones))), float(ReduceAllMean(short(ones))), ReduceAllMean(ones), float(short(near))}
	}, slices.Repeat([]float32{1}, 1000), float32(0.999))
	var v []float32
	for _, o := range out {
		v = append(v, o.Value().(float32))
	}
	fmt.Println("1000 ones in bfloat16: sum", v[0], "mean", v[1], "(in float32: mean", fmt.Sprint(v[2])+")")
	fmt.Println("0.999 in bfloat16:", v[3], "(the nearest is 1)")
	if v[0] != 256 || v[1] > 0.26 || v[2] != 1 || v[3] != 0.99609375 {
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
