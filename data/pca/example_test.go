package pca_test

import (
	"context"
	"fmt"
	"log"

	"cne/data"
	"cne/data/pca"
)

func ExampleFit() {
	// Four points near the line y = x/2.
	m := &data.Matrix{N: 4, D: 2, X: []float32{0, 0, 2, 1.1, 4, 1.9, 6, 3}}
	components, err := pca.Fit(context.Background(), m, 1)
	if err != nil {
		log.Fatal(err)
	}
	y, err := components.Transform(context.Background(), m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("axis %.3f, %.1f %% of the variance\n", components.Axes, 100*components.Variance[0]/components.TotalVariance)
	fmt.Printf("%.2f\n", y.X)
	// Output:
	// axis [0.898 0.440], 99.9 % of the variance
	// [-3.35 -1.07 1.07 3.35]
}
