//go:build amd64 && !noasm

package blas

import (
	"fmt"
	"sync"
	"unsafe"

	"cne/internal/parallel"
)

// Sizes of the blocks. A block of B of depthBlock by up to columnsBlock is
// packed at a time and stays in the second-level cache while the rows of A
// pass by; rowsTask bounds the rows that share it from below, so that packing
// does not outweigh the products.
const (
	depthBlock   = 384
	columnsBlock = 512
	rowsTask     = 192
	// taskWork is the least number of multiplications worth another core.
	taskWork = 1 << 21
	maxTasks = 64
	// Rows of A that are a multiple of conflict elements apart meet in the
	// cache; packDepth is from how many steps on a transposed A is copied.
	conflict  = 256
	packDepth = 128

	maxTileRows = 12
)

// An operand is a matrix with the strides, in elements, from one row and one
// column of op(X) to the next.
type operand struct {
	data     []float32
	row, col int
}

// newOperand checks that data holds op(X) of rows×cols and returns it.
func newOperand(data []float32, ld, rows, cols int, trans bool) operand {
	o := operand{data: data, row: ld, col: 1}
	height, width := rows, cols
	if trans {
		o.row, o.col = 1, ld
		height, width = cols, rows
	}
	if ld < max(1, width) {
		panic(fmt.Sprintf("blas: a matrix of %d×%d cannot have rows %d apart", height, width, ld))
	}
	if height > 0 && width > 0 && len(data) < (height-1)*ld+width {
		panic(fmt.Sprintf("blas: %d elements do not hold a matrix of %d×%d with rows %d apart", len(data), height, width, ld))
	}
	return o
}

// product is one call of Gemm.
type product struct {
	m, n, k     int
	alpha, beta float32
	a, b, c     operand
	transB      bool
}

// A buffer holds a packed block of B and a tile's rows of A.
type buffer struct {
	b [depthBlock * columnsBlock]float32
	a [maxTileRows * (depthBlock + 16)]float32
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func (p *product) run() {
	if p.m == 0 || p.n == 0 {
		return
	}
	if p.alpha == 0 {
		p.k = 0 // A and B are not read
	}
	// The grid of tasks depends on the sizes alone.
	panel := 2 * vectorLanes()
	wantTasks := max(1, min(maxTasks, p.m*p.n*p.k/taskWork))
	columns := roundUp(min(p.n, columnsBlock), panel)
	columnTasks := ceil(p.n, columns)
	rowTasks := max(1, min(ceil(wantTasks, columnTasks), p.m/rowsTask))
	rows := roundUp(ceil(p.m, rowTasks), tileRows())
	rowTasks = ceil(p.m, rows)
	for columnTasks*rowTasks < wantTasks && columns > 2*panel {
		columns = roundUp(columns/2, panel)
		columnTasks = ceil(p.n, columns)
	}
	parallel.For(rowTasks*columnTasks, 1, func(task, _, _ int) {
		i, j := task/columnTasks*rows, task%columnTasks*columns
		p.block(i, min(p.m, i+rows), j, min(p.n, j+columns))
	})
}

func ceil(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceil(a, b) * b }

// block computes rows [i0, i1) and columns [j0, j1) of C.
func (p *product) block(i0, i1, j0, j1 int) {
	buffer := buffers.Get().(*buffer)
	defer buffers.Put(buffer)
	packed := buffer.b[:]
	lanes, height := vectorLanes(), tileRows()
	// vectors says how many vectors wide the panel is that begins at column j.
	vectors := func(j int) int { return min(2, ceil(j1-j, lanes)) }
	beta := p.beta
	for l := 0; l == 0 || l < p.k; l += depthBlock {
		depth := min(depthBlock, p.k-l)
		for j := j0; j < j1 && depth > 0; j += 2 * lanes {
			width := lanes * vectors(j)
			p.packB(packed[(j-j0)*depth:], width, l, depth, j, min(width, j1-j))
		}
		for i := i0; i < i1; i += height {
			rows := min(height, i1-i)
			a, rowStride, stepStride := p.rowsOfA(buffer.a[:], i, rows, l, depth)
			for j := j0; j < j1; j += 2 * lanes {
				v := vectors(j)
				tile(rows, v)(depth, a, 4*rowStride, 4*stepStride, unsafe.SliceData(packed[(j-j0)*depth:]),
					&p.c.data[i*p.c.row+j], 4*p.c.row, p.alpha, beta, mask(min(v*lanes, j1-j)))
			}
		}
		beta = 1
	}
}

// rowsOfA returns where columns [l, l+depth) of rows [i, i+rows) of op(A) are
// and the strides between rows and columns. That is where they lie, unless
// they lie so that one after the other falls into the same few places of the
// first-level cache: then they are copied to dst first.
func (p *product) rowsOfA(dst []float32, i, rows, l, depth int) (a *float32, rowStride, stepStride int) {
	if depth == 0 {
		return nil, 0, 0
	}
	first := i*p.a.row + l*p.a.col
	switch {
	case p.a.col == 1 && p.a.row%conflict == 0:
		for r := range rows {
			copy(dst[r*(depthBlock+16):], p.a.data[first+r*p.a.row:][:depth])
		}
		return &dst[0], depthBlock + 16, 1
	case p.a.col > 1 && depth >= packDepth:
		for c := range depth {
			copy(dst[c*rows:(c+1)*rows], p.a.data[first+c*p.a.col:][:rows])
		}
		return &dst[0], 1, rows
	}
	return &p.a.data[first], p.a.row, p.a.col
}

// packB copies columns [j, j+count) of rows [l, l+depth) of op(B) to a panel of
// the given width, row after row, filled up with zeros.
func (p *product) packB(dst []float32, width, l, depth, j, count int) {
	if count < width {
		clear(dst[:depth*width])
	}
	if !p.transB {
		for r := range depth {
			at := (l+r)*p.b.row + j
			copy(dst[r*width:r*width+count], p.b.data[at:at+count])
		}
		return
	}
	// Columns of op(B) are rows of B as stored.
	whole := depth &^ 7
	c := 0
	for ; c+8 <= count && whole > 0; c += 8 {
		transpose8(&dst[c], 4*width, &p.b.data[(j+c)*p.b.col+l], 4*p.b.col, whole)
	}
	for ; c < count; c++ {
		column := p.b.data[(j+c)*p.b.col+l:][:depth]
		for r, v := range column[:whole] {
			dst[r*width+c] = v
		}
	}
	for c := range count {
		column := p.b.data[(j+c)*p.b.col+l:][:depth]
		for r := whole; r < depth; r++ {
			dst[r*width+c] = column[r]
		}
	}
}
