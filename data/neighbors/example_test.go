package neighbors_test

import (
	"context"
	"fmt"
	"log"

	"cne/data"
	"cne/data/neighbors"
)

func Example() {
	// Three points close together, and one at a distance.
	points := &data.Matrix{N: 4, D: 2, X: []float32{
		0, 0,
		1, 0,
		0, 2,
		9, 0,
	}}
	nearest, err := neighbors.KNN(context.Background(), points, 1, neighbors.Options{})
	if err != nil {
		log.Fatal(err)
	}
	graph, err := neighbors.FromNeighbors(nearest)
	if err != nil {
		log.Fatal(err)
	}
	heads, tails := graph.EdgeList()
	for e := range heads {
		fmt.Println(heads[e], "→", tails[e])
	}
	// Output:
	// 0 → 1
	// 0 → 2
	// 1 → 0
	// 1 → 3
	// 2 → 0
	// 3 → 1
}

func ExampleIndex_Search() {
	ctx := context.Background()
	base := &data.Matrix{N: 4, D: 2, X: []float32{
		0, 0,
		1, 0,
		0, 2,
		9, 0,
	}}
	index, err := neighbors.NewIndex(ctx, base, neighbors.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer index.Free()
	queries := &data.Matrix{N: 2, D: 2, X: []float32{
		8, 0,
		1, 1,
	}}
	nearest, err := index.Search(ctx, queries, 2)
	if err != nil {
		log.Fatal(err)
	}
	for i := range nearest.N {
		fmt.Println(nearest.Of(i), nearest.Dist2[i*nearest.K:(i+1)*nearest.K])
	}
	// Output:
	// [3 1] [1 49]
	// [1 0] [1 2]
}
