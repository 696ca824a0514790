#!/usr/bin/env bash
# github.com/gomlx/onnx-gomlx v0.3.4: the last element, index −1, is read as the first one, and a reversed
# slice is empty.
#
# One would guess: in ONNX's Gather, −1 is the last element along the axis, as in Python; a slice from −1 with
# step −1 is the axis in reverse.
# What happens: indices go to the backend as they are, and it clamps them to the axis, so that every
# negative index is 0: of 1 2 3 4, −1 is 1. GatherElements does so, too. PyTorch exports x[:, -1], the last
# step of a sequence, as a Gather with −1; the model then goes on with the first step. A reversed
# slice comes out with no elements: the end, clamped to −1, "before the first", is then taken for "the last".
# Both are silent as long as the shapes that follow fit.
# Source: github.com/gomlx/onnx-gomlx v0.3.4, onnx/ops.go (onnxGather, onnxGatherElements, convertSlice) with
# gomlx v0.26.0, backends/simplego/exec_special_ops.go (execGatherGeneric); the rules are in onnx,
# docs/Operators.md (Gather, GatherElements, Slice).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/onnx-gomlx/onnx"
)

// field returns a field of a message in protobuf's encoding.
func field(number uint64, value any) []byte {
	switch v := value.(type) {
	case int:
		return binary.AppendUvarint(binary.AppendUvarint(nil, number<<3), uint64(v))
	case string:
		return field(number, []byte(v))
	case []byte:
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, number<<3|2), uint64(len(v))), v...)
	}
	panic("no such field")
}

// run returns the output of a model of one node, whose inputs are X, that is 1 2 3 4, and vectors of one integer.
func run(operator string, integers ...int) string {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	vector := func(name string, dim []byte) []byte {
		return slices.Concat(field(1, name), field(2, field(1, slices.Concat(field(1, 1), field(2, field(1, dim)))))) // float
	}
	node := field(1, "X")
	var constants []byte
	for i, v := range integers {
		name := string(rune('a' + i))
		node = append(node, field(1, name)...)
		constants = append(constants, field(5, slices.Concat(field(1, 1), field(2, 7), field(7, v), field(8, name)))...)
	}
	node = slices.Concat(node, field(2, "Y"), field(4, operator))
	g := slices.Concat(field(1, node), field(2, "graph"), constants, field(11, vector("X", field(1, 4))), field(12, vector("Y", field(2, "n"))))
	model, err := onnx.Parse(slices.Concat(field(1, 7), field(7, g), field(8, field(2, 13))))
	if err != nil {
		panic(err)
	}
	ctx := context.New()
	if err := model.VariablesToContext(ctx); err != nil {
		panic(err)
	}
	out := context.MustExecOnceN(backend, ctx.Reuse(), func(ctx *context.Context, x *graph.Node) []*graph.Node {
		return model.CallGraph(ctx, x.Graph(), map[string]*graph.Node{"X": x})
	}, []float32{1, 2, 3, 4})
	return fmt.Sprint(out[0].Value())
}

func main() {
	last := run("Gather", -1)
	element := run("GatherElements", -2)
	reverse := run("Slice", -1, math.MinInt64, 0, -1)
	fmt.Println("Gather of 1 2 3 4 at -1:        ", last, "(right: [4])")
	fmt.Println("GatherElements of 1 2 3 4 at -2:", element, "(right: [3])")
	fmt.Println("Slice of 1 2 3 4 with step -1:  ", reverse, "(right: [4 3 2 1])")
	if last != "[1]" || element != "[1]" || reverse != "[]" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/gomlx/onnx-gomlx@v0.3.4 -require=github.com/gomlx/gomlx@v0.26.0
go mod tidy >/dev/null 2>&1
echo "github.com/gomlx/onnx-gomlx $(go list -m -f '{{.Version}}' github.com/gomlx/onnx-gomlx), $(go version)"
go run .
