package simd

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"cne/internal/rng"
)

var updateBits = flag.Bool("update-bits", false, "write testdata/bits.txt anew")

// bits hashes the bits of results.
type bits struct{ all []byte }

func (b *bits) floats(x ...float32) {
	for _, v := range x {
		b.all = binary.LittleEndian.AppendUint32(b.all, math.Float32bits(v))
	}
}

func (b *bits) doubles(x ...float64) {
	for _, v := range x {
		b.all = binary.LittleEndian.AppendUint64(b.all, math.Float64bits(v))
	}
}

func (b *bits) sum() uint64 {
	h := fnv.New64a()
	h.Write(b.all)
	return h.Sum64()
}

// A source draws numbers by exact operations only, the same on every machine.
type source struct{ rng.Stream }

// numbers returns n numbers of both signs, most of magnitudes between 1/16 and 16.
func (s *source) numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Ldexp(1+s.Float64(), s.IntN(8)-4)) * float32(2*s.IntN(2)-1)
	}
	return x
}

// positive returns n numbers of many magnitudes, with zeros.
func (s *source) positive(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch s.IntN(10) {
		case 0:
		case 1:
			x[i] = float32(math.Ldexp(1+s.Float64(), s.IntN(90)-45))
		default:
			x[i] = float32(math.Ldexp(1+s.Float64(), s.IntN(14)-7))
		}
	}
	return x
}

func (s *source) indices(n, below int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(s.IntN(below))
	}
	return x
}

func (s *source) block(d, n int, b *HeadBlock[float32]) *HeadBlock[float32] {
	*b = HeadBlock[float32]{D: d, Stride: n + 5, Most: b.Most, Columns: s.numbers(d * (n + 5)), Heads: s.numbers(BlockHeads * d),
		Sums: make([]float32, BlockHeads*(d+1)*Lanes), Gradient: s.numbers(d * (n + 5)), State: make([]float32, 3*Lanes)}
	copy(b.Columns, b.Heads[:1])
	for h := range BlockHeads { // some columns lie where a head is
		for k := range d {
			b.Columns[k*b.Stride+7*h] = b.Heads[h*d+k]
		}
	}
	all, some := new(Masks), new(Masks)
	for i := range all {
		all[i], some[i] = -1, -int32(min(1, s.IntN(5)))
	}
	first := n / 2 / Lanes * Lanes
	b.Ranges = []ColumnRange{{First: 0, N: first, At: n - first, Masks: all}, {First: first, N: n - first, Masks: some}}
	b.Fresh(true)
	return b
}

func (b *bits) block(q *HeadBlock[float32]) {
	b.floats(q.Sums...)
	b.floats(q.Gradient...)
	sum := q.Sum()
	b.floats(q.State...)
	b.doubles(sum.Loss, sum.DTheta)
}

