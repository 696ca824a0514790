package op

import (
	"fmt"
	"slices"
	"testing"

	gonumblas "gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/rng"
)

// drawn returns n normal numbers.
func drawn(n int, s *rng.Stream) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(s.Normal())
	}
	return x
}

func TestEngineMultipliesLikeGonum(t *testing.T) {
	transposes := []gonumblas.Transpose{gonumblas.NoTrans, gonumblas.Trans, gonumblas.ConjTrans}
	for _, size := range [][3]int{{1, 1, 1}, {0, 2, 3}, {2, 3, 0}, {13, 33, 7}, {70, 20, 130}} {
		for _, tA := range transposes {
			for _, tB := range transposes {
				for _, f := range [][2]float32{{1, 0}, {-2, 0.5}, {0, 1}} {
					m, n, k := size[0], size[1], size[2]
					s := rng.New(1, rng.Sample)
					// Every matrix may be stored either way with rows this far apart.
					ld := max(m, n, k) + 1
					a, b, c := drawn(ld*ld, &s), drawn(ld*ld, &s), drawn(ld*ld, &s)
					want := slices.Clone(c)
					gonum.Implementation{}.Sgemm(tA, tB, m, n, k, f[0], a, ld, b, ld, f[1], want, ld)
					engine{}.Sgemm(tA, tB, m, n, k, f[0], a, ld, b, ld, f[1], c, ld)
					sameAs(t, fmt.Sprintf("%v %c %c alpha %g beta %g", size, tA, tB, f[0], f[1]), c, want, 1e-4)
				}
			}
		}
	}
}

func TestEngineRefusesWhatGonumRefuses(t *testing.T) {
	x := make([]float32, 4)
	for name, f := range map[string]func(){
		"transposition": func() { engine{}.Sgemm('x', gonumblas.NoTrans, 2, 2, 2, 1, x, 2, x, 2, 0, x, 2) },
		"short":         func() { engine{}.Sgemm(gonumblas.NoTrans, gonumblas.NoTrans, 3, 2, 2, 1, x, 2, x, 2, 0, x, 2) },
		"stride":        func() { engine{}.Sgemm(gonumblas.NoTrans, gonumblas.Trans, 2, 2, 2, 1, x, 1, x, 2, 0, x, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// stock runs Gorgonia's own product of a [m, k] and b [k, n], which the
// arguments transA and transB make of transposed nodes, and its gradients for
// a result's gradient g.
func stock(t testing.TB, m, n, k int, transA, transB bool, a, b, g []float32) (c, da, db []float32) {
	t.Helper()
	graph := gorgonia.NewGraph()
	node := func(name string, rows, cols int, trans bool, data []float32) (input, used *gorgonia.Node) {
		if trans {
			rows, cols = cols, rows
		}
		input = gorgonia.NewMatrix(graph, gorgonia.Float32, gorgonia.WithName(name), gorgonia.WithShape(rows, cols),
			gorgonia.WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(slices.Clone(data)))))
		if trans {
			return input, gorgonia.Must(gorgonia.Transpose(input))
		}
		return input, input
	}
	inA, nodeA := node("a", m, k, transA, a)
	inB, nodeB := node("b", k, n, transB, b)
	_, nodeG := node("g", m, n, false, g)
	product := gorgonia.Must(gorgonia.Mul(nodeA, nodeB))
	cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(product, nodeG))))
	grads, err := gorgonia.Grad(cost, inA, inB)
	if err != nil {
		t.Fatal(err)
	}
	var values [3]gorgonia.Value
	for i, n := range []*gorgonia.Node{product, grads[0], grads[1]} {
		gorgonia.Read(n, &values[i])
	}
	machine := gorgonia.NewTapeMachine(graph)
	defer machine.Close()
	if err := machine.RunAll(); err != nil {
		t.Fatal(err)
	}
	data := func(v gorgonia.Value) []float32 { return v.(*tensor.Dense).Materialize().Data().([]float32) }
	return data(values[0]), data(values[1]), data(values[2])
}

func TestAccelerate(t *testing.T) {
	defer gorgonia.Use(gorgonia.WhichBLAS())
	const m, n, k = 70, 33, 50
	for trans := range 4 {
		transA, transB := trans&1 != 0, trans&2 != 0
		t.Run(fmt.Sprintf("transposed %v %v", transA, transB), func(t *testing.T) {
			s := rng.New(1, rng.Sample)
			a, b, g := drawn(m*k, &s), drawn(k*n, &s), drawn(m*n, &s)
			gorgonia.Use(gonum.Implementation{})
			wantC, wantA, wantB := stock(t, m, n, k, transA, transB, a, b, g)
			Accelerate()
			if _, ok := tensor.WhichBLAS().(engine); !ok {
				t.Fatal("Gorgonia uses another implementation")
			}
			c, da, db := stock(t, m, n, k, transA, transB, a, b, g)
			sameAs(t, "the product", c, wantC, 1e-4)
			sameAs(t, "the gradient of a", da, wantA, 1e-4)
			sameAs(t, "the gradient of b", db, wantB, 1e-4)
		})
	}
}

func BenchmarkStockProduct(b *testing.B) {
	defer gorgonia.Use(gorgonia.WhichBLAS())
	const m, n, k = 2048, 100, 784
	s := rng.New(1, rng.Sample)
	graph := gorgonia.NewGraph()
	matrix := func(name string, rows, cols int) *gorgonia.Node {
		return gorgonia.NewMatrix(graph, gorgonia.Float32, gorgonia.WithName(name), gorgonia.WithShape(rows, cols),
			gorgonia.WithValue(tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(drawn(rows*cols, &s)))))
	}
	gorgonia.Must(gorgonia.Mul(matrix("a", m, k), matrix("b", k, n)))
	for name, use := range map[string]func(){
		"gonum":      func() { gorgonia.Use(gonum.Implementation{}) },
		"accelerate": Accelerate,
	} {
		b.Run(name, func(b *testing.B) {
			use()
			machine := gorgonia.NewTapeMachine(graph)
			defer machine.Close()
			for b.Loop() {
				if err := machine.RunAll(); err != nil {
					b.Fatal(err)
				}
				machine.Reset()
			}
		})
	}
}
