package blas

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

const (
	// MaxSparseColumns is the width of the widest Sparse matrix.
	MaxSparseColumns = 1 << 16

	// A task has forwardRows rows, or packedColumns columns of the weights.
	forwardRows, packedColumns = 64, 64
	// gradRows is the least number of rows that get a gradient of their own.
	// These gradients are added up. There are at most maxGrads of them, and at
	// most two or as many as have gradElements in all.
	gradRows, maxGrads, gradElements = 512, 8, 1 << 24
	// columnParts is the number of parts of the columns for the gradient, if there
	// is more than one core: the pieces of the rows are few.
	columnParts = 4
	// maxChunk is the number of vectors of outputs that fit the registers.
	maxChunk = 8
)

// A Sparse matrix holds the elements of its rows that are not zero, for Linear
// and LinearGrad. It does not change, and may be used by several goroutines.
type Sparse struct {
	rows, cols int
	start      []int // row r has the elements from start[r] to start[r+1]
	col        []uint16
	val        []float32
	// marks[(columnParts-1)*r+k] is where the elements of row r in part k+1 of the
	// columns begin, from start[r] on.
	marks []uint32
}

// NewSparse returns the matrix [rows, cols] that x holds row after row. It has
// at most MaxSparseColumns columns.
func NewSparse(x []float32, rows, cols int) *Sparse {
	if rows < 0 || cols < 1 || cols > MaxSparseColumns || len(x) != rows*cols {
		panic(fmt.Sprintf("blas: %d elements are no sparse matrix of %d×%d", len(x), rows, cols))
	}
	s := &Sparse{rows: rows, cols: cols, start: make([]int, rows+1)}
	const grain = 256
	parallel.For(rows, grain, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			s.start[r+1] = Nonzeros(x[r*cols : (r+1)*cols])
		}
	})
	selection.Accumulate(s.start)
	s.col, s.val = make([]uint16, s.start[rows]), make([]float32, s.start[rows])
	parallel.For(rows, grain, func(_, lo, hi int) {
		at := s.start[lo]
		for r := lo; r < hi; r++ {
			for c, v := range x[r*cols : (r+1)*cols] {
				if v != 0 {
					s.col[at], s.val[at] = uint16(c), v
					at++
				}
			}
		}
	})
	s.mark()
	return s
}

// mark finds where the parts of the columns begin in each row.
func (s *Sparse) mark() {
	const marks = columnParts - 1
	s.marks = make([]uint32, marks*s.rows)
	parallel.For(s.rows, 1<<10, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			row := s.col[s.start[r]:s.start[r+1]]
			at := 0
			for k := range marks {
				first := (k + 1) * s.cols / columnParts
				for at < len(row) && int(row[at]) < first {
					at++
				}
				s.marks[marks*r+k] = uint32(at)
			}
		}
	})
}

// SparseOf returns the matrix [len(start)-1, cols] whose elements of row r are
// values[start[r]] to values[start[r+1]-1], in ascending columns. cols is at most
// MaxSparseColumns. The matrix shares start and values, which must not change.
func SparseOf(start []int, columns []int32, values []float32, cols int) *Sparse {
	if len(start) < 1 || cols < 1 || cols > MaxSparseColumns || len(columns) != len(values) || start[len(start)-1] != len(values) {
		panic(fmt.Sprintf("blas: %d elements are no sparse matrix of %d×%d", len(values), len(start)-1, cols))
	}
	s := &Sparse{rows: len(start) - 1, cols: cols, start: start, col: make([]uint16, len(columns)), val: values}
	parallel.For(len(columns), 1<<16, func(_, lo, hi int) {
		for i, c := range columns[lo:hi] {
			if c < 0 || int(c) >= cols {
				panic(fmt.Sprintf("blas: element %d is in column %d of %d", lo+i, c, cols))
			}
			s.col[lo+i] = uint16(c)
		}
	})
	s.mark()
	return s
}

// Nonzeros counts the elements that are not zero.
func Nonzeros(x []float32) int {
	n := 0
	for _, v := range x {
		if v != 0 {
			n++
		}
	}
	return n
}

// Size returns the numbers of rows and of columns.
func (s *Sparse) Size() (rows, cols int) { return s.rows, s.cols }

// Elements returns the elements that are not zero, row after row, with their
// columns: row r has the elements from start[r] to start[r+1]. The slices are the
// matrix's own and must not be changed.
func (s *Sparse) Elements() (start []int, columns []uint16, values []float32) {
	return s.start, s.col, s.val
}

