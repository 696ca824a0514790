package main

import (
	"context"
	"flag"
	"fmt"

	"cne/internal/plot"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
	"cne/train/quality"
)

// toy embeds three points at equal distances with Neg-t-SNE at many normalisation
// constants Z̄ (Supp. I of the paper). Each point is the neighbour of both others. The
// partition function, the sum of 1/(1+d²) over the six ordered pairs, should be Z̄ as
// long as Z̄ is below 6, which it reaches when all points meet; for a larger Z̄ they do
// meet.
func toy(flags *flag.FlagSet) drawing {
	epochs := flags.Int("epochs", 20000, "epochs of one batch each")
	lr := flags.Float64("lr", 0.01, "learning rate, which falls to 0")
	return func(ctx context.Context, _ []string) (string, *plot.Curves, error) {
		return threePoints(ctx, *epochs, *lr)
	}
}

// threePoints returns the table and the curve of toy.
func threePoints(ctx context.Context, epochs int, lr float64) (string, *plot.Curves, error) {
	var zBar, partition []float64
	table := "| Z̄ | partition function |\n|---|---|\n"
	for z := 0.5; z <= 10; z += 0.5 {
		p, err := embed(ctx, z, epochs, lr)
		if err != nil {
			return "", nil, err
		}
		zBar, partition = append(zBar, z), append(partition, p)
		table += fmt.Sprintf("| %.1f | %.4f |\n", z, p)
	}
	most := []float64{0, 6, 10}
	return table, &plot.Curves{Panels: []plot.Panel{{
		XLabel: "Z̄", YLabel: "partition function",
		Series: []plot.Series{
			{Name: "three points", X: zBar, Y: partition, Marker: true},
			{Name: "Z̄, at most 6", X: most, Y: []float64{0, 6, 6}, Dashed: true},
		},
	}}}, nil
}

// embed places the three points at Z̄ and returns their partition function.
func embed(ctx context.Context, zBar float64, epochs int, lr float64) (float64, error) {
	start, err := initial.Random[float64](3, 2, 1, 0)
	if err != nil {
		return 0, err
	}
	m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10})
	if err != nil {
		return 0, err
	}
	// The 11 other endpoints of the batch are 4 of each other point and 3 of the head's own,
	// so that the noise is ξ = 4/33 for each pair, where Z̄·m/|X| takes it for 1/9.
	const uniform, exact = 1. / 9, 4. / 33
	_, err = train.Fit(ctx, m, []int32{0, 0, 1, 1, 2, 2}, []int32{1, 2, 0, 2, 0, 1}, train.Options{
		Phases: []train.Phase{{Epochs: epochs, LR: lr, Negatives: 5, Spectrum: train.FromZBar(zBar * exact / uniform)}},
	})
	if err != nil {
		return 0, err
	}
	return quality.PartitionFunction(ctx, m.Table(), 2)
}
