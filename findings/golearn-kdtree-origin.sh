#!/usr/bin/env bash
# github.com/sjwhitworth/golearn of 2022-12-28: its k-d tree finds points that do not exist, all at the origin
# and all with the number of row 0.
#
# One would guess: Search returns k different rows of the data and their distances, the nearest ones, as
# a search through all rows does.
# What happens: a node whose right side is empty has a placeholder there, with row number 0 and no
# coordinates; when the other side of a node is searched, the placeholder is taken for a point whose
# coordinates are 0. Near the origin such points win: of 200 points in the unit cube, the three nearest to
# the origin are three times row 0, at distance 0, though row 0 is 1.3 away. Far from the origin the
# result is right. Counts, pixels and standardised columns, whose middle is 0, are affected, and so
# are the votes of a KNN classifier with the algorithm "kdtree".
# Source: github.com/sjwhitworth/golearn v0.0.0-20221228163002-74ae077eafb2, kdtree/kdtree.go
# (buildHandle, searchAllNodes).
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
	"slices"

	"github.com/sjwhitworth/golearn/kdtree"
	"github.com/sjwhitworth/golearn/metrics/pairwise"
)

// search prints the five nearest points to a corner of a unit cube, and tells whether the tree finds them.
func search(corner float64) bool {
	r := rand.New(rand.NewSource(1))
	points := make([][]float64, 200)
	for i := range points {
		points[i] = []float64{corner + r.Float64(), corner + r.Float64(), corner + r.Float64()}
	}
	query := []float64{corner, corner, corner}
	distance := make([]float64, len(points))
	for i, p := range points {
		distance[i] = math.Hypot(math.Hypot(p[0]-query[0], p[1]-query[1]), p[2]-query[2])
	}
	tree := kdtree.New()
	if err := tree.Build(points); err != nil {
		panic(err)
	}
	rows, found, err := tree.Search(5, pairwise.NewEuclidean(), query)
	if err != nil {
		panic(err)
	}
	fmt.Printf("cube from %g on: rows %v, distances %.4f\n", corner, rows, found)
	fmt.Printf("  row 0 is at distance %.4f\n", distance[0])
	slices.Sort(distance)
	fmt.Printf("  right: distances %.4f\n", distance[:5])
	for i := range found {
		if math.Abs(found[i]-distance[i]) > 1e-9 {
			return false
		}
	}
	return true
}

func main() {
	if origin, elsewhere := search(0), search(10); origin || !elsewhere {
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
