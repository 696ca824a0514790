//go:build cu

package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// A tableCase is some batches of one epoch.
type tableCase struct {
	n, d, edges, b, m int
	objective         op.ContrastiveOptions
	lr, clip, lrZ     float64
	start             func(table []float32) // changes its normally distributed start
}

// The results of a run over the batches of a tableCase.
type tableResult struct {
	table  []float32
	losses []float32
	logZ   float64
}

func (c *tableCase) options() *Options {
	return &Options{BatchSize: c.b, Seed: 7, DropLast: true, LRZ: c.lrZ, Clip: c.clip}
}

func (c *tableCase) logConst() float64 {
	if c.objective.Loss == op.Neg {
		return -1.2
	}
	return 0.4
}

func (c *tableCase) inputs() (edges []edge, table []float32) {
	s := rng.New(3, rng.Init)
	for range c.edges {
		head := s.IntN(c.n)
		edges = append(edges, packEdge(int32(head), int32((head+1+s.IntN(c.n-1))%c.n)))
	}
	table = make([]float32, c.n*c.d)
	for i := range table {
		table[i] = float32(s.Normal())
	}
	if c.start != nil {
		c.start(table)
	}
	return edges, table
}

// onCPU trains as Fit does.
func (c *tableCase) onCPU(t *testing.T) tableResult {
	t.Helper()
	edges, table := c.inputs()
	e, err := model.NewEmbedding(table, c.d, c.objective)
	must(t, err)
	var sgd, sgdZ SGD
	must(t, sgd.Init(e.Parameters()))
	z, err := op.NewArray(nil, tensor.Float64, 1)
	must(t, err)
	gradZ, err := op.NewArray(nil, tensor.Float64, 1)
	must(t, err)
	op.Data[float64](z)[0] = 0.25
	must(t, sgdZ.Init([]model.Parameter{{Name: "log_z", Value: z, Grad: gradZ}}))
	draw := negativeSampler{seed: 7, how: SamplePerHead}
	var r tableResult
	c.feed(edges, func(k int, batch *model.Batch) {
		draw.draw(batch, c.m, 2, k)
		logConst := c.logConst()
		if c.objective.Loss == op.NC {
			logConst = op.Data[float64](z)[0]
		}
		loss, err := e.Step(batch, logConst)
		must(t, err)
		if c.objective.Mean {
			loss *= float64(c.b)
		}
		r.losses = append(r.losses, float32(loss))
		sgd.Step(batch.Rows, c.lr, c.clip)
		if c.objective.Loss == op.NC {
			op.Data[float64](gradZ)[0] = e.DTheta()
			sgdZ.Step(nil, c.lrZ, c.clip)
		}
	})
	r.table, r.logZ = table, op.Data[float64](z)[0]
	return r
}

// feed calls do with the batches of epoch 2.
func (c *tableCase) feed(edges []edge, do func(k int, b *model.Batch)) {
	f := newPrefetcher(edges, c.n, false, c.options(), position{epoch: 2}, 3)
	defer f.close()
	for b := f.next(); b != nil; b = f.next() {
		for i := range b.batches {
			do(b.first+i, &b.batches[i])
		}
		f.recycle(b)
	}
}

// A tableOnDevice is a tableCase in the memory of a device.
type tableOnDevice struct {
	*tableCase
	run                             *tableRun
	table, logZ, status             *op.Array
	control, losses                 *op.Array
	order                           *op.Array // int32 [edges, 2]
	rows, local, counts             *op.Array
	count                           int
	rowsOf, localOf, countOf, words []int32
}

