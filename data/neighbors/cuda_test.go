//go:build cu

package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// asked is a device's source of candidates that counts the queries whose candidates are
// found again.
type asked struct {
	*deviceBlocks
	count int
}

func (a *asked) find(ctx context.Context, q queries, k int, rank rerank) error {
	a.count += len(q.rows)
	return a.deviceBlocks.find(ctx, q, k, rank)
}

// searchOnDevice finds neighbours among base points, of queries or, if these are nil, of the
// base points, by ranking a device's candidates. It also returns how many queries'
// candidates were found again, and how many were searched in the tree.
func searchOnDevice(t *testing.T, d *device.Device, base, points *data.Matrix, k int) (nb *Neighbors, again, improved int) {
	t.Helper()
	b, err := newDeviceBlocks(t.Context(), d, base)
	must(t, err)
	defer b.free()
	own := points == nil
	if own {
		points = base
	}
	x, a := newTreeIndex(base), &asked{deviceBlocks: b}
	x.candidates, x.normalization = a, &b.normalization
	nb = newNeighbors(points.N, k)
	improved = rankCandidates(t, x, nb, queries{points: points, own: own})
	return nb, a.count, improved
}

// Where an automatic search is approximate on the CPU, a device searches exactly, unless the
// approximate search is asked for.
func TestAutoOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	defer func(before int) { autoPoints = before }(autoPoints)
	autoPoints = 1000
	launches := func(f func()) bool {
		before := fakecuda.Launches()
		f()
		return fakecuda.Launches() > before
	}
	m, wide := normal(2500, 30, 1), normal(2500, 700, 2)
	if !Auto.Approximates(nil, m.N, m.D, 1) || !Auto.Approximates(nil, wide.N, wide.D, searchListLen) {
		t.Fatal("the CPU searches exactly")
	}
	exact := need(KNN(t.Context(), m, 1, Options{Search: Exact}))(t)
	if !launches(func() { same(t, need(KNN(t.Context(), m, 1, Options{Device: d}))(t), exact) }) && fakecuda.InUse() {
		t.Error("an automatic search does not use the device")
	}
	if launches(func() { need(KNN(t.Context(), m, 1, Options{Search: Approximate, Device: d}))(t) }) {
		t.Error("an approximate search uses the device")
	}
	queries := wide.Rows(0, 20)
	exact = need(Search(t.Context(), wide, queries, 3, Options{Search: Exact}))(t)
	if !launches(func() { same(t, need(Search(t.Context(), wide, queries, 3, Options{Device: d}))(t), exact) }) && fakecuda.InUse() {
		t.Error("an automatic index does not use the device")
	}
}

// The device rounds as the CPU does.
func TestRoundingOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, 1000)
	for i := range x {
		x[i] = math.Float32frombits(r.Uint32() &^ (1 << 30)) // below 2
	}
	memory, err := d.AllocPieces(len(x)*4, len(x)*4)
	must(t, err)
	defer memory.Free()
	must(t, device.Upload(d, memory.At(0), x))
	must(t, d.Each("neighbors_round", len(x), device.Arg(memory.At(1)), device.Arg(memory.At(0)), device.Int(len(x))))
	got := make([]float32, len(x))
	must(t, device.Download(d, got, memory.At(1)))
	for i, v := range x {
		if got[i] != roundTF32(v) {
			t.Errorf("the device rounds %v to %v, the CPU to %v", v, got[i], roundTF32(v))
		}
	}
}

// smallBlocks has tests compare few points at a time.
func smallBlocks(t *testing.T) {
	queries, points := queryBlock, pointBlock
	queryBlock, pointBlock = 64, columnStep
	t.Cleanup(func() { queryBlock, pointBlock = queries, points })
}

// bothForms runs a test without and with products in TF32, whose operands a GPU may
// truncate.
func bothForms(t *testing.T, d *device.Device, test func(t *testing.T)) {
	for _, tf32 := range []bool{false, true} {
		t.Run(fmt.Sprintf("tf32=%t", tf32), func(t *testing.T) {
			t.Setenv("FAKECUDA_TF32", "cut")
			d.TF32 = tf32
			defer func() { d.TF32 = false }()
			test(t)
		})
	}
}

