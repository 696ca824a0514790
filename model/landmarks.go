package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model/op"
	"cne/model/vm"
)

// Landmarks describe a network that learns a map: see NewLandmarkMLP.
type Landmarks struct {
	// Points [m, in] are the landmarks, and Positions [m, out] where the map has them.
	Points, Positions *data.Matrix
	// Sharpness is β > 0 of the weights exp(−β‖x−c‖²) of landmarks c for a point x.
	Sharpness float64
	// Hidden is the width of the two ReLU layers, at least 2·in.
	Hidden int
	// Spread is the standard deviation of the points' values. Weights that do not pass
	// points on are drawn with Seed, for values of this size.
	Spread float64
	Seed   uint64
}

// NewLandmarkMLP returns a network of the widths in, Hidden, Hidden, in, m, out with ReLU after
// the first two layers and softmax after the fourth. Landmarks cₖ with positions yₖ have the weights
//
//	p = softmax over k of 2β(cₖ·h − ‖cₖ‖²/2), which is proportional to exp(−β‖h−cₖ‖²)
//
// where h, which the first three layers compute from a point x, is x itself at first:
// relu(x) − relu(−x). All of it can then be trained. In training, x is at the mean Σ pₖ·yₖ;
// otherwise where its landmarks are densest, which is the same if their positions are alike.
func NewLandmarkMLP(l Landmarks) (_ *MLP[float32], err error) {
	defer kind.Catch(&err)
	kind.Need(l.Points != nil && l.Positions != nil && l.Points.CSR == nil && l.Positions.CSR == nil && l.Points.N == l.Positions.N &&
		l.Sharpness > 0 && l.Spread > 0 && l.Hidden >= 2*l.Points.D, ErrInput,
		"model: landmarks: want dense ones, as many positions, a positive sharpness and spread, and hidden layers twice as wide as points")
	in, m := l.Points.D, l.Points.N
	n := kind.Got(newMLP[float32]([]int{in, l.Hidden, l.Hidden, in, m, l.Positions.D}))
	n.acts = landmarkActs
	for layer := range 2 {
		width := n.widths[layer]
		bound := 1 / math.Sqrt(float64(width))
		if layer == 0 {
			bound /= l.Spread
		}
		w, b := n.layer(layer)
		stream := rng.New(l.Seed, rng.Init, uint64(layer))
		drawUniform(w[2*in*width:], bound, &stream)
		drawUniform(b[2*in:], bound, &stream)
	}
	first, _ := n.layer(0)
	second, _ := n.layer(1)
	third, _ := n.layer(2)
	for j := range in {
		first[j*in+j], first[(in+j)*in+j] = 1, -1
		second[j*l.Hidden+j], second[(in+j)*l.Hidden+in+j] = 1, 1
		third[j*l.Hidden+j], third[j*l.Hidden+in+j] = 1, -1
	}
	assign, bias := n.layer(3)
	for k := range m {
		squares := 0.0
		for j, v := range l.Points.Row(k) {
			assign[k*in+j] = float32(2 * l.Sharpness * float64(v))
			squares += float64(float64(v) * float64(v))
		}
		bias[k] = float32(-l.Sharpness * squares)
	}
	last, _ := n.layer(4)
	for k := range m {
		for j, v := range l.Positions.Row(k) {
			last[j*m+k] = v
		}
	}
	return n, nil
}

// densest says that the last layer of a network, whose input is the weights of landmarks, places
// points as modes.place does.
const densest = op.SoftmaxActivation + 1

var landmarkActs = []op.Activation{op.ReLUActivation, op.ReLUActivation, op.NoActivation, op.SoftmaxActivation, densest}

const (
	// inBandwidth is the number of landmarks in a square of the bandwidth of modes, where
	// landmarks are spread evenly over the standard deviation of their positions.
	inBandwidth  = 60
	leastWeight  = 0.01 // of a landmark, as a share of the largest
	stepsOfModes = 5
	partOfModes  = 128 // landmarks
)

// modes are positions of landmarks among which a point is placed where those that it is like are
// densest. Their mean would be between groups, where the map has hardly a point.
type modes[T op.Float] struct {
	positions []float64 // [m, d], in units of h, but for their middle
	middle    []float64 // [d]
	h         float64
	weights   sync.Pool // of []T
}

