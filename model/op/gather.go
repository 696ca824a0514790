package op

import (
	"cmp"
	"math/bits"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/simd"
)

// Gather returns a matrix [r, d] of rows of source [n, d]. index [r] (int32) has their
// numbers. A number may occur more than once. The gradient with respect to source is the
// ScatterAdd of the rows' gradients.
//
// A non-parametric embedding is differentiated with respect to the rows of a batch, not
// with respect to all positions. Its model gathers the distinct rows first and asks for
// the gradient of that node, so the gradient is only as large as the batch.
func Gather(source, index *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&gather{newRowwise(gatherTo[float32], gatherTo[float64], "gather", matrix, indices, matrix)}, source, index)
}

// ScatterAdd returns a matrix of the shape of like [n, d] whose row i is the sum of the
// rows j of values [r, d] with index[j] = i, added in the order of j. The values of like
// are not read.
func ScatterAdd(values, index, like *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&scatterAdd{base: newBase("scatter_add", matrix, indices, matrix, matrix)}, values, index, like)
}

type gather struct{ rowwise }

func (o *gather) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 || in[1].dims != 1 {
		return nil, kind.Errorf(ErrInput, "op: gather: got shapes %v and %v, want a matrix and a vector of row numbers",
			in[0].Shape(), in[1].Shape())
	}
	return append(dst, in[1].shape[0], in[0].shape[1]), nil
}

func (o *gather) Run(dst *Array, in []*Array) error {
	if _, err := rowsOf(o.name, in[0].Rows(), in[1]); err != nil {
		return err
	}
	return o.rowwise.Run(dst, in)
}

func gatherTo[T Float](dst *Array, in []*Array, lo, hi int) {
	simd.GatherRows(rowsIn[T](dst, lo, hi), Data[T](in[0]), dst.shape[1], in[1].i32[lo:hi])
}

// Launch implements Launcher.
func (o *gather) Launch(d *Device, dst *Array, in []*Array) error {
	return gatherRows(d, dst.Pointer(), in[0], in[1], 0, dst.shape[0])
}

// gatherRows writes n rows of a matrix on an accelerator. Their numbers are the elements
// of index starting with number first.
func gatherRows(d *Device, dst Pointer, points, index *Array, first, n int) error {
	cols := points.shape[1]
	lanes := device.Lanes(cols)
	return d.Each("gather_rows", n<<lanes, Arg(dst), points.Arg(), Arg(index.Pointer().At(first, elementSize)),
		device.Int(n), device.Int(cols), device.Int(lanes))
}

func (o *gather) DiffWRT(int) []bool { return []bool{true, false} }

func (o *gather) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := ScatterAdd(grad, in[1], in[0])
	return gorgonia.Nodes{n, nil}, err
}

type scatterAdd struct {
	base
	sums scratch // an accelerator's, int64, and after them the largest element
}

func (o *scatterAdd) ResultShape(dst []int, in []*Array) ([]int, error) {
	if in[0].dims != 2 || in[1].dims != 1 || in[2].dims != 2 ||
		in[0].shape[0] != in[1].shape[0] || in[0].shape[1] != in[2].shape[1] {
		return nil, kind.Errorf(ErrInput, "op: scatter_add: got shapes %v, %v and %v, want values [r,d], row numbers [r] and a matrix [n,d]",
			in[0].Shape(), in[1].Shape(), in[2].Shape())
	}
	return append(dst, in[2].shape[0], in[2].shape[1]), nil
}

func (o *scatterAdd) Run(dst *Array, in []*Array) error {
	index, err := rowsOf(o.name, dst.Rows(), in[1])
	if err != nil {
		return err
	}
	if dst.dtype == tensor.Float64 {
		clear(dst.f64)
		simd.ScatterRows(dst.f64, in[0].f64, dst.shape[1], index)
	} else {
		clear(dst.f32)
		simd.ScatterRows(dst.f32, in[0].f32, dst.shape[1], index)
	}
	return nil
}

// maxOneBlock is the largest number of sums that one block computes in its shared memory.
// This is faster than launching several kernels.
const maxOneBlock = 5000