// The result is the CPU's, bit for bit, whatever the points are.
func TestKNNOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{80, 1, 3}, {130, 2, 15}, {200, 8, 15}, {150, 9, 15}, {90, 33, 1}, {160, 12, 60}} {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, rand.New(rand.NewPCG(uint64(size.n), 7)))
				want := knnTree(t, m, size.k)
				test := func(t *testing.T) {
					got, _, _ := searchOnDevice(t, d, m, nil, size.k)
					same(t, got, want)
				}
				if size.d <= treeMaxD {
					test(t) // without products
				} else {
					bothForms(t, d, test)
				}
			})
		}
	}
}

// shell returns points at distances from the origin of 1 to 1+thickness.
func shell(n, d int, thickness float64) *data.Matrix {
	m, r := normal(n, d, 11), rand.New(rand.NewPCG(12, 0))
	for i := range n {
		length := 0.0
		for _, v := range m.Row(i) {
			length += float64(v) * float64(v)
		}
		for l := range m.Row(i) {
			m.Row(i)[l] *= float32((1 + thickness*r.Float64()) / math.Sqrt(length))
		}
	}
	return m
}

// whole returns points with coordinates rounded to whole numbers.
func whole(m *data.Matrix) *data.Matrix {
	for i, v := range m.X {
		m.X[i] = float32(math.Round(float64(v)))
	}
	return m
}

// shifted returns points with the same number added to all coordinates, times a factor.
func shifted(m *data.Matrix, by, factor float32) *data.Matrix {
	moved := data.NewMatrix(m.N, m.D)
	for i, v := range m.X {
		moved.X[i] = (v + by) * factor
	}
	return moved
}

// Queries that TF32 cannot decide are searched again in float32, without the tree; queries
// that float32 cannot decide are searched in the tree.
func TestCoarseCandidatesOnDeviceAreFoundAgain(t *testing.T) {
	d := fakecuda.Open(t)
	d.TF32 = true
	smallBlocks(t)
	copies := normal(400, 20, 3)
	for i := 50; i < 100; i++ {
		copy(copies.Row(i), copies.Row(7))
	}
	exactly := func(want int) func(int) bool { return func(got int) bool { return got == want } }
	some := func(got int) bool { return got > 0 }
	// The first block's candidates are ranked while the second one's are found. If most have
	// to be found again, the third begins with float32.
	for _, c := range []struct {
		name            string
		base, points    *data.Matrix
		again, improved func(int) bool
	}{
		{"normal", normal(400, 20, 1), nil, exactly(0), exactly(0)},
		{"far from the origin", shifted(normal(400, 20, 2), 1e4, 1), nil, exactly(0), exactly(0)},
		{"huge", shifted(normal(400, 20, 2), 0, 1e37), nil, exactly(0), exactly(0)},
		{"copies", copies, nil, some, some},
		{"one point", shifted(data.NewMatrix(300, 12), 3, 1), nil, exactly(2 * queryBlock), exactly(300)},
		{"whole numbers", shifted(whole(normal(500, 10, 4)), 1e3, 1), nil, some, some},
		// For queries in the middle, TF32 distinguishes distances that differ by a factor of 1 +
		// 10⁻³, float32 by 1 + 10⁻⁶. The neighbours are nearer than the candidates left out by
		// 16/900 of the thickness.
		{"a thick shell", shell(900, 20, 0.2), data.NewMatrix(5, 20), exactly(0), exactly(0)},
		{"a shell", shell(900, 20, 1e-3), data.NewMatrix(5, 20), exactly(5), exactly(0)},
		{"a thin shell", shell(900, 20, 1e-6), data.NewMatrix(5, 20), exactly(5), exactly(5)},
		{"many queries in a shell", shell(900, 20, 1e-3), data.NewMatrix(2*queryBlock+10, 20), exactly(2 * queryBlock), exactly(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, again, improved := searchOnDevice(t, d, c.base, c.points, 15)
			want := newNeighbors(got.N, 15)
			points := c.points
			if points == nil {
				points = c.base
			}
			newTreeIndex(c.base).find(t.Context(), want, queries{points: points, own: c.points == nil})
			same(t, got, want)
			if !c.again(again) || !c.improved(improved) {
				t.Errorf("%d queries were looked at again, and %d in the tree", again, improved)
			}
		})
	}
}

