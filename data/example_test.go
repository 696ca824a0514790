package data_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"cne/data"
	"cne/data/file"
)

func ExampleFromRows() {
	m, err := data.FromRows([][]float64{{0, 3}, {4, 0}, {1, 1}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.N, m.D, m.Row(1))
	fmt.Println(mat.Norm(m, 2)) // gonum's functions take it
	_, err = data.FromRows([][]float64{{0, 3}, {4}})
	fmt.Println(err, errors.Is(err, data.ErrShape))
	// Output:
	// 3 2 [4 0]
	// 5.196152422706632
	// data: values of row 2 (counted from 1): got 1, want 2 as in the first true
}

func ExampleFromMat() {
	m, err := data.FromMat(mat.NewDiagDense(2, []float64{1, 2}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.X)
	// Output:
	// [1 0 0 2]
}

func ExampleDataset_Scale() {
	train := &data.Dataset{Points: &data.Matrix{N: 2, D: 2, X: []float32{1, 10, 3, 30}}}
	scaler, err := train.Scale(context.Background(), data.ScaleStandard)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Points.X)

	// New points are scaled as the old ones were.
	test := &data.Matrix{N: 1, D: 2, X: []float32{2, 40}}
	if err := scaler.Apply(test); err != nil {
		log.Fatal(err)
	}
	fmt.Println(test.X)
	// Output:
	// [-1 -1 1 1]
	// [0 2]
}

func ExampleLabels_Imbalance() {
	ds, err := file.Builtin("mnist10k")
	if err != nil {
		log.Fatal(err)
	}
	rows, err := ds.Labels.Imbalance(0)
	if err != nil {
		log.Fatal(err)
	}
	kept, err := ds.Take(rows)
	if err != nil {
		log.Fatal(err)
	}
	counts := make([]int, len(kept.Labels.Names))
	for _, c := range kept.Labels.Class {
		counts[c]++
	}
	fmt.Println(len(rows), counts)
	// Output:
	// 5553 [980 1021 825 707 589 446 383 308 194 100]
}
