package vm_test

import (
	"fmt"
	"log"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
	"cne/model/vm"
)

// A layer is compiled once, and run on batches of different sizes.
func ExampleCompile() {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(1, 2), gorgonia.WithName("x"))
	w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(1, 2), gorgonia.WithName("w"))
	b := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(1), gorgonia.WithName("b"))
	y, err := op.Linear(x, w, b, op.ReLUActivation)
	if err != nil {
		log.Fatal(err)
	}
	p, err := vm.Compile(nil, y) // nil: on the CPU
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	// Inputs share the memory of slices.
	if err := op.Share(p.Input(w), []float32{2, -1}, 1, 2); err != nil {
		log.Fatal(err)
	}
	if err := op.Share(p.Input(b), []float32{0.5}, 1); err != nil {
		log.Fatal(err)
	}
	for _, batch := range [][]float32{{1, 1}, {1, 1, 0, 3, 3, 0}} {
		if err := op.Share(p.Input(x), batch, len(batch)/2, 2); err != nil {
			log.Fatal(err)
		}
		if err := p.Run(); err != nil {
			log.Fatal(err)
		}
		fmt.Println(op.Data[float32](p.Output(y)))
	}
	// Output:
	// [1.5]
	// [1.5 0 6.5]
}
