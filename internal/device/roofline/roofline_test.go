package roofline

import (
	"errors"
	"math"
	"strings"
	"testing"

	"cne/internal/device"
)

// What the drivers of two GPUs say of them.
var (
	a100 = device.Properties{Multiprocessors: 108, ClockKHz: 1410000, MemoryKHz: 1215000, MemoryBits: 5120, L2Bytes: 40 << 20, Major: 8}
	h100 = device.Properties{Multiprocessors: 132, ClockKHz: 1980000, MemoryKHz: 2619000, MemoryBits: 5120, L2Bytes: 50 << 20, Major: 9}
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-3*want }

// The rates are those of NVIDIA's data sheets: bytes and floating-point operations per
// second, two for a multiply-add.
func TestPeaks(t *testing.T) {
	at := func(p device.Properties, kHz int) device.Properties {
		p.ClockKHz = kHz
		return p
	}
	for _, c := range []struct {
		name  string
		p     device.Properties
		w     Work
		limit string
		want  float64 // seconds
	}{
		{"A100, memory", a100, Work{Bytes: 1555.2e9, Footprint: 1e9}, "memory", 1},
		{"A100, float32", a100, Work{FMA: 19.49e12 / 2}, "fp32", 1},
		{"A100, TF32", a100, Work{TF32: 155.9e12 / 2}, "tf32", 1},
		{"A100, float64", a100, Work{FMA64: 9.746e12 / 2}, "fp64", 1},
		{"H100, float64", h100, Work{FMA64: 33.45e12 / 2}, "fp64", 1},
		{"H100, memory", h100, Work{Bytes: 3352.3e9, Footprint: 1e9}, "memory", 1},
		{"H100, float32", h100, Work{FMA: 66.9e12 / 2}, "fp32", 1},
		{"H100, TF32", at(h100, 1830000), Work{TF32: 494.7e12 / 2}, "tf32", 1},
		{"RTX 3090, TF32", device.Properties{Multiprocessors: 82, ClockKHz: 1695000, Major: 8, Minor: 6}, Work{TF32: 35.58e12 / 2}, "tf32", 1},
		{"RTX 4090, float32", device.Properties{Multiprocessors: 128, ClockKHz: 2520000, Major: 8, Minor: 9}, Work{FMA: 82.58e12 / 2}, "fp32", 1},
		{"what comes after the newest", device.Properties{Multiprocessors: 170, ClockKHz: 2407000, Major: 13}, Work{FMA: 104.76e12 / 2}, "fp32", 1},
		// 132 multiprocessors, or one, at 1.98 GHz: 64 and 128 bytes, 16 special functions and
		// 4 instructions in a cycle.
		{"bytes that fit the cache", h100, Work{Bytes: 64 * 132 * 1.98e9, Footprint: 50 << 20}, "cache", 1},
		{"bytes of the cache", h100, Work{Cached: 64 * 132 * 1.98e9}, "cache", 1},
		{"shared memory", h100, Work{Shared: 128 * 1.98e9, Multiprocessors: 1}, "shared", 1},
		{"special functions", h100, Work{Special: 16 * 132 * 1.98e9, Multiprocessors: 1000}, "special", 1},
		{"instructions", h100, Work{Instructions: 8 * 4 * 1.98e9, Multiprocessors: 8}, "instructions", 1},
		{"a chain", h100, Work{Chain: 1.98e9}, "chain", 1},
		{"the largest bound", h100, Work{Chain: 1.98e9, Instructions: 4 * 132 * 1.98e9 * 3, FMA: 66.9e12}, "instructions", 3},
	} {
		bounds := c.w.Bounds(c.p)
		if len(bounds) == 0 || bounds[0].Limit != c.limit || !near(bounds[0].Seconds, c.want) {
			t.Errorf("%s: the bounds are %v, want %g s by %s first", c.name, bounds, c.want, c.limit)
		}
	}
	// A device of which nothing is known bounds nothing, nor does work of which nothing is.
	for _, bounds := range [][]Roof{Copy(1 << 40).Bounds(device.Properties{}), Work{}.Bounds(h100)} {
		if len(bounds) > 0 {
			t.Errorf("the bounds are %v", bounds)
		}
	}
}