func (c *tableCase) prepare(t *testing.T, d *device.Device) *tableOnDevice {
	t.Helper()
	edges, table := c.inputs()
	x := &tableOnDevice{tableCase: c}
	bound := c.clip
	if bound == 0 {
		bound = math.Inf(1)
	}
	bits := func(f float64) int32 { return int32(math.Float32bits(float32(f))) }
	c.feed(edges, func(k int, batch *model.Batch) {
		row := make([]int32, 2*c.b)
		copy(row, batch.Rows)
		x.rowsOf = append(x.rowsOf, row...)
		x.localOf = append(x.localOf, batch.Local...)
		x.countOf = append(x.countOf, int32(len(batch.Rows)))
		s := rng.New(7, rng.Negatives, 2, uint64(k))
		w := make([]int32, controlWords)
		w[0], w[1], w[2] = int32(uint32(s.State())), int32(uint32(s.State()>>32)), bits(c.logConst())
		w[4], w[5], w[12], w[13] = bits(c.lr), bits(bound), bits(c.lrZ), bits(bound)
		x.words = append(x.words, w...)
		x.count++
	})
	shuffled := newShuffler(fanoutOf(len(edges)), edges, 7)
	shuffled.begin(2)
	var ends []int32
	for _, e := range shuffled.upTo(len(edges)) {
		ends = append(ends, e.head(), int32(uint32(e>>32)))
	}
	upload := func(a *op.Array, err error) *op.Array {
		t.Helper()
		must(t, err)
		there, err := op.NewArray(d, a.Dtype(), a.Shape()...)
		must(t, err)
		must(t, op.Copy(there, a))
		return there
	}
	x.table = upload(op.ArrayOf(table, c.n, c.d))
	x.logZ = upload(op.ArrayOf([]float32{0.25}, 1))
	x.status = upload(op.ArrayOf([]int32{0}, 1))
	x.control = upload(op.ArrayOf(x.words, x.count, controlWords))
	x.losses = upload(op.ArrayOf(make([]float32, x.count), x.count))
	x.order = upload(op.ArrayOf(ends, len(ends)/2, 2))
	x.rows = upload(op.ArrayOf(x.rowsOf, x.count, 2*c.b))
	x.local = upload(op.ArrayOf(x.localOf, x.count, 2*c.b))
	x.counts = upload(op.ArrayOf(x.countOf, x.count))
	var err error
	x.run = newTableRun(d, x.table, x.logZ, x.status, c.objective)
	must(t, err)
	t.Cleanup(x.run.close)
	return x
}

// The ways of a tableRun to train: small batches in one launch, by one block or by a
// cluster of them, and large ones.
const (
	byBlock   = "block"
	byCluster = "cluster"
	asLarge   = "large"
)

// train runs all batches in one of these ways.
func (x *tableOnDevice) train(t *testing.T, way string) {
	t.Helper()
	if way == byBlock {
		x.run.single = "a test asks for it"
	}
	if way != asLarge {
		if why := x.run.whySingle(x.b); way == byCluster && why != "" {
			t.Skip(why)
		}
		must(t, x.run.batches(x.rows, x.local, x.counts, x.control.Pointer(), x.losses.Pointer(), x.b, x.m, 0))
		return
	}
	for k := range x.count {
		must(t, x.run.batch(x.order.Pointer().At(k*x.b, 8), x.control.Pointer().At(k*controlWords, 4), x.losses.Pointer().At(k, 4), x.b, x.m, k))
	}
}

func download[T float32 | int32](t *testing.T, a *op.Array) []T {
	t.Helper()
	here, err := op.NewArray(nil, a.Dtype())
	must(t, err)
	must(t, op.Copy(here, a))
	return op.Data[T](here)[:here.Len()]
}

func near(t *testing.T, what string, got, want []float32, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	largest := 0.
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= within*largest) {
			t.Errorf("%s: number %d is %g, want %g (the largest is %g)", what, i, got[i], w, largest)
			return
		}
	}
}

// Table, losses and log Z are the CPU's after some batches.
func TestTableOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		for _, c := range []tableCase{
			{n: 400, d: 2, edges: 2100, b: 700, m: 5, clip: 4},
			{n: 2000, d: 2, edges: 2400, b: 1200, m: 7}, // two heads for some threads
			{n: 30, d: 2, edges: 130, b: 64, m: 17, clip: 0.3},
			{n: 50, d: 1, edges: 100, b: 33, m: 2, clip: 4},
			{n: 50, d: 3, edges: 200, b: 65, m: 4, clip: 4},
			{n: 50, d: 4, edges: 200, b: 31, m: 11, clip: 4},
			{n: 9, d: 2, edges: 12, b: 2, m: 1},
			{n: 2500, d: 2, edges: 2 * 2200, b: 2200, m: 1, clip: 4}, // more than two points for some
		} {
			for _, more := range []op.ContrastiveOptions{{Clamp: 1e-10}, {Mean: true, Scale: 30}} {
				c.objective, c.lr, c.lrZ = more, 0.5, 0.01
				c.objective.Loss = loss
				if loss == op.UMAP {
					c.lr = 0.05 // its gradients have no bound
				}
				if c.clip == 0 {
					c.lrZ = 1e-5 // for the unclipped derivative
				}
				for _, way := range []string{byBlock, asLarge} {
					if way == byBlock && !op.HasOwnKernels(c.d) {
						continue
					}
					t.Run(fmt.Sprintf("%v/b%d_d%d_m%d/mean=%v/%s", loss, c.b, c.d, c.m, more.Mean, way), func(t *testing.T) {
						want := c.onCPU(t)
						x := c.prepare(t, d)
						x.train(t, way)
						if s := download[int32](t, x.status)[0]; s != 0 {
							t.Fatalf("status is %d", s)
						}
						near(t, "losses", download[float32](t, x.losses), want.losses, 1e-4)
						near(t, "table", download[float32](t, x.table), want.table, 1e-4)
						near(t, "log Z", download[float32](t, x.logZ), []float32{float32(want.logZ)}, 1e-5)
					})
				}
			}
		}
	}
}

