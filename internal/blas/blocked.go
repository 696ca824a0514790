package blas

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"cne/internal/parallel"
	"cne/internal/selection"
)

// Sizes of the blocks, in rows, columns and steps of the depth.
const (
	// maxDepth bounds the steps that a tile adds up before it is written to C.
	maxDepth = 512
	// maxColumns bounds the columns of a task, so that maxDepth steps of these
	// columns of B stay in the second-level cache while the rows of A pass by.
	maxColumns = 256
	// If op(A) has few rows and op(B) many columns, each task packs its own columns.
	fewRows, fewColumns, ownColumns = 384, 512, 64
	// Limits on the elements of A and B that a round packs for all its tasks.
	maxPackedA, maxPackedB = 1 << 19, 1 << 20
	// taskWork is the number of multiplications of a task, unless there are more than
	// maxTasks, and smallWork the number that is not worth another core.
	taskWork, maxTasks, smallWork = 1 << 19, 256, 1 << 18
	// A block's columns are halved while there are fewer tasks than fewTasks.
	fewTasks = 24
	// Rows of A that are a multiple of conflict elements apart share the same
	// few places of the first-level cache.
	conflict = 256

	maxTileRows = 12
	gap         = 16 // keeps copied rows of A from sharing places
)

// A blocked is a product computed by tiles. It is reused.
//
// It is computed in rounds. The first tasks of a round pack what its other tasks share;
// then each of these computes a block of C. The blocks depend only on the sizes, and the
// cuts of the depth only on the depth, so a row of C does not depend on the other rows.
type blocked struct {
	product[float32]
	*kernels
	loop parallel.Loop

	depth            int  // how many steps a tile adds up
	shareA, shareB   bool // whether a round packs A and B for all its tasks
	packedA, packedB []float32

	// The round.
	l0, l1       int // its steps
	j0, j1       int // its columns
	packsB       int // how many tasks pack B
	packs        int // how many tasks pack
	packed       atomic.Int64
	rows         int // of the block of C that a task computes
	columns      int // of that block
	columnBlocks int // number of such blocks side by side
}

// A workspace has the data that a task packs for itself: a tile's rows of A and, if op(A)
// has few rows, columns of B.
type workspace struct {
	a [maxTileRows*(maxDepth+gap) + gap]float32
	b [maxDepth * ownColumns]float32
	// next holds the addresses of the rows to prefetch.
	next [maxDepth]uintptr
	// edge and bias are a tile at the edge of C, for inner loops without masks.
	edge [maxTileRows * fullColumns]float32
	bias [fullColumns]float32
}

// fullColumns is the width of the tiles without masks.
const fullColumns = 8

var (
	products = parallel.Pool[blocked]{New: func() *blocked {
		p := new(blocked)
		p.loop.Body = func(piece, _, _ int) { p.task(piece) }
		return p
	}}
	workspaces = parallel.Pool[workspace]{}
)

func multiplySingle(what *product[float32]) {
	p := products.Get()
	p.product, p.kernels = *what, inUse()
	p.run()
	p.product = product[float32]{} // the matrices are not held
	products.Put(p)
}

// depthOf returns how many steps of a product a tile adds up.
func depthOf(k int) int { return max(8, roundUp(ceil(k, max(1, ceil(k, maxDepth))), 8)) }

func (p *blocked) run() {
	p.depth = depthOf(p.k)
	p.shareA = p.a.trans && p.m <= fewRows && p.k > 0
	p.shareB = p.m > fewRows || p.n <= fewColumns
	steps, columns := max(1, p.k), p.n
	if p.shareA {
		steps = min(steps, max(1, maxPackedA/(p.m*p.depth))*p.depth)
	}
	if p.shareB {
		columns = min(columns, max(1, maxPackedB/(steps*maxColumns))*maxColumns)
		steps = min(steps, max(1, maxPackedB/(columns*p.depth))*p.depth)
	}
	for p.j0 = 0; p.j0 < p.n; p.j0 += columns {
		p.j1 = min(p.n, p.j0+columns)
		for p.l0 = 0; p.l0 == 0 || p.l0 < p.k; p.l0 += steps {
			p.l1 = min(p.k, p.l0+steps)
			p.round()
		}
	}
}

