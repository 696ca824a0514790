package data_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"log"
	"os"

	"gonum.org/v1/gonum/mat"

	"cne/data"
)

func ExampleOpen() {
	ds, err := data.Open(context.Background(), []string{"testdata/petals.csv"}, data.Options{
		LabelColumn: "species",
		Drop:        []string{"colour"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Name, ds.Points.N, ds.Points.D, ds.Points.Row(0))
	fmt.Println(ds.Labels.Names, ds.Labels.Class)
	// Output:
	// petals 4 2 [1.4 0.2]
	// [setosa versicolor virginica] [0 1 2 0]
}

func ExampleOpenBlocks() {
	blocks, err := data.OpenBlocks(context.Background(), []string{"testdata/petals.csv"}, data.Options{
		LabelColumn: "species",
		Drop:        []string{"colour"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer blocks.Close()
	block := data.NewMatrix(3, blocks.D())
	for {
		n, err := blocks.Next(block)
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n, block.Row(0), blocks.Labels())
	}
	// Output:
	// 3 [1.4 0.2] [setosa versicolor virginica]
	// 1 [1.5 0.3] [setosa]
}

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
	// data: row 2 (counted from 1) has 1 values, the first has 2; give rows of one width true
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

func ExampleFromImages() {
	photo := image.NewRGBA(image.Rect(0, 0, 6, 4)) // as image.Decode returns it
	draw.Draw(photo, photo.Rect, image.NewUniform(color.RGBA{250, 100, 0, 255}), image.Point{}, draw.Src)
	images, err := data.FromImages([]image.Image{photo}, 2) // of 2×2 pixels
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(images.N, images.H, images.W, images.C, images.Image(0)[:3])
	// Output:
	// 1 2 2 3 [250 100 0]
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

func ExampleWriteCSV() {
	embedding := &data.Matrix{N: 2, D: 2, X: []float32{0.5, -1, 2, 3.25}}
	if err := data.WriteCSV(os.Stdout, embedding, data.NewLabels([]string{"cat", "dog"}), nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// x,y,label
	// 0.5,-1,cat
	// 2,3.25,dog
}

func ExampleDataset_Imbalance() {
	ds, err := data.Builtin("mnist10k")
	if err != nil {
		log.Fatal(err)
	}
	kept, rows, err := ds.Imbalance(0)
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

func ExampleFitCounts() {
	counts, err := data.OpenCounts(context.Background(), []string{"testdata/cells"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	scaling, err := data.FitCounts(counts, 2)
	if err != nil {
		log.Fatal(err)
	}
	ds, err := scaling.Apply(counts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d cells, %d genes of %d\n", ds.Points.N, ds.Points.D, counts.Genes)
	fmt.Printf("%v of %s: %.2f\n", ds.Points.Columns, ds.Names[0], ds.Points.Row(0))
	// Output:
	// 20 cells, 2 genes of 5
	// [gene-2 gene-3] of cell-1: [2.99 0.00]
}
