package simclr_test

import (
	"context"
	"fmt"

	"cne/data"
	"cne/data/images"
	"cne/simclr"
)

// How well raw pixels tell bright images from dark ones: the figures that a
// network's features, from Features, have to beat.
func ExampleEvaluation() {
	images := &images.Set{Name: "made", N: 200, H: 2, W: 2, C: 3}
	labels := make([]string, images.N)
	for i := range images.N {
		labels[i] = [...]string{"dark", "bright"}[i%2]
		for p := range 12 {
			images.Pixels = append(images.Pixels, byte(20+150*(i%2)*(p%3)/2+(7*i+p*p)%50))
		}
	}
	images.Labels = data.NewLabels(labels)

	features, err := simclr.Pixels(images, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	evaluation := simclr.Evaluation{K: 5, Seeds: []uint64{1, 2, 3}, Test: 40}
	result, err := evaluation.Run(context.Background(), features, images)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("kNN %.2f ± %.2f, linear %.2f ± %.2f on %d test images\n",
		result.KNN.Mean, result.KNN.Std, result.Linear.Mean, result.Linear.Std, result.Test)
	// Output: kNN 1.00 ± 0.00, linear 1.00 ± 0.00 on 40 test images
}