// round adds steps [l0, l1) to columns [j0, j1) of C.
func (p *blocked) round() {
	steps, width, strips := p.l1-p.l0, p.j1-p.j0, ceil(p.m, p.height)
	p.packs, p.packsB = 0, 0
	if p.shareB {
		p.packsB = ceil(width, p.panel) * ceil(steps, p.depth)
		p.packs = p.packsB
		p.packedB = resize(p.packedB, roundUp(width, p.panel)*steps)
	}
	if p.shareA {
		p.packs += strips
		p.packedA = resize(p.packedA, strips*p.stripSize())
	}
	p.packed.Store(0)

	work := p.m * width * max(1, steps)
	want := min(ceil(work, taskWork), maxTasks)
	p.columns, p.rows = maxColumns, p.height
	rowBlocks := strips
	if !p.shareB {
		p.rows, rowBlocks = p.m, 1
	}
	for p.columns > p.panel && rowBlocks*ceil(width, p.columns) < min(want, fewTasks) {
		p.columns /= 2
	}
	p.columnBlocks = ceil(width, p.columns)
	if p.shareB {
		p.rows *= ceil(strips, ceil(want, p.columnBlocks))
	}
	tasks := p.packs + p.columnBlocks*ceil(p.m, p.rows)
	if work < smallWork || p.alone {
		for task := range tasks {
			p.task(task)
		}
		return
	}
	p.loop.Run(tasks, 1)
}

// stripSize is the number of elements that a tile's rows of A take in packedA:
// their last step is written by whole vectors.
func (p *blocked) stripSize() int { return p.height*(p.l1-p.l0) + gap }

// task does one of a round's tasks. A loop begins them in order, so a task that waits for
// packed data waits for a running task.
func (p *blocked) task(task int) {
	if task < p.packs {
		p.pack(task)
		return
	}
	for p.packed.Load() < int64(p.packs) {
		runtime.Gosched()
	}
	block := task - p.packs
	i, j := block/p.columnBlocks*p.rows, p.j0+block%p.columnBlocks*p.columns
	i1, j1 := min(p.m, i+p.rows), min(p.j1, j+p.columns)
	w := workspaces.Get()
	defer workspaces.Put(w)
	if p.shareB {
		p.block(w, i, i1, j, j1)
		return
	}
	for ; j < j1; j += ownColumns {
		p.block(w, i, i1, j, min(j1, j+ownColumns))
	}
}

// pack does one of the tasks that pack.
func (p *blocked) pack(task int) {
	defer p.packed.Add(1)
	if task >= p.packsB {
		strip := task - p.packsB
		p.packA(p.packedA[strip*p.stripSize():], p.l0, p.l1, strip*p.height)
		return
	}
	panels := ceil(p.j1-p.j0, p.panel)
	j, l := p.j0+task%panels*p.panel, p.l0+task/panels*p.depth
	p.packB(p.packedB[p.panelAt(j, l):], l, min(p.l1, l+p.depth), j, min(p.panel, p.j1-j))
}

// panelAt returns the index in packedB of step l of the panel at column j.
func (p *blocked) panelAt(j, l int) int {
	width := 8 << classOf(min(p.panel, p.j1-j))
	return (j-p.j0)*(p.l1-p.l0) + (l-p.l0)*width
}

// block adds the round's steps to rows [i0, i1) and columns [j0, j1) of C.
func (p *blocked) block(w *workspace, i0, i1, j0, j1 int) {
	for l := p.l0; l == p.l0 || l < p.l1; l += p.depth {
		end := min(p.l1, l+p.depth)
		p.packOwnB(w, l, end, j0, j1)
		beta := selection.If(l > 0, 1, p.beta)
		last := end == p.k
		for i := i0; i < i1; i += p.height {
			rows := min(p.height, i1-i)
			a, rowStride, stepStride := p.rowsOfA(w, i, rows, l, end)
			for j := j0; j < j1; j += p.panel {
				count := min(p.panel, j1-j)
				class := classOf(count)
				var b *float32
				switch {
				case end == l:
				case p.shareB:
					b = &p.packedB[p.panelAt(j, l)]
				default:
					b = &w.b[(j-j0)*(end-l)]
				}
				floor, bias := float32(math.Inf(-1)), (*float32)(nil)
				if last {
					floor = p.floor
					if p.bias != nil {
						bias = &p.bias[j]
					}
				}
				c := &p.c.data[i*p.c.ld+j]
				if !p.masked && count < fullColumns {
					p.edge(w, rows, count, end-l, a, rowStride, stepStride, b, i*p.c.ld+j, beta, bias, floor)
					continue
				}
				if p.ahead != nil && j == j0 && rows == p.height && count == p.panel && end > l {
					if lines := p.lookAhead(w, i, j0, j1, l, end); lines > 0 {
						p.ahead(end-l, a, 4*rowStride, 4*stepStride, b, c, 4*p.c.ld, p.alpha, beta, bias, floor, mask(count), &w.next[0], lines)
						continue
					}
				}
				p.tile(end-l, a, 4*rowStride, 4*stepStride, b, c, 4*p.c.ld, p.alpha, beta, bias, floor, mask(count), p.tileNumber(rows, class))
			}
		}
	}
}

