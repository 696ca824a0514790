package counts_test

import (
	"context"
	"fmt"
	"log"

	"cne/data/counts"
	"cne/data/file"
)

func ExampleFit() {
	read, err := counts.Open(context.Background(), []string{"testdata/cells"}, file.Options{})
	if err != nil {
		log.Fatal(err)
	}
	scaling, err := counts.Fit(read, 2)
	if err != nil {
		log.Fatal(err)
	}
	ds, err := scaling.Apply(read)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d cells, %d genes of %d\n", ds.Points.N, ds.Points.D, read.Genes)
	fmt.Printf("%v of %s: %.2f\n", ds.Points.Columns, ds.Names[0], ds.Points.Row(0))
	// Output:
	// 20 cells, 2 genes of 5
	// [gene-2 gene-3] of cell-1: [2.99 0.00]
}
