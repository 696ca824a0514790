package train

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/train/initial"
)

func (e edge) head() int32 { return int32(uint32(e)) }

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func numbered(n int) []edge {
	edges := make([]edge, n)
	for i := range edges {
		edges[i] = packEdge(int32(i), int32(-i-1))
	}
	return edges
}

// Up to 2²³ edges there is one level of buckets, and above there are as many as keep
// them in cache, as far as bytes can name them.
func TestFanout(t *testing.T) {
	for _, c := range []struct {
		edges int
		want  fanout
	}{
		{0, fanout{1, 1}}, {1, fanout{1, 1}}, {8192, fanout{1, 1}}, {8193, fanout{2, 1}},
		{1 << 21, fanout{256, 1}}, {1<<21 + 1, fanout{256, 1}}, {1 << 23, fanout{256, 1}},
		{1<<23 + 1, fanout{256, 8}}, {1 << 24, fanout{256, 8}}, {1<<24 + 1, fanout{256, 16}},
		{1e9, fanout{256, 256}}, {1 << 31, fanout{256, 256}},
	} {
		if got := fanoutOf(c.edges); got != c.want {
			t.Errorf("%d edges are spread over %+v, want %+v", c.edges, got, c.want)
		}
	}
}

// A block of a GPU has the memory for its bucket, on those that have the least of it
// too, and 16 bits number the bucket's edges.
func TestStagedEdges(t *testing.T) {
	const least, much = 99 << 10, 1 << 30 // compute capability 8.6 and 8.9 have the least
	for edges := 1; edges <= math.MaxInt32; edges = edges*17/16 + 1 {
		fan := fanoutOf(edges)
		if got, want := stagedOf(edges, fan, least), stagedOf(edges, fan, much); got != want || got >= maxStaged {
			t.Errorf("%d edges over %+v: %d of a bucket are staged, not %d", edges, fan, got, want)
		}
	}
	if got := stagedOf(1<<23, fanout{1, 1}, least); got != (least-staticShared)/2 {
		t.Errorf("%d edges are staged, not as many as there is memory for", got)
	}
}

// fanouts are ways to spread some 10⁴ edges: as they are, and over two levels.
var fanouts = []fanout{{4, 1}, {4, 8}, {16, 16}, {1, 4}, {256, 256}}

func TestShuffleIsAPermutation(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8192, 8193, 100000} {
		for _, fan := range append(fanouts, fanoutOf(n)) {
			s := newShuffler(fan, numbered(n), 1)
			for epoch := range 2 {
				s.begin(epoch)
				order := slices.Clone(s.upTo(n))
				slices.SortFunc(order, func(a, b edge) int { return int(a.head() - b.head()) })
				if !slices.Equal(order, numbered(n)) {
					t.Errorf("n=%d over %+v, epoch %d: edges are lost", n, fan, epoch)
				}
			}
		}
	}
}

// Where each edge goes is uniform, across buckets as well as within: chi-squared of
// the places of some edges.
func TestShuffleIsUniform(t *testing.T) {
	const n, epochs, cells = 20000, 100, 20
	for _, fan := range fanouts {
		s := newShuffler(fan, numbered(n), 2)
		var count [3][cells]float64
		follow := [3]int32{0, 5, n - 1}
		for epoch := range epochs {
			s.begin(epoch)
			for place, e := range s.upTo(n) {
				for k, f := range follow {
					// Neighbours of the followed edge are as good as itself.
					if d := e.head() - f; d >= -20 && d <= 20 {
						count[k][place*cells/n]++
					}
				}
			}
		}
		for k, cell := range count {
			var total, chi2 float64
			for _, c := range cell {
				total += c
			}
			for _, c := range cell {
				chi2 += (c - total/cells) * (c - total/cells) / (total / cells)
			}
			if chi2 > 43.8 { // 0.1 % point of chi-squared with 19 degrees of freedom
				t.Errorf("over %+v, edge %d: chi-squared %.1f", fan, follow[k], chi2)
			}
		}
	}
}

