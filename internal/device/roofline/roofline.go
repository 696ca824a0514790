// Package roofline says how fast an accelerator can do a piece of work at best, so that
// a measurement shows at once what is slow. Benchmarks of devices report it beside what
// they measure, and scripts/gpucheck prints the share of it that was reached.
//
// A roofline is the largest of several lower bounds of the time, each an amount of work
// over a rate:
//
//	memory        Bytes ÷ (2 · memory clock · bits of its bus / 8)
//	cache         Cached, or Bytes if Footprint fits the L2 cache ÷ (64 · k · clock)
//	shared        Shared ÷ (128 · k · clock)
//	fp32          FMA ÷ (lanes · k · clock)
//	fp64          FMA64 ÷ (lanes of float64 · k · clock)
//	tf32          TF32 ÷ (multiply-adds of tensor cores · k · clock)
//	bf16          BF16 ÷ (2 · multiply-adds of tensor cores · k · clock)
//	special       Special ÷ (16 · k · clock)
//	instructions  Instructions ÷ (4 · k · clock)
//	chain         Chain ÷ clock
//
// where k is the number of multiprocessors that the work can use: all, or those of one
// block or one cluster. Clocks, the bus's width, the cache's size and k are what the
// driver says of the device (device.Properties); a bound of which one is unknown is left
// out. What a multiprocessor does in a cycle is not among them, and follows from its
// compute capability (see unitsOf). works.go has the amounts.
//
// Pieces of work that follow each other on a stream of the device add up. Those of its
// side stream can run at the same time as the others, so that an operation takes at least
// as long as those of either stream. Beside them runs the program that asks for them, so
// that it also takes as long as its Launches at least.
//
// Nothing here is measured. What a roofline leaves out – atomic additions to one address,
// conflicts of banks, waits – makes its share smaller, never larger than 1 by more than
// the clock's deviation from the driver's.
package roofline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne/internal/device"
)

// Work is a piece of work: amounts that it cannot do without. Those that are 0 bound
// nothing.
type Work struct {
	// Part names it among those of an operation, in one word; "" if it is all.
	Part string
	// Bytes are moved between the device's memory and its multiprocessors. Footprint is how
	// much memory they are in; if it fits the cache, so do they.
	Bytes, Footprint float64
	// Cached are bytes that the cache has in any case. A random access to a few bytes moves
	// a sector of 32.
	Cached float64
	// Shared are bytes read or written in shared memory.
	Shared float64
	// FMA counts operations of float32 lanes: a multiply-add is one, a sum or a product
	// alone also. TF32 and BF16 count multiply-adds of tensor cores in these numbers.
	FMA, TF32, BF16 float64
	// FMA64 counts operations of float64 lanes.
	FMA64 float64
	// Special counts reciprocals, logarithms and the like.
	Special float64
	// Instructions are those of a warp of 32 threads.
	Instructions float64
	// Chain is the number of cycles of operations that wait for each other.
	Chain float64
	// Multiprocessors is how many the work can use at most; 0: all.
	Multiprocessors int
	// Aside is whether it is done on the side stream.
	Aside bool
}

// A Roof is the roofline of a piece of work: the largest bound of its time.
type Roof struct {
	Part  string
	Limit string // memory, cache …
	// Multiprocessors is how many the bound is of; 0 for one that does not depend on them.
	Multiprocessors int
	Aside           bool // whether its work is
	Seconds         float64
}

// What a multiprocessor does in a cycle, at any compute capability from 8.0 on: bytes
// that it gets from the L2 cache and from its shared memory (32 banks of 4), special
// functions, and instructions of warps that its four schedulers issue.
const (
	cacheBytes   = 64
	sharedBytes  = 128
	specials     = 16
	instructions = 4
)

// units is what else a multiprocessor does in a cycle: operations of float32 lanes,
// multiply-adds of its tensor cores on dense matrices in TF32, and operations of float64
// lanes. Of bfloat16, whose sums are float32, tensor cores do twice as many as of TF32.
type units struct{ lanes, tensor, double float64 }

// architectures are the compute capabilities at which units change, as NVIDIA's CUDA
// programming guide and the architectures' white papers have them.
var architectures = []struct {
	major, minor int
	units
}{
	{8, 0, units{64, 512, 32}},    // A100: 19.5, 156 and 9.7 TFLOP/s with 108 at 1.41 GHz
	{8, 6, units{128, 128, 2}},    // RTX 3090: 35.6, 35.6 and 0.56 with 82 at 1.695 GHz
	{9, 0, units{128, 1024, 64}},  // H100: 66.9, 494.7 and 33.5 with 132 at 1.98 and 1.83 GHz
	{10, 0, units{128, 2048, 64}}, // B200: 2.2 PFLOP/s in bfloat16, twice that in TF32, with 148 at 1.85 GHz
	{12, 0, units{128, 128, 2}},   // RTX 5090: 104.8, 104.8 and 1.64 with 170 at 2.407 GHz
}

// unitsOf returns the units of a compute capability: those of the newest architecture
// that is not newer.
func unitsOf(major, minor int) (u units) {
	for _, a := range architectures {
		if u == (units{}) || cmp.Or(cmp.Compare(a.major, major), cmp.Compare(a.minor, minor)) <= 0 {
			u = a.units
		}
	}
	return u
}

