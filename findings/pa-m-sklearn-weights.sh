#!/usr/bin/env bash
# github.com/pa-m/sklearn of 2020-07-11: MeanSquaredError and MeanAbsoluteError ignore the weights of the samples.
#
# One would guess: the weight of a sample says how much its error counts, as the comment has it ("Sample weights"),
# as in the library of which it is a port, and as R2Score of the same package does it: a sample of weight 0 does
# not count.
# What happens: for every sample the weight of the first one is read, and it cancels. Errors of 1, 0 and 10 with
# the weights 1, 1 and 0 have the mean square 33.67 instead of 0.5. If the first sample has the weight 0, the
# result is NaN, whatever the others have. Cross-validation with weights and early stopping choose by such numbers.
# No error is returned.
# Source: github.com/pa-m/sklearn v0.0.0-20200711083454-beb861ee48b1, metrics/regression.go (MeanSquaredError,
# MeanAbsoluteError: sampleWeight.At(0, j)).
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

	"github.com/pa-m/sklearn/metrics"
	"gonum.org/v1/gonum/mat"
)

func column(values ...float64) *mat.Dense {
	return mat.NewDense(len(values), 1, values)
}

func main() {
	truth, predicted := column(1, 2, 3), column(2, 2, 13)
	changed := false
	for _, weights := range [][]float64{{1, 1, 1}, {1, 1, 0}, {0, 1, 1}} {
		var square, absolute, total float64
		for i, w := range weights {
			e := predicted.At(i, 0) - truth.At(i, 0)
			square, absolute, total = square+w*e*e, absolute+w*math.Abs(e), total+w
		}
		mse := metrics.MeanSquaredError(truth, predicted, column(weights...), "").At(0, 0)
		mae := metrics.MeanAbsoluteError(truth, predicted, column(weights...), "").At(0, 0)
		fmt.Printf("errors 1 0 10, weights %v: mean square %.4f (right: %.4f), mean absolute error %.4f (right: %.4f), R2 %.4f\n",
			weights, mse, square/total, mae, absolute/total, metrics.R2Score(truth, predicted, column(weights...), "").At(0, 0))
		if weights[0] == 0 {
			changed = changed || !math.IsNaN(mse) || !math.IsNaN(mae)
		} else {
			changed = changed || math.Abs(mse-101./3) > 1e-9 || math.Abs(mae-11./3) > 1e-9
		}
	}
	if changed {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/pa-m/sklearn@v0.0.0-20200711083454-beb861ee48b1
go mod tidy >/dev/null 2>&1
echo "github.com/pa-m/sklearn $(go list -m -f '{{.Version}}' github.com/pa-m/sklearn), $(go version)"
go run .
