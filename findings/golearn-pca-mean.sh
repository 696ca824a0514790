#!/usr/bin/env bash
# github.com/sjwhitworth/golearn of 2022-12-28: PCA forgets the mean of the data that it was fitted to, and
# overwrites these data.
#
# One would guess: Fit finds a mean and directions, and Transform subtracts that mean, so that rows that
# the PCA was fitted to, and new rows, come to the same place as FitTransform puts them.
# What happens: Fit subtracts the mean in the caller's matrix, and keeps only the directions. Transform of the
# same matrix is right, since its mean is gone by then; a copy of the rows, or new rows of the same kind,
# are off by the mean's projection: scores of −2 to 2 become 14 to 18. A classifier that learns from the
# scores of FitTransform gets shifted ones at prediction. What else reads the matrix after Fit, reads centred
# data.
# Source: github.com/sjwhitworth/golearn v0.0.0-20221228163002-74ae077eafb2, pca/pca.go (Fit, Transform,
# matrixSubVector).
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

	"github.com/sjwhitworth/golearn/pca"
	"gonum.org/v1/gonum/mat"
)

func main() {
	x := mat.NewDense(4, 2, []float64{10, 10, 11, 11.1, 12, 11.9, 13, 13})
	same := mat.DenseCopyOf(x)
	p := pca.NewPCA(1)
	fitted := p.FitTransform(x).RawMatrix().Data
	again := p.Transform(same).RawMatrix().Data
	fmt.Printf("rows, before:            %v\n", same.RawMatrix().Data)
	fmt.Printf("rows, after the fit:     %.4g\n", x.RawMatrix().Data)
	fmt.Printf("their scores, at the fit: %.4f\n", fitted)
	fmt.Printf("their scores, afterwards: %.4f (right: the same)\n", again)
	if math.Abs(again[0]-fitted[0]) < 1 || x.At(0, 0) == 10 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/sjwhitworth/golearn@v0.0.0-20221228163002-74ae077eafb2
go mod tidy >/dev/null 2>&1
echo "github.com/sjwhitworth/golearn $(go list -m -f '{{.Version}}' github.com/sjwhitworth/golearn), $(go version)"
go run .