// An epoch's order does not depend on the epochs before it, nor on how far the
// order was asked for at a time.
func TestShuffleDependsOnEpochAlone(t *testing.T) {
	const n = 50000
	for _, fan := range fanouts {
		a, b := newShuffler(fan, numbered(n), 3), newShuffler(fan, numbered(n), 3)
		a.begin(0)
		a.upTo(n)
		a.begin(1)
		b.begin(1)
		for k := 0; k <= n; k += 1000 {
			final := slices.Clone(b.upTo(k)[:k])
			if !slices.Equal(final, a.upTo(n)[:k]) {
				t.Fatalf("over %+v: the first %d edges of epoch 1 depend on what came before", fan, k)
			}
		}
		if !slices.Equal(a.upTo(n), b.upTo(n)) {
			t.Errorf("over %+v: the order of epoch 1 depends on what came before", fan)
		}
		a.begin(2)
		if slices.Equal(a.upTo(n), b.upTo(n)) {
			t.Errorf("over %+v: two epochs have one order", fan)
		}
	}
}

// What a seed means stays: these are sums of orders as the versions before had them.
func TestShuffleOfASeedStays(t *testing.T) {
	for _, c := range []struct {
		edges int
		want  uint64
	}{
		{7, 0x287c107c8448b6ef}, {8193, 0x22517d362c968f7d}, {1500000, 0x87a977d4e8ff991b}, {1 << 23, 0xcc368abc246c2450},
		{1<<23 + 1, 0x10e0d0817259b44d}, // the first with two levels
	} {
		s := newShuffler(fanoutOf(c.edges), numbered(c.edges), 4)
		s.begin(3)
		var sum uint64
		for _, e := range s.upTo(c.edges) {
			sum = rng.Mix(sum ^ uint64(e))
		}
		if sum != c.want {
			t.Errorf("the order of %d edges has the sum %#x, want %#x", c.edges, sum, c.want)
		}
	}
}

// Supp. D of the paper: the negatives of a head are uniform over the other
// rows of the batch.
func TestNegativesAreUniform(t *testing.T) {
	const b, m = 8, 13 // m < 2b − 2 = 14
	batch := model.Batch{Local: make([]int32, 2*b)}
	var count [b][2 * b]float64
	const batches = 2000
	var c negativeSampler
	for k := range batches {
		c.draw(&batch, m, 0, k)
		for p, r := range batch.Negatives {
			count[p%b][r]++
		}
	}
	for i := range b {
		if count[i][i] != 0 {
			t.Errorf("head %d met itself %g times", i, count[i][i])
		}
		var chi2 float64
		const want = batches * m / (2*b - 1.)
		for r, c := range count[i] {
			if r != i {
				chi2 += (c - want) * (c - want) / want
			}
		}
		if chi2 > 36.1 { // 0.1 % point of chi-squared with 14 degrees of freedom
			t.Errorf("head %d: chi-squared %.1f", i, chi2)
		}
	}
}

// In-batch negatives come from the edges' endpoints, so that a point is drawn
// in proportion to its degree (Supp. D): near uniform on a kNN graph, exactly
// uniform on a regular one.
func TestInBatchNoiseIsNearUniform(t *testing.T) {
	const n, k, size, epochs = 500, 10, 100, 40
	var edges []edge
	for i := range n {
		for j := 1; j <= k; j++ {
			o := (i + j) % n
			edges = append(edges, packEdge(int32(i), int32(o)), packEdge(int32(o), int32(i)))
		}
	}
	b := newPrefetcher(edges, n, false, &Options{BatchSize: size, Seed: 1}, position{}, epochs)
	defer b.close()
	var c negativeSampler
	count := make([]float64, n)
	var total float64
	for block := b.next(); block != nil; block = b.next() {
		for j, batch := range block.batches {
			c.draw(&batch, 5, block.epoch, block.first+j)
			for _, e := range batch.Negatives {
				count[batch.Rows[batch.Local[e]]]++
				total++
			}
		}
		b.recycle(block)
	}
	want := total / n
	for i, c := range count {
		if math.Abs(c/want-1) > 0.1 { // six standard deviations of a Poisson count
			t.Errorf("point %d is a negative %.3f times as often as it should be", i, c/want)
		}
	}
}

