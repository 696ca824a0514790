//go:build cu

package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// randomEdges returns edges between n points; some points occur often.
func randomEdges(n, edges int) []edge {
	s := rng.New(5, rng.Sample)
	list := make([]edge, edges)
	for i := range list {
		list[i] = packEdge(int32(s.IntN(n)), int32(s.IntN(1+s.IntN(n))))
	}
	return list
}

func newInts(t *testing.T, d *device.Device, shape ...int) *op.Array {
	t.Helper()
	a, err := op.NewArray(d, tensor.Int32, shape...)
	must(t, err)
	t.Cleanup(a.Free)
	return a
}

// An epoch's order is the CPU's, with one level of buckets and with two, whether or not
// buckets fit shared memory.
func TestShuffleOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	type shuffle struct {
		edges int
		fan   fanout
	}
	var shuffles []shuffle
	for _, edges := range []int{1, 2, 3, 7, 31, 32, 33, 64, 65, 448, 449, 450, 897, 1000, 2048, 2049, 8192, 8193, 20000, 70001} {
		shuffles = append(shuffles, shuffle{edges, fanoutOf(edges)})
	}
	for _, fan := range []fanout{{1, 2}, {2, 4}, {16, 16}, {256, 2}, {2, 256}} {
		for _, edges := range []int{1, 2049, 20000} {
			shuffles = append(shuffles, shuffle{edges, fan})
		}
	}
	shuffles = append(shuffles, shuffle{70001, fanout{4, 8}})
	for _, c := range shuffles {
		list := randomEdges(300, c.edges)
		cpu := newShuffler(c.fan, list, 9)
		f, err := newDeviceBatcher(c.fan, d, list, 300, min(c.edges, 64), 9)
		must(t, err)
		epochs := []int{0, 1, 1234567, 1}
		many := c.fan.first*c.fan.second > 32
		if many || fakecuda.Checked() {
			epochs = epochs[2:3]
		} else if c.edges >= 8192 {
			epochs = epochs[1:3]
		}
		got := make([]edge, c.edges)
		order, err := f.newOrder()
		must(t, err)
		for _, epoch := range epochs {
			for _, staged := range []int{f.staged, 0, 8100} {
				if staged == 0 && (many || c.edges > 20000) || staged == 8100 && c.fan != fanoutOf(c.edges) {
					continue
				}
				of := *f
				of.staged = staged
				must(t, of.begin(order, epoch))
				must(t, device.Download(d, got, order.Pointer()))
				cpu.begin(epoch)
				if !slices.Equal(got, cpu.upTo(c.edges)) {
					t.Errorf("%d edges over %+v, epoch %d, %d staged: another order", c.edges, c.fan, epoch, staged)
				}
			}
		}
		order.Free()
		f.close()
	}
}