// Linear computes Y = act(X[rows]·Wᵀ + bias) for the sparse matrix X: rows [m]
// picks its rows (nil: all), W is n×cols as stored, bias [n] may be nil, relu
// clips below at 0, and Y is m×n. A row of Y has the same bits whatever the
// others are. A weight that is not finite shows only in rows that have an element for
// it.
func (s *Sparse) Linear(rows []int32, n int, w []float32, ldw int, bias []float32, relu bool, y []float32, ldy int) {
	m := s.check(rows)
	checkMatrix(len(w), ldw, n, s.cols)
	checkMatrix(len(y), ldy, m, n)
	if bias != nil && len(bias) != n {
		panic(fmt.Sprintf("blas: a bias of %d elements for %d outputs", len(bias), n))
	}
	if m == 0 || n == 0 {
		return
	}
	p := sparseProducts.Get()
	p.Sparse, p.index, p.m, p.n = s, rows, m, n
	p.w, p.ldw, p.bias, p.relu, p.y, p.ldy = w, ldw, bias, relu, y, ldy
	p.kernels, p.padded = inUse(), roundUp(n, inUse().lanes)
	p.weights = resize(p.weights, (s.cols+1)*p.padded)
	clear(p.weights[s.cols*p.padded:])
	copy(p.weights[s.cols*p.padded:], bias)
	p.pack.Run(s.cols, packedColumns)
	p.forward.Run(m, forwardRows)
	p.put()
}

// LinearGrad computes dW = Gᵀ·X[rows] for the sparse matrix X: G is m×n, rows
// as above, and dW is n×cols.
func (s *Sparse) LinearGrad(rows []int32, n int, g []float32, ldg int, dw []float32, lddw int) {
	m := s.check(rows)
	checkMatrix(len(g), ldg, m, n)
	checkMatrix(len(dw), lddw, n, s.cols)
	if n == 0 {
		return
	}
	p := sparseProducts.Get()
	p.Sparse, p.index, p.m, p.n = s, rows, m, n
	p.y, p.ldy, p.w, p.ldw = g, ldg, dw, lddw
	p.kernels, p.padded = inUse(), roundUp(n, inUse().lanes)
	p.grain = max(1, ceil(m, max(1, min(maxGrads, m/gradRows, max(2, gradElements/(s.cols*roundUp(n, 16)))))))
	p.grads = parallel.Pieces(m, p.grain)
	p.weights = resize(p.weights, (p.grads+1)*s.cols*p.padded)
	p.parts = 1
	if runtime.GOMAXPROCS(0) > 1 {
		p.parts = columnParts
	}
	p.backward.Run(p.grads*p.parts, 1)
	p.collect.Run(s.cols, packedColumns)
	p.put()
}

// check checks an index and returns the number of rows that it names.
func (s *Sparse) check(rows []int32) int {
	if rows == nil {
		return s.rows
	}
	for i, r := range rows {
		if r < 0 || int(r) >= s.rows {
			panic(fmt.Sprintf("blas: row %d of the index is %d, but there are %d rows", i, r, s.rows))
		}
	}
	return len(rows)
}

// A sparseProduct is one call of Linear or LinearGrad. It is reused.
type sparseProduct struct {
	*Sparse
	*kernels
	index  []int32
	m, n   int
	padded int // n in full vectors

	w, y, bias []float32 // for the gradient w and y are dW and G
	ldw, ldy   int
	relu       bool

	// weights holds Wᵀ [cols, padded] and the bias [padded] or, for LinearGrad,
	// a gradient like Wᵀ for each piece of the rows, then their sum. The outputs
	// are cut into chunks of up to maxChunk vectors, and each chunk's columns of
	// Wᵀ are together.
	weights      []float32
	grads, grain int
	parts        int // of the columns, with tasks of their own: 1 or columnParts

	pack, forward, backward, collect parallel.Loop
}

var sparseProducts = parallel.Pool[sparseProduct]{New: func() *sparseProduct {
	p := new(sparseProduct)
	p.pack.Body = func(_, lo, hi int) { p.packColumns(lo, hi) }
	p.forward.Body = func(_, lo, hi int) { p.forwardRows(lo, hi) }
	p.backward.Body = func(task, _, _ int) { p.backwardRows(task/p.parts, task%p.parts) }
	p.collect.Body = func(_, lo, hi int) { p.collectColumns(lo, hi) }
	return p
}}

func (p *sparseProduct) put() {
	p.Sparse, p.index, p.w, p.y, p.bias = nil, nil, nil, nil, nil // the matrices are not held
	sparseProducts.Put(p)
}

// A sparseRow is the elements of a row.
type sparseRow struct {
	col []uint16
	val []float32
}