// results are the kernels by their names; each adds what it computes from the source.
var results = []struct {
	name string
	run  func(b *bits, s *source, n int)
}{
	{"NegPositive", eachBound(func(b *bits, x []float32, bound Bound[float32]) {
		sum := NegPositive(x, 0.37, bound)
		b.doubles(sum.Loss, sum.DTheta)
	})},
	{"NegNegative", eachBound(func(b *bits, x []float32, bound Bound[float32]) {
		sum := NegNegative(x, 0.37, bound)
		b.doubles(sum.Loss, sum.DTheta)
	})},
	{"UMAPPositive", eachBound(func(b *bits, x []float32, bound Bound[float32]) { b.doubles(UMAPPositive(x, bound)) })},
	{"UMAPNegative", eachBound(func(b *bits, x []float32, bound Bound[float32]) { b.doubles(UMAPNegative(x, bound)) })},
	{"RowNeg", eachBound(func(b *bits, x []float32, bound Bound[float32]) {
		sum := RowNeg(x, 0.37, bound)
		b.doubles(sum.Loss, sum.DTheta)
	})},
	{"RowUMAP", eachBound(func(b *bits, x []float32, bound Bound[float32]) { b.doubles(RowUMAP(x, bound)) })},
	{"InfoNC", func(b *bits, s *source, n int) {
		total := make([]float32, n)
		x := [3][]float32{s.positive(n), s.positive(n), s.positive(n)}
		for _, x := range x {
			Similarities(x, total, 1e-4)
		}
		b.doubles(LogTotals(total, 0.6), InfoNCPositive(x[0], total, 1e-4))
		InfoNCNegative(x[2], total, 1e-4)
		b.floats(slices.Concat(x[0], x[1], x[2], total)...)
	}},
	{"Rows", func(b *bits, s *source, n int) {
		x, norms, found := s.numbers(n), s.positive(n), make([]uint64, (n+63)/64)
		RowDistances(x, norms, 3, 0.1, 0.5, found)
		b.floats(x...)
		for _, w := range found {
			b.doubles(math.Float64frombits(w))
		}
		b.doubles(RowSimilarities(x, 1e-4))
		RowInfoNC(x, 0.7, 1e-4)
		b.floats(x...)
		y := s.numbers(n)
		top := RowMax(y, -3)
		b.doubles(float64(top), RowExp(y, top))
		b.floats(y...)
		z := s.numbers(n)
		sum := RowLogistic(z, 0.3)
		b.doubles(sum.Loss, sum.DTheta)
		b.floats(z...)
	}},
	{"Cosines", func(b *bits, s *source, n int) {
		x, y, z := s.numbers(n), s.numbers(n), s.numbers(6*n)
		p, q := LogisticPositive(x, 0.3), LogisticNegative(y, 0.3)
		b.doubles(p.Loss, p.DTheta, q.Loss, q.DTheta)
		if n > 0 {
			b.doubles(Softmax(z, n, 6, n, 0.6))
		}
		b.floats(slices.Concat(x, y, z)...)
	}},
	{"Pairs2", func(b *bits, s *source, n int) {
		features, tails := s.numbers(4*n+2), s.indices(n, 2*n+1)
		d2, dx, dy, hx, hy := make([]float32, n), make([]float32, n), make([]float32, n), s.numbers(n), s.numbers(n)
		Pairs2(d2, dx, dy, features, 0, tails)
		g := s.numbers(n)
		grad := s.numbers(4*n + 2)
		ScatterGradient2(grad, hx, hy, g, dx, dy, tails)
		AddPlane(grad, hx, hy)
		b.floats(slices.Concat(d2, dx, dy, hx, hy, grad)...)
	}},
	{"Pairs", func(b *bits, s *source, n int) {
		const d = 5
		features, tails, g := s.numbers(d*(2*n+1)), s.indices(n, 2*n+1), s.numbers(n)
		d2, x, grad := make([]float32, n), make([]float32, n), s.numbers(d*(2*n+1))
		Pairs(d2, features, d, 0, tails)
		Products(x, features, d, 0, tails, 0.7)
		ScatterGradient(grad, features, g, d, 0, tails)
		ScatterProductGradient(grad, features, g, d, 0, tails, 0.7)
		b.floats(slices.Concat(d2, x, grad)...)
	}},
	{"Sums", func(b *bits, s *source, n int) {
		xs, ys, d2 := s.numbers(n), s.numbers(n), s.positive(n)
		b.doubles(InverseSum2(xs, ys, 0.3, -2), InverseSum2Near(xs, ys, 0.3, -2), InverseSum(d2))
		AddSquares(d2, xs, 0.7)
		Add(xs, ys)
		Scale(xs, 0.3)
		counts := make([]int32, 6)
		CountBelow(counts, xs, s.numbers(6))
		for _, c := range counts {
			b.doubles(float64(c))
		}
		b.doubles(float64(MaxUint32(s.indices(n, 1<<30))))
		b.floats(slices.Concat(xs, d2)...)
	}},
	{"Draws", func(b *bits, s *source, n int) {
		x, y, index := s.numbers(2*n), s.numbers(2*n), s.indices(n, max(1, n))
		GatherRows(y, x, 2, index)
		ScatterRows(x, y, 2, index)
		if n > 0 {
			column := make([]int32, n)
			DrawOthers(column, s.State())
			for _, c := range column {
				b.doubles(float64(c))
			}
			b.doubles(Variance(x, 2, 1))
		}
		b.floats(slices.Concat(x, y)...)
	}},
	{"Steps", func(b *bits, s *source, n int) {
		w, g, m, v := s.numbers(n), s.numbers(n), s.numbers(n), s.positive(n)
		Descend(w, g, 0.1, 4)
		MomentumStep(w, g, m, &Momentum{Step: 0.1, Clip: 4, WeightDecay: 0.01, Momentum: 0.9})
		AdamStep(w, g, m, v, &Adam{Step: 0.1, Clip: 4, WeightDecay: 0.01, Beta1: 0.9, Beta2: 0.999, Scale: 1.3, Epsilon: 1e-8})
		table, grad := s.numbers(2*n), s.numbers(2*n)
		DescendRows(table, grad, 2, s.indices(n, max(1, n)), 0.1, 4)
		MaskPositive(g, m, w)
		sums := s.numbers(7)
		ColumnSums(sums, w[:n/7*7], 7)
		b.floats(slices.Concat(w, g, m, v, table, sums)...)
	}},
	{"DenseNeg", eachBlock(func(b *bits, q *HeadBlock[float32], d, n int) {
		DenseNeg(q, 0.37, BoundOf[float32](1e-10))
		b.block(q)
		DenseNeg(q, 0.37, BoundOf[float32](0.3))
		b.block(q)
	})},
	{"DenseUMAP", eachBlock(func(b *bits, q *HeadBlock[float32], d, n int) {
		DenseUMAP(q, BoundOf[float32](1e-10))
		b.block(q)
		DenseUMAP(q, BoundOf[float32](0))
		b.block(q)
	})},
	{"DenseTotals", eachBlock(func(b *bits, q *HeadBlock[float32], d, n int) {
		squares := make([]float32, BlockHeads*n)
		for _, clamp := range []float64{1e-10, 0.1} {
			DenseTotals(q, squares, n, BoundOf[float32](clamp))
			b.floats(q.Sums...)
			b.floats(squares...)
		}
		s := source{rng.New(uint64(n), rng.Sample)}
		out, folded := s.numbers((1+d)*n), make([]float32, BlockHeads*(1+d))
		DenseScatter(out, d, n, n, squares, n, s.numbers(BlockHeads*(1+d)))
		Fold(folded, q.Sums)
		b.floats(out...)
		b.floats(folded...)
	})},
	{"Finish", func(b *bits, s *source, n int) {
		for d := 2; d <= 3; d++ {
			x, planes := s.numbers(d*(n+1)), make([]float32, d*(n+4))
			Planes(planes, n+4, x, d)
			least, most, sum := make([]float32, d*Lanes), make([]float32, d*Lanes), make([]float32, d*Lanes)
			Extents(least, most, sum, x, d)
			dst := s.numbers(n)
			LessProduct(dst, x, planes, 0.3)
			Pull(dst, x, planes, planes[n+4:], 0.7)
			b.floats(slices.Concat(planes, least[:d], most[:d], sum[:d], dst)...)
		}
	}},
	{"Field", func(b *bits, s *source, n int) {
		var sums [3 * FieldTargets]float32
		Field(&sums, (*[2 * FieldTargets]float32)(s.numbers(2*FieldTargets)), s.numbers(3*n))
		b.floats(sums[:]...)
		points, edges := s.numbers(2*n+2), make([]uint64, n)
		for i := range edges {
			edges[i] = uint64(s.IntN(n+1)) | uint64(s.IntN(n+1))<<32
		}
		fx, fy := make([]float32, n), make([]float32, n)
		b.doubles(Attract(fx, fy, points, edges, s.positive(n)))
		b.floats(slices.Concat(fx, fy)...)
	}},
	{"Gathered", func(b *bits, s *source, n int) {
		const rows = 40
		width := n + 1
		x, cols := s.numbers(rows*width), s.indices(32, rows)
		dst, found, limits := make([]float32, 32), make([]uint64, 1), s.positive(32)
		NearRows(dst, found, x, s.numbers(width), cols, float32(width), limits)
		b.floats(dst...)
		b.doubles(math.Float64frombits(found[0]))
		ProjectRows(dst, x, s.numbers(width), s.numbers(width), cols)
		b.floats(dst...)
		tiles, near := make([]float32, 128), make([]uint16, 8)
		NearTiles(tiles, near, x, width, (*[4]int32)(s.indices(4, rows)), cols, (*[4]float32)(s.positive(4)), limits, nil)
		b.floats(tiles...)
		for _, w := range near {
			b.doubles(float64(w))
		}
	}},
	{"Norm", func(b *bits, s *source, n int) {
		const rows = 37
		c := n + 1
		x, g, sums, squares := s.numbers(rows*c), s.numbers(rows*c), make([]float64, c), make([]float64, c)
		norm := &Norm[float32]{Pivot: s.numbers(c), Scale: s.numbers(c), Shift: s.numbers(c)}
		ColumnMoments(sums, squares, x, norm.Pivot)
		norm.Products(sums, squares, g, x)
		b.doubles(sums...)
		b.doubles(squares...)
		dst := make([]float32, rows*c)
		norm.Gradient(dst, g, x, s.numbers(c), s.numbers(c), s.numbers(c))
		b.floats(dst...)
		norm.Apply(dst, x)
		AddReLU(dst, dst, g)
		b.floats(dst...)
	}},
	{"Winograd", func(b *bits, s *source, n int) {
		channels := (n + Lanes) &^ (Lanes - 1)
		x, products := s.numbers(36*channels), make([]float32, 36*channels)
		inside := new(Inside)
		for i := range inside {
			inside[i] = -uint32(s.IntN(2))
		}
		tile := func(side int) Grid { return Grid{0, side * channels, channels} }
		for _, f := range []func(){
			func() { WinogradImage(products, tile(6), x, tile(6), channels, inside) },
			func() { WinogradGradient(products, tile(6), x, tile(4), channels, inside) },
			func() { WinogradResult(products, tile(4), x, tile(6), channels, inside) },
			func() { WinogradWeights(products, tile(6), x, tile(3), channels) },
			func() { WinogradWeightsGradient(products, tile(3), x, tile(6), channels) },
		} {
			f()
			b.floats(products...)
		}
	}},
	{"NearBytes", func(b *bits, s *source, n int) {
		const rows = 40
		width := (n + 31) &^ 31
		x, row, cols := make([]uint8, rows*width), make([]int16, width), s.indices(32, rows)
		for i, v := range s.indices(len(x), 256) {
			x[i] = uint8(v)
		}
		for l, v := range s.indices(width, 256) {
			row[l] = int16(v)
		}
		dst, found := make([]float32, 32), make([]uint64, 1)
		NearBytes(dst, found, x, row, cols, float32(10_000*width))
		b.floats(dst...)
		b.doubles(math.Float64frombits(found[0]))
	}},
	{"SoftmaxGrad", func(b *bits, s *source, n int) {
		y, g, dst := s.numbers(n), s.numbers(n), make([]float32, n)
		SoftmaxGrad(dst, y, g)
		b.floats(dst...)
		SoftmaxGrad(g, y, g)
		b.floats(g...)
	}},
}

