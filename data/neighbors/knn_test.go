package neighbors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/internal/blas"
	"cne/internal/selection"
	"cne/internal/simd"
)

// oracle computes all distances of a matrix's points and sorts each row.
func oracle(m *data.Matrix, k int) *Neighbors { return scan(m, m, k, true) }

// scan computes the distances of queries from all base points, but their own if they have
// any, and sorts each row.
func scan(base, queries *data.Matrix, k int, own bool) *Neighbors {
	nb := newNeighbors(queries.N, k)
	type pair struct {
		d float64
		i int
	}
	for q := range queries.N {
		row := make([]pair, 0, base.N)
		for j := range base.N {
			if !own || j != q {
				row = append(row, pair{dist2(queries.Row(q), base.Row(j), math.Inf(1)), j})
			}
		}
		slices.SortFunc(row, func(a, b pair) int {
			if a.d < b.d {
				return -1
			}
			return selection.If(a.d > b.d, 1, a.i-b.i)
		})
		for p := range k {
			nb.Index[q*k+p], nb.Dist2[q*k+p] = int32(row[p].i), row[p].d
		}
	}
	return nb
}

// same fails the test if got is not the wanted result to the last bit.
func same(t *testing.T, got, want *Neighbors) {
	t.Helper()
	if got.N != want.N || got.K != want.K || len(got.Index) != len(want.Index) || len(got.Dist2) != len(want.Dist2) {
		t.Fatalf("result is %d×%d with %d and %d entries, want %d×%d", got.N, got.K, len(got.Index), len(got.Dist2), want.N, want.K)
	}
	for e := range want.Index {
		if got.Index[e] != want.Index[e] || got.Dist2[e] != want.Dist2[e] {
			t.Fatalf("neighbour %d of point %d: point %d at %v, want point %d at %v", e%want.K, e/want.K,
				got.Index[e], got.Dist2[e], want.Index[e], want.Dist2[e])
		}
	}
}

// blockedIndex returns an index with the CPU's candidates.
func blockedIndex(base *data.Matrix) *Index {
	x, p := newTreeIndex(base), newPanels(base, nearby(base))
	x.candidates, x.normalization = p, &p.normalization
	return x
}

// roundedIndex returns an index with the candidates of rounded points first, however many
// there are and however little these prove.
func roundedIndex(base *data.Matrix, whole bool) *Index {
	x, order := newTreeIndex(base), nearby(base)
	p := newRoundedPanels(base, order, whole)
	x.candidates, x.normalization = &coarseFirst{p, func() *panels { return newPanels(base, order) }}, &p.normalization
	return x
}

// knnTree is KNN by searching the tree.
func knnTree(t testing.TB, m *data.Matrix, k int) *Neighbors {
	t.Helper()
	nb := newNeighbors(m.N, k)
	newTreeIndex(m).find(t.Context(), nb, queries{points: m, own: true})
	return nb
}

// knnBlocked is KNN by ranking the CPU's candidates. It also returns how many
// points had to be searched in the tree.
func knnBlocked(t testing.TB, m *data.Matrix, k int) (nb *Neighbors, improved int) {
	t.Helper()
	nb = newNeighbors(m.N, k)
	return nb, rankCandidates(t, blockedIndex(m), nb, queries{points: m, own: true})
}

// knnRounded is KNN by ranking candidates of rounded points first.
func knnRounded(t testing.TB, m *data.Matrix, k int, whole bool) *Neighbors {
	t.Helper()
	nb := newNeighbors(m.N, k)
	rankCandidates(t, roundedIndex(m, whole), nb, queries{points: m, own: true})
	return nb
}

// rankCandidates sets nb to the nearest neighbours by ranking candidates, however few
// points there are. It returns how many queries had to be searched in the tree.
func rankCandidates(t testing.TB, x *Index, nb *Neighbors, q queries) int {
	t.Helper()
	rows := x.findAmongCandidates(t.Context(), nb, q)
	x.improve(nb, q, rows)
	return len(rows)
}

// each fills a matrix value by value: value l of d of point i.
func each(value func(i, l, d int, r *rand.Rand) float64) func(*data.Matrix, *rand.Rand) {
	return func(m *data.Matrix, r *rand.Rand) {
		for e := range m.X {
			m.X[e] = float32(value(e/m.D, e%m.D, m.D, r))
		}
	}
}