// number returns the number in the matrix of the product's row i.
func (p *sparseProduct) number(i int) int {
	if p.index != nil {
		return int(p.index[i])
	}
	return i
}

// row returns row i of the product, or an empty one beyond the last.
func (p *sparseProduct) row(i int) sparseRow {
	if i >= p.m {
		return sparseRow{}
	}
	r := p.number(i)
	return sparseRow{p.col[p.start[r]:p.start[r+1]], p.val[p.start[r]:p.start[r+1]]}
}

// chunk returns the outputs [lo, hi) of the chunk that begins at lo, their
// number in full vectors, and that chunk of a matrix [cols, padded].
func (p *sparseProduct) chunk(lo int, matrix []float32) (hi, width int, part []float32) {
	hi = min(p.n, lo+maxChunk*p.lanes)
	width = roundUp(hi-lo, p.lanes)
	return hi, width, matrix[p.cols*lo : p.cols*(lo+width)]
}

// packColumns transposes the columns [k0, k1) of the weights.
func (p *sparseProduct) packColumns(k0, k1 int) {
	for lo := 0; lo < p.n; lo += maxChunk * p.lanes {
		hi, width, weights := p.chunk(lo, p.weights)
		to := weights[k0*width : k1*width]
		if hi-lo < width {
			clear(to)
		}
		transpose(to, width, p.w[lo*p.ldw+k0:], p.ldw, hi-lo, k1-k0)
	}
}

// forwardRows computes rows [first, last) of Y.
func (p *sparseProduct) forwardRows(first, last int) {
	bias := p.weights[p.cols*p.padded:]
	space := rowSpaces.Get()
	defer rowSpaces.Put(space)
	for lo := 0; lo < p.n; lo += maxChunk * p.lanes {
		hi, width, weights := p.chunk(lo, p.weights)
		next := p.row(first)
		for i := first; i < last; i++ {
			row := next
			next = p.row(i + 1)
			p.sumRow(row, next, weights, bias[lo:lo+width], p.y[i*p.ldy+lo:i*p.ldy+hi], space)
		}
	}
}

// part returns the elements of row i of the product in a part of the columns.
func (p *sparseProduct) part(i, part int) sparseRow {
	row := p.row(i)
	if p.parts == 1 || i >= p.m {
		return row
	}
	marks := p.marks[(columnParts-1)*p.number(i):][:columnParts-1]
	from, to := 0, len(row.col)
	if part > 0 {
		from = int(marks[part-1])
	}
	if part < columnParts-1 {
		to = int(marks[part])
	}
	return sparseRow{row.col[from:to], row.val[from:to]}
}

// backwardRows computes the gradient of a piece of the rows in a part of the columns.
func (p *sparseProduct) backwardRows(piece, part int) {
	all := p.weights[piece*p.cols*p.padded : (piece+1)*p.cols*p.padded]
	first, last := piece*p.grain, min(p.m, (piece+1)*p.grain)
	k0, k1 := part*p.cols/p.parts, (part+1)*p.cols/p.parts
	space := rowSpaces.Get()
	defer rowSpaces.Put(space)
	for lo := 0; lo < p.n; lo += maxChunk * p.lanes {
		hi, width, grad := p.chunk(lo, all)
		clear(grad[k0*width : k1*width])
		next := p.part(first, part)
		for i := first; i < last; i++ {
			row := next
			next = p.part(i+1, part)
			p.spreadRow(row, next, p.y[i*p.ldy+lo:i*p.ldy+hi], grad, width, space)
		}
	}
}

// collectColumns adds up the pieces' gradients of the columns [k0, k1) and
// transposes the sum.
func (p *sparseProduct) collectColumns(k0, k1 int) {
	size := p.cols * p.padded
	for lo := 0; lo < p.n; lo += maxChunk * p.lanes {
		hi, width, sums := p.chunk(lo, p.weights[p.grads*size:])
		sum := sums[k0*width : k1*width]
		clear(sum)
		for piece := range p.grads {
			_, _, grad := p.chunk(lo, p.weights[piece*size:])
			simd.Add(sum, grad[k0*width:k1*width])
		}
		transpose(p.w[lo*p.ldw+k0:], p.ldw, sum, width, k1-k0, hi-lo)
	}
}

// A rowSpace is a part of a row that inner loops without masks write or read in full
// vectors.
type rowSpace [16 * maxChunk]float32

var rowSpaces = parallel.Pool[rowSpace]{}