// Over batches whose edges are in random order, a head meets in runs what it
// meets on the average of all rows but its own.
func TestRunsAreUnbiased(t *testing.T) {
	const b, m, batches = 40, 9, 40000
	s := rng.New(8, rng.Sample)
	worth := make([]float64, 2*b) // of each end of each edge
	for i := range worth {
		worth[i] = math.Exp(s.Normal())
	}
	const edge = 11
	var want, sum, squares float64
	for i, w := range worth {
		if i != edge {
			want += w / (2 * b)
		}
	}
	c := negativeSampler{how: SampleSharedRuns}
	batch := model.Batch{Local: make([]int32, 2*b)}
	for k := range batches {
		order := s.Perm(b)
		at := slices.Index(order, edge)
		c.draw(&batch, m, 0, k)
		var met float64
		for j := range m {
			if r := (int(batch.Layout[1+at/op.GroupHeads]) + j) % (2 * b); r != at {
				met += worth[order[r%b]+r/b*b] / m
			}
		}
		sum += met
		squares += met * met
	}
	mean := sum / batches
	deviation := math.Sqrt((squares/batches - mean*mean) / batches)
	if math.Abs(mean-want) > 4*deviation {
		t.Errorf("mean %g ± %g, want %g", mean, deviation, want)
	}
}

// What is drawn for a batch does not depend on the batches before.
func TestNegativesOfBatchesDoNotMixUp(t *testing.T) {
	var c negativeSampler
	for _, tc := range []struct{ b, m int }{{5, Full}, {5, 3}, {50, 40}, {7, Full}, {50, 33}, {1, 4}, {7, 2}, {100, 40}} {
		batch := model.Batch{Local: make([]int32, 2*tc.b)}
		c.draw(&batch, tc.m, 3, 4)
		var fresh negativeSampler
		want := model.Batch{Local: batch.Local}
		fresh.draw(&want, tc.m, 3, 4)
		if !slices.Equal(batch.Negatives, want.Negatives) || !slices.Equal(batch.Layout, want.Layout) {
			t.Errorf("b=%d m=%d: negatives %v and runs %v, want %v and %v", tc.b, tc.m, batch.Negatives, batch.Layout, want.Negatives, want.Layout)
		}
	}
}

// The points of a batch are numbered right when the base runs out and starts anew.
func TestDeduperStartsAnew(t *testing.T) {
	s := newDeduper(10, false)
	edges := []edge{packEdge(3, 4), packEdge(4, 3), packEdge(9, 3)}
	s.seen[4] = math.MaxInt32 - 3
	s.base = math.MaxInt32 - 3
	var b model.Batch
	for range 2 {
		s.fill(&b, edges)
		if !slices.Equal(b.Rows, []int32{3, 4, 9}) || !slices.Equal(b.Local, []int32{0, 1, 2, 1, 0, 0}) {
			t.Errorf("rows %v, and ends %v of them", b.Rows, b.Local)
		}
	}
}

// A batch by its endpoints has the endpoints of the batch by its distinct points, and
// names each that comes again with the first.
func TestRepeatsOfABatch(t *testing.T) {
	const n, size = 10000, 500
	byEnds, byPoints := newDeduper(n, true), newDeduper(n, false)
	s := rng.New(6, rng.Sample)
	for _, among := range []int{2, 50, n} {
		for _, count := range []int{size, 1, 77} {
			edges := make([]edge, count)
			for i := range edges {
				edges[i] = packEdge(int32(s.IntN(among)), int32(s.IntN(among)))
			}
			var got, want model.Batch
			byEnds.fillEnds(&got, edges)
			byPoints.fill(&want, edges)
			first := make(map[int32]int32)
			var repeats []model.Repeat
			for i, local := range want.Local {
				if got.Rows[i] != want.Rows[local] {
					t.Fatalf("endpoint %d is point %d, want %d", i, got.Rows[i], want.Rows[local])
				}
				if k, again := first[local]; again {
					repeats = append(repeats, model.Repeat{First: k, Again: int32(i)})
				} else {
					first[local] = int32(i)
				}
			}
			if len(got.Local) > 0 || got.Edges() != count || !slices.Equal(got.Repeats, repeats) {
				t.Fatalf("%d edges between %d points have the repeats %v, want %v", got.Edges(), among, got.Repeats, repeats)
			}
		}
	}
}