// Bounds returns the lower bounds of the seconds that a piece of work takes, the largest
// first.
func (w Work) Bounds(p device.Properties) []Roof {
	k := p.Multiprocessors
	if w.Multiprocessors > 0 {
		k = min(k, w.Multiprocessors)
	}
	u := unitsOf(p.Major, p.Minor)
	clock := 1e3 * float64(p.ClockKHz)
	all := float64(k) * clock
	memory, cached := w.Bytes, w.Cached
	if w.Footprint <= float64(p.L2Bytes) {
		memory, cached = 0, cached+w.Bytes
	}
	var bounds []Roof
	add := func(limit string, k int, amount, rate float64) {
		if amount > 0 && rate > 0 {
			bounds = append(bounds, Roof{w.Part, limit, k, w.Aside, amount / rate})
		}
	}
	add("memory", 0, memory, 2*1e3*float64(p.MemoryKHz)*float64(p.MemoryBits)/8)
	add("cache", k, cached, cacheBytes*all)
	add("shared", k, w.Shared, sharedBytes*all)
	add("fp32", k, w.FMA, u.lanes*all)
	add("fp64", k, w.FMA64, u.double*all)
	add("tf32", k, w.TF32, u.tensor*all)
	add("bf16", k, w.BF16, 2*u.tensor*all)
	add("special", k, w.Special, specials*all)
	add("instructions", k, w.Instructions, instructions*all)
	add("chain", 0, w.Chain, clock)
	slices.SortStableFunc(bounds, func(a, b Roof) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return bounds
}

// How long the driver takes at least for an operation that the program asks for, and a
// GPU for one of a replay: round figures that others have measured, since nobody
// promises any.
const (
	asking    = 2 * time.Microsecond
	replaying = time.Microsecond
)

// Launches returns how long operations take at least that were asked for, and that
// replays have run, as device.Device.Operations counts them.
func Launches(asked, replayed float64) Roof {
	return Roof{Limit: launches, Seconds: asked*asking.Seconds() + replayed*replaying.Seconds()}
}

// launches is the limit that lies in the program and not on the device.
const launches = "launches"

// A Meter counts what a benchmark asks of a device.
type Meter struct {
	device          *device.Device
	asked, replayed int
}

// Start returns a Meter that counts from now on.
func Start(d *device.Device) *Meter {
	m := &Meter{device: d}
	m.asked, m.replayed = d.Operations()
	return m
}

// Report adds rooflines to the metrics of a benchmark that has done n operations since
// Start, of which each consists of these parts.
func (m *Meter) Report(b interface{ ReportMetric(n float64, unit string) }, n int, parts ...Work) {
	p := m.device.Properties()
	asked, replayed := m.device.Operations()
	roofs := []Roof{Launches(float64(asked-m.asked)/float64(n), float64(replayed-m.replayed)/float64(n))}
	for _, w := range parts {
		if bounds := w.Bounds(p); len(bounds) > 0 {
			roofs = append(roofs, bounds[0])
		}
	}
	for _, r := range roofs {
		b.ReportMetric(1e9*r.Seconds, r.unit())
	}
}

// unitOfRoofs begins the units of metrics that are rooflines, in nanoseconds.
const unitOfRoofs = "roof-ns"

// aside ends those of work on the side stream.
const aside = "aside"

// unit returns the unit of a roofline's metric, which says all but the seconds.
func (r Roof) unit() string {
	unit := fmt.Sprintf("%s:%s:%s:%d", unitOfRoofs, r.Part, r.Limit, r.Multiprocessors)
	if r.Aside {
		unit += ":" + aside
	}
	return unit
}

// Parse returns the roofline that a benchmark's metric is, if it is one.
func Parse(value float64, unit string) (r Roof, ok bool) {
	unit, onSide := strings.CutSuffix(unit, ":"+aside)
	words := strings.Split(unit, ":")
	if len(words) != 4 || words[0] != unitOfRoofs {
		return r, false
	}
	k, err := strconv.Atoi(words[3])
	if err != nil {
		return r, false
	}
	return Roof{words[1], words[2], k, onSide, 1e-9 * value}, true
}

// Best returns the seconds that an operation with these rooflines takes at best: the sum
// of its parts', of those of the stream that takes longer, or its launches' if they are
// longer. by names what it is that takes so long, the longest part first; "" if there are
// none.
func Best(roofs []Roof) (seconds float64, by string) {
	var streams [2][]Roof
	var sums [2]float64
	var asking Roof
	for _, r := range roofs {
		if r.Limit == launches {
			asking = r
			continue
		}
		on := 0
		if r.Aside {
			on = 1
		}
		streams[on] = append(streams[on], r)
		sums[on] += r.Seconds
	}
	parts, seconds := streams[0], sums[0]
	if sums[1] > seconds {
		parts, seconds = streams[1], sums[1]
	}
	if asking.Seconds > seconds {
		return asking.Seconds, launches
	}
	slices.SortStableFunc(parts, func(a, b Roof) int { return cmp.Compare(b.Seconds, a.Seconds) })
	var words []string
	for _, r := range parts {
		words = append(words, r.describe(seconds, len(parts)))
	}
	return seconds, strings.Join(words, ", ")
}

// describe says what limits a part, and which share of an operation's seconds it has if
// it is one of several parts.
func (r Roof) describe(seconds float64, parts int) string {
	text := r.Limit
	if r.Multiprocessors > 0 {
		text += fmt.Sprintf(" of %d multiprocessors", r.Multiprocessors)
		if r.Multiprocessors == 1 {
			text = r.Limit + " of one multiprocessor"
		}
	}
	if parts == 1 {
		return text
	}
	return fmt.Sprintf("%s %.0f %% (%s)", r.Part, 100*r.Seconds/seconds, text)
}