// sumRow writes to y the bias plus, for each element of row, its value times the
// row of w for its column. The next row is prefetched meanwhile.
func (p *sparseProduct) sumRow(row, next sparseRow, w, bias, y []float32, space *rowSpace) {
	if p.sum != nil {
		floor := selection.If(p.relu, 0, float32(math.Inf(-1)))
		vectors, last := p.lastVector(len(y))
		to := y
		if !p.masked && last < p.lanes {
			to = space[:]
		}
		p.sum(len(row.col), unsafe.SliceData(row.col), unsafe.SliceData(row.val), &w[0], 4*len(bias), &bias[0], floor,
			&to[0], mask(last),
			unsafe.SliceData(next.col), unsafe.SliceData(next.val), vectors-1)
		if &to[0] != &y[0] {
			copy(y, to)
		}
		return
	}
	copy(y, bias)
	for i, c := range row.col {
		addScaled(y, row.val[i], w[int(c)*len(bias):])
	}
	if p.relu {
		for j, v := range y {
			if v < 0 {
				y[j] = 0
			}
		}
	}
}

// spreadRow adds, for each element of row, its value times g to the row of dw for
// its column. Rows of dw are width apart. The next row is prefetched meanwhile.
func (p *sparseProduct) spreadRow(row, next sparseRow, g, dw []float32, width int, space *rowSpace) {
	if p.spread != nil {
		vectors, last := p.lastVector(len(g))
		if !p.masked && last < p.lanes {
			clear(space[copy(space[:], g):width])
			g = space[:]
		}
		p.spread(len(row.col), unsafe.SliceData(row.col), unsafe.SliceData(row.val), &g[0], mask(last), &dw[0], 4*width,
			unsafe.SliceData(next.col), unsafe.SliceData(next.val), vectors-1)
		return
	}
	for i, c := range row.col {
		addScaled(dw[int(c)*width:][:len(g)], row.val[i], g)
	}
}

// addScaled adds x·v to y.
func addScaled[T Float](y []T, x T, v []T) {
	v = v[:len(y)]
	for j := range y {
		y[j] = simd.FMA(x, v[j], y[j])
	}
}

// lastVector returns how many vectors n outputs take and how many of them are
// in the last.
func (p *sparseProduct) lastVector(n int) (vectors, last int) {
	vectors = ceil(n, p.lanes)
	return vectors, n - (vectors-1)*p.lanes
}

// transpose writes the transpose of the matrix [rows, cols] at src, whose rows
// are ldSrc apart, to dst, whose rows are ldDst apart.
func transpose(dst []float32, ldDst int, src []float32, ldSrc, rows, cols int) {
	r, whole := 0, cols&^7
	if eight := inUse().transpose; eight != nil && whole > 0 {
		for ; r+8 <= rows; r += 8 {
			eight(&dst[r], 4*ldDst, &src[r*ldSrc], 4*ldSrc, whole)
			for c := whole; c < cols; c++ {
				for i := range 8 {
					dst[c*ldDst+r+i] = src[(r+i)*ldSrc+c]
				}
			}
		}
	}
	for ; r < rows; r++ {
		for c, v := range src[r*ldSrc:][:cols] {
			dst[c*ldDst+r] = v
		}
	}
}

// StripWidth is the number of columns of a strip.
const StripWidth = 16

// SumStrip adds to y, for each element of a sparse row, its value times the row of the
// strip for its column. A strip is a matrix of StripWidth columns. Columns without a row
// in the strip panic.
func SumStrip(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	checkStrip(columns, values, strip)
	if add := inUse().sumStrip; add != nil {
		add(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
		return
	}
	for k, j := range columns {
		addScaled(y[:], float64(values[k]), strip[int(j)*StripWidth:])
	}
}

// ScatterStrip adds, for each element of a sparse row, its value times y to the row of the
// strip for its column. Columns without a row in the strip panic.
func ScatterStrip(columns []int32, values []float32, strip []float64, y *[StripWidth]float64) {
	checkStrip(columns, values, strip)
	if add := inUse().addStrip; add != nil {
		add(len(columns), unsafe.SliceData(columns), unsafe.SliceData(values), unsafe.SliceData(strip), &y[0])
		return
	}
	for k, j := range columns {
		addScaled(strip[int(j)*StripWidth:][:StripWidth], float64(values[k]), y[:])
	}
}

// checkStrip checks that a strip has the columns, which ascend.
func checkStrip(columns []int32, values []float32, strip []float64) {
	n := len(columns)
	if n != len(values) || n > 0 && (columns[0] < 0 || int(columns[n-1]) >= len(strip)/StripWidth) {
		panic(fmt.Sprintf("blas: %d columns with %d values do not fit a strip of %d rows", n, len(values), len(strip)/StripWidth))
	}
}
