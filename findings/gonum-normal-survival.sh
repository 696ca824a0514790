#!/usr/bin/env bash
# gonum v0.17.0: the survival function of a normal distribution is 0 from 8.3 standard deviations
# on, where its own CDF gives the mirrored tail down to 38.
#
# One would guess: Survival exists so that tails keep their digits; by symmetry Survival(x) equals
# CDF(-x), as it does for distuv.StudentsT.
# What happens: Normal.Survival is 1 minus the error function, which rounds to 0 in the tail.
# At 8 standard deviations two digits are left, from 8.3 on the result is 0: a p-value of 10^-17 and
# below is 0, its logarithm −Inf. CDF uses the complementary error function and is right.
# Source: gonum.org/v1/gonum v0.17.0, stat/distuv/norm.go (Normal.Survival).
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

	"gonum.org/v1/gonum/stat/distuv"
)

func main() {
	normal, student := distuv.UnitNormal, distuv.StudentsT{Sigma: 1, Nu: 20}
	fmt.Println("standard deviations, Survival(x), CDF(-x)")
	for _, x := range []float64{2, 5, 8, 9, 20} {
		fmt.Println("normal  ", x, normal.Survival(x), normal.CDF(-x))
	}
	for _, x := range []float64{9, 50} {
		fmt.Println("Student ", x, student.Survival(x), student.CDF(-x))
	}
	off := math.Abs(normal.Survival(8)/normal.CDF(-8) - 1)
	fmt.Printf("relative error at 8: %.3f\n", off)
	if normal.Survival(9) != 0 || normal.CDF(-9) == 0 || off < 0.01 || student.Survival(50) != student.CDF(-50) {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gonum.org/v1/gonum@v0.17.0
go mod tidy >/dev/null 2>&1
echo "gonum.org/v1/gonum $(go list -m -f '{{.Version}}' gonum.org/v1/gonum), $(go version)"
go run .