func eachBound(run func(b *bits, x []float32, bound Bound[float32])) func(b *bits, s *source, n int) {
	return func(b *bits, s *source, n int) {
		for _, clamp := range []float64{1e-10, 1e-4, 0} {
			x := s.positive(n)
			run(b, x, BoundOf[float32](clamp))
			b.floats(x...)
		}
	}
}

// eachBlock runs the fast, the careful and the generic variant of a dense kernel.
func eachBlock(run func(b *bits, q *HeadBlock[float32], d, n int)) func(b *bits, s *source, n int) {
	return func(b *bits, s *source, n int) {
		for d := MinDenseWidth; d <= MaxDenseWidth; d++ {
			for _, most := range []float32{1e4, 1e15, 1e38} {
				n := max(32, n/Lanes*Lanes)
				run(b, s.block(d, n, &HeadBlock[float32]{Most: most}), d, n)
			}
		}
	}
}

// TestBits compares the bits of all results with the stored bits: every instruction set and
// every architecture gives the same. CNE_TEST_SET, if set, names the best set that the
// processor must have.
func TestBits(t *testing.T) {
	if want := os.Getenv("CNE_TEST_SET"); want != "" && want != Best().String() {
		t.Fatalf("the best instruction set is %s, want %s", Best(), want)
	}
	const file = "testdata/bits.txt"
	kept := map[string]string{}
	text, err := os.ReadFile(file)
	if err != nil && !*updateBits {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		kept[name] = sum
	}
	var made, first strings.Builder
	forms(t, func(t *testing.T) {
		made.Reset()
		for i, r := range results {
			var b bits
			for _, n := range append(slices.Clone(lengths), 2*logChunk+17) {
				if r.name == "Norm" || r.name == "Gathered" {
					n = min(n, 150)
				}
				s := source{rng.New(uint64(i), rng.Sample, uint64(n))}
				r.run(&b, &s, n)
			}
			sum := fmt.Sprintf("%016x", b.sum())
			fmt.Fprintf(&made, "%s %s\n", r.name, sum)
			if sum != kept[r.name] && !*updateBits {
				t.Errorf("%s has the bits %s, want %s", r.name, sum, kept[r.name])
			}
		}
		if first.Len() == 0 {
			first.WriteString(made.String())
		}
		if made.String() != first.String() {
			t.Error("other bits than in plain Go")
		}
	})
	if *updateBits {
		if err := os.WriteFile(file, []byte(made.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// All forms give the same bits for zeros of either sign, infinities, subnormal numbers and
// NaNs, too, except for the bits of a NaN.
func TestBitsOfSpecialValues(t *testing.T) {
	inf, nan, minusZero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	special := []float32{0, minusZero, inf, 1e-42, 3e38, 1e-20, 1e20, nan, 1}
	values := func(from int) []float32 {
		x := make([]float32, 4*lanes)
		for i := range x {
			x[i] = []float32{1.5, special[(from+i/5)%len(special)], 0.25}[i%3]
		}
		return x
	}
	whole := func(b *bits, x ...float32) {
		for _, v := range x {
			if v != v {
				v = nan
			}
			b.floats(v)
		}
	}
	var first []byte
	forms(t, func(t *testing.T) {
		var b bits
		for from := range special {
			for _, clamp := range []float64{0, 1e-10} {
				bound := BoundOf[float32](clamp)
				x := values(from)
				for i, v := range x {
					if v < 0 || v != v {
						x[i] = minusZero
					}
				}
				sum := NegNegative(x, 0.37, bound)
				whole(&b, append(x, float32(sum.Loss), float32(sum.DTheta))...)
				q, share := values(from), values(from+3)
				for i := range q {
					q[i], share[i] = min(1, max(0, q[i])), min(1e20, max(0, share[i]))
					if q[i] != q[i] || share[i] != share[i] {
						q[i], share[i] = 1e-20, 1e-25
					}
				}
				InfoNCNegative(q, share, float32(clamp))
				whole(&b, q...)
			}
			least, most, sum := make([]float32, 2*lanes), make([]float32, 2*lanes), make([]float32, 2*lanes)
			Extents(least, most, sum, values(from), 2)
			whole(&b, slices.Concat(least[:2], most[:2], sum[:2])...)
		}
		if first == nil {
			first = b.all
		}
		for i := range b.all {
			if b.all[i] != first[i] {
				t.Fatalf("number %d has other bits than in plain Go", i/4)
			}
		}
	})
}
