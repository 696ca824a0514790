#!/usr/bin/env bash
# gonum v0.17.0: stat.WassersteinDistance overwrites the weights that it is given.
#
# One would guess: a distance reads its arguments, as Mean, StdDev and KolmogorovSmirnov do; the
# comment says nothing else.
# What happens: each slice of weights is divided by its sum in place. Counts 1, 2 and 5 are 0.125,
# 0.25 and 0.625 after the call: totals of them are 1, StdDev with the same weights is infinite (its divisor
# is the sum of the weights − 1), and two goroutines that share a slice race. WassersteinDistanceND
# does so, too.
# Source: gonum.org/v1/gonum v0.17.0, stat/stat.go (normalizeWeights).
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
	p, q, counts := []float64{0, 1, 2}, []float64{5, 6, 7}, []float64{1, 2, 5}
	before := stat.StdDev(p, counts)
	distance := stat.WassersteinDistance(p, q, counts, nil)
	after := stat.StdDev(p, counts)
	fmt.Println("Wasserstein distance:", distance)
	fmt.Println("counts afterwards:", counts)
	fmt.Println("standard deviation with these counts before and afterwards:", before, after)
	if !slices.Equal(counts, []float64{0.125, 0.25, 0.625}) || before == after {
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
