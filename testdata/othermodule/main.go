// Command other uses cne as a module of its own: it embeds a gonum matrix, measures,
// saves, loads and projects.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"cne"
	"cne/data"
	"cne/train/quality"
)

func main() {
	ctx, m, random := context.Background(), mat.NewDense(500, 8, nil), rand.New(rand.NewPCG(1, 2))
	m.Apply(func(i, _ int, _ float64) float64 { return float64(i%5) + 0.1*random.NormFloat64() }, m)
	points, err := data.FromMat(m)
	check(err)
	e, err := cne.Embed(ctx, points, cne.Options{Epochs: 100})
	check(err)
	figures, err := quality.Measure(ctx, points, e.Positions, quality.Options{})
	check(err)
	check(e.Save("model.safetensors"))
	loaded, err := cne.Load("model.safetensors")
	check(err)
	positions, err := loaded.Project(ctx, points.Rows(0, 10))
	check(err)
	fmt.Printf("kNN recall %.2f; new points at\n%.1f\n", *figures.KNNRecall, mat.Formatted(positions))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