// kinds are the sorts of data that the search must get right.
var kinds = []struct {
	name string
	fill func(m *data.Matrix, r *rand.Rand)
}{
	{"normal", each(func(_, _, _ int, r *rand.Rand) float64 { return r.NormFloat64() })},
	{"integer grid", each(func(_, _, _ int, r *rand.Rand) float64 { return float64(r.IntN(5) - 2) })},
	{"binary", each(func(_, _, _ int, r *rand.Rand) float64 { return float64(r.IntN(2)) })},
	{"a tenth duplicates", func(m *data.Matrix, r *rand.Rand) {
		for i := range m.X {
			m.X[i] = float32(r.NormFloat64())
		}
		for range m.N / 10 {
			copy(m.Row(r.IntN(m.N)), m.Row(r.IntN(m.N)))
		}
	}},
	{"half of them one point", func(m *data.Matrix, r *rand.Rand) {
		for i := range m.N {
			if r.IntN(2) == 1 {
				normalRow(m.Row(i), r)
			}
		}
	}},
	{"all of them one point", each(func(_, l, _ int, _ *rand.Rand) float64 { return float64(1+l) / 3 })},
	{"both zeros", each(func(_, _, _ int, r *rand.Rand) float64 { return math.Copysign(0, float64(r.IntN(2))-0.5) })},
	{"clusters far from the origin", each(func(i, _, _ int, r *rand.Rand) float64 { return 1e4 + 10*float64(i%3) + r.NormFloat64() })},
	{"clusters far from each other", each(func(i, _, _ int, r *rand.Rand) float64 { return 1e4*float64(i%3-1) + r.NormFloat64() })},
	{"constant columns", each(func(_, l, d int, r *rand.Rand) float64 {
		if l == d/2 {
			return r.NormFloat64()
		}
		return 1e6
	})},
	{"on a line, in order", each(func(i, l, _ int, _ *rand.Rand) float64 { return float64(i) * float64(1+l) })},
	{"huge and tiny values", each(func(_, _, _ int, r *rand.Rand) float64 {
		return math.Copysign(math.Pow(10, float64(r.IntN(80)-42)), r.NormFloat64())
	})},
}

func TestKNNEqualsScanOfAllPairs(t *testing.T) {
	sizes := []struct {
		n, d int
		ks   []int
	}{
		{2, 1, []int{1}},
		{17, 2, []int{1, 15, 16}},
		{100, 1, []int{1, 15, 99}},
		{100, 2, []int{15}},
		{100, 3, []int{4}},
		{100, 8, []int{15}},
		{280, 9, []int{15, 279}},
		{130, 50, []int{1, 15, 70}},
		{90, 100, []int{3, 89}},
	}
	for _, kind := range kinds {
		for _, size := range sizes {
			r := rand.New(rand.NewPCG(uint64(size.n), uint64(size.d)))
			m := data.NewMatrix(size.n, size.d)
			kind.fill(m, r)
			all := oracle(m, size.n-1)
			for _, k := range size.ks {
				t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, k), func(t *testing.T) {
					want := newNeighbors(size.n, k)
					for i := range size.n {
						copy(want.Index[i*k:(i+1)*k], all.Of(i))
						copy(want.Dist2[i*k:(i+1)*k], all.Dist2[i*all.K:])
					}
					same(t, need(KNN(t.Context(), m, k, Options{}))(t), want)
					same(t, knnTree(t, m, k), want)
					blocked, _ := knnBlocked(t, m, k)
					same(t, blocked, want)
					same(t, knnRounded(t, m, k, false), want)
					same(t, knnRounded(t, m, k, true), want)
				})
			}
		}
	}
}

// The ways agree to the last bit, also at the edges of blocks.
func TestTreeAndBlocksAgree(t *testing.T) {
	for _, n := range []int{40, 255, 256, 257, 513, 700} {
		for _, kind := range kinds {
			m := data.NewMatrix(n, 12)
			kind.fill(m, rand.New(rand.NewPCG(uint64(n), 1)))
			a := knnTree(t, m, 7)
			b, _ := knnBlocked(t, m, 7)
			for _, b := range []*Neighbors{b, knnRounded(t, m, 7, false), knnRounded(t, m, 7, true)} {
				if !slices.Equal(a.Index, b.Index) || !slices.Equal(a.Dist2, b.Dist2) {
					t.Errorf("%s, n=%d: the results differ", kind.name, n)
				}
			}
		}
	}
}

