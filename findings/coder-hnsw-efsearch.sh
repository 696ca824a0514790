#!/usr/bin/env bash
# github.com/coder/hnsw v0.6.1: EfSearch does not raise the recall of Search, and results are in no order.
#
# One would guess: the more nodes are considered, the more accurate is the search, as the comment of
# EfSearch promises, so that 100 times the default finds almost all of the nearest neighbours; the results
# are ordered by distance.
# What happens: the list of the best that the search keeps has k places, not EfSearch, and it ends
# at the first node none of whose neighbours is the best so far. Of 3000 normal vectors of 16 dimensions,
# the 10 nearest are found with a probability of a sixth, at 20 and at 2000 alike. The results are in
# the order of a heap.
# Source: github.com/coder/hnsw v0.6.1, graph.go (layerNode.search, Graph.Search).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"cmp"
	"fmt"
	"math/rand"
	"os"
	"slices"

	"github.com/coder/hnsw"
)

const points, dims, queries, k = 3000, 16, 100, 10

func vector(r *rand.Rand) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// search returns the share of the k nearest points that Search finds, and the share of
// queries whose results are ordered by distance.
func search(efSearch int) (recall, ordered float64) {
	r := rand.New(rand.NewSource(1))
	g := hnsw.NewGraph[int]()
	g.Distance, g.EfSearch, g.Rng = hnsw.EuclideanDistance, efSearch, rand.New(rand.NewSource(2))
	nodes := make([]hnsw.Node[int], points)
	for i := range nodes {
		nodes[i] = hnsw.MakeNode(i, vector(r))
		g.Add(nodes[i])
	}
	for range queries {
		q := vector(r)
		nearer := func(a, b hnsw.Node[int]) int {
			return cmp.Compare(hnsw.EuclideanDistance(q, a.Value), hnsw.EuclideanDistance(q, b.Value))
		}
		slices.SortFunc(nodes, nearer)
		found := g.Search(q, k)
		for _, n := range found {
			if nearer(n, nodes[k-1]) <= 0 {
				recall += 1. / (queries * k)
			}
		}
		if slices.IsSortedFunc(found, nearer) {
			ordered += 1. / queries
		}
	}
	return recall, ordered
}

func main() {
	r20, o20 := search(20)
	r2000, o2000 := search(2000)
	fmt.Printf("EfSearch 20:   recall %.2f, ordered %.2f\n", r20, o20)
	fmt.Printf("EfSearch 2000: recall %.2f, ordered %.2f\n", r2000, o2000)
	if r20 > 0.5 || r2000 > 0.5 || o20 > 0.5 || o2000 > 0.5 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/coder/hnsw@v0.6.1
go mod tidy >/dev/null 2>&1
echo "github.com/coder/hnsw $(go list -m -f '{{.Version}}' github.com/coder/hnsw), $(go version)"
go run .