// Launch implements Launcher. The sums are integers, so the order of the additions by an
// accelerator's threads does not matter.
func (o *scatterAdd) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	x, index := in[0], in[1]
	rows, cols, n := x.shape[0], x.shape[1], dst.Len()
	if rows == 0 || n == 0 {
		return dst.Zero()
	}
	count, lanes := device.Int(bits.Len(uint(rows-1))), device.Lanes(cols)
	if n <= maxOneBlock && x.Len() <= 2*maxOneBlock {
		return d.Launch("scatter_one_block", device.Launch{Grid: 1, Block: 1024, Shared: 8 * n}, dst.Arg(), x.Arg(), index.Arg(),
			device.Int(rows), device.Int(cols), device.Int(n), count)
	}
	sums := o.sums.of(d, tensor.Int32, 2*n+1)
	most := Arg(sums.Pointer().At(2*n, elementSize))
	return cmp.Or(sums.Zero(),
		d.Launch("scatter_largest", device.Launch{Grid: min(512, (x.Len()+1023)/1024), Block: 256}, most, x.Arg(), device.Int(x.Len())),
		d.Each("scatter_rows", rows<<lanes, sums.Arg(), most, x.Arg(), index.Arg(), device.Int(rows), device.Int(cols), count, device.Int(lanes)),
		d.Each("scatter_result", n, dst.Arg(), sums.Arg(), most, device.Int(n), count))
}

func (o *scatterAdd) DiffWRT(int) []bool { return []bool{true, false, false} }

func (o *scatterAdd) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	n, err := Gather(grad, in[1])
	return gorgonia.Nodes{n, nil, nil}, err
}

// outOfRange returns the first position whose index is not in [0, n), or −1.
// The vector kernels do not check bounds, so this must come before them.
func outOfRange(index []int32, n int) int {
	if simd.MaxUint32(index) < uint32(n) || len(index) == 0 {
		return -1
	}
	for i, v := range index {
		if uint32(v) >= uint32(n) {
			return i
		}
	}
	return -1
}

// A NegativeLayout says which rows of a batch are the negatives of its heads. It begins
// with one of
//
//   - ListedNegatives: the rows that are listed for each head, and ends there;
//   - AllNegatives: every row but the head and its tail, once, so m = r−2 of r rows
//     (train.Full, not train.All). It ends there, or with a divisor p of b: then ends of
//     edges whose numbers are equal modulo p belong to one image, and are no negatives of
//     each other, so m = r−2b/p. If p < b, a head's tails are the other heads of its image,
//     with the mean of their losses, and rows b to 2b−1 are only negatives;
//   - m > 1, and goes on with first₀, first₁, …: every GroupHeads consecutive heads share a
//     run of m rows, at most all. That of group k begins with row firstₖ; row 0 follows the
//     last row. A head's negatives are the rows of the run but the head itself: m or m−1.
//
// In the last two, the pairs are dense blocks. These are several times as fast as pairs
// whose rows must be looked up.
type NegativeLayout []int32

const (
	ListedNegatives = 0
	AllNegatives    = -1
	// GroupHeads is the number of consecutive heads that share their negatives. The last
	// group of a batch may be smaller.
	GroupHeads = 16
)

// listed reports whether negatives are listed.
func (l NegativeLayout) listed() bool { return l[0] == ListedNegatives }

// check returns an error unless the layout is valid for a batch of b edges and the given
// number of rows.
func (l NegativeLayout) check(b, rows int) error {
	m := int(l[0])
	groups := parallel.Pieces(b, GroupHeads)
	switch {
	case m == AllNegatives && len(l) == 2:
		if p := int(l[1]); p < 1 || b%p != 0 {
			return kind.Errorf(ErrInput, "op: layout of all negatives: got %d images for %d edges, want a divisor", p, b)
		}
		return nil
	case m == ListedNegatives || m == AllNegatives:
		groups = 0
	case m < 0 || m == 1: // a run of one row could be just the head
		return kind.Errorf(ErrInput, "op: layout of negatives: got %d at its beginning, want 0, −1 or the number of rows of runs, at least 2", m)
	}
	if len(l) != 1+groups {
		return kind.Errorf(ErrInput, "op: layout of negatives that begins with %d: got %d numbers, want %d for %d edges", m, len(l), 1+groups, b)
	}
	for k, first := range l[1:] {
		if first < 0 || int(first) >= rows || m > rows {
			return kind.Errorf(ErrInput,
				"op: negatives of group %d: got %d rows from row %d on, want no more than the %d rows that there are", k, m, first, rows)
		}
	}
	return nil
}

// images returns the distance of rows of one image, in a batch of b edges whose heads
// have all rows as negatives.
func (l NegativeLayout) images(b int) int {
	if len(l) == 2 && l[0] == AllNegatives {
		return int(l[1])
	}
	return b
}

// decode returns the number of negatives of a head in a dense batch, including the head
// itself if it is in a run, and the first rows of the groups' runs. There are none if all
// rows are negatives.
func (l NegativeLayout) decode(b, rows int) (m int, firsts []int32) {
	if l[0] == AllNegatives {
		return rows - 2*b/l.images(b), nil
	}
	return int(l[0]), l[1:]
}
