package neighbors_test

import (
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
	nearest, err := neighbors.KNN(points, 1)
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
