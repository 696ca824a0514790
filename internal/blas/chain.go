package blas

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"cne/internal/simd"
)

// chainRows is the number of rows that pass all layers of a Chain together, a multiple of
// the rows of the tiles. Their activations stay in a core's cache.
const chainRows = 96

// An Activation is what a Chain does to the sums of a layer.
type Activation int

const (
	NoActivation Activation = iota
	ReLU                    // max(0, x)
	Softmax                 // exp(x)/Σ exp(x), with the sum over a row
)

// A Chain is a sequence of layers as Linear computes them, bit for bit, with activations between
// them. It holds copies of the weights in the form of the inner loops, and so is fast for a
// single row, too. Any number of goroutines may use a Chain at once.
type Chain[T Float] struct {
	layers  []product[T] // without A and C
	softmax []bool       // of each layer
	kernels *kernels     // that the weights are packed for
	widest  int          // width of a hidden layer
	spaces  sync.Pool    // of chainSpaces
}

// A chainSpace has what one call of Run computes in.
type chainSpace[T Float] struct {
	blocked
	workspace
	hidden [2][]T
}

// NewChain returns the chain of layers of the given widths, from the input to the output.
// Layer l has the weights [widths[l+1], widths[l]] and bias [widths[l+1]] that layer
// returns, and then the activation. Other lengths panic.
func NewChain[T Float](widths []int, layer func(l int) (weights, bias []T, then Activation)) *Chain[T] {
	c := &Chain[T]{kernels: inUse(), spaces: sync.Pool{New: func() any { return new(chainSpace[T]) }}}
	for l, n := range widths[1:] {
		k := widths[l]
		w, bias, then := layer(l)
		if n < 1 || k < 1 || len(w) != n*k || len(bias) != n {
			panic(fmt.Sprintf("blas: %d weights and a bias of %d elements for a layer of %d×%d", len(w), len(bias), n, k))
		}
		p := product[T]{n: n, k: k, alpha: 1, b: newOperand(w, k, k, n, true), bias: slices.Clone(bias), floor: T(math.Inf(-1)), alone: true}
		if then == ReLU {
			p.floor = 0
		}
		c.softmax = append(c.softmax, then == Softmax)
		if l < len(widths)-2 {
			c.widest = max(c.widest, n)
		}
		switch p := any(&p).(type) {
		case *product[float32]:
			pack(p, c.kernels)
		case *product[float64]:
			packAllDoubles(p, c.kernels)
		}
		p.b.data = nil
		c.layers = append(c.layers, p)
	}
	return c
}

// pack sets p.panels.
func pack(p *product[float32], by *kernels) {
	var b blocked
	b.whole(p, by)
	b.packedB = make([]float32, roundUp(p.n, b.panel)*p.k)
	for task := range b.packsB {
		b.pack(task)
	}
	p.panels = b.packedB
}

// packAllDoubles sets p.panels.
func packAllDoubles(p *product[float64], by *kernels) {
	d := doubled{product: *p, doubleKernel: by.doubles}
	p.panels = make([]float64, roundUp(p.n, d.columns)*p.k)
	for j := 0; j < p.n; j += doubleColumns {
		for l := 0; l < p.k; l += doubleDepth {
			d.packB(p.panels[d.panelsAt(j, l):], j, l)
		}
	}
}

// whole makes b compute a product with panels in one round.
func (b *blocked) whole(p *product[float32], by *kernels) {
	b.product, b.kernels, b.packedB = *p, by, p.panels
	b.depth, b.shareA, b.shareB = depthOf(p.k), false, true
	b.l0, b.l1, b.j0, b.j1 = 0, p.k, 0, p.n
	b.packsB = ceil(p.n, b.panel) * ceil(p.k, b.depth)
}

// Run computes the outputs y [m, out] of the rows x [m, in] on the calling goroutine. The
// bits of a row do not depend on the other rows. y must not overlap x. Other lengths panic.
func (c *Chain[T]) Run(y, x []T) {
	in, out := c.layers[0].k, c.layers[len(c.layers)-1].n
	m := len(x) / in
	if len(x) != m*in || len(y) != m*out {
		panic(fmt.Sprintf("blas: %d and %d elements for a chain from %d to %d", len(x), len(y), in, out))
	}
	s := c.spaces.Get().(*chainSpace[T])
	defer c.spaces.Put(s)
	for i := range s.hidden {
		size := min(m, chainRows) * c.widest
		s.hidden[i] = slices.Grow(s.hidden[i][:0], size)[:size]
	}
	for lo := 0; lo < m; lo += chainRows {
		rows := min(chainRows, m-lo)
		from := x[lo*in : (lo+rows)*in]
		for l := range c.layers {
			to := s.hidden[l%2]
			if l == len(c.layers)-1 {
				to = y[lo*out : (lo+rows)*out]
			}
			p := c.layers[l]
			p.m, p.a, p.c = rows, operand[T]{data: from, ld: p.k}, operand[T]{data: to, ld: p.n}
			switch p := any(&p).(type) {
			case *product[float32]:
				s.whole(p, c.kernels)
				s.block(&s.workspace, 0, rows, 0, p.n)
			case *product[float64]:
				multiplyDoubles(p, c.kernels)
			}
			from = to[:rows*p.n]
			if c.softmax[l] {
				simd.SoftmaxRows(from, p.n)
			}
		}
	}
	s.product, s.packedB = product[float32]{}, nil // the matrices are not held
}
