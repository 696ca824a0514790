package model_test

import (
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"cne/model"
	"cne/model/op"
)

// A table of four points is moved by plain gradient descent on Neg-t-SNE's loss:
// 0 and 1 are neighbours, and so are 2 and 3, but they start the other way round.
// Package train does this with batches of a whole graph.
func ExampleEmbedding() {
	table := []float32{0, 0, 3, 0, 0, 1, 3, 1} // [4, 2]
	e, err := model.NewEmbedding(table, 2, op.ContrastiveOptions{Loss: op.Neg})
	if err != nil {
		log.Fatal(err)
	}
	// One batch with the edges 0–1 and 2–3; each head has the other head as its only
	// negative.
	batch := &model.Batch{
		Rows:      []int32{0, 1, 2, 3}, // the distinct points
		Local:     []int32{0, 2, 1, 3}, // which of Rows are the heads, then the tails
		Negatives: []int32{1, 0},       // for each head, one of these four ends
	}
	for range 500 {
		if _, err := e.Step(batch, math.Log(0.01)); err != nil {
			log.Fatal(err)
		}
		// The gradient belongs to the batch's rows: here to all points, in order.
		for i, g := range op.Data[float32](e.Parameters()[0].Grad) {
			table[i] -= 0.1 * g
		}
	}
	distance := func(i, j int) float64 {
		return math.Hypot(float64(table[2*i]-table[2*j]), float64(table[2*i+1]-table[2*j+1]))
	}
	fmt.Println("0 is nearer to 1 than to 2:", distance(0, 1) < distance(0, 2))
	// Output: 0 is nearer to 1 than to 2: true
}

// A network is saved, loaded again, and projects points. The file is one of PyTorch's
// state dictionaries, too.
func ExampleLoad() {
	network, err := model.NewMLP[float32](4, []int{8}, 2, 1)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cne")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	if err := network.Save(path, nil); err != nil {
		log.Fatal(err)
	}
	saved, err := model.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	in, out := saved.Network.Size()
	points := []float32{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0} // [3, 4]
	positions := make([]float32, len(points)/in*out)
	if err := saved.Network.ProjectTo(positions, points); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(positions)/out, "positions in", out, "dimensions")
	// Output: 3 positions in 2 dimensions
}
