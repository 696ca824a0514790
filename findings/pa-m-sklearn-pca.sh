#!/usr/bin/env bash
# github.com/pa-m/sklearn of 2020-07-11: PCA does not subtract the mean; its first component points to the data's
# middle.
#
# One would guess: principal components are the directions of the largest variance around the mean, as in the
# library of which it is a port; moving all points by the same amount changes neither the components nor their
# shares of the variance.
# What happens: the singular values of the matrix as it is are taken. Points along the direction (1, −1) around
# (100, 100) have the first component (0.71, 0.71), across the line on which they lie, and the share of the
# variance said to be explained by it is 0.9998, where the points do not vary at all in that direction. Around (0,
# 0) the result is right. With MinVarianceRatio, a limit of 0.99 keeps that one component, and all points have the
# same score. The comment says "thin single value decomposition transformer", but not that the data must be
# centred. No error is returned.
# Source: github.com/pa-m/sklearn v0.0.0-20200711083454-beb861ee48b1, preprocessing/pca.go (Fit, Transform).
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

	"github.com/pa-m/sklearn/preprocessing"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// fit fits a PCA to points along (1, −1) around (middle, middle); it returns the absolute values of its first
// component, the share of the variance it claims, and the true share: the variance of its scores over that of the points.
func fit(middle float64) (x, y, claimed, share float64) {
	points := mat.NewDense(5, 2, nil)
	for i := 0; i < 5; i++ {
		points.SetRow(i, []float64{middle + float64(i-2), middle - float64(i-2)})
	}
	pca := preprocessing.NewPCA()
	scores, _ := pca.FitTransform(points, nil)
	var v mat.Dense
	pca.SVD.VTo(&v)
	total := stat.Variance(mat.Col(nil, 0, points), nil) + stat.Variance(mat.Col(nil, 1, points), nil)
	return math.Abs(v.At(0, 0)), math.Copysign(v.At(1, 0), v.At(0, 0)*v.At(1, 0)), pca.ExplainedVarianceRatio[0],
		stat.Variance(mat.Col(nil, 0, scores), nil) / total
}

func main() {
	var x, y, claimed, share [2]float64
	for i, middle := range []float64{0, 100} {
		x[i], y[i], claimed[i], share[i] = fit(middle)
		fmt.Printf("points along (1, -1) around (%g, %g): first component (%.2f, %.2f), explains %.4f of the variance by the library, %.4f by its scores\n",
			middle, middle, x[i], y[i], claimed[i], share[i])
	}
	if y[0] > -0.7 || math.Abs(share[0]-1) > 1e-9 || y[1] < 0.7 || claimed[1] < 0.999 || share[1] > 1e-9 {
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
