#!/usr/bin/env bash
# gonum v0.17.0: stat.Kendall counts a tied pair as an increase, so that a constant has the
# correlation 1 with anything that increases, and the order of the pairs matters.
#
# One would guess: a pair that is tied in x or y is neither concordant nor discordant (tau-a
# gives it 0; tau-b corrects for it), so a constant has correlation 0 or NaN.
# What happens: the signs of the differences are compared with math.Signbit, and the
# difference 0 has the sign of an increase. Reversing the order of the observations, which
# changes no pair, changes the result.
# Source: gonum.org/v1/gonum v0.17.0, stat/stat.go (Kendall).
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

	"gonum.org/v1/gonum/stat"
)

func main() {
	x, constant := []float64{1, 2, 3, 4, 5}, []float64{7, 7, 7, 7, 7}
	forward := stat.Kendall(x, constant, nil)
	slices.Reverse(x)
	backward := stat.Kendall(x, constant, nil)
	fmt.Println("Kendall of 1 2 3 4 5 and a constant:", forward)
	fmt.Println("the same observations in reverse order:", backward)
	if forward != 1 || backward != -1 {
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