// sameBits compares what two runs have left.
func sameBits(t *testing.T, x, y *tableOnDevice) {
	t.Helper()
	for name, a := range map[string][2]*op.Array{"table": {x.table, y.table}, "losses": {x.losses, y.losses}, "log Z": {x.logZ, y.logZ}} {
		got, want := download[float32](t, a[0]), download[float32](t, a[1])
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s: number %d of %d is %g, want %g", name, i, len(want), got[i], want[i])
				break
			}
		}
	}
	if got, want := download[int32](t, x.status)[0], download[int32](t, y.status)[0]; got != want {
		t.Errorf("status is %d, want %d", got, want)
	}
}

// A cluster gives the bits of one block, in whatever order blocks and threads run.
func TestTableByClusterOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	order := uint64(0)
	for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
		for _, c := range []tableCase{
			{n: 400, d: 2, edges: 1400, b: 700, m: 5, clip: 4},
			{n: 2000, d: 2, edges: 2400, b: 1200, m: 7}, // two heads for some threads, and two points
			{n: 30, d: 2, edges: 130, b: 64, m: 17, clip: 0.3},
			{n: 50, d: 3, edges: 200, b: 65, m: 4, clip: 4},
			{n: 9, d: 2, edges: 12, b: 2, m: 1},
		} {
			c.objective, c.lr, c.lrZ = op.ContrastiveOptions{Loss: loss, Clamp: 1e-10}, 0.5, 0.01
			if loss == op.UMAP {
				// Near points have gradients whose sums overflow the lower halves.
				c.start = func(table []float32) {
					for i := range table {
						table[i] *= 1e-4
					}
				}
			}
			t.Run(fmt.Sprintf("%v/b%d_d%d_m%d", loss, c.b, c.d, c.m), func(t *testing.T) {
				fakecuda.Order(t, fakecuda.Forwards)
				want := c.prepare(t, d)
				want.train(t, byBlock)
				fakecuda.Order(t, order%4) // forwards, backwards, and shuffled in two ways
				order++
				got := c.prepare(t, d)
				got.train(t, byCluster)
				sameBits(t, got, want)
			})
		}
	}
}

// Where a cluster cannot be had, one block trains, and the device is told why, once.
func TestTableWithoutClustersOnDevice(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's clusters cannot be taken away")
	}
	c := tableCase{n: 60, d: 2, edges: 160, b: 80, m: 5, objective: op.ContrastiveOptions{Loss: op.Neg}, lr: 1, clip: 4}
	const clusters, begins = "FAKECUDA_CLUSTERS", "small batches of the table are trained by one block, on one multiprocessor, since "
	for _, why := range []string{"this GPU has no clusters of blocks", "a cluster does not start (cuda:0: kernel table_cluster_d2: CUDA's error "} {
		t.Run(why, func(t *testing.T) {
			lacking := why == "this GPU has no clusters of blocks"
			if lacking {
				t.Setenv(clusters, "0")
			}
			d := fakecuda.Open(t)
			var said []string
			d.OnNote(func(sentence string) { said = append(said, sentence) })
			want := c.prepare(t, d)
			want.train(t, asLarge)
			t.Setenv(clusters, "0")
			x := c.prepare(t, d)
			for range 2 {
				said = slices.DeleteFunc(said, func(s string) bool { return !strings.HasPrefix(s, begins) })
				must(t, x.run.batches(x.rows, x.local, x.counts, x.control.Pointer(), x.losses.Pointer(), x.b, x.m, 0))
				near(t, "losses", download[float32](t, x.losses), download[float32](t, want.losses), 1)
			}
			said = slices.DeleteFunc(said, func(s string) bool { return !strings.HasPrefix(s, begins) })
			if len(said) != 1 || !strings.HasPrefix(said[0], begins+why) || strings.Contains(said[0], "\n") {
				t.Errorf("it says %q, want one sentence that says %q", said, why)
			}
		})
	}
	x := c.prepare(t, fakecuda.Open(t))
	if why := x.run.whySingle(2700); why != "a cluster's blocks would need 259 kB of shared memory each and have 231 kB" {
		t.Errorf("batches of 2700 edges are trained by one block since %q", why)
	}
	if why := x.run.whySingle(2000); why != "" {
		t.Errorf("batches of 2000 edges are trained by one block since %s", why)
	}
}

