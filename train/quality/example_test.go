package quality_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"

	"cne/data"
	"cne/train/quality"
)

// coil returns points on two turns of a coil in space, and the coil as seen from
// the side.
func coil(n int) (points, side *data.Matrix) {
	rows, view := make([][]float64, n), make([][]float64, n)
	for i := range rows {
		t := 4 * math.Pi * float64(i) / float64(n)
		rows[i] = []float64{math.Cos(t), math.Sin(t), t / 8}
		view[i] = []float64{math.Cos(t), t / 8}
	}
	points, err := data.FromRows(rows)
	if err != nil {
		log.Fatal(err)
	}
	if side, err = data.FromRows(view); err != nil {
		log.Fatal(err)
	}
	return points, side
}

// The zero value of the options measures all that can be measured. A figure that
// cannot, as the accuracy of a classifier without labels, is nil.
func ExampleMeasure() {
	points, embedding := coil(500)
	f, err := quality.Measure(context.Background(), points, embedding, quality.Options{K: 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("kNN recall         %.3f\n", *f.KNNRecall)
	fmt.Printf("trustworthiness    %.3f\n", *f.Trustworthiness)
	fmt.Printf("Spearman           %.3f\n", *f.Spearman)
	fmt.Printf("partition function %.0f\n", *f.PartitionFunction)
	fmt.Printf("KL divergence      %.3f\n", *f.KL)
	fmt.Println("accuracy measured:", f.Accuracy != nil)
	// Output:
	// kNN recall         0.963
	// trustworthiness    1.000
	// Spearman           0.692
	// partition function 130521
	// KL divergence      3.260
	// accuracy measured: false
}

// With labels, and without what takes longest.
func ExampleMeasure_labels() {
	points, embedding := coil(500)
	turns := make([]string, points.N)
	for i := range turns {
		turns[i] = []string{"lower", "upper"}[2*i/len(turns)]
	}
	f, err := quality.Measure(context.Background(), points, embedding, quality.Options{
		Labels: data.NewLabels(turns),
		Skip:   quality.MetricTrustworthiness,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("accuracy %.3f, trustworthiness measured: %v\n", *f.Accuracy, f.Trustworthiness != nil)
	// Output:
	// accuracy 1.000, trustworthiness measured: false
}

func ExamplePartitionFunction() {
	// Three points at the corners of a triangle with sides 1, 1 and √2.
	z, err := quality.PartitionFunction(context.Background(), []float32{0, 0, 1, 0, 0, 1}, 2)
	fmt.Printf("%.4f %v\n", z, err)
	_, err = quality.PartitionFunction(context.Background(), []float32{0, float32(math.NaN())}, 2)
	fmt.Println(err)
	fmt.Println(errors.Is(err, quality.ErrNotFinite))
	// Output:
	// 2.6667 <nil>
	// quality: coordinate is not finite: point 0 of the embedding (counted from 0): got NaN as coordinate 1
	// true
}

// Align turns an embedding onto another of the same points.
func ExampleAlign() {
	reference, _ := data.FromRows([][]float64{{0, 0}, {2, 0}, {0, 1}})
	turned, _ := data.FromRows([][]float64{{5, 5}, {5, 6}, {4.5, 5}}) // by 90°, moved, and half as large
	scale, disparity, err := quality.Align(turned, reference, false)
	fmt.Printf("%.2f %.2f %v\n", scale, disparity, err)
	// Output:
	// 2.00 0.00 <nil>
}