// edge computes a tile of fewer columns than the inner loops have, from element at of C on.
func (p *blocked) edge(w *workspace, rows, count, k int, a *float32, rowStride, stepStride int, b *float32, at int,
	beta float32, bias *float32, floor float32) {
	if bias != nil {
		copy(w.bias[:count], unsafe.Slice(bias, count))
		bias = &w.bias[0]
	}
	for r := range rows {
		copy(w.edge[r*fullColumns:][:count], p.c.data[at+r*p.c.ld:])
	}
	p.tile(k, a, 4*rowStride, 4*stepStride, b, &w.edge[0], 4*fullColumns, p.alpha, beta, bias, floor, nil, p.tileNumber(rows, 0))
	for r := range rows {
		copy(p.c.data[at+r*p.c.ld:][:count], w.edge[r*fullColumns:])
	}
}

// packOwnB packs steps [l, end) of columns [j0, j1) of op(B), if tasks do not share them.
func (p *blocked) packOwnB(w *workspace, l, end, j0, j1 int) {
	if p.shareB || end == l {
		return
	}
	for j := j0; j < j1; j += p.panel {
		p.packB(w.b[(j-j0)*(end-l):], l, end, j, min(p.panel, j1-j))
	}
}

// rowsOfA returns the address of steps [l, end) of rows [i, i+rows) of op(A), and
// the strides between rows and steps.
func (p *blocked) rowsOfA(w *workspace, i, rows, l, end int) (a *float32, rowStride, stepStride int) {
	switch {
	case l == end:
		return nil, 0, 0
	case p.shareA:
		return &p.packedA[i/p.height*p.stripSize()+(l-p.l0)*p.height], 1, p.height
	case p.a.trans:
		p.packA(w.a[:], l, end, i)
		return &w.a[0], 1, p.height
	case p.a.rows == nil && p.a.ld%conflict != 0:
		return &p.a.data[i*p.a.ld+l], p.a.ld, 1
	}
	const stride = maxDepth + gap
	for r := range rows {
		at := p.a.row(i + r)
		copy(w.a[r*stride:], p.a.data[at+l:at+end])
	}
	return &w.a[0], stride, 1
}

// lookAhead notes the stored rows to prefetch while the tile at row i of a block is computed
// in steps [l, end), and returns the number of cache lines of each, 0 for none. They are the
// next tile's part of A or, if a task packs its own columns of B, a part of B that it packs
// next.
func (p *blocked) lookAhead(w *workspace, i, j0, j1, l, end int) (lines int) {
	steps := end - l
	if p.shareB {
		if p.a.trans || i+p.height >= p.m {
			return 0
		}
		lines = linesOf(steps)
		w.note(&p.a, i+p.height, p.m, l, ceil(steps, lines))
		return lines
	}
	if l = end; l >= p.l1 {
		l, j0, j1 = p.l0, j1, min(p.j1, j1+ownColumns)
	}
	end = min(p.l1, l+p.depth)
	first, last, column, width := l, end, j0, j1-j0
	if p.b.trans {
		first, last, column, width = j0, j1, l, end-l
	}
	lines = linesOf(width)
	first += i / p.height * (steps / lines)
	if width <= 0 || first >= last {
		return 0
	}
	w.note(&p.b, first, last, column, ceil(steps, lines))
	return lines
}

// linesOf returns how many cache lines some elements may touch.
func linesOf(elements int) int { return ceil(elements, 16) + 1 }

// note notes the addresses of the given column in n stored rows of o, from row
// first on. Rows from end on are replaced by the last one before.
func (w *workspace) note(o *operand[float32], first, end, column, n int) {
	for e := range n {
		row := o.row(min(first+e, end-1))
		w.next[e] = uintptr(unsafe.Pointer(&o.data[row+column]))
	}
}

// packA copies steps [l, end) of the rows of a tile, from row i of a
// transposed A on: the rows of a step lie next to each other.
func (p *blocked) packA(dst []float32, l, end, i int) {
	rows := min(p.height, p.m-i)
	if p.copy == nil {
		for ; l < end; l++ {
			copy(dst[:rows], p.a.data[l*p.a.ld+i:])
			dst = dst[p.height:]
		}
		return
	}
	p.copy(&dst[0], 4*p.height, &p.a.data[l*p.a.ld+i], 4*p.a.ld, nil, end-l, mask(rows), p.copyNumber(classOf(p.height)))
}

