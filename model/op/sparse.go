package op

import (
	"sync"
	"unsafe"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/blas"
	"cne/internal/device"
	"cne/internal/kind"
)

// sparseShare is the share of nonzero elements below which the sparse form of a matrix is
// faster.
const sparseShare = 0.3

// sparseWidth is the largest width for the sparse form. The weights must stay in the
// second-level cache.
const sparseWidth = 4096

// A Sparse is a constant sparse matrix of float32, for LinearOfSparse.
type Sparse struct {
	matrix *blas.Sparse

	// mu guards there, the matrix on an accelerator. there is nil until it is needed.
	mu    sync.Mutex
	there *deviceSparse
}

// A deviceSparse is a sparse matrix in an accelerator's memory.
type deviceSparse struct {
	device         *Device
	start, columns *device.Memory // int64, uint16
	values         *device.Memory // float32
}

// NewSparse returns the sparse form of the matrix that x holds in rows of the given
// width, or nil if that would not be faster: too few elements are zero, or the rows are
// very wide.
func NewSparse(x []float32, width int) *Sparse {
	if width < 1 || width > sparseWidth || len(x)%width != 0 || float64(blas.Nonzeros(x)) > sparseShare*float64(len(x)) {
		return nil
	}
	return &Sparse{matrix: blas.NewSparse(x, len(x)/width, width)}
}

// MaxSparseWidth is the width of the widest rows of a Sparse.
const MaxSparseWidth = blas.MaxSparseColumns

// SparseOf returns the matrix in compressed sparse rows: row r has the values
// values[start[r]:start[r+1]] in the columns columns[start[r]:start[r+1]]. Columns are
// ascending, from 0 to width−1. It shares start and values; they must not change. If width
// is below 1 or above MaxSparseWidth, the error wraps ErrInput.
func SparseOf(start []int, columns []int32, values []float32, width int) (*Sparse, error) {
	if width < 1 || width > MaxSparseWidth {
		return nil, kind.Errorf(ErrInput, "op: sparse matrix: got %d columns, want at most %d", width, MaxSparseWidth)
	}
	return &Sparse{matrix: blas.SparseOf(start, columns, values, width)}, nil
}

// CheckDevice returns an error if an accelerator cannot compute with the matrix: a dense
// row must fit the shared memory of a block.
func (s *Sparse) CheckDevice(d *Device) error {
	_, width := s.matrix.Size()
	if most := d.Properties().SharedPerBlock / elementSize; width > most {
		return kind.Errorf(ErrInput,
			"op: sparse rows on an accelerator: got %d values, want at most %d; compute on the CPU, or take their principal components", width, most)
	}
	return nil
}

// on returns the matrix in an accelerator's memory. The first call copies it.
func (s *Sparse) on(d *Device) (*deviceSparse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there != nil && s.there.device == d {
		return s.there, nil
	}
	start, columns, values := s.matrix.Elements()
	r := &deviceSparse{device: d}
	var err error
	if r.start, err = upload(d, start); err != nil {
		return nil, err
	}
	if r.columns, err = upload(d, columns); err != nil {
		return nil, err
	}
	if r.values, err = upload(d, values); err != nil {
		return nil, err
	}
	s.there = r
	return r, nil
}

func upload[T any](d *Device, elements []T) (*device.Memory, error) {
	m, err := d.Alloc(len(elements) * int(unsafe.Sizeof(*new(T))))
	if err != nil {
		return nil, err
	}
	return m, device.Upload(d, m.Pointer(), elements)
}

// each calls use for the rows in an index, expanded to dense form, as rowBlock.each does.
// On an accelerator the dense product is faster than adding up rows of the weights,
// because these do not fit into the first-level caches. The sparse form saves memory
// there, not time.
func (s *Sparse) each(d *Device, b *rowBlock, index *Array, use func(x Pointer, first, n int) error) error {
	m, err := s.on(d)
	if err != nil {
		return err
	}
	_, width := s.matrix.Size()
	return b.fill(d, index.Rows(), width, func(x Pointer, first, n int) error {
		if err := d.Launch("expand_rows", device.Launch{Grid: n, Block: 128, Shared: width * elementSize},
			Arg(x), Arg(m.start.Pointer()), Arg(m.columns.Pointer()), Arg(m.values.Pointer()),
			Arg(index.Pointer().At(first, elementSize)), device.Int(width)); err != nil {
			return err
		}
		return use(x, first, n)
	})
}