// Points are rounded if that proves most of their neighbours, and the neighbours stay the same.
func TestRoundedPointsThatProveTooLittle(t *testing.T) {
	m := normal(1<<14, 10, 1)
	order := inOrder(m.N)
	for _, whole := range []bool{false, true} {
		if share := newRoundedPanels(m, order, whole).proved(t.Context(), m, 15); share < 0.95 {
			t.Errorf("normal points (whole numbers: %v): the neighbours of %.2f of them are proved", whole, share)
		}
	}
	narrow := m.Clone()
	for i := 16; i < m.N; i++ {
		for l, v := range narrow.Row(i % 16) {
			narrow.Row(i)[l] = v + 1e-4*narrow.Row(i)[l]
		}
	}
	for _, whole := range []bool{false, true} {
		if share := newRoundedPanels(narrow, order, whole).proved(t.Context(), narrow, 15); share > 0.1 {
			t.Errorf("16 narrow groups (whole numbers: %v): the neighbours of %.2f of the points are proved", whole, share)
		}
	}
	if !simd.AMX() && !blas.WholeNumbers() {
		t.Skip("the processor has no fast products of rounded points, or the system does not allow them")
	}
	if newCoarseFirst(t.Context(), m, order, 15) == nil || newCoarseFirst(t.Context(), narrow, order, 15) != nil {
		t.Error("normal points are not rounded, or narrow groups are")
	}
	for _, m := range []*data.Matrix{m, narrow} {
		want, _ := knnBlocked(t, m, 15)
		same(t, need(KNN(t.Context(), m, 15, Options{}))(t), want)
	}
}

// Queries and points at the limits of whole numbers: one point's norm is the largest, others round
// to little or nothing, and queries are beyond all points.
func TestWholeNumbersAtTheirLimits(t *testing.T) {
	for _, spread := range []float32{1, 1e3, 1e6, 1e30} {
		m := normal(600, 9, 4)
		for l := range m.D {
			m.Row(17)[l] *= spread
		}
		points := m.Clone()
		for i := range points.N {
			for l := range m.D {
				points.Row(i)[l] *= 1 + float32(i%7)/4
			}
		}
		for _, k := range []int{1, 20} {
			same(t, knnRounded(t, m, k, true), oracle(m, k))
			found := newNeighbors(points.N, k)
			rankCandidates(t, roundedIndex(m, true), found, queries{points: points})
			same(t, found, scan(m, points, k, false))
		}
	}
	// The farther a point is from the mean, the nearer it is to this query beyond whole numbers.
	m := data.NewMatrix(600, 9)
	for i := range m.N / 2 {
		m.Row(i)[0], m.Row(i)[1+i%8] = 0.9+float32(i)/6000, 0.01
		for l, v := range m.Row(i) {
			m.Row(i + m.N/2)[l] = -v
		}
	}
	query, found := data.NewMatrix(1, 9), newNeighbors(1, 1)
	query.X[0] = 1.25
	rankCandidates(t, roundedIndex(m, true), found, queries{points: query})
	same(t, found, scan(m, query, 1, false))
	p := newRoundedPanels(normal(600, 9, 4), inOrder(600), true)
	if most := slices.Max(p.norm) / p.rounded.unit; most > mostWhole || most < mostWhole/2-2 {
		t.Errorf("the largest norm is %v", most)
	}
}

// A query that rounds to almost nothing does not make the proofs of other queries false.
func TestQueryOfSubnormalCoordinates(t *testing.T) {
	m, r := data.NewMatrix(600, 9), rand.New(rand.NewPCG(1, 9))
	for i := 0; i < m.N; i += 2 { // eight narrow groups around 0
		for l := range m.D {
			v := float32(r.IntN(1<<12)) / (1 << 12)
			if i >= 8 {
				v = m.Row(i % 8)[l] + float32(r.IntN(7)-3)/(1<<20)
			}
			m.Row(i)[l], m.Row(i + 1)[l] = v, -v
		}
	}
	points := m.Clone()
	selection.Fill(points.Row(0), 0x1.fp-127)
	points.Row(0)[0] = 0x1p-126
	for _, whole := range []bool{false, true} {
		found := newNeighbors(points.N, 5)
		rankCandidates(t, roundedIndex(m, whole), found, queries{points: points})
		same(t, found, scan(m, points, 5, false))
	}
}

