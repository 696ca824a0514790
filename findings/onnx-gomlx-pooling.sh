#!/usr/bin/env bash
# github.com/gomlx/onnx-gomlx v0.3.4: pooling without strides moves by the whole window, and
# GlobalAveragePool drops the axes that it averages.
#
# One would guess: ONNX's MaxPool and AveragePool have the stride 1 on each axis where the attribute
# "strides" is missing, and GlobalAveragePool keeps its axes with size 1.
# What happens: the missing strides take GoMLX's own default, the size of the window: the maxima of
# the pairs of 1 2 3 4 are 2 4, and not 2 3 4. GlobalAveragePool of 1 x 1 x 4 is 1 x 1, and not 1 x 1 x 1.
# Both are silent: what follows is another shape, which a Flatten or another GlobalAveragePool accepts.
# Source: github.com/gomlx/onnx-gomlx v0.3.4, onnx/ops.go (convertMaxPool, convertAveragePool,
# convertGlobalAveragePool).
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
	x := [][][]float32{{{1, 2, 3, 4}}}
	window := field(5, slices.Concat(field(1, "kernel_shape"), field(8, 2), field(20, 7)))
	largest := run(13, "MaxPool", window, 1, x, 1, 1, 4)
	average := run(13, "AveragePool", window, 1, x, 1, 1, 4)
	global := run(13, "GlobalAveragePool", nil, 1, x, 1, 1, 4)
	fmt.Println("MaxPool of 1 2 3 4, window 2:", largest, "(right: [[[2 3 4]]])")
	fmt.Println("AveragePool of 1 2 3 4, window 2:", average, "(right: [[[1.5 2.5 3.5]]])")
	fmt.Println("GlobalAveragePool of 1 2 3 4:", global, "(right: [[[2.5]]])")
	if largest != "[[[2 4]]]" || average != "[[[1.5 3.5]]]" || global != "[[2.5]]" {
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