// A table learns the same bits from batches by their endpoints and by their distinct
// points, on one core and more, also where one point is an end of every other edge.
func TestEndpointsTeachWhatPointsDo(t *testing.T) {
	if !fewRepeats(2000, 200) || fewRepeats(2000, 300) || fewRepeats(1<<30, rowsPerPiece/2+1) {
		t.Fatal("which batches come by their endpoints is not as supposed")
	}
	sgd := func() Optimizer { return new(SGD) }
	for name, c := range map[string]struct {
		n, d, size, count int
		star              bool
		optimizer         func() Optimizer
	}{
		"SGD":              {2000, 2, 200, 20000, false, sgd},
		"SGD, star":        {2000, 2, 200, 20000, true, sgd},
		"SGD, large":       {1 << 19, 2, rowsPerPiece / 2, 3 * rowsPerPiece / 2, true, sgd},
		"SGD, wide":        {2000, 3, 200, 20000, true, sgd},
		"momentum":         {2000, 2, 200, 20000, true, func() Optimizer { return &SGD{Momentum: 0.9, WeightDecay: 1e-3} }},
		"Adam":             {2000, 2, 200, 20000, false, func() Optimizer { return new(Adam) }},
		"Adam, decay":      {2000, 3, 200, 20000, true, func() Optimizer { return &Adam{WeightDecay: 1e-3} }},
		"momentum, a tail": {2000, 2, 200, 20077, true, func() Optimizer { return &SGD{Momentum: 0.9} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := rng.New(6, rng.Sample)
			edges := make([]edge, c.count)
			for i := range edges {
				head := s.IntN(c.n)
				if c.star && i%2 == 0 {
					head = 7
				}
				edges[i] = packEdge(int32(head), int32((head+1+s.IntN(c.n-1))%c.n))
			}
			learnt := func(byEnds bool, cores int) []float32 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				start, err := initial.Random[float32](c.n, c.d, 1, 5)
				must(t, err)
				e, err := model.NewEmbedding(start, c.d, op.ContrastiveOptions{Clamp: 1e-10})
				must(t, err)
				m := c.optimizer()
				must(t, m.Init(e.Parameters()))
				feed := newPrefetcher(edges, c.n, byEnds, &Options{BatchSize: c.size, Seed: 1}, position{}, 2)
				defer feed.close()
				var draw negativeSampler
				repeats := 0
				for block := feed.next(); block != nil; block = feed.next() {
					for j := range block.batches {
						b := &block.batches[j]
						repeats += len(b.Repeats)
						draw.draw(b, 5, block.epoch, block.first+j)
						if _, err := e.Step(b, 0); err != nil {
							t.Fatal(err)
						}
						m.Step(b.Rows, 0.5, 4)
					}
					feed.recycle(block)
				}
				if byEnds != (repeats > 1000) {
					t.Errorf("%d endpoints repeat others", repeats)
				}
				return e.Table()
			}
			want := learnt(false, 1)
			for _, cores := range []int{1, 3} {
				if !slices.Equal(learnt(true, cores), want) {
					t.Errorf("other bits on %d cores", cores)
				}
			}
		})
	}
}

// localOnly is a model with a sparse parameter that is no table of this module.
type localOnly struct {
	model.Model
	steps int
}