func normal(n, d int, seed uint64) *data.Matrix {
	m := data.NewMatrix(n, d)
	kinds[0].fill(m, rand.New(rand.NewPCG(seed, 0)))
	return m
}

func TestWhichPointsAreSearched(t *testing.T) {
	outlier := normal(1000, 20, 1)
	for l := range outlier.Row(500) {
		outlier.Row(500)[l] = 1e3
	}
	offset := normal(1000, 20, 2)
	for i := range offset.X {
		offset.X[i] += 1e4
	}
	identical := data.NewMatrix(1000, 20)
	for _, tc := range []struct {
		name     string
		m        *data.Matrix
		min, max int
	}{
		{"normal", normal(1000, 20, 3), 0, 0},
		{"far from the origin", offset, 0, 0},
		// It moves the mean and takes digits from all others, but a proof
		// does not have to allow for its rounding errors as well.
		{"an outlier", outlier, 0, 0},
		{"identical", identical, 1000, 1000},
	} {
		_, searched := knnBlocked(t, tc.m, 15)
		if searched < tc.min || searched > tc.max {
			t.Errorf("%s: %d points were searched in the tree, want %d to %d", tc.name, searched, tc.min, tc.max)
		}
	}
}

func TestPermutedRowsPermuteTheResult(t *testing.T) {
	for _, d := range []int{2, 30} {
		m := normal(700, d, 5)
		perm := rand.New(rand.NewPCG(6, 6)).Perm(m.N)
		moved := data.NewMatrix(m.N, d)
		for i, p := range perm {
			copy(moved.Row(p), m.Row(i))
		}
		a := need(KNN(t.Context(), m, 10, Options{}))(t)
		b := need(KNN(t.Context(), moved, 10, Options{}))(t)
		for i, p := range perm {
			for q, j := range a.Of(i) {
				if got := b.Of(p)[q]; got != int32(perm[j]) {
					t.Fatalf("D=%d: neighbour %d of moved point %d is %d, want %d", d, q, p, got, perm[j])
				}
			}
		}
	}
}

func TestScaledPointsHaveTheSameNeighbours(t *testing.T) {
	for _, d := range []int{2, 30} {
		m := normal(700, d, 7)
		want := need(KNN(t.Context(), m, 10, Options{}))(t)
		for _, scale := range []float64{-1, 0x1p-100, 0x1p120} {
			scaled := data.NewMatrix(m.N, d)
			for i, v := range m.X {
				scaled.X[i] = float32(float64(v) * scale)
			}
			got := need(KNN(t.Context(), scaled, 10, Options{}))(t)
			if !slices.Equal(got.Index, want.Index) {
				t.Errorf("D=%d: other neighbours at scale %g", d, scale)
			}
			if got.Dist2[0] != want.Dist2[0]*scale*scale {
				t.Errorf("D=%d: squared distance %g at scale %g, want %g", d, got.Dist2[0], scale, want.Dist2[0]*scale*scale)
			}
		}
	}
}

func TestSameBitsForAnyGOMAXPROCS(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, d := range []int{2, 30} {
		m := normal(1500, d, 8)
		for i := range 300 { // some ties for the tree to search
			copy(m.Row(i), m.Row(i%10))
		}
		var want *Neighbors
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			got := need(KNN(t.Context(), m, 15, Options{}))(t)
			if want == nil {
				want = got
			}
			if !slices.Equal(got.Index, want.Index) || !slices.Equal(got.Dist2, want.Dist2) {
				t.Errorf("D=%d: %d processors give another result than one", d, procs)
			}
		}
	}
}

func readTestdata(t testing.TB, name string, values any) {
	t.Helper()
	b := need(os.ReadFile("testdata/" + name))(t)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, values); err != nil || binary.Size(values) != len(b) {
		t.Fatalf("testdata/%s has %d bytes, want %d: %v", name, len(b), binary.Size(values), err)
	}
}

func goldenPoints(t testing.TB) *data.Matrix {
	m := data.NewMatrix(300, 20)
	readTestdata(t, "x_300x20.f32", m.X)
	return m
}