func newModes[T op.Float](weights, bias []T) *modes[T] {
	d := len(bias)
	m := &modes[T]{positions: make([]float64, len(weights))}
	count, squares := len(weights)/d, 0.0
	for j := range d {
		row, mean := weights[j*count:(j+1)*count], 0.0
		for _, v := range row {
			mean += float64(v) / float64(count)
		}
		for _, v := range row {
			squares += float64((float64(v) - mean) * (float64(v) - mean))
		}
	}
	m.h = math.Sqrt(squares/float64(len(weights))) * elementary.Pow(inBandwidth/float64(count), 1/float64(d))
	if m.h == 0 {
		m.h = 1
	}
	for i, v := range weights {
		m.positions[i%count*d+i/count] = float64(v) / m.h
	}
	m.middle = selection.Map(bias, func(v T) float64 { return float64(v) / m.h })
	return m
}

// place climbs, for each row of a softmax p [r, m], from the mean Σ wₖyₖ/Σ wₖ with
// wₖ = max(0, pₖ − leastWeight·max p) to a mode of Σ wₖ/(1 + |y − yₖ|²/h²) by steps of mean shift,
// and writes the positions to y [r, d].
func (m *modes[T]) place(y, p []T) {
	d := len(m.middle)
	count := len(m.positions) / d
	var near []int
	var tops []T // the largest weight in each part of a row; most parts have no near landmark
	at, sum := make([]float64, d), make([]float64, d)
	for ; len(y) > 0; y, p = y[d:], p[count:] {
		row := p[:count]
		tops = tops[:0]
		for part := range slices.Chunk(row, partOfModes) {
			tops = append(tops, simd.RowMax(part, 0))
		}
		least := T(leastWeight * slices.Max(tops))
		near = near[:0]
		for i, top := range tops {
			for k := i * partOfModes; top > least && k < min((i+1)*partOfModes, count); k++ {
				if row[k] > least {
					near = append(near, k)
				}
			}
		}
		for step := range stepsOfModes + 1 {
			total := 0.0
			clear(sum)
			for _, k := range near {
				w, position := float64(row[k]-least), m.positions[k*d:(k+1)*d]
				if step > 0 {
					q := 1.0
					for j, v := range position {
						q += float64((at[j] - v) * (at[j] - v))
					}
					w /= float64(q * q)
				}
				total += w
				for j, v := range position {
					sum[j] += float64(w * v)
				}
			}
			for j, v := range sum {
				at[j] = v / total
			}
		}
		for j, v := range at {
			y[j] = T((v + m.middle[j]) * m.h)
		}
	}
}

// addTo adds what place does to a graph. Sums are products with ones.
func (m *modes[T]) addTo(g *onnxGraph, p, output string) {
	d := len(m.middle)
	count := len(m.positions) / d
	positions := g.constant("landmarks", selection.As[float32](m.positions), count, d)
	ones := slices.Repeat([]float32{1}, count*d)
	tall, wide := g.constant("tall", ones, count, d), g.constant("wide", ones, d, count)
	largest := g.add("largest", "ReduceMax", []string{p}, onnxAttribute{Name: "axes", Value: []int{1}})
	// OpenCV 4.6 cannot subtract a column from a matrix.
	least := g.add("least", "MatMul", []string{largest, g.constant("share", slices.Repeat([]float32{leastWeight}, count), 1, count)})
	weights := g.add("near", "Relu", []string{g.add("above", "Sub", []string{p, least})})
	// 1 + |y − yₖ|² is the sum of a layer's result and |y|².
	products, squares := make([]float32, len(m.positions)), slices.Repeat([]float32{1}, count)
	for i, v := range m.positions {
		products[i] = float32(-2 * v)
		squares[i/d] += float32(v * v)
	}
	inner, norms := g.constant("products", products, count, d), g.constant("squares", squares, count)
	at := ""
	for step, w := 0, weights; step <= stepsOfModes; step++ {
		name := fmt.Sprintf("step%d", step)
		if step > 0 {
			square := g.add(name+".square", "MatMul", []string{g.add(name+".own", "Mul", []string{at, at}), wide})
			layer := g.add(name+".layer", "Gemm", []string{at, inner, norms}, onnxAttribute{Name: "transB", Value: 1})
			q := g.add(name+".q", "Add", []string{layer, square})
			w = g.add(name+".weights", "Div", []string{weights, g.add(name+".q2", "Mul", []string{q, q})})
		}
		at = g.add(name, "Div", []string{g.add(name+".sum", "MatMul", []string{w, positions}), g.add(name+".total", "MatMul", []string{w, tall})})
	}
	middle := g.add("moved", "Add", []string{at, g.constant("middle", selection.As[float32](m.middle), d)})
	g.add(output, "Mul", []string{middle, g.constant("h", []float32{float32(m.h)}, 1)})
}

// A hostChain is a network ready for the CPU.
type hostChain[T op.Float] struct {
	layers *blas.Chain[T]
	modes  *modes[T] // nil for a network without landmarks
}

