#!/usr/bin/env bash
# github.com/gomlx/onnx-gomlx v0.3.4: a model of operator set 12 or older is run by the rules of set 13:
# Softmax is taken over another axis, Split makes other parts.
#
# One would guess: the version of the operator set that a model names decides, or an old one is refused.
# What happens: the version is never looked at. Up to set 12, Softmax is over all axes from "axis" on, by
# default 1, together; here it is over the last one alone: of 1 x 2 x 2 equal values each is 0.5, and not
# 0.25. Up to set 12, the sizes of Split are the attribute "split"; here they are ignored, and the
# parts are equal: 4 values split into 1 and 3 become 2 and 2. Many of the model zoo's files are of such sets.
# Source: github.com/gomlx/onnx-gomlx v0.3.4, onnx/ops.go (convertSoftmax, convertSplit); the rules are
# in onnx, docs/Changelog.md (Softmax-11, Split-11).
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
	case float32:
		return binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, number<<3|5), math.Float32bits(v))
	case string:
		return field(number, []byte(v))
	case []byte:
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, number<<3|2), uint64(len(v))), v...)
	}
	panic("no such field")
}

// run returns the outputs of a model of the given operator set with one node.
func run(set int, operator string, attribute []byte, outputs int, x any, dims ...int) string {
	var shape []byte
	for _, d := range dims {
		shape = append(shape, field(1, field(1, d))...)
	}
	kind := field(2, field(1, slices.Concat(field(1, 1), field(2, shape)))) // float
	node := slices.Concat(field(1, "X"), field(4, operator), attribute)
	g := slices.Concat(field(2, "graph"), field(11, slices.Concat(field(1, "X"), kind)))
	for i := range outputs {
		name := string(rune('a' + i))
		node = append(node, field(2, name)...)
		g = append(g, field(12, slices.Concat(field(1, name), kind))...)
	}
	model, err := onnx.Parse(slices.Concat(field(1, 6), field(7, append(g, field(1, node)...)), field(8, field(2, set))))
	if err != nil {
		panic(err)
	}
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	out := context.MustExecOnceN(backend, context.New(), func(ctx *context.Context, x *graph.Node) []*graph.Node {
		return model.CallGraph(ctx, x.Graph(), map[string]*graph.Node{"X": x})
	}, x)
	var s []any
	for _, o := range out {
		s = append(s, o.Value())
	}
	return fmt.Sprint(s...)
}

func main() {
	softmax := run(11, "Softmax", nil, 1, [][][]float32{{{0, 0}, {0, 0}}}, 1, 2, 2)
	sizes := field(5, slices.Concat(field(1, "split"), field(8, 1), field(8, 3), field(20, 7)))
	split := run(11, "Split", sizes, 2, []float32{1, 2, 3, 4}, 4)
	fmt.Println("Softmax of [[[0 0] [0 0]]] in set 11:", softmax, "(right: 0.25 each)")
	fmt.Println("Split of [1 2 3 4] into 1 and 3 in set 11:", split, "(right: [1] [2 3 4])")
	if softmax != "[[[0.5 0.5] [0.5 0.5]]]" || split != "[1 2] [3 4]" {
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