func TestGoldenNeighbours(t *testing.T) {
	m := goldenPoints(t)
	want := make([]int16, 300*15)
	readTestdata(t, "knn_300x15.i16", want)
	got := need(KNN(t.Context(), m, 15, Options{}))(t)
	for i := range 300 {
		own := slices.Sorted(slices.Values(got.Of(i)))
		for p, j := range want[i*15 : (i+1)*15] {
			if own[p] != int32(j) {
				t.Errorf("point %d has the neighbours %d, want %d", i, own, want[i*15:(i+1)*15])
				break
			}
		}
	}
}

// The bound on rounding errors holds for the products that are really
// computed, and is not so wide as to be useless.
func TestErrorBound(t *testing.T) {
	for _, kind := range kinds {
		for _, d := range []int{9, 50, 784} {
			m := data.NewMatrix(300, d)
			kind.fill(m, rand.New(rand.NewPCG(uint64(d), 3)))
			for _, p := range []*panels{newPanels(m, inOrder(m.N)), newRoundedPanels(m, inOrder(m.N), false), newRoundedPanels(m, inOrder(m.N), true)} {
				testErrorBound(t, kind.name, m, p)
			}
		}
	}
}

func testErrorBound(t *testing.T, name string, m *data.Matrix, p *panels) {
	t.Helper()
	tight := 0.99
	if p.rounded != nil {
		tight = 0.98
	}
	w := p.newWorkspace()
	for _, blocks := range [][2]int{{0, 0}, {0, 1}, {1, 1}} {
		p.multiply(w, p.of(blocks[0]), p.rows(blocks[0]), blocks[1])
		products := w.products
		for r := 0; r < p.rows(blocks[0]); r += 1 + m.D/50 {
			i := blocks[0]*blockSize + r
			for c := range p.rows(blocks[1]) {
				j := blocks[1]*blockSize + c
				s := math.Abs(float64(products[r*blockSize+c]))
				true2 := dist2(m.Row(i), m.Row(j), math.Inf(1))
				r := math.Sqrt(true2) * p.scale
				if p.bound.certain(s, r, p.norm[i], p.norm[j]) {
					t.Fatalf("%s, D=%d: the product %v of points %d and %d is held to prove a distance above %v, which it is",
						name, m.D, s, i, j, r)
				}
				if name == "normal" && i != j && !p.bound.certain(s, tight*r, p.norm[i], p.maxNorm) {
					t.Fatalf("D=%d: the product of points %d and %d does not prove that they are farther than %v of their distance", m.D, i, j, tight)
				}
			}
		}
	}
	for c := p.rows(1); c < blockSize; c++ {
		if s := w.products[c]; s < aboveAll {
			t.Fatalf("%s, D=%d: the empty column %d has the product %v", name, m.D, c, s)
		}
	}
}

// tensorSum adds up products as a tensor core may: four at a time with what was added before,
// each cut off below the last bit of the largest, and so is the sum.
func tensorSum(a, b []float32) float32 {
	sum := 0.0
	for len(a) > 0 {
		n := min(4, len(a))
		terms := []float64{sum}
		largest := math.Abs(sum)
		for l := range n {
			terms = append(terms, float64(a[l])*float64(b[l]))
			largest = max(largest, math.Abs(terms[l+1]))
		}
		_, exp := math.Frexp(largest)
		cut := func(v float64) float64 { return math.Ldexp(math.Trunc(math.Ldexp(v, 24-exp)), exp-24) }
		sum = 0
		for _, v := range terms {
			sum += cut(v)
		}
		if sum != 0 {
			_, exp = math.Frexp(sum)
			sum = cut(sum)
		}
		a, b = a[n:], b[n:]
	}
	return float32(sum)
}

