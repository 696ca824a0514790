package op_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/model/op"
	"cne/model/vm"
)

// withOneOutside calls f with row numbers, all but one below n: enough of them for the
// vector kernels, which would read or write anywhere, and some more.
func withOneOutside(n int, f func(name string, index []int32)) {
	for _, bad := range []int32{-1, int32(n), math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 40, 66} {
			index := make([]int32, 67)
			for i := range index {
				index[i] = int32(i % n)
			}
			index[at] = bad
			f(fmt.Sprintf("%d at %d", bad, at), index)
		}
	}
}

// Every operation that takes row numbers checks them before its kernel does not.
func TestRowNumbersOutOfRange(t *testing.T) {
	const n, count = 50, 67
	points := func(g *gorgonia.ExprGraph, rows int) *gorgonia.Node {
		return matrixOf(g, tensor.Float32, "x", rows, 2, normals(2*rows, 1))
	}
	layer := func(g *gorgonia.ExprGraph) (w, b *gorgonia.Node) {
		return matrixOf(g, tensor.Float32, "w", 3, 2, normals(6, 2)), vectorOf(g, tensor.Float32, "b", normals(3, 3))
	}
	for name, apply := range map[string]func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error){
		"gather": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			return op.Gather(points(g, n), indexOf(g, index))
		},
		"scatter": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			like := matrixOf(g, tensor.Float32, "like", n, 2, normals(2*n, 4))
			return op.ScatterAdd(points(g, count), indexOf(g, index), like)
		},
		"linear": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			w, b := layer(g)
			return op.LinearRows(points(g, n), indexOf(g, index), w, b, op.ReLUActivation)
		},
		"sparse linear": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			w, b := layer(g)
			return op.LinearOfSparse(op.NewSparse(make([]float32, 2*n), 2), indexOf(g, index), w, b, op.ReLUActivation)
		},
		"contrastive": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			return negativesOf(g, 2, op.Euclidean, index)
		},
		"contrastive, three dimensions": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			return negativesOf(g, 3, op.Euclidean, index)
		},
		"contrastive, cosine": func(g *gorgonia.ExprGraph, index []int32) (*gorgonia.Node, error) {
			return negativesOf(g, 3, op.Cosine, index)
		},
	} {
		rows := n
		if strings.HasPrefix(name, "contrastive") {
			rows = 2 * count
		}
		withOneOutside(rows, func(which string, index []int32) {
			y := gorgonia.Must(apply(gorgonia.NewGraph(), index))
			p, err := vm.Compile(nil, y)
			must(t, err)
			bad := index[slices.IndexFunc(index, func(i int32) bool { return i < 0 || int(i) >= rows })]
			if err := p.RunAll(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("got %d, want", bad)) && !strings.Contains(err.Error(), fmt.Sprintf("got row %d, want", bad)) {
				t.Errorf("%s, %s: %v", name, which, err)
			}
		})
	}
}

// negativesOf returns the loss of as many edges as there are negatives, one of each.
func negativesOf(g *gorgonia.ExprGraph, d int, metric op.Metric, negatives []int32) (*gorgonia.Node, error) {
	b := len(negatives)
	features := matrixOf(g, tensor.Float32, "features", 2*b, d, normals(2*b*d, 1))
	n := gorgonia.NewMatrix(g, tensor.Int32, gorgonia.WithName("negatives"),
		gorgonia.WithValue(tensor.New(tensor.WithShape(1, b), tensor.WithBacking(negatives))))
	theta := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("theta"), gorgonia.WithValue(float32(0)))
	return op.Contrastive(features, n, noRuns(g), theta, op.ContrastiveOptions{Metric: metric})
}