// packB copies count columns, from column j of op(B) on, for steps [l, end) to
// a panel: the columns of a step lie next to each other, filled up with zeros.
func (p *blocked) packB(dst []float32, l, end, j, count int) {
	class := classOf(count)
	width, steps := 8<<class, end-l
	dst = dst[:steps*width]
	switch {
	case p.b.trans:
	case p.copy == nil:
		for s := range steps {
			to, from := dst[s*width:][:width], p.b.data[p.b.row(l+s)+j:]
			if count == fullColumns {
				*(*[fullColumns]float32)(to) = *(*[fullColumns]float32)(from)
			} else {
				clear(to[copy(to[:count], from):])
			}
		}
		return
	default:
		first, numbers := l*p.b.ld+j, (*int32)(nil)
		if p.b.rows != nil {
			first, numbers = j, &p.b.rows[l]
		}
		p.copy(&dst[0], 4*width, &p.b.data[first], 4*p.b.ld, numbers, steps, mask(count), p.copyNumber(class))
		return
	}
	// Columns of op(B) are rows as stored.
	if count < width {
		clear(dst)
	}
	transpose(dst, width, p.b.data[j*p.b.ld+l:], p.b.ld, count, steps)
}

// Panels is the form of a matrix [k, n] that is the right factor of a product on
// one goroutine and need not be packed for it: panels of columns lie one after
// the other, and in a panel row after row. The code that computes the matrix can
// write it in this form from the start.
type Panels struct {
	k, n  int
	width int // of all panels but the last, which may be narrower
}

// NewPanels returns the form of a matrix of k rows and n columns of T.
func NewPanels[T Float](k, n int) Panels {
	if k < 0 || n < 0 {
		panic("blas: a matrix of negative size")
	}
	if _, single := any(T(0)).(float32); single && n%16 == 0 {
		return Panels{k, n, inUse().panel}
	}
	return Panels{k, n, max(1, n)}
}

// NewPairPanels returns the form of a matrix of k rows of pairs and n columns for
// MultiplyPairs. Panels have a multiple of 16 columns if n is a multiple of 16.
func NewPairPanels(k, n int) Panels {
	p := NewPanels[float32](k, n)
	if !BFloat16() {
		p.width = max(1, n)
	}
	return p
}

// Len returns the number of elements.
func (p Panels) Len() int { return p.k * p.n }

// At returns the index of column j in the first row, and the distance to the
// next row.
func (p Panels) At(j int) (at, stride int) {
	first := j - j%p.width
	return first*p.k + j - first, min(p.width, p.n-first)
}

// Run returns the number of columns from column j on that lie next to each other.
func (p Panels) Run(j int) int { return min(p.width-j%p.width, p.n-j) }

// MultiplyPanels computes C = A·B + beta·C on the calling goroutine, for A of m
// rows whose element (i, l) is a[i·rowStride+l·stepStride], B in the form of p,
// and C with rows ldc apart. One of the strides is 1. C is not read if beta is 0.
func MultiplyPanels[T Float](p Panels, m int, a []T, rowStride, stepStride int, b []T, beta T, c []T, ldc int) {
	if m == 0 || p.n == 0 {
		return
	}
	if rowStride != 1 && stepStride != 1 || len(b) < p.Len() || ldc < p.n || len(c) < (m-1)*ldc+p.n ||
		p.k > 0 && len(a) < (m-1)*rowStride+(p.k-1)*stepStride+1 {
		panic("blas: the factors of a product with panels do not fit")
	}
	if p.n%16 == 0 {
		if a, ok := any(a).([]float32); ok && p.k > 0 {
			multiplyPanels(p, m, a, rowStride, stepStride, any(b).([]float32), any(beta).(float32), any(c).([]float32), ldc)
			return
		}
	}
	if stepStride == 1 {
		GemmSerial(false, false, m, p.n, p.k, 1, a, max(rowStride, p.k), b, p.n, beta, c, ldc)
	} else {
		GemmSerial(true, false, m, p.n, p.k, 1, a, stepStride, b, p.n, beta, c, ldc)
	}
}

func multiplyPanels(p Panels, m int, a []float32, rowStride, stepStride int, b []float32, beta float32, c []float32, ldc int) {
	kernels := inUse()
	floor := float32(math.Inf(-1))
	for j := 0; j < p.n; j += p.width {
		width := min(p.width, p.n-j)
		class, columns := classOf(width), mask(width)
		for i := 0; i < m; i += kernels.height {
			rows := min(kernels.height, m-i)
			kernels.tile(p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, 1, beta, nil,
				floor, columns, kernels.tileNumber(rows, class))
		}
	}
}