// The bound of points that were rounded to TF32 holds for the sums that tensor cores make,
// and tells distances apart that differ by a hundredth.
func TestRoundedBound(t *testing.T) {
	for _, kind := range kinds {
		for _, d := range []int{9, 50, 400} {
			m := data.NewMatrix(60, d)
			kind.fill(m, rand.New(rand.NewPCG(uint64(d), 5)))
			b := normalizeOnDevice(nil, m)
			p := b.newNormalizedPoints(m.N)
			bound := newRoundedBound(d, b.normalize(p, m, b.norm))
			b.maxNorm = slices.Max(b.norm)
			for i, v := range p.z {
				p.z[i] = roundTF32(v)
			}
			for i := range m.N {
				for j := range i {
					product := tensorSum(p.z[i*b.width:(i+1)*b.width], p.z[j*b.width:(j+1)*b.width])
					s := math.Abs(float64((p.h[rounded][i] + p.h[rounded][j]) - product))
					r := math.Sqrt(dist2(m.Row(i), m.Row(j), math.Inf(1))) * b.scale
					if bound.certain(s, r, b.norm[i], b.norm[j]) {
						t.Fatalf("%s, D=%d: the product %v of points %d and %d is held to prove a distance above %v, which it is", kind.name, d, s, i, j, r)
					}
					if kind.name == "normal" && !bound.certain(s, 0.99*r, b.norm[i], b.maxNorm) {
						t.Fatalf("D=%d: the product of points %d and %d does not prove that they are farther than 99%% of their distance", d, i, j)
					}
				}
			}
		}
	}
	if newRoundedBound(1<<22, 0).certain(1, 0, 0.1, 0.1) {
		t.Error("so long a product proves nothing, but is held to")
	}
}

// A number keeps eleven digits: the nearest, the larger one of two.
func TestRoundTF32(t *testing.T) {
	for v, want := range map[float32]float32{
		0: 0, 1: 1, -1: -1, 1 + 0x1p-10: 1 + 0x1p-10, 1 + 0x1p-11: 1 + 0x1p-10, -1 - 0x1p-11: -1 - 0x1p-10,
		1 + 0x1.fp-12: 1, 1 - 0x1p-24: 1, 0x1p-149: 0, 0x1p-140: 0, 0x1.8p-127: 0x1.8p-127,
	} {
		if got := roundTF32(v); got != want {
			t.Errorf("%v is rounded to %v, want %v", v, got, want)
		}
	}
}

// Differences in float32 prove that points are far, however far from the mean both
// are, and never more than is so.
func TestDifferenceBound(t *testing.T) {
	for _, kind := range kinds {
		for _, d := range []int{1, 2, 3, 8} {
			m := data.NewMatrix(200, d)
			kind.fill(m, rand.New(rand.NewPCG(uint64(d), 4)))
			p := newPanels(m, inOrder(m.N))
			bound := newDifferenceBound(d)
			for i := range m.N {
				for j := range i {
					var s float32
					for l := range d {
						v := p.transform(m.Row(i)[l], l) - p.transform(m.Row(j)[l], l)
						s += v * v
					}
					r := math.Sqrt(dist2(m.Row(i), m.Row(j), math.Inf(1))) * p.scale
					if bound.certain(float64(s/2), r, p.norm[i], p.norm[j]) {
						t.Fatalf("%s, D=%d: the differences of points %d and %d are held to prove a distance above %v, which it is", kind.name, d, i, j, r)
					}
					if kind.name == "normal" && r > 1e-3 && !bound.certain(float64(s/2), 0.999*r, p.norm[i], p.maxNorm) {
						t.Fatalf("D=%d: the differences of points %d and %d do not prove that they are farther than 99.9%% of their distance", d, i, j)
					}
				}
			}
		}
	}
}

// A threshold proves something about all points with greater products at
// once, near or far.
func TestErrorBoundOverAllPoints(t *testing.T) {
	m := normal(256, 20, 9)
	for i := range 20 {
		for l := range m.Row(i) {
			m.Row(i)[l] *= float32(int(1) << i)
		}
	}
	p := newPanels(m, inOrder(m.N))
	bound := newErrorBound(m.D)
	w := p.newWorkspace()
	p.multiply(w, p.of(0), p.rows(0), 0)
	for i := range m.N {
		row := w.products[i*blockSize:][:m.N]
		for _, threshold := range row[:64] {
			nearest := math.Inf(1)
			for j, s := range row {
				if s >= threshold {
					nearest = min(nearest, math.Sqrt(dist2(m.Row(i), m.Row(j), math.Inf(1)))*p.scale)
				}
			}
			if bound.certain(max(0, float64(threshold)), nearest, p.norm[i], p.maxNorm) {
				t.Fatalf("point %d: products from %v on are held to be farther than %v, but one is as near", i, threshold, nearest)
			}
		}
	}
	if newErrorBound(1<<24).certain(1, 0, 0.1, 0.1) {
		t.Error("so long a product proves nothing, but is held to")
	}
}

func TestDist2StopsOnlyAboveTheLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 0))
	for d := 1; d < 70; d++ {
		m := normal(2, d, uint64(d))
		full := dist2(m.Row(0), m.Row(1), math.Inf(1))
		sum := 0.0
		for l, v := range m.Row(0) {
			d := float64(v) - float64(m.Row(1)[l])
			sum += d * d
		}
		if math.Abs(full-sum) > 1e-14*sum {
			t.Errorf("D=%d: %v, but a plain sum is %v", d, full, sum)
		}
		if back := dist2(m.Row(1), m.Row(0), math.Inf(1)); back != full {
			t.Errorf("D=%d: %v one way, %v the other", d, full, back)
		}
		for range 20 {
			limit := full * 2 * r.Float64()
			got := dist2(m.Row(0), m.Row(1), limit)
			if full <= limit && got != full || full > limit && got <= limit {
				t.Errorf("D=%d: %v with the limit %v, %v without", d, got, limit, full)
			}
		}
		if got := dist2(m.Row(0), m.Row(1), full); got != full {
			t.Errorf("D=%d: %v with the distance %v as the limit", d, got, full)
		}
	}
}

func TestTreeIsBalancedAndItsBoxesHold(t *testing.T) {
	for _, kind := range kinds {
		for _, d := range []int{1, 2, 7} {
			m := data.NewMatrix(3000, d)
			kind.fill(m, rand.New(rand.NewPCG(uint64(d), 4)))
			tr := newTree(m)
			if got := slices.Sorted(slices.Values(tr.index)); got[0] != 0 || got[m.N-1] != int32(m.N-1) || len(slices.Compact(got)) != m.N {
				t.Fatalf("%s, D=%d: the tree's order is no permutation", kind.name, d)
			}
			query := normal(1, d, 11).Row(0)
			var visit func(at int32, depth int)
			visit = func(at int32, depth int) {
				nd := tr.nodes[at]
				if depth > 12 {
					t.Fatalf("%s, D=%d: the tree of %d points is deeper than 12", kind.name, d, m.N)
				}
				box := tr.boxDist2(query, at)
				for _, i := range tr.index[nd.lo:nd.hi] {
					if i < nd.minIndex {
						t.Fatalf("%s, D=%d: node %d has point %d below its least index %d", kind.name, d, at, i, nd.minIndex)
					}
					if tr.boxDist2(m.Row(int(i)), at) != 0 || dist2(query, m.Row(int(i)), math.Inf(1)) < box {
						t.Fatalf("%s, D=%d: node %d does not hold its point %d", kind.name, d, at, i)
					}
				}
				if nd.right == 0 {
					if int(nd.hi-nd.lo) > leafSize(d) {
						t.Fatalf("%s, D=%d: a leaf has %d points", kind.name, d, nd.hi-nd.lo)
					}
					return
				}
				visit(at+1, depth+1)
				visit(nd.right, depth+1)
			}
			visit(0, 0)
		}
	}
}

// inOrder returns the numbers of n points.
func inOrder(n int) []int32 { return selection.UpTo[int32](n) }

// All blocks meet once, and no block occurs twice in a round.
func TestGames(t *testing.T) {
	for blocks := 2; blocks <= 20; blocks++ {
		met := map[[2]int]bool{}
		for gap := 1; gap < blocks; gap++ {
			for side := range 2 {
				plays := map[int]bool{}
				for g := range blocks/2 + gap {
					a := game(gap, side, g)
					b := a + gap
					if b >= blocks {
						continue
					}
					if a < 0 || plays[a] || plays[b] || met[[2]int{a, b}] {
						t.Fatalf("%d blocks, gap %d, side %d: %d meets %d, out of turn", blocks, gap, side, a, b)
					}
					plays[a], plays[b], met[[2]int{a, b}] = true, true, true
				}
			}
		}
		if len(met) != blocks*(blocks-1)/2 {
			t.Errorf("%d blocks: %d games, want %d", blocks, len(met), blocks*(blocks-1)/2)
		}
	}
}

