package op_test

import (
	"fmt"
	"log"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
)

// InfoNCE of two edges on the cosine similarity, and its gradient, computed by
// Gorgonia's own machine. Heads are the first two rows, tails the last two.
func ExampleContrastive() {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("x"), gorgonia.WithValue(
		tensor.New(tensor.WithShape(4, 2), tensor.WithBacking([]float64{1, 0, 0, 1, 1, 0, 0, 1}))))
	negatives := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithName("negatives"), gorgonia.WithValue(
		tensor.New(tensor.WithShape(1, 2), tensor.WithBacking([]int32{1, 0})))) // each head's is the other head
	runs := gorgonia.NewVector(g, tensor.Int32, gorgonia.WithName("runs"), gorgonia.WithValue(
		tensor.New(tensor.WithShape(1), tensor.WithBacking([]int32{0})))) // negatives are listed one by one
	theta := gorgonia.NewScalar(g, tensor.Float64, gorgonia.WithName("theta"), gorgonia.WithValue(0.)) // log ρ

	unit, err := op.Normalize(x)
	if err != nil {
		log.Fatal(err)
	}
	loss, err := op.Contrastive(unit, negatives, runs, theta, op.ContrastiveOptions{
		Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5, Mean: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	grads, err := gorgonia.Grad(loss, x)
	if err != nil {
		log.Fatal(err)
	}
	machine := gorgonia.NewTapeMachine(g)
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loss %.4f = log(e²+e⁰) − 2\n", loss.Value().Data())
	fmt.Printf("gradient of the first head %.4f\n", grads[0].Value().Data().([]float64)[:2])
	// Output:
	// loss 0.1269 = log(e²+e⁰) − 2
	// gradient of the first head [0.0000 0.2384]
}
