package data

// A builder collects the points of one or several files in one piece of
// memory.
type builder struct {
	d    int // values per point, known once the first file has been begun
	x    []float32
	from string // name of the file that set d
}

// begin prepares for a file of points of width d.
func (b *builder) begin(name string, d int) error {
	if b.d == 0 {
		b.d, b.from = d, name
	}
	if b.d != d {
		return errorf(ErrShape, "its points have %d values, those of %s have %d; files that are read together must have points of one width", d, b.from, b.d)
	}
	return nil
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

// extend lengthens the values by n and returns the new ones for the caller
// to fill.
func (b *builder) extend(n int) []float32 {
	if cap(b.x)-len(b.x) < n {
		b.reserve(max(n, len(b.x)))
	}
	b.x = b.x[:len(b.x)+n]
	return b.x[len(b.x)-n:]
}

// matrix returns what was collected.
func (b *builder) matrix() *Matrix {
	m := &Matrix{D: b.d, X: b.x}
	if b.d > 0 {
		m.N = len(b.x) / b.d
	}
	return m
}