func TestTopK(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 0))
	for _, k := range []int{1, 2, 7, 50} {
		best := newTopK(k)
		for range 20 {
			best.resetAll()
			m := data.NewMatrix(1, 1)
			var all [][2]int
			for _, i := range r.Perm(100) {
				d := r.IntN(8)
				all = append(all, [2]int{d, i})
				best.offer(float64(d), int32(i))
			}
			slices.SortFunc(all, func(a, b [2]int) int { return (a[0]-b[0])*1000 + a[1] - b[1] })
			if best.limit != float64(all[k-1][0]) || best.limitIndex != int32(all[k-1][1]) {
				t.Fatalf("the limit is (%v, %d), want %v", best.limit, best.limitIndex, all[k-1])
			}
			nb := newNeighbors(m.N, k)
			best.store(nb, 0)
			for p := range k {
				if nb.Dist2[p] != float64(all[p][0]) || nb.Index[p] != int32(all[p][1]) {
					t.Fatalf("place %d of %d: (%v, %d), want %v", p, k, nb.Dist2[p], nb.Index[p], all[p])
				}
			}
		}
	}
	best := newTopK(3)
	best.reset(2, 5)
	for _, i := range []int32{4, 5, 6} {
		best.offer(2, i)
	}
	best.offer(3, 0)
	if !slices.Equal(best.index, []int32{4}) {
		t.Errorf("points %v were taken, want only 4, the only one before (2, 5)", best.index)
	}
}

func FuzzKNN(f *testing.F) {
	f.Add(uint8(3), uint8(2), []byte("some points"))
	f.Add(uint8(9), uint8(1), bytes.Repeat([]byte{0, 1, 1, 0, 255}, 60))
	f.Add(uint8(20), uint8(40), bytes.Repeat([]byte{7}, 2000))
	f.Fuzz(func(t *testing.T, d, k uint8, b []byte) {
		if d == 0 || k == 0 || len(b)/int(d) <= int(k) || len(b) > 4000 {
			return
		}
		m := data.NewMatrix(len(b)/int(d), int(d))
		for i := range m.X {
			// Sums of squares of these are exact: ties are ties.
			m.X[i] = float32(int8(b[i]))
		}
		want := oracle(m, int(k))
		same(t, knnTree(t, m, int(k)), want)
		blocked, _ := knnBlocked(t, m, int(k))
		same(t, blocked, want)
		same(t, knnRounded(t, m, int(k), false), want)
		same(t, knnRounded(t, m, int(k), true), want)
	})
}

func BenchmarkKNN(b *testing.B) {
	for _, bc := range []struct {
		name    string
		n, d, k int
		kind    string
	}{
		{"10000x50", 10000, 50, 15, "normal"},
		{"10000x50 identical", 10000, 50, 15, "all of them one point"},
		{"10000x50 binary", 10000, 50, 15, "binary"},
		{"10000x50 far clusters", 10000, 50, 15, "clusters far from each other"},
		{"70000x2", 70000, 2, 15, "normal"},
		{"70000x2 identical", 70000, 2, 15, "all of them one point"},
		{"70000x2 grid", 70000, 2, 15, "integer grid"},
	} {
		if testing.Short() { // a tenth of the points
			bc.n /= 10
			bc.name = strings.Replace(bc.name, "0x", "x", 1)
		}
		b.Run(bc.name, func(b *testing.B) {
			m := data.NewMatrix(bc.n, bc.d)
			for _, kind := range kinds {
				if kind.name == bc.kind {
					kind.fill(m, rand.New(rand.NewPCG(1, 1)))
				}
			}
			for b.Loop() {
				need(KNN(b.Context(), m, bc.k, Options{}))(b)
			}
		})
	}
}

// BenchmarkScan measures the test of a block's products against thresholds
// that none of them is below.
func BenchmarkScan(b *testing.B) {
	p := newPanels(normal(2*blockSize, 50, 1), inOrder(2*blockSize))
	w := p.newWorkspace()
	p.multiply(w, p.of(0), blockSize, 1)
	c := newCollector(p.n, 15, false)
	for i := range c.threshold {
		c.threshold[i] = 0
	}
	for b.Loop() {
		c.scan(w.products, c.columns(1), p.order, 0, 1, blockSize)
	}
	b.ReportMetric(float64(b.N)*blockSize*blockSize/b.Elapsed().Seconds()/1e9, "Gproducts/s")
}
