package file_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"cne/data"
	"cne/data/file"
)

func ExampleRead() {
	ds, err := file.Read(context.Background(), []string{"testdata/petals.csv"}, file.Options{
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

func ExampleOpen() {
	blocks, err := file.Open(context.Background(), []string{"testdata/petals.csv"}, file.Options{
		LabelColumn: "species",
		Drop:        []string{"colour"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer blocks.Close()
	block := data.NewMatrix(3, blocks.Width())
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

func ExampleWriteCSV() {
	embedding := &data.Matrix{N: 2, D: 2, X: []float32{0.5, -1, 2, 3.25}}
	if err := file.WriteCSV(os.Stdout, embedding, data.NewLabels([]string{"cat", "dog"}), nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// x,y,label
	// 0.5,-1,cat
	// 2,3.25,dog
}
