package simd

import (
	"math"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns n floats that lie right before, or right after, a page that
// cannot be read or written.
func guarded(t *testing.T, n int, before bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := max(1, (4*n+page-1)/page) * page
	region, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip("no memory of our own:", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(region) })
	for _, guard := range [][]byte{region[:page], region[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Skip("no guard pages:", err)
		}
	}
	at := page
	if before {
		at += size - 4*n
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&region[at])), n)
}

// The dense kernels stay within their arrays, and read ranges that do not begin or
// end with a vector.
func TestDenseKernelsStayWithinTheirArrays(t *testing.T) {
	bound := BoundOf[float32](1e-10)
	masks := new(Masks)
	for i := range masks {
		masks[i] = -1
	}
	for _, before := range []bool{true, false} {
		for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
			for _, n := range []int{16, 48, 272} {
				const slots = BlockHeads * (MaxDenseWidth + 1) * Lanes
				q := &HeadBlock[float32]{D: d, Columns: guarded(t, d*(n+7), before), Stride: n + 7, Heads: guarded(t, BlockHeads*d, before),
					Sums: guarded(t, slots, before), Gradient: guarded(t, d*(n+7), before), State: guarded(t, 3*Lanes, before)}
				squares, out := guarded(t, BlockHeads*n, before), guarded(t, (1+d)*(n+7), before)
				coefficients, folded := guarded(t, BlockHeads*(1+d), before), guarded(t, slots/Lanes, before)
				corners, rows := guarded(t, 3*d*Lanes, before), guarded(t, n*d, before)
				forms(t, func(*testing.T) {
					for _, first := range []int{0, 1, 7} {
						q.Ranges = []ColumnRange{{First: first, N: n, Masks: masks}}
						for _, most := range []float32{10, 1e12} {
							q.Most = most
							q.Fresh(true)
							DenseNeg(q, 1, bound)
							DenseUMAP(q, bound)
							DenseTotals(q, squares, n, bound)
						}
						DenseScatter(out[first:], d, n, n+7, squares, n, coefficients)
					}
					Fold(folded, q.Sums)
					Extents(corners[:d*Lanes], corners[d*Lanes:2*d*Lanes], corners[2*d*Lanes:], rows, d)
				})
			}
		}
	}
}

// The kernels stay within their arrays: one element beyond would end the
// test's process.
func TestKernelsStayWithinTheirArrays(t *testing.T) {
	momentum := Momentum{Step: 1, Clip: 4, Momentum: 0.9}
	adam := Adam{Step: 1, Clip: math.Inf(1), Beta1: 0.9, Beta2: 0.999, Scale: 1, Epsilon: 1e-8}
	for _, before := range []bool{true, false} {
		for _, n := range []int{1, 7, 15, 16, 31, 33, 70} {
			var x [4][]float32
			for i := range x {
				x[i] = guarded(t, n, before)
			}
			table := guarded(t, 9*n, before)
			forms(t, func(*testing.T) {
				Descend(x[0], x[1], 1, 4)
				MomentumStep(x[0], x[1], x[2], &momentum)
				AdamStep(x[0], x[1], x[2], x[3], &adam)
				MaskPositive(x[0], x[1], x[2])
				ColumnSums(x[0], table, n)
				RowDistances(x[0], x[1], 1, 1, 1, make([]uint64, (n+63)/64))
				RowSimilarities(x[0], 1e-10)
				RowInfoNC(x[0], 1, 1e-10)
				RowNeg(x[0], 1, BoundOf[float32](0))
				RowUMAP(x[0], BoundOf[float32](0))
				RowExp(x[0], RowMax(x[0], 0))
				SoftmaxGrad(x[0], x[1], x[2])
				RowLogistic(x[0], 0)
				AddSquares(x[0], x[1], 1)
				AddDistances(x[0], x[1], 1, 1, 1)
				InverseSum(x[0])
				LessProduct(x[0], x[1], x[2], 1)
				Pull(x[0], x[1], x[2], x[3], 2)
				AddReLU(x[0], x[1], x[2])
				for _, c := range []int{n, max(1, n/3), 1} {
					whole := n / c * c
					norm := &Norm[float32]{x[1][:c], x[1][:c], x[1][:c], 0}
					norm.Apply(x[2][:whole], x[0][:whole])
					norm.Gradient(x[3][:whole], x[0][:whole], x[2][:whole], x[1][:c], x[1][:c], x[1][:c])
					norm.Products(make([]float64, c), make([]float64, c), x[0][:whole], x[2][:whole])
					ColumnMoments(make([]float64, c), make([]float64, c), x[0][:whole], x[1][:c])
				}
				for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
					Planes(table[:d*n], n, table[d*n:2*d*n], d)
				}
			})
		}
	}
}