// run writes the positions of points x to y, on the calling goroutine.
func (c *hostChain[T]) run(y, x []T) {
	if c.modes == nil {
		c.layers.Run(y, x)
		return
	}
	size := len(y) / len(c.modes.middle) * len(c.modes.positions) / len(c.modes.middle)
	p, _ := c.modes.weights.Get().(*[]T)
	if p == nil {
		p = new([]T)
	}
	*p = slices.Grow((*p)[:0], size)[:size]
	c.layers.Run(*p, x)
	c.modes.place(y, *p)
	c.modes.weights.Put(p)
}

// layer returns the weights and the bias of a layer.
func (n *MLP[T]) layer(l int) (weights, bias []T) {
	return op.Data[T](n.parameters[2*l].Value), op.Data[T](n.parameters[2*l+1].Value)
}

// Refer changes the network f to spread·f((x − center)/unit) + middle, by its first and last
// layers. center has a value for each value of a point, and middle for each of a position.
func (n *MLP[T]) Refer(center []float64, unit float64, middle []float64, spread float64) {
	w, b := n.layer(0)
	in := n.widths[0]
	for i := range b {
		sum := float64(b[i])
		for j, c := range center {
			v := float64(w[i*in+j]) / unit
			w[i*in+j] = T(v)
			sum -= float64(v * c)
		}
		b[i] = T(sum)
	}
	w, b = n.layer(len(n.acts) - 1)
	for i, v := range w {
		w[i] = T(float64(v) * spread)
	}
	for i, v := range b {
		b[i] = T(float64(float64(v)*spread) + middle[i])
	}
	n.chain = nil
}

// After returns the network that maps x to f(axes·(x − mean)), where f is n: points then have the
// width of mean, and n takes their components. Other weights are shared with n, which must not be
// used any more.
func (n *MLP[T]) After(axes, mean []float64) (*MLP[T], error) {
	width := len(mean)
	after, err := newMLP[T](slices.Concat([]int{width}, n.widths[1:]))
	if err != nil {
		return nil, err
	}
	after.acts = n.acts
	w, b := n.layer(0)
	product := timesAxes(w, axes, n.widths[0])
	first, bias := after.layer(0)
	for i := range bias {
		sum := float64(b[i])
		for j, v := range product[i*width : (i+1)*width] {
			first[i*width+j] = T(v)
			sum -= float64(v * mean[j])
		}
		bias[i] = T(sum)
	}
	for i := 2; i < len(n.parameters); i++ {
		after.parameters[i].Value = n.parameters[i].Value
	}
	return after, nil
}

// timesAxes returns the product of a layer's weights [out, in] with axes [in, width] of components.
func timesAxes[T op.Float](weights []T, axes []float64, in int) []float64 {
	out, width := len(weights)/in, len(axes)/in
	product := make([]float64, out*width)
	blas.Gemm(false, false, out, width, in, 1, selection.As[float64](weights), in, axes, width, 0, product, width)
	return product
}

// An Imitation is a network with the graph by which it learns the positions of points: its loss
// is op.Deviation.
type Imitation struct {
	program *vm.Program
	in, out int
	x, y    *op.Array
	loss    *op.Array
	params  []Parameter
}

// NewImitation returns the graph of a network.
func NewImitation(network *MLP[float32]) (_ *Imitation, err error) {
	defer kind.Catch(&err)
	m := new(Imitation)
	m.in, m.out = network.Size()
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(1, m.in), gorgonia.WithName("x"))
	targets := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(1, m.out), gorgonia.WithName("y"))
	y, nodes := network.layersAfter(g, x)
	loss := kind.Got(op.Deviation(y, targets))
	one := g.AddNode(gorgonia.NewConstant(float32(1)))
	grads := kind.Got(gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{one}, nodes))
	m.program = kind.Got(vm.Compile(nil, append(gorgonia.Nodes{loss}, grads...)...))
	m.x, m.y, m.loss = m.program.Input(x), m.program.Input(targets), m.program.Output(loss)
	for i, p := range network.parameters {
		p.Grad = m.program.Output(grads[i])
		m.params = append(m.params, p)
	}
	(*deviceParams)(nil).share(m.program, nodes, network.parameters) // on the CPU
	return m, nil
}

// Parameters returns the weights and biases, layer by layer, with the gradients of the last Step.
func (m *Imitation) Parameters() []Parameter { return m.params }

// Step returns the mean distance of where the network places points x [r, in] from y [r, out],
// and computes its gradients.
func (m *Imitation) Step(x, y []float32) (float64, error) {
	rows := len(y) / m.out
	err := errors.Join(op.Share(m.x, x, rows, m.in), op.Share(m.y, y, rows, m.out))
	if err == nil {
		err = m.program.Run()
	}
	if err != nil {
		return 0, err
	}
	return float64(op.Data[float32](m.loss)[0]), nil
}