// Layouts of batches are the CPU's, by hash tables in shared memory and by tables of
// all points, whatever the layout held before.
func TestDistinctOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, c := range []struct{ points, edges, size, first, count int }{
		{5, 1, 1, 0, 1},
		{2, 7, 3, 0, 3},
		{40, 100, 16, 0, 7},
		{40, 100, 16, 5, 2},
		{3, 100, 100, 0, 1},
		{5000, 2500, 1024, 0, 3},
		{1 << 30, 2500, 1000, 1, 2},
		{900, 3000, 2730, 0, 2},
		{4000, 13001, 6000, 0, 3}, // too large for a block's memory
		{70000, 12000, 6000, 1, 1},
		{3, 12000, 12000, 0, 1},
	} {
		list := randomEdges(c.points, c.edges)
		f, err := newDeviceBatcher(fanoutOf(len(list)), d, list, c.points, c.size, 3)
		must(t, err)
		if large := f.bits == 0; large != (c.size >= 6000) {
			t.Errorf("batches of %d: %d bits", c.size, f.bits)
		}
		cpu := newShuffler(fanoutOf(len(list)), list, 3)
		layout := newDeviceLayout(d)
		order, err := f.newOrder()
		must(t, err)
		rows, local := newInts(t, d), newInts(t, d)
		for epoch := range 2 {
			cpu.begin(epoch)
			must(t, f.begin(order, epoch))
			must(t, layout.resize(c.count, c.size))
			must(t, f.distinct(order, layout, c.first))
			counts := download[int32](t, layout.counts)
			distinct := newDeduper(min(c.points, 1<<20), false)
			for k := range c.count {
				lo := (c.first + k) * c.size
				hi := min(c.edges, lo+c.size)
				if got := f.edgesOf(c.first + k); got != hi-lo {
					t.Errorf("%+v: batch %d has %d edges", c, k, got)
				}
				edges := cpu.upTo(hi)[lo:hi]
				if c.points > 1<<20 {
					continue // compared below
				}
				var want model.Batch
				distinct.fill(&want, edges)
				if int(counts[k]) != len(want.Rows) {
					t.Fatalf("%+v: batch %d has %d distinct points, want %d", c, k, counts[k], len(want.Rows))
				}
				must(t, layout.batch(rows, local, k, hi-lo, len(want.Rows)))
				if !slices.Equal(download[int32](t, rows), want.Rows) || !slices.Equal(download[int32](t, local), want.Local) {
					t.Errorf("%+v: batch %d of epoch %d is laid out otherwise", c, k, epoch)
				}
			}
			if c.points <= 1<<20 {
				continue
			}
			// Ends have their points' local numbers, which are taken in order.
			allRows, allSlots := download[int32](t, layout.rows), download[int32](t, layout.local)
			for k := range c.count {
				lo := (c.first + k) * c.size
				edges, used := cpu.upTo(c.edges)[lo:min(c.edges, lo+c.size)], int32(0)
				for i := range 2 * len(edges) {
					point := edges[i%len(edges)].head()
					if i >= len(edges) {
						point = int32(edges[i-len(edges)] >> 32)
					}
					slot := allSlots[k*2*c.size+i]
					if slot > used || slot < 0 || allRows[k*2*c.size+int(slot)] != point {
						t.Fatalf("%+v: batch %d: end %d, point %d, has slot %d of %d", c, k, i, point, slot, used)
					}
					used = max(used, slot+1)
				}
				if used != counts[k] {
					t.Errorf("%+v: batch %d: %d slots, %d counted", c, k, used, counts[k])
				}
			}
		}
		layout.free()
		order.Free()
		f.close()
	}
}

// control uploads a control block.
func control(t *testing.T, d *device.Device, words []uint32) device.Pointer {
	t.Helper()
	m, err := d.Alloc(4 * controlWords)
	must(t, err)
	t.Cleanup(m.Free)
	must(t, device.Upload(d, m.Pointer(), words))
	return m.Pointer()
}

// Negatives are the CPU's, however they are drawn.
func TestNegativesOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	negatives, runs := newInts(t, d), newInts(t, d)
	for _, c := range []struct {
		how  Sampling
		m, b int
	}{
		{SampleAuto, 5, 1024}, {SampleAuto, 5, 333}, {SampleAuto, 1, 2}, {SampleAuto, 5, 3}, {SampleAuto, 5, 2}, {SampleAuto, 3, 1},
		{SamplePerHead, 40, 60}, {SamplePerHead, 2, 257}, {SamplePerHead, Full, 7},
		{SampleAuto, 32, 1024}, {SampleSharedRuns, 5, 100}, {SampleSharedRuns, 1, 17}, {SampleSharedRuns, 64, 48}, {SampleSharedRuns, 65, 48}, {SampleSharedRuns, 7, 10},
		{SampleSharedRuns, 100, 20000}, {SampleAuto, Full, 100},
	} {
		for batch := range 2 {
			words := make([]uint32, controlWords)
			putControl(words, 77, 4, batch, 0, [8]float32{}, [8]float32{})
			must(t, drawOnDevice(d, negatives, runs, c.how, c.m, c.b, control(t, d, words)))
			want := model.Batch{Local: make([]int32, 2*c.b)}
			cpu := negativeSampler{seed: 77, how: c.how}
			cpu.draw(&want, c.m, 4, batch)
			if want.Layout == nil {
				want.Layout = []int32{0}
			}
			if got := download[int32](t, negatives); !slices.Equal(got, want.Negatives) || fmt.Sprint(negatives.Shape()) != fmt.Sprint([]int{len(want.Negatives) / c.b, c.b}) {
				t.Errorf("%+v, batch %d: negatives of shape %v: %v …, want %v …", c, batch, negatives.Shape(), got[:min(9, len(got))], want.Negatives[:min(9, len(want.Negatives))])
			}
			if got := download[int32](t, runs); !slices.Equal(got, want.Layout) {
				t.Errorf("%+v, batch %d: runs %v …, want %v …", c, batch, got[:min(9, len(got))], want.Layout[:min(9, len(want.Layout))])
			}
		}
	}
}

