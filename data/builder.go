package data

// A builder collects the points of one or several files in one piece of
// memory.
type builder struct {
	d int // values per point, known once the first file has been begun
	x []float32
	// rows are those of the files so far if they are sparse.
	rows []*CSR
}

// reserve makes room for n more values without growing again.
func (b *builder) reserve(n int) {
	if cap(b.x)-len(b.x) >= n {
		return
	}
	x := make([]float32, len(b.x), len(b.x)+n)
	copy(x, b.x)
	b.x = x
}

// reset forgets what was collected and keeps the memory.
func (b *builder) reset() { b.x = b.x[:0] }

// matrix returns what was collected.
func (b *builder) matrix() *Matrix {
	if len(b.rows) > 0 {
		c := b.rows[0]
		if len(b.rows) > 1 {
			c = joinCSR(b.rows)
		}
		return &Matrix{N: len(c.Start) - 1, D: b.d, CSR: c}
	}
	m := &Matrix{D: b.d, X: b.x}
	if b.d > 0 {
		m.N = len(b.x) / b.d
	}
	return m
}