// The amounts of work, and with them the rooflines on an H100, as computed by hand.
func TestWorks(t *testing.T) {
	const edges = 1499592
	for _, c := range []struct {
		name    string
		w       Work
		limit   string
		seconds float64
	}{
		{"a copy of 512 MiB", Copy(512 << 20), "memory", 2 * 536.870912e6 / 3352.32e9},
		{"a product of 8192 in TF32", Product(8192, 8192, 8192, true), "tf32", 549.755813888e9 / (1024 * 132 * 1.98e9)},
		{"a product of 8192 in float32", Product(8192, 8192, 8192, false), "fp32", 549.755813888e9 / (128 * 132 * 1.98e9)},
		{"a thin product", Product(1<<20, 16, 16, true), "memory", 4 * (2*16*1048576 + 256) / 3352.32e9},
		// Of each pair in two dimensions 20 operations of 128 lanes, and 3 special functions
		// of 16: the latter take longer.
		{"a million pairs", Pairs(1000000, 2), "special", 3e6 / (16 * 132 * 1.98e9)},
		{"a million pairs in 128 dimensions", Pairs(1000000, 128), "fp32", 650e6 / (128 * 132 * 1.98e9)},
		{"a million cosines", Cosines(1000000, 128, false), "fp32", 384e6 / (128 * 132 * 1.98e9)},
		{"a million cosines in TF32", Cosines(1000000, 16, true), "special", 2e6 / (16 * 132 * 1.98e9)},
		// 24 bytes of each edge are 36 MB, which fit the cache of 52 MB; the exchanges of a
		// bucket of 5858 edges are 183 rounds of 30 cycles.
		{"MNIST's shuffle", Shuffle(edges, 256), "cache", 32 * edges / (64 * 132 * 1.98e9)},
		{"a shuffle of one bucket", Shuffle(edges, 1), "chain", edges / 32. * 30 / 1.98e9},
		{"a shuffle of 10⁸ edges", Shuffle(1e8, 1<<14), "memory", 3.2e9 / 3352.32e9},
		{"MNIST's distinct points", Distinct(edges, false), "cache", 24 * edges / (64 * 132 * 1.98e9)},
		{"the same by tables", Distinct(edges, true), "cache", (24 + 384) * edges / (64 * 132 * 1.98e9)},
		// A warp: 440 + 3·44 + 5·61 = 877 instructions.
		{"MNIST in small batches of one block", SmallBatches(edges, 5, false), "instructions", edges / 32. * 877 / (4 * 1.98e9)},
		// And of a cluster: 980 + 3·44 + 5·75 = 1487.
		{"MNIST in small batches of a cluster", SmallBatches(edges, 5, true), "instructions", edges / 32. * 1487 / (4 * 8 * 1.98e9)},
		// An edge: 8 + 32·(6 + 20) = 840 bytes; a batch 48 bytes of each of 70000 points.
		{"MNIST in large batches", LargeBatches(edges, 70000, 1<<19, 5), "cache", (840*edges + 3*70000*48) / (64 * 132 * 1.98e9)},
		// Multiply-adds of a point: 2·78400 + 3·(10000 + 10000 + 200) = 217400; bytes:
		// 8·784 + 24·300 = 13472.
		{"a network", Layers(1e6, 784, 100, 100, 100, 2), "memory", 13472e6 / 3352.32e9},
		{"a wide network", Layers(1e6, 4000, 4000, 4000), "tf32", 1e6 * 5 * 16e6 / (1024 * 132 * 1.98e9)},
		{"a convolution", Convolutions(512*32*32*64, 64, 3, false), "memory", 24 * 33554432. / 3352.32e9},
		{"a convolution of more channels", Convolutions(512*16*16*128, 128, 3, false), "tf32", 3 * 16777216. * 1152 / (1024 * 132 * 1.98e9)},
		{"the same in bfloat16", Convolutions(512*16*16*128, 128, 3, true), "bf16", 3 * 16777216. * 1152 / (2048 * 132 * 1.98e9)},
		{"a batch normalisation", BatchNorms(512 * 32 * 32 * 64), "memory", 32 * 33554432. / 3352.32e9},
		{"30 products of a wide subspace", Subspace(3072, 80, 30), "fp64", 30 * 3072 * 3072 * 80 / (64 * 132 * 1.98e9)},
		{"30 products of a narrow one", Subspace(3072, 16, 30), "memory", 30 * 8 * 3072 * 3072 / 3352.32e9},
		// 1500 steps of 10⁴ points, each with six pairs of 32 bytes.
		{"placed points", Placing(10000, 1500, 5), "cache", 32 * 9e7 / (64 * 132 * 1.98e9)},
		{"views", Views(2048, 3*32*32), "cache", 5 * 2048 * 3072 / (64 * 132 * 1.98e9)},
	} {
		bounds := c.w.Bounds(h100)
		if len(bounds) == 0 || bounds[0].Limit != c.limit || !near(bounds[0].Seconds, c.seconds) {
			t.Errorf("%s: the bounds are %v, want %.4g s by %s first", c.name, bounds, c.seconds, c.limit)
		}
	}
	parts := Distances(70000, 50, false)
	if got := parts[0].Bounds(h100)[0]; got.Limit != "fp32" || !near(got.Seconds, 50*4.9e9/(128*132*1.98e9)) {
		t.Errorf("products: %v", got)
	}
	if got := parts[1].Bounds(h100)[0]; got.Limit != "cache" || !near(got.Seconds, 8*4.9e9/(64*132*1.98e9)) {
		t.Errorf("ranking: %v", got)
	}
	// In TF32 the products of a million points take 10¹²·50/(1024·132·1.98e9) s, and the other
	// part limits.
	parts = Distances(1e6, 50, true)
	if got := parts[0].Bounds(h100)[0]; got.Limit != "tf32" || !near(got.Seconds, 50e12/(1024*132*1.98e9)) {
		t.Errorf("products: %v", got)
	}
	// 85 instructions of 512 pairs, four in a cycle.
	if got := parts[1].Bounds(h100); got[0].Limit != "cache" || !near(got[0].Seconds, 8e12/(64*132*1.98e9)) ||
		got[1].Limit != "instructions" || !near(got[1].Seconds, 1e12/512*85/(4*132*1.98e9)) {
		t.Errorf("ranking: %v", got)
	}
	// Two ends of one edge are the same of two points half the time.
	if got := DistinctPoints(2, 1); !near(got, 1.5) {
		t.Errorf("%g of two points are expected among two ends, want 1.5", got)
	}
	if got := DistinctPoints(70000, 1<<40); !near(got, 70000) {
		t.Errorf("%g of 70000 points are expected among all", got)
	}
}

