#!/usr/bin/env bash
# github.com/gomlx/onnx-gomlx v0.3.4: Gemm multiplies its third operand by alpha; beta is ignored.
#
# One would guess: ONNX's Gemm is alpha·A·B + beta·C.
# What happens: both factors are read from the attribute "alpha". With beta = 0.5 and no alpha, C counts
# in full; with alpha = 0.5 and no beta, C is halved, without an error. Exporters write alpha and beta for
# scaled layers and for weights that were folded into them.
# Source: github.com/gomlx/onnx-gomlx v0.3.4, onnx/ops.go (convertGemm).
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

// gemm returns what a model with one Gemm gives for the numbers a, b and c, if the attribute
// of that name is 0.5 and the other is left at its default, 1.
func gemm(attribute string, a, b, c float32) float32 {
	matrix := slices.Concat(field(1, 1), field(2, slices.Concat(field(1, field(1, 1)), field(1, field(1, 1))))) // float, 1 x 1
	node := slices.Concat(field(1, "A"), field(1, "B"), field(1, "C"), field(2, "Y"), field(4, "Gemm"),
		field(5, slices.Concat(field(1, attribute), field(2, float32(0.5)), field(20, 1))))
	g := slices.Concat(field(1, node), field(2, "graph"))
	for _, input := range []string{"A", "B", "C"} {
		g = append(g, field(11, slices.Concat(field(1, input), field(2, field(1, matrix))))...)
	}
	g = append(g, field(12, slices.Concat(field(1, "Y"), field(2, field(1, matrix))))...)
	model, err := onnx.Parse(slices.Concat(field(1, 8), field(7, g), field(8, field(2, 13))))
	if err != nil {
		panic(err)
	}
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		panic(err)
	}
	out := context.MustExecOnce(backend, context.New(), func(ctx *context.Context, x []*graph.Node) *graph.Node {
		return model.CallGraph(ctx, x[0].Graph(), map[string]*graph.Node{"A": x[0], "B": x[1], "C": x[2]})[0]
	}, [][]float32{{a}}, [][]float32{{b}}, [][]float32{{c}})
	return out.Value().([][]float32)[0][0]
}

func main() {
	beta, alpha := gemm("beta", 2, 3, 10), gemm("alpha", 2, 3, 10)
	fmt.Println("2·3 + 0.5·10 =", beta, "(right: 11)")
	fmt.Println("0.5·2·3 + 10 =", alpha, "(right: 13)")
	if beta != 16 || alpha != 8 {
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