// When the first row of a run is redrawn, all later draws move: the word 0 is rejected
// for every bound that is no power of two.
func TestRunsDrawnAgainOnDevice(t *testing.T) {
	const b, m = 500, 40
	d := fakecuda.Open(t)
	negatives, runs := newInts(t, d), newInts(t, d)
	for _, zero := range []uint64{0, 1, 17, 30, 31} {
		stream := rng.Stream{}.At(-(zero + 1)) // its word number zero is Mix(0) = 0
		words := make([]uint32, controlWords)
		words[0], words[1] = uint32(stream.State()), uint32(stream.State()>>32)
		must(t, drawOnDevice(d, negatives, runs, SampleSharedRuns, m, b, control(t, d, words)))
		want, drawn := []int32{m}, stream.At(0)
		for range parallel.Pieces(b, op.GroupHeads) {
			want = append(want, int32(stream.IntN(2*b)))
		}
		if stream == drawn.At(uint64(len(want)-1)) {
			t.Fatalf("no number was drawn again for word %d", zero)
		}
		if got := download[int32](t, runs); !slices.Equal(got, want) {
			t.Errorf("word %d: runs %v, want %v", zero, got, want)
		}
	}
}

// Control blocks, and the records of losses.
func TestBatchLoopOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	words := make([]uint32, 3*controlWords)
	for i := range 3 {
		putControl(words[i*controlWords:], 1, 2, i, float64(i)+0.5, [8]float32{1, 2, 3, 4, 5, 6, 7, 8 + float32(i)}, [8]float32{9, 10, 11, 12, 13})
	}
	blocks, err := d.Alloc(4 * len(words))
	must(t, err)
	defer blocks.Free()
	must(t, device.Upload(d, blocks.Pointer(), words))
	number := func(at device.Pointer) float32 {
		t.Helper()
		v := make([]float32, 1)
		must(t, device.Download(d, v, at))
		return v[0]
	}
	at := controlAt(blocks.Pointer(), 2)
	if got := []float32{number(numbersAt(at)), number(numbersAt(at).At(7, 4)), number(numbersZAt(at)), number(numbersZAt(at).At(3, 4))}; !slices.Equal(got, []float32{1, 10, 9, 12}) {
		t.Errorf("steps know %v", got)
	}
	if got := number(logConstAt(at)); got != 2.5 {
		t.Errorf("logConst is %g", got)
	}

	losses, err := op.NewArray(d, tensor.Float32, 5)
	must(t, err)
	defer losses.Free()
	status := newInts(t, d, 1)
	must(t, status.Zero())
	loss, err := op.NewArray(d, tensor.Float32, 1)
	must(t, err)
	defer loss.Free()
	inf := float32(math.Inf(1))
	for i, c := range []struct {
		loss   float32
		status int32
	}{{1.5, 0}, {-2, 0}, {inf, 3}, {4, 3}, {float32(math.NaN()), 3}} {
		must(t, device.Upload(d, loss.Pointer(), []float32{c.loss}))
		must(t, endBatch(losses.Pointer(), status.Pointer(), loss, i, 4))
		if got := download[int32](t, status)[0]; got != c.status {
			t.Errorf("status %d after loss %g, want %d", got, c.loss, c.status)
		}
	}
	for i, want := range []float32{6, -8, inf, 16} {
		if got := number(losses.Pointer().At(i, 4)); got != want {
			t.Errorf("loss %d is %g, want %g", i, got, want)
		}
	}
}

// A captured batch, when replayed, draws from what its control block then says.
func TestCapturedBatchOnDevice(t *testing.T) {
	const b = 100
	d := fakecuda.Open(t)
	negatives, runs := newInts(t, d), newInts(t, d)
	words := make([]uint32, controlWords)
	at := control(t, d, words)
	for _, m := range []int{5, 40} {
		draw := func() error { return drawOnDevice(d, negatives, runs, SampleAuto, m, b, at) }
		must(t, draw()) // so that there is memory
		captured, err := d.Capture(draw)
		must(t, err)
		for batch := range 3 {
			putControl(words, 1, 2, batch, 0, [8]float32{}, [8]float32{})
			must(t, device.Upload(d, at, words))
			must(t, captured.Run())
			want := model.Batch{Local: make([]int32, 2*b)}
			cpu := negativeSampler{seed: 1}
			cpu.draw(&want, m, 2, batch)
			if want.Layout == nil {
				want.Layout = []int32{0}
			}
			if !slices.Equal(download[int32](t, negatives), want.Negatives) || !slices.Equal(download[int32](t, runs), want.Layout) {
				t.Errorf("%d negatives of batch %d are others", m, batch)
			}
		}
		must(t, captured.Close())
	}
}
