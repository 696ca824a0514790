package blas

import (
	"math"

	"cne/internal/parallel"
)

const (
	// A task computes a block of at most doubleRows×doubleColumns, doubleDepth steps at a time.
	// It packs the factors for itself.
	doubleRows, doubleColumns, doubleDepth = 192, 192, 256
	// leastDoubleRows bounds the rows of a block from below where more tasks are wanted.
	leastDoubleRows = 24

	maxDoubleTile = 12 * 16
)

// A doubleKernel is the inner loop in double precision, for tiles of rows×columns.
type doubleKernel struct {
	rows, columns int
	tile          func(k int, a, b, c *float64, ldc int)
}

// A doubled is a product in double precision that is computed by tiles. It is reused.
//
// Each element is added up in steps of doubleDepth, in their order: its bits depend only on
// the depth.
type doubled struct {
	product[float64]
	doubleKernel
	height, blocks int // rows of a block, and blocks side by side
	loop           parallel.Loop
}

// A doubleSpace has the strips of rows and columns that a task packs for a tile, and a
// tile at an edge.
type doubleSpace struct {
	a    [(doubleRows + 12) * doubleDepth]float64
	b    [doubleColumns * doubleDepth]float64
	tile [maxDoubleTile]float64
}

var (
	doubledProducts = parallel.Pool[doubled]{New: func() *doubled {
		p := new(doubled)
		p.loop.Body = func(task, _, _ int) { p.task(task) }
		return p
	}}
	doubleSpaces = parallel.Pool[doubleSpace]{}
)

func multiplyDoubles(what *product[float64], by *kernels) {
	p := doubledProducts.Get()
	p.product, p.doubleKernel = *what, by.doubles
	p.blocks = ceil(p.n, doubleColumns)
	// A serial product needs no more tasks, which would each pack their columns.
	for p.height = doubleRows; !p.alone && p.height > leastDoubleRows && p.blocks*ceil(p.m, p.height) < fewTasks; {
		p.height /= 2
	}
	tasks := p.blocks * ceil(p.m, p.height)
	if p.alone || p.m*p.n*p.k < smallWork {
		for task := range tasks {
			p.task(task)
		}
	} else {
		p.loop.Run(tasks, 1)
	}
	p.product = product[float64]{} // the matrices are not held
	doubledProducts.Put(p)
}

// task computes a block of C.
func (p *doubled) task(task int) {
	i0, j0 := task/p.blocks*p.height, task%p.blocks*doubleColumns
	m, n := min(p.height, p.m-i0), min(doubleColumns, p.n-j0)
	c := p.c.data[i0*p.c.ld+j0:]
	scale(m, n, p.beta, c, p.c.ld)
	w := doubleSpaces.Get()
	defer doubleSpaces.Put(w)
	for l := 0; l < p.k; l += doubleDepth {
		steps := min(doubleDepth, p.k-l)
		packDoubles(w.a[:], &p.a, !p.a.trans, i0, m, l, steps, p.rows, p.alpha)
		columns := w.b[:]
		if p.panels != nil {
			columns = p.panels[p.panelsAt(j0, l):]
		} else {
			p.packB(columns, j0, l)
		}
		for j := 0; j < n; j += p.columns {
			for i := 0; i < m; i += p.rows {
				a, b := &w.a[i*steps], &columns[j*steps]
				if i+p.rows <= m && j+p.columns <= n {
					p.tile(steps, a, b, &c[i*p.c.ld+j], 8*p.c.ld)
					continue
				}
				rows, columns := min(p.rows, m-i), min(p.columns, n-j)
				for r := range rows {
					copy(w.tile[r*p.columns:][:columns], c[(i+r)*p.c.ld+j:])
				}
				p.tile(steps, a, b, &w.tile[0], 8*p.columns)
				for r := range rows {
					copy(c[(i+r)*p.c.ld+j:][:columns], w.tile[r*p.columns:])
				}
			}
		}
	}
	p.finish(m, n, j0, c)
}

// packB packs a block of op(B), from column j0 and step l on.
func (p *doubled) packB(dst []float64, j0, l int) {
	packDoubles(dst, &p.b, p.b.trans, j0, min(doubleColumns, p.n-j0), l, min(doubleDepth, p.k-l), p.columns, 1)
}

// panelsAt returns the index in panels of the block from column j0 and step l on.
func (p *doubled) panelsAt(j0, l int) int {
	return j0*p.k + roundUp(min(doubleColumns, p.n-j0), p.columns)*l
}

// finish adds the bias to an m×n block of C and raises it to the floor.
func (p *doubled) finish(m, n, j0 int, c []float64) {
	if p.bias == nil && math.IsInf(p.floor, -1) {
		return
	}
	for i := range m {
		row := c[i*p.c.ld:][:n]
		if p.bias != nil {
			for j, b := range p.bias[j0 : j0+n] {
				row[j] += b
			}
		}
		for j, v := range row {
			if v < p.floor {
				row[j] = p.floor
			}
		}
	}
}

// scale multiplies an m×n matrix by beta; if beta is 0, the matrix is not read.
func scale(m, n int, beta float64, c []float64, ldc int) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

// packDoubles packs n lines of op(X) from line first on: rows of the left factor or columns
// of the right one, in strips of strip lines. In a strip it writes step after step from l,
// the elements of a step's lines next to each other, times alpha, and filled up with zeros.
// along reports whether the steps of a line lie next to each other as stored.
func packDoubles(dst []float64, o *operand[float64], along bool, first, n, l, steps, strip int, alpha float64) {
	for s := 0; s < n; s += strip {
		lines, out := min(strip, n-s), dst[s*steps:][:strip*steps]
		if lines < strip {
			clear(out)
		}
		if along {
			for r := range lines {
				at := r
				for _, v := range o.data[o.row(first+s+r)+l:][:steps] {
					out[at] = alpha * v
					at += strip
				}
			}
			continue
		}
		for t := range steps {
			to, from := out[t*strip:][:lines], o.data[o.row(l+t)+first+s:][:lines]
			if alpha == 1 {
				copy(to, from)
				continue
			}
			for r, v := range from {
				to[r] = alpha * v
			}
		}
	}
}