// A step on 2048 views of 32×32 pixels: the multiply-adds of a pass are those that the
// network is known to have, 0.5558·10⁹ for an image with its head. The bytes were counted by
// hand: images of the four stages have e = 65536, e/2, e/4 and e/8 elements a view.
func TestResNet18(t *testing.T) {
	const e = 2048 * 65536.
	for _, halves := range []bool{false, true} {
		works := ResNet18(2048, 32, 64, halves)
		var count float64
		for _, w := range works {
			count += w.TF32 + w.BF16
		}
		// The stem's images have no gradient; fc1 and fc2 have 512·1024 + 1024·128 weights.
		stem := 27. * e
		if pass := (count + stem) / 3 / 2048; !near(pass, 555.4e6) && math.Abs(pass/555.4e6-1) > 1e-3 {
			t.Errorf("a pass has %g multiply-adds, want 555.4 million", pass)
		}
		// conv1 moves its images, of 3/64·e, twice, and its result twice.
		want := []float64{2*3/64.*e + 2*e, 3*2*e + 18*e, 3*1.5*e + 18*e/2 + 3*1.5*e, 3*.75*e + 18*e/4 + 3*.75*e, 3*.375*e + 18*e/8 + 3*.375*e}
		// 8 per normalisation: 1 + 4 of e, and five each of e/2, e/4 and e/8.
		between := 8*(5*e+5*(e/2+e/4+e/8)) + 8*(e+e/2+e/4+e/8) + 3*(2*e+1.5*e+.75*e+.375*e) + 2*e/8
		size := 2.
		if !halves {
			size = 4
			between += 2 * (e + 2*(e+e/2+e/4+e/8))
		}
		for i, w := range append(want, between) {
			if !near(works[i].Bytes, size*w) {
				t.Errorf("%s moves %g bytes, want %g", works[i].Part, works[i].Bytes, size*w)
			}
		}
	}
}

