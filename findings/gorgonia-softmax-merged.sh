#!/usr/bin/env bash
# Gorgonia v0.9.18: SoftMax and LogSoftMax of one node are one node; whichever is made
# first decides what both are.
#
# One would guess: two different functions of one node are two nodes of the graph.
# What happens: the hash of the operation has the axis but not whether the result is a
# logarithm, and the graph merges nodes by hash. A loss that needs both the probabilities
# and their logarithms gets one of them twice, without an error.
# Source: gorgonia.org/gorgonia v0.9.18, op_softmax.go (softmaxOp.WriteHash).
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

	. "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// both returns SoftMax and LogSoftMax of (1, 2, 3), made in this order or the other.
func both(logFirst bool) (soft, log []float64) {
	g := NewGraph()
	x := NewVector(g, Float64, WithShape(3), WithName("x"), WithValue(tensor.New(tensor.WithBacking([]float64{1, 2, 3}))))
	var s, l *Node
	if logFirst {
		l = Must(LogSoftMax(x))
	}
	s = Must(SoftMax(x))
	if !logFirst {
		l = Must(LogSoftMax(x))
	}
	var sv, lv Value
	Read(s, &sv)
	Read(l, &lv)
	m := NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		panic(err)
	}
	fmt.Println("one node:", s == l)
	return sv.Data().([]float64), lv.Data().([]float64)
}

func main() {
	fmt.Println("right: SoftMax [0.090 0.245 0.665], LogSoftMax [-2.408 -1.408 -0.408]")
	s, l := both(false)
	fmt.Printf("SoftMax first:    SoftMax %.3f, LogSoftMax %.3f\n", s, l)
	s2, l2 := both(true)
	fmt.Printf("LogSoftMax first: SoftMax %.3f, LogSoftMax %.3f\n", s2, l2)
	if math.Abs(l[2]-s[2]) > 1e-9 || math.Abs(s2[2]-l2[2]) > 1e-9 || s[2] == s2[2] {
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