// Several blocks of points, and sizes around the sizes of blocks.
func TestKNNOnDeviceInBlocks(t *testing.T) {
	d := fakecuda.Open(t)
	smallBlocks(t)
	for _, size := range []struct{ n, d, k int }{{513, 9, 5}, {300, 12, 128}, {577, 10, 5}, {1025, 3, 5}} {
		m := normal(size.n, size.d, 4)
		copy(m.Row(size.n-1), m.Row(0)) // a pair in the first and the last block
		got, _, improved := searchOnDevice(t, d, m, nil, size.k)
		want, err := KNN(t.Context(), m, size.k, Options{})
		must(t, err)
		same(t, got, want)
		if improved > 0 {
			t.Errorf("n=%d, D=%d: %d normal points were searched in the tree", size.n, size.d, improved)
		}
	}
}

// Points that do not fit a device's memory meet the queries a segment at a time, and the
// queries that have too many candidates come in groups.
func TestNeighborsOnDeviceInSegments(t *testing.T) {
	d := fakecuda.Open(t)
	smallBlocks(t)
	bothForms(t, d, func(t *testing.T) {
		for _, c := range []struct {
			name        string
			base        *data.Matrix
			points      *data.Matrix
			memory      int64
			group, room int // of the plan
		}{
			{"all fits", normal(300, 10, 1), nil, 1 << 20, 64, 300},
			{"base points", normal(600, 10, 2), nil, 250 << 10, 128, 512},
			{"base points, with copies", whole(normal(700, 9, 3)), nil, 230 << 10, 64, 512},
			{"other points", normal(1100, 10, 4), normal(130, 10, 5), 300 << 10, 130, 1024},
			{"other points in a shell", shell(1100, 20, 1e-3), data.NewMatrix(200, 20), 280 << 10, 128, 512},
			{"few dimensions", normal(1700, 3, 6), normal(100, 3, 7), 60 << 10, 64, 1536},
			{"few dimensions, with copies", whole(normal(600, 3, 8)), nil, 30 << 10, 64, 512},
		} {
			t.Run(c.name, func(t *testing.T) {
				used, _ := fakecuda.Usage() // by cuBLAS
				fakecuda.Memory(t, used+c.memory)
				points := c.points
				if points == nil {
					points = c.base
				}
				want := newNeighbors(points.N, 5)
				newTreeIndex(c.base).find(t.Context(), want, queries{points: points, own: c.points == nil})
				got, _, _ := searchOnDevice(t, d, c.base, c.points, 5)
				same(t, got, want)
				b, err := newDeviceBlocks(t.Context(), d, c.base)
				must(t, err)
				defer b.free()
				if p, want := b.newPlan(points.N, 5+slack), (plan{c.group, c.room}); p != want {
					t.Errorf("the plan is %v, want %v", p, want)
				}
			})
		}
		if used, _ := d.Usage(); used != 0 {
			t.Errorf("%d bytes of the device's memory are in use", used)
		}
	})
}

// An interrupted search does not start further blocks of queries, wherever the queries and
// base points are.
func TestInterruptedSearchOnDeviceStops(t *testing.T) {
	d := fakecuda.Open(t)
	smallBlocks(t)
	m := normal(20*queryBlock, 10, 1)
	for _, points := range []*data.Matrix{nil, m} {
		b, err := newDeviceBlocks(t.Context(), d, m)
		must(t, err)
		defer b.free()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ranked := 0
		rank := func(lo, hi int, _ *candidateLists) int {
			ranked += hi - lo
			cancel()
			return 0
		}
		q := queries{points: points}
		if points == nil {
			q = queries{points: m, own: true}
		}
		err = b.find(ctx, q, 5, rank)
		// While a block is ranked, the device is at work on the next one.
		if !errors.Is(err, context.Canceled) || ranked > 3*queryBlock {
			t.Errorf("own=%t: %d of %d queries were ranked after the interruption, and the error is %v", points == nil, ranked, m.N, err)
		}
	}
}

func TestKNNOnDeviceChoosesTheCPU(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(60, 10, 1)
	for _, c := range []struct {
		on *device.Device
		k  int
	}{{nil, 3}, {device.CPU(), 3}, {d, 40}, {d, 15}} {
		got, err := KNN(t.Context(), m, c.k, Options{Device: c.on})
		must(t, err)
		want, err := KNN(t.Context(), m, c.k, Options{})
		must(t, err)
		same(t, got, want)
	}
	if _, err := KNN(t.Context(), m, 60, Options{Device: d}); err == nil {
		t.Error("60 neighbours among 60 points are found")
	}
	for k, want := range map[int]bool{15: true, 128: true, deviceMaxK: true, deviceMaxK + 1: false} {
		if got := warpCapacity(k+slack) <= maxRoom; got != want {
			t.Errorf("a device has room for the candidates of %d neighbours: %v", k, got)
		}
	}
}

func TestSearchOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{150, 2, 4}, {260, 9, 15}, {200, 20, 3}} {
			base := data.NewMatrix(size.n, size.d)
			kind.fill(base, rand.New(rand.NewPCG(9, uint64(size.d))))
			points := queriesFor(base, kind.fill)
			index, err := NewIndex(t.Context(), base, Options{Device: d})
			must(t, err)
			got, err := index.Search(t.Context(), points, size.k)
			must(t, err)
			want, err := Search(t.Context(), base, points, size.k, Options{})
			must(t, err)
			same(t, got, want)
			// The whole base, too many for the device.
			got, err = index.Search(t.Context(), points, size.n)
			must(t, err)
			want, err = Search(t.Context(), base, points, size.n, Options{Device: d})
			must(t, err)
			same(t, got, want)
		}
	}
	base, points := normal(130, 9, 1), normal(queryBlock+4, 9, 2)
	got, err := Search(t.Context(), base, points, 3, Options{Device: d})
	must(t, err)
	want, err := Search(t.Context(), base, points, 3, Options{})
	must(t, err)
	same(t, got, want)
}

func TestMemoryOnDeviceIsGivenBack(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	_, err := KNN(t.Context(), m, 5, Options{Device: d})
	must(t, err)
	_, err = Search(t.Context(), m, m, 5, Options{Device: d})
	must(t, err)
	_, err = Ranks(t.Context(), m, someOthers(300, 2, rand.New(rand.NewPCG(1, 1))), 2, Options{Device: d})
	must(t, err)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestContextOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	testContext(t, Options{Device: d}, 2, hundreds()...)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestFailuresOnDeviceAreReported(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	fakecuda.Memory(t, 100<<10)
	var full *device.MemoryError
	if _, err := KNN(t.Context(), m, 5, Options{Device: d}); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestRanksOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{2, 1, 1}, {60, 2, 15}, {130, 9, 3}, {257, 33, 8}, {150, 20, 40}} {
			m := data.NewMatrix(size.n, size.d)
			r := rand.New(rand.NewPCG(5, uint64(size.d)))
			kind.fill(m, r)
			index := someOthers(size.n, size.k, r)
			got, err := Ranks(t.Context(), m, index, size.k, Options{Device: d})
			must(t, err)
			want, err := Ranks(t.Context(), m, index, size.k, Options{})
			must(t, err)
			if !slices.Equal(got, want) {
				t.Errorf("%s, n=%d, D=%d, k=%d: the ranks differ", kind.name, size.n, size.d, size.k)
			}
		}
	}
}

// Several blocks of points and of queries.
func TestRanksOnDeviceInBlocks(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(4100, 9, 3)
	index := someOthers(m.N, 3, rand.New(rand.NewPCG(1, 2)))
	got, err := Ranks(t.Context(), m, index, 3, Options{Device: d})
	must(t, err)
	want, err := Ranks(t.Context(), m, index, 3, Options{})
	must(t, err)
	if !slices.Equal(got, want) {
		t.Error("the ranks differ")
	}
}

// The CPU compares points of other metrics than Euclidean distances, and the device notes it.
func TestMetricsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for metric := range definitions {
		m := metricPoints(metric, 400, 2, 1)
		onDevice, onHost := need(KNN(t.Context(), m, 5, Options{Device: d}))(t), need(KNN(t.Context(), m, 5, Options{}))(t)
		ranks, want := need(Ranks(t.Context(), m, onHost.Index, 5, Options{Device: d}))(t), need(Ranks(t.Context(), m, onHost.Index, 5, Options{}))(t)
		if !slices.Equal(onDevice.Index, onHost.Index) || !slices.Equal(ranks, want) {
			t.Errorf("%s: a device has other neighbours or ranks", metric)
		}
		if note := "distances of the metric " + string(metric) + " are computed on the CPU"; !slices.Contains(d.Notes(), note) {
			t.Errorf("%s: the notes are %q", metric, d.Notes())
		}
	}
}
