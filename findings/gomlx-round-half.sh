#!/usr/bin/env bash
# github.com/gomlx/gomlx v0.26.0, its backend in Go: Round takes halves away from 0, not to the even number as
# documented, and quantised values of ONNX models are off by one.
#
# One would guess: 0.5, 1.5 and 2.5 become 0, 2 and 2, as the comment of Round says ("to the nearest even"), and as
# XLA, NumPy, PyTorch and ONNX have it.
# What happens: they become 1, 2 and 3, since math.Round is used where math.RoundToEven is meant. Halves are common
# where values are counts, pixels or multiples of a scale: the mean of 1000 rounded multiples of 1/2 is too large
# by a quarter, where rounding to even has no bias. The same model gives other numbers with the backend XLA. ONNX's
# QuantizeLinear and DynamicQuantizeLinear, made with Round by github.com/gomlx/onnx-gomlx, inherit it. bfloat16 is
# alike.
# Source: github.com/gomlx/gomlx v0.26.0, backends/simplego/exec_unary.go (execRoundGeneric, execRoundBF16); the
# rule is in backends/standard_ops.go and pkg/core/graph/gen_backend_ops.go (Round).
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

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

func main() {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	values := []float64{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.4, 0.6}
	round := func(values []float64) []float64 {
		return graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node { return graph.Round(x) }, values).Value().([]float64)
	}
	changed := false
	for i, rounded := range round(values) {
		fmt.Printf("Round(%g) = %g (right: %g)\n", values[i], rounded, math.RoundToEven(values[i]))
		changed = changed || rounded != math.Round(values[i])
	}
	halves := make([]float64, 1000)
	var exact, mean, even float64
	for i := range halves {
		halves[i] = float64(i) / 2
	}
	for i, rounded := range round(halves) {
		exact += halves[i] / 1000
		mean += rounded / 1000
		even += math.RoundToEven(halves[i]) / 1000
	}
	fmt.Printf("mean of 0, 0.5, 1, … 499.5: %.3f, rounded %.3f (right: %.3f)\n", exact, mean, even)
	if changed || math.Abs(mean-exact-0.25) > 1e-9 {
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
