package op

import (
	"sync"
	"unsafe"

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
func (s *Sparse) on(d *Device) *deviceSparse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there != nil && s.there.device == d {
		return s.there
	}
	start, columns, values := s.matrix.Elements()
	s.there = &deviceSparse{device: d, start: upload(d, start), columns: upload(d, columns), values: upload(d, values)}
	return s.there
}

// upload copies elements to new memory of an accelerator.
func upload[T any](d *Device, elements []T) *device.Memory {
	to := kind.Got(d.Alloc(len(elements) * int(unsafe.Sizeof(*new(T)))))
	kind.Check(device.Upload(d, to.Pointer(), elements))
	return to
}

// expand writes n rows in dense form to an address on an accelerator. Their numbers are the
// elements of index starting with number first. There the dense product is faster than
// adding up rows of the weights, because these do not fit into the first-level caches. The
// sparse form saves memory there, not time.
func (s *Sparse) expand(d *Device, to Pointer, index *Array, first, n int) {
	m := s.on(d)
	_, width := s.matrix.Size()
	kind.Check(d.Launch("expand_rows", device.Launch{Grid: n, Block: 128, Shared: width * elementSize}, Arg(to), Arg(m.start.Pointer()),
		Arg(m.columns.Pointer()), Arg(m.values.Pointer()), Arg(index.Pointer().At(first, elementSize)), device.Int(width)))
}