func (l *localOnly) Step(b *model.Batch, theta float64) (float64, error) {
	l.steps++
	if len(b.Local) == 0 {
		return 0, errors.New("a batch without Local")
	}
	return l.Model.Step(b, theta)
}

// Models of others get batches with Local, whatever their parameters are.
func TestOtherModelsGetLocal(t *testing.T) {
	const n = 1000
	start, err := initial.Random[float32](n, 2, 1, 5)
	must(t, err)
	e, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Clamp: 1e-10})
	must(t, err)
	heads, tails := make([]int32, n), make([]int32, n)
	for i := range heads {
		heads[i], tails[i] = int32(i), int32((i+1)%n)
	}
	m := &localOnly{Model: e}
	o := Options{Phases: []Phase{{Epochs: 1, LR: 0.1, Negatives: 2}}, BatchSize: 100}
	if !fewRepeats(n, o.BatchSize) {
		t.Fatal("a table would get Local as well")
	}
	if _, err := Fit(t.Context(), m, heads, tails, o); err != nil || m.steps != 10 {
		t.Errorf("error %v after %d steps", err, m.steps)
	}
	if _, err := Fit(t.Context(), e, heads, tails, o); err != nil {
		t.Error(err)
	}
}

// The images of a batch have the memory of an earlier one, if that suffices.
func TestImagesUseMemoryAgain(t *testing.T) {
	b := model.Batch{Rows: []int32{4, 2, 3}, Images: make([]float32, 1)}
	for i, rows := range [][]int32{{4, 2, 3}, {1}, {5, 0}} {
		before := &b.Images[0]
		b.Rows = rows
		must(t, draw(zeroImages{}, &b, i))
		if len(b.Images) != 12*len(rows) || (before == &b.Images[0]) != (i > 0) {
			t.Errorf("%d points have %d values, in other memory: %v", len(rows), len(b.Images), before != &b.Images[0])
		}
	}
}

// zeroImages are images of 3×2×2 zeros.
type zeroImages struct{}

func (zeroImages) Shape() [3]int { return [3]int{3, 2, 2} }

func (zeroImages) ImagesTo(dst []float32, _ []int32, _ int) error {
	clear(dst)
	return nil
}

// How negatives are drawn depends on their number and the batch's size.
func TestSampling(t *testing.T) {
	for _, tc := range []struct {
		how  Sampling
		b, m int
		want string
	}{
		{SampleAuto, 1, Full, "full"},
		{SampleAuto, 1, 5, "full"},
		{SampleAuto, 20, Full, "full"},
		{SampleAuto, 20, 38, "full"},
		{SampleAuto, 20, 39, "full"},
		{SampleAuto, 20, 37, "runs"},
		{SamplePerHead, 20, 37, "singly"},
		{SampleAuto, 1024, 31, "singly"},
		{SampleAuto, 1024, 32, "runs"},
		{SampleAuto, 1024, 2045, "runs"},
		{SampleAuto, 1024, 2046, "full"},
		{SamplePerHead, 1024, 500, "singly"},
		{SamplePerHead, 1024, Full, "full"},
		{SampleSharedRuns, 1024, 5, "runs"},
		{SampleSharedRuns, 10, 5, "runs"},
		{SampleSharedRuns, 10, 1, "singly"},
		{SampleSharedRuns, 10, Full, "full"},
	} {
		batch := model.Batch{Local: make([]int32, 2*tc.b)}
		c := negativeSampler{how: tc.how}
		c.draw(&batch, tc.m, 0, 0)
		got := "singly"
		switch {
		case len(batch.Negatives) == 0 && slices.Equal(batch.Layout, []int32{-1}):
			got = "full"
		case len(batch.Negatives) == 0 && len(batch.Layout) == 1+(tc.b+15)/16 && batch.Layout[0] == int32(tc.m):
			got = "runs"
		case batch.Layout != nil || len(batch.Negatives) != tc.m*tc.b:
			got = fmt.Sprintf("%d negatives and runs %v", len(batch.Negatives), batch.Layout)
		}
		if got != tc.want {
			t.Errorf("%d, b=%d, m=%d: %s, want %s", tc.how, tc.b, tc.m, got, tc.want)
		}
	}
}