// A run cut into several launches gives the same bits.
func TestTableRunsAreReproducibleOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	c := tableCase{n: 60, d: 2, edges: 400, b: 80, m: 5, objective: op.ContrastiveOptions{Loss: op.NC}, lr: 1, clip: 4, lrZ: 0.01}
	first := c.prepare(t, d)
	first.train(t, byCluster)
	second := c.prepare(t, d)
	for k := 0; k < second.count; k += 2 {
		fakecuda.Order(t, uint64(k)+fakecuda.Backwards) // backwards, and then shuffled
		of := min(2, second.count-k)
		var rows, local, counts op.Array
		for _, v := range []struct{ to, from *op.Array }{{&rows, second.rows}, {&local, second.local}, {&counts, second.counts}} {
			a, err := op.NewArray(d, tensor.Int32, 0)
			must(t, err)
			*v.to = *a
			shape := append([]int{of}, v.from.Shape()[1:]...)
			must(t, v.to.View(v.from, k*v.from.Cols(), shape...))
		}
		must(t, second.run.batches(&rows, &local, &counts, second.control.Pointer().At(k*controlWords, 4), second.losses.Pointer().At(k, 4), c.b, c.m, k))
	}
	sameBits(t, second, first)
}

// A loss that is not finite stops the run before its batch moves anything.
func TestTableStopsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, loss := range []op.Loss{op.Neg, op.NC, op.InfoNC, op.UMAP} {
			for _, way := range []string{byBlock, byCluster, asLarge} {
				c := tableCase{n: 300, d: 2, edges: 120, b: 20, m: 3, objective: op.ContrastiveOptions{Loss: loss}, lr: 1, clip: 4, lrZ: 0.01}
				good := c.prepare(t, d)
				// The point is met in the third batch for the first time.
				seen := map[int32]bool{}
				for _, p := range good.rowsOf[:2*2*c.b] {
					seen[p] = true
				}
				point := int32(-1)
				for _, p := range good.rowsOf[2*2*c.b:][:good.countOf[2]] {
					if !seen[p] {
						point = p
					}
				}
				good.count = 2
				good.train(t, asLarge)
				want := download[float32](t, good.table)
				c.start = func(table []float32) { table[2*point] = bad }
				want[2*point] = bad
				x := c.prepare(t, d)
				x.train(t, way)
				if s := download[int32](t, x.status)[0]; s != 3 {
					t.Errorf("%v, %s: with %g status is %d, want 3", loss, way, bad, s)
				}
				got := download[float32](t, x.table)
				for i, w := range want {
					if !(math.Abs(float64(got[i]-w)) <= 1e-5) && int32(i/2) != point {
						t.Errorf("%v, %s: number %d of the table is %g, want %g", loss, way, i, got[i], w)
						break
					}
				}
				losses := download[float32](t, x.losses)
				if l := float64(losses[2]); !math.IsNaN(l) && !math.IsInf(l, 0) || losses[3] != 0 {
					t.Errorf("%v, %s: the losses are %g", loss, way, losses)
				}
			}
		}
	}
}

// A run whose log Z leaves its bounds stops.
func TestTableStopsWhereLogZRunsAwayOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, way := range []string{byBlock, byCluster, asLarge} {
		c := tableCase{n: 300, d: 2, edges: 120, b: 20, m: 3, objective: op.ContrastiveOptions{Loss: op.NC}, lr: 1, lrZ: 1000}
		x := c.prepare(t, d)
		x.train(t, way)
		if s, z := download[int32](t, x.status)[0], download[float32](t, x.logZ)[0]; s != 1 || math.Abs(float64(z)) <= maxLogConst {
			t.Errorf("%s: status is %d, log Z %g", way, s, z)
		}
	}
}

func TestSmallBatchesOnDevice(t *testing.T) {
	c := tableCase{n: 30, d: 2, edges: 20, b: 10, m: 5}
	x := c.prepare(t, fakecuda.Open(t))
	if x.run.small(2900) || !x.run.small(2700) {
		t.Error("batches are small up to 2700 edges, and no longer at 2900")
	}
}