// LinearOfSparse is LinearRows for a constant sparse matrix of points.
func LinearOfSparse(points *Sparse, index, weights, bias *gorgonia.Node, act Activation) (*gorgonia.Node, error) {
	dense, err := newLinear(act, true)
	if err != nil {
		return nil, err
	}
	o := &sparseLinear{
		base: newStateful(dense.name+"_sparse", matrix, vector, indices, matrix), act: act, points: points,
	}
	return apply(o, weights, bias, index)
}

// sparseLinear takes the weights, the bias and the index.
type sparseLinear struct {
	base
	act    Activation
	points *Sparse
	block  rowBlock
}

func (o *sparseLinear) ResultShape(dst []int, in []*Array) ([]int, error) {
	w, b, index := in[0], in[1], in[2]
	if _, cols := o.points.matrix.Size(); w.dims != 2 || b.dims != 1 || index.dims != 1 || w.shape[1] != cols || w.shape[0] != b.shape[0] {
		return nil, kind.Errorf(ErrInput,
			"op: %s: got shapes %v, %v and %v, want weights [out,%d], a bias [out] and row numbers [n]", o.name, w.Shape(), b.Shape(), index.Shape(), cols)
	}
	return append(dst, index.shape[0], w.shape[0]), nil
}

func (o *sparseLinear) Run(dst *Array, in []*Array) error {
	if dst.dtype != tensor.Float32 {
		return kind.Errorf(ErrInput, "op: %s: got type %v, want float32", o.name, dst.dtype)
	}
	points, _ := o.points.matrix.Size()
	rows, err := rowsOf(o.name, points, in[2])
	if err != nil {
		return err
	}
	n := dst.shape[1]
	o.points.matrix.Linear(rows, n, in[0].f32, in[0].shape[1], in[1].f32, o.act == ReLUActivation, dst.f32, n)
	return nil
}

// Launch implements Launcher.
func (o *sparseLinear) Launch(d *Device, dst *Array, in []*Array) error {
	w, b, index := in[0], in[1], in[2]
	err := o.points.each(d, &o.block, index, func(x Pointer, first, n int) error {
		return weightRows(d, dst, first, n, x, w)
	})
	if err != nil {
		return err
	}
	return addBias(d, dst, b, o.act)
}

func (o *sparseLinear) DiffWRT(int) []bool { return []bool{true, true, false} }

func (o *sparseLinear) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var err error
	if o.act == ReLUActivation {
		if grad, err = apply(newReLUGrad(matrix), out, grad); err != nil {
			return nil, err
		}
	}
	dw, err := apply(&sparseWeightGrad{base: newStateful("weight_grad_sparse", matrix, indices, matrix), points: o.points}, grad, in[2])
	if err != nil {
		return nil, err
	}
	db, err := apply(newColumnSums(), grad)
	return gorgonia.Nodes{dw, db, nil}, err
}

// sparseWeightGrad is the gradient of the weights. Its inputs are the gradient [n, out]
// of the layer's sums and the index.
type sparseWeightGrad struct {
	base
	points *Sparse
	block  rowBlock
}

func (o *sparseWeightGrad) ResultShape(dst []int, in []*Array) ([]int, error) {
	_, cols := o.points.matrix.Size()
	return append(dst, in[0].shape[1], cols), nil
}

func (o *sparseWeightGrad) Run(dst *Array, in []*Array) error {
	points, _ := o.points.matrix.Size()
	rows, err := rowsOf(o.name, points, in[1])
	if err != nil {
		return err
	}
	n, cols := dst.shape[0], dst.shape[1]
	o.points.matrix.LinearGrad(rows, n, in[0].f32, n, dst.f32, cols)
	return nil
}

// Launch implements Launcher.
func (o *sparseWeightGrad) Launch(d *Device, dst *Array, in []*Array) error {
	g, index := in[0], in[1]
	if index.Rows() == 0 {
		return dst.Zero()
	}
	return o.points.each(d, &o.block, index, func(x Pointer, first, n int) error {
		return addWeightGrad(d, dst, g, first, n, x)
	})
}