// Runs begin at any of the rows with equal probability, in the last, smaller group too.
func TestRunsAreUniform(t *testing.T) {
	const b, m, batches = 20, 3, 4000
	batch := model.Batch{Local: make([]int32, 2*b)}
	counts := [2][]float64{make([]float64, 2*b), make([]float64, 2*b)}
	c := negativeSampler{how: SampleSharedRuns}
	for k := range batches {
		c.draw(&batch, m, 0, k)
		for group, first := range batch.Layout[1:] {
			counts[group][first]++
		}
	}
	for group, count := range counts {
		var chi2 float64
		want := batches / float64(len(count))
		for _, c := range count {
			chi2 += (c - want) * (c - want) / want
		}
		if chi2 > 72.1 { // the 0.1 % point with 39 degrees of freedom
			t.Errorf("group %d: chi-squared %.1f", group, chi2)
		}
	}
}

// Batches cover every edge once an epoch, and say of each endpoint which
// point it is.
func TestBatchesHoldTheEdges(t *testing.T) {
	const n, count, size = 300, 5000, 64
	s := rng.New(4, rng.Sample)
	edges := make([]edge, count)
	for i := range edges {
		h := s.IntN(n)
		edges[i] = packEdge(int32(h), int32((h+1+s.IntN(n-1))%n))
	}
	b := newPrefetcher(edges, n, false, &Options{BatchSize: size, Seed: 1}, position{}, 2)
	defer b.close()
	seen := map[int][]edge{}
	for block := b.next(); block != nil; block = b.next() {
		for _, batch := range block.batches {
			points := slices.Clone(batch.Rows)
			slices.Sort(points)
			if len(slices.Compact(points)) != len(batch.Rows) {
				t.Fatal("a point has two numbers")
			}
			for i := range batch.Edges() {
				seen[block.epoch] = append(seen[block.epoch],
					packEdge(batch.Rows[batch.Local[i]], batch.Rows[batch.Local[batch.Edges()+i]]))
			}
		}
		b.recycle(block)
	}
	slices.Sort(edges)
	for epoch := range 2 {
		slices.Sort(seen[epoch])
		if !slices.Equal(seen[epoch], edges) {
			t.Errorf("epoch %d does not hold every edge once", epoch)
		}
	}
}

// A shuffle of an epoch's edges, over one level of buckets and over two: MNIST's edges,
// and ten times as many.
func BenchmarkShuffle(b *testing.B) {
	for _, edges := range []int{1499592, 16 << 20} {
		if testing.Short() && edges > 1499592 {
			continue
		}
		for _, fan := range []fanout{{256, 1}, {256, 8}} {
			b.Run(fmt.Sprintf("%d over %d·%d", edges, fan.first, fan.second), func(b *testing.B) {
				s := newShuffler(fan, numbered(edges), 1)
				for b.Loop() {
					s.begin(0)
					s.upTo(edges)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(edges), "ns/edge")
			})
		}
	}
}

func BenchmarkBatches(b *testing.B) {
	const n, count = 70000, 1499592
	s := rng.New(4, rng.Sample)
	edges := make([]edge, count)
	for i := range edges {
		edges[i] = packEdge(int32(s.IntN(n)), int32(s.IntN(n)))
	}
	b.Run("negatives", func(b *testing.B) {
		batch := model.Batch{Local: make([]int32, 2048)}
		var c negativeSampler
		for b.Loop() {
			for i := range count / 1024 {
				c.draw(&batch, 5, 0, i)
			}
		}
	})
	for _, size := range []int{1024, 32768} {
		b.Run("all", func(b *testing.B) {
			batches := newPrefetcher(edges, n, false, &Options{BatchSize: size, Seed: 1}, position{}, b.N)
			defer batches.close()
			for block := batches.next(); block != nil; block = batches.next() {
				batches.recycle(block)
			}
		})
	}
}