// metrics are those of a benchmark.
type metrics map[string]float64

func (m metrics) ReportMetric(v float64, unit string) { m[unit] = v }

// pretence is a backend that does nothing.
type pretence struct{ device.Backend }

var errNothing = errors.New("nothing")

func (pretence) Properties() device.Properties { return h100 }
func (pretence) Launch(device.StreamID, string, device.Launch, *[device.MaxArgs]uint64, int) error {
	return errNothing
}

// What a benchmark reports can be parsed, and names what takes longest.
func TestReport(t *testing.T) {
	d := device.New("pretence", pretence{})
	meter := Start(d)
	ask := func(n int) {
		for range n {
			if err := d.Launch("nothing", device.Launch{Grid: 1, Block: 1}); !errors.Is(err, errNothing) {
				t.Fatal(err)
			}
		}
	}
	best := func(n int, parts ...Work) (float64, string) {
		got := metrics{"ns/op": 5, "GB/s": 7}
		meter.Report(got, n, parts...)
		var roofs []Roof
		for unit, v := range got {
			if strings.ContainsAny(unit, " /") && unit != "ns/op" && unit != "GB/s" {
				t.Errorf("the unit %q would be taken for a rate or for two words", unit)
			}
			if r, ok := Parse(v, unit); ok {
				roofs = append(roofs, r)
			}
		}
		return Best(roofs)
	}
	ask(20)
	one := Work{Instructions: 4 * 1.98e9, Multiprocessors: 1}
	for _, c := range []struct {
		n       int
		parts   []Work
		seconds float64
		by      string
	}{
		{10, nil, 4e-6, "launches"},
		{10, []Work{{Chain: 1980}}, 4e-6, "launches"},
		{10, []Work{Copy(1 << 30)}, 2147483648 / 3352.32e9, "memory"},
		{20, []Work{one}, 1, "instructions of one multiprocessor"},
		{20, []Work{{Part: "b", Chain: 1.98e9}, {Part: "a", FMA: 3 * 128 * 132 * 1.98e9}}, 4, "a 75 % (fp32 of 132 multiprocessors), b 25 % (chain)"},
		// What is done aside takes no time, unless it takes longer than the rest.
		{20, []Work{{Part: "b", Chain: 1.98e9}, {Part: "a", FMA: 64 * 132 * 1.98e9, Aside: true}}, 1, "chain"},
		{20, []Work{one, {Part: "b", Chain: 1.98e9, Aside: true}, {Part: "a", FMA: 192 * 132 * 1.98e9, Aside: true}}, 2.5, "a 60 % (fp32 of 132 multiprocessors), b 40 % (chain)"},
	} {
		seconds, by := best(c.n, c.parts...)
		if !near(seconds, c.seconds) || by != c.by {
			t.Errorf("%v: %g s by %q, want %g by %q", c.parts, seconds, by, c.seconds, c.by)
		}
	}
	if r := Launches(3, 4); !near(r.Seconds, 10e-6) {
		t.Errorf("three operations and four replayed ones take %g s", r.Seconds)
	}
	if seconds, by := Best(nil); seconds != 0 || by != "" {
		t.Errorf("%g, %q", seconds, by)
	}
	for _, unit := range []string{"ns/op", "roof-ns", "roof-ns:a:memory:x", "other:a:memory:1"} {
		if r, ok := Parse(1, unit); ok {
			t.Errorf("%s is taken for the roofline %v", unit, r)
		}
	}
}