// Neither the limits nor the counts need be a whole number of vectors.
func TestCountBelowStaysWithinItsArrays(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, n := range []int{1, 15, 16, 33, 70} {
			for _, k := range []int{1, 3, 4, 5, 8, 11} {
				x, limits, words := guarded(t, n, before), guarded(t, k, before), guarded(t, k, before)
				counts := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(words))), k)
				forms(t, func(*testing.T) { CountBelow(counts, x, limits) })
			}
		}
	}
}

// The transforms of tiles at the edges read and write nothing beyond them.
func TestWinogradStaysWithinTheImage(t *testing.T) {
	const channels = 16
	for _, before := range []bool{true, false} {
		for _, tr := range transforms {
			from, to := Grid{0, tr.in * channels, channels}, Grid{0, tr.out * channels, channels}
			reads, writes := tr.in*tr.in, tr.out*tr.out
			inside := everywhere()
			if tr.name == "image" { // the tile begins a row and a column before the image
				from.At, reads = -(tr.in+1)*channels, (tr.in-1)*tr.in-1
				for i := range tr.in {
					inside[i], inside[i*tr.in] = 0, 0
				}
			}
			if tr.name == "result" { // the image ends after two rows of the tile
				writes = 2 * tr.out
				clear(inside[writes:])
			}
			src, dst := guarded(t, reads*channels, before), guarded(t, writes*channels, before)
			forms(t, func(*testing.T) { tr.run(dst, to, src, from, channels, inside) })
		}
	}
}

func TestGatheredKernelsStayWithinTheirArrays(t *testing.T) {
	const rows = 20
	for _, before := range []bool{true, false} {
		for _, width := range []int{1, 7, 16, 48, 50, 64, 77} {
			x, row, along := guarded(t, rows*width, before), guarded(t, width, before), guarded(t, width, before)
			for _, n := range []int{16, 48} {
				dst, limits := guarded(t, n, before), guarded(t, n, before)
				cols := make([]int32, n)
				for c := range cols {
					cols[c] = int32(c * 7 % rows)
				}
				forms(t, func(*testing.T) {
					NearRows(dst, make([]uint64, 1), x, row, cols, 1, limits)
					ProjectRows(dst, x, row, along, cols)
					SquaredDistances(make([]float64, n), x, row, cols)
				})
				bytes := unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(guarded(t, rows*width*8, before)))), rows*width*32)
				words := unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(guarded(t, width*16, before)))), width*32)
				forms(t, func(*testing.T) { NearBytes(dst, make([]uint64, 1), bytes, words, cols, 1) })
			}
		}
	}
}

// Fetching rows at the ends of an array does not fail.
func TestFetchAtTheEndsOfAnArray(t *testing.T) {
	for _, before := range []bool{true, false} {
		for _, width := range []int{1, 16, 50, 64, 300} {
			const rows = 20
			x := guarded(t, rows*width, before)
			for i := range x {
				x[i] = float32(i)
			}
			Fetch(x, width, []int32{0, rows - 1, 7, 0})
			Fetch(x, width, nil)
			for i, v := range x {
				if v != float32(i) {
					t.Fatalf("width %d: value %d has become %g", width, i, v)
				}
			}
		}
	}
	Fetch([]float32(nil), 8, nil)
}
