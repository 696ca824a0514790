#!/usr/bin/env bash
# github.com/danaugrs/go-tsne of 2020-07-08: each step of t-SNE adds up the gradients of all steps before it.
#
# One would guess: a step is the learning rate times the gradient at the present map, as comments in the
# source have it: with a rate so small that the map stays where it is, all steps are of the same size.
# What happens: the gradient's matrix is made once and added to, but never set to zero. The sixth step is
# three times the second, and the map is driven on at a constant speed when the divergence has hardly
# more to gain: twice the iterations, twice the size of the map. This is a momentum of 1, where t-SNE's
# is at most 0.8.
# Source: github.com/danaugrs/go-tsne v0.0.0-20200708172100-6b7d1d577fd3, tsne/tsne.go (costGradient).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"

	"github.com/danaugrs/go-tsne/tsne"
	"gonum.org/v1/gonum/mat"
)

// embed returns the sizes of the steps relative to the learning rate, and the size of the map.
func embed(rate float64, iterations int) (steps []float64, size float64) {
	r := rand.New(rand.NewSource(1))
	x := mat.NewDense(60, 4, nil)
	x.Apply(func(i, j int, _ float64) float64 { return r.NormFloat64() + float64(10*(i/20)) }, x)
	var before *mat.Dense
	y := tsne.NewTSNE(2, 10, rate, iterations, false).EmbedData(x, func(_ int, _ float64, y mat.Matrix) bool {
		if before != nil {
			var step mat.Dense
			step.Sub(y, before)
			steps = append(steps, mat.Norm(&step, 2)/rate)
		}
		before = mat.DenseCopyOf(y)
		return false
	})
	return steps, mat.Norm(y, 2)
}

func main() {
	steps, _ := embed(1e-9, 6)
	for i, s := range steps {
		fmt.Printf("step %d: %.3f times step 2\n", i+2, s/steps[0])
	}
	_, size1000 := embed(10, 1000)
	_, size2000 := embed(10, 2000)
	fmt.Printf("size of the map after 1000 iterations %.0f, after 2000 %.0f\n", size1000, size2000)
	if math.Abs(steps[4]/steps[0]-3) > 0.01 || size2000/size1000 < 1.5 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/danaugrs/go-tsne@v0.0.0-20200708172100-6b7d1d577fd3 -require=gonum.org/v1/gonum@v0.17.0
go mod tidy >/dev/null 2>&1
echo "github.com/danaugrs/go-tsne $(go list -m -f '{{.Version}}' github.com/danaugrs/go-tsne), $(go version)"
go run .
