#!/usr/bin/env bash
# github.com/advancedclimatesystems/gonnx v1.1.0: Conv leaves the right part of a wide image 0, and pads
# as SAME where the model says VALID.
#
# One would guess: a convolution has a value for each place of its output; a kernel of the one number 1 gives
# the image back; auto_pad VALID means no padding.
# What happens: the loop over the columns ends at the image's height, so that of 2 rows of 5 numbers the first
# two columns come back, and the other three are 0, in any image that is wider than high. With auto_pad, VALID
# is treated like SAME_UPPER: a kernel of 3 x 3 on 4 x 4 numbers gives 4 x 4 instead of 2 x 2. The padding
# of SAME is computed from the sizes of the batch and of the channels instead of height and width; with a
# stride of 2 this is other padding: the first sum over 3 x 3 of the numbers from 1 to 16 is 14 instead of 54.
# No error is returned. Without auto_pad, an image that is as high as wide has all its values.
# Source: github.com/advancedclimatesystems/gonnx v1.1.0, ops/opset13/conv.go (applyConv2D,
# setPaddingWithAutoPad); the rules are in onnx, docs/Operators.md (Conv).
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

	"github.com/advancedclimatesystems/gonnx"
	"gorgonia.org/tensor"
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

// conv convolves the image 1, 2, 3 … of the given size with a square kernel of ones.
func conv(height, width, kernel int, attributes ...[]byte) string {
	var ones, shape []byte
	for range kernel * kernel {
		ones = append(ones, field(4, float32(1))...)
	}
	for _, d := range []int{1, 1, height, width} {
		shape = append(shape, field(1, field(1, d))...)
	}
	weights := slices.Concat(field(1, 1), field(1, 1), field(1, kernel), field(1, kernel), field(2, 1), ones, field(8, "W"))
	kind := field(2, field(1, slices.Concat(field(1, 1), field(2, shape)))) // float
	node := slices.Concat(field(1, "X"), field(1, "W"), field(2, "Y"), field(4, "Conv"), slices.Concat(attributes...))
	graph := slices.Concat(field(1, node), field(2, "graph"), field(5, weights),
		field(11, slices.Concat(field(1, "X"), kind)),
		field(12, slices.Concat(field(1, "Y"), field(2, field(1, field(1, 1))))))
	model, err := gonnx.NewModelFromBytes(slices.Concat(field(1, 7), field(7, graph), field(8, field(2, 13))))
	if err != nil {
		panic(err)
	}
	x := tensor.New(tensor.WithShape(1, 1, height, width), tensor.WithBacking(tensor.Range(tensor.Float32, 1, height*width+1)))
	out, err := model.Run(gonnx.Tensors{"X": x})
	if err != nil {
		panic(err)
	}
	return fmt.Sprint(out["Y"].Shape()[2:], out["Y"].Data())
}

func main() {
	pad := func(kind string) []byte {
		return field(5, slices.Concat(field(1, "auto_pad"), field(4, kind), field(20, 3)))
	}
	strides := field(5, slices.Concat(field(1, "strides"), field(8, 2), field(8, 2), field(20, 7)))
	shape := field(5, slices.Concat(field(1, "kernel_shape"), field(8, 3), field(8, 3), field(20, 7)))
	wide := conv(2, 5, 1)
	valid := conv(4, 4, 3, pad("VALID"), shape)
	same := conv(4, 4, 3, pad("SAME_UPPER"), strides, shape)
	fmt.Println("2 x 5 numbers, kernel 1:               ", wide, "(right: (2, 5) [1 2 3 4 5 6 7 8 9 10])")
	fmt.Println("4 x 4 numbers, kernel 3 x 3, VALID:    ", valid, "(right: (2, 2) [54 63 90 99])")
	fmt.Println("4 x 4 numbers, SAME_UPPER, strides 2:  ", same, "(right: (2, 2) [54 45 72 54])")
	if wide != "(2, 5) [1 2 0 0 0 6 7 0 0 0]" || valid[:6] != "(4, 4)" || same != "(2, 2) [14 30 57 99]" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/advancedclimatesystems/gonnx@v1.1.0
go mod tidy >/dev/null 2>&1
echo "github.com/advancedclimatesystems/gonnx $(go list -m -f '{{.Version}}' github.com/advancedclimatesystems/gonnx), $(go version)"
go run .
