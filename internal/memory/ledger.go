package memory

import (
	"cmp"
	"math"
	"slices"
)

// A Part is something that takes memory.
type Part struct {
	// What it is, in words, and the option that decides its size; "" if none does.
	What, Option string
	Bytes        int64
}

// An Estimate is what something will take, beyond what the program takes by itself.
type Estimate struct {
	// Live is the most that is held at a time: less will not do. Peak is what the process
	// will have resident where nothing limits it, with what the garbage collector has not
	// freed yet.
	Live, Peak int64
	// Thrifty tells that Peak is with a Thrift collector.
	Thrifty bool
	// During is the step in which Live is reached, and Parts what is held then, the
	// largest first.
	During string
	Parts  []Part
}

// Largest returns what the parts of one option take together, of the option for which
// that is most, under the name of its largest part; nil unless it is a tenth of all at
// least.
func (e *Estimate) Largest() *Part {
	var largest *Part
	sums := map[string]int64{}
	for _, p := range e.Parts {
		sums[p.Option] += p.Bytes
	}
	for _, p := range e.Parts { // the largest of an option comes first
		if p.Option == "" || sums[p.Option] < e.Live/10 || largest != nil && sums[p.Option] <= largest.Bytes {
			continue
		}
		largest = &Part{p.What, p.Option, sums[p.Option]}
	}
	return largest
}

// A Ledger adds up what is held and freed, in the order in which that happens, and
// follows Go's garbage collector: it frees what is no longer held once the heap has
// doubled since the last time (GOGC=100), and gives little back to the system until
// then. The zero value is empty.
type Ledger struct {
	// Thrifty follows a collector that Thrift has set. It must not change any more once
	// something is held.
	Thrifty bool

	step       string
	held       []*Part
	live, heap float64
	marked     float64 // what was live when garbage was last collected
	peak       float64
	estimate   Estimate
}

// smallestHeap is that from which on the collector runs.
const smallestHeap = 4 << 20

// growth returns the factor by which the heap grows from one collection to the next.
func (l *Ledger) growth() float64 {
	if l.Thrifty {
		return 1 + thriftPercent/100.
	}
	return 2
}

// Step names what happens from now on.
func (l *Ledger) Step(name string) { l.step = name }

// Hold adds an allocation of so many bytes. Of none, it adds nothing.
func (l *Ledger) Hold(what, option string, bytes float64) *Part {
	p := &Part{what, option, clamp(bytes)}
	if bytes <= 0 {
		return p
	}
	l.held = append(l.held, p)
	l.live += bytes
	l.heap += bytes
	l.peak = max(l.peak, l.heap)
	if clamp(l.live) > l.estimate.Live {
		l.estimate = Estimate{Live: clamp(l.live), During: l.step, Parts: merged(l.held)}
	}
	if l.heap > max(smallestHeap, l.growth()*l.marked) {
		l.heap, l.marked = l.live, l.live
	}
	return p
}

// merged returns parts with those of one name and option added up, in their order.
func merged(parts []*Part) (list []Part) {
	for _, p := range parts {
		i := slices.IndexFunc(list, func(q Part) bool { return q.What == p.What && q.Option == p.Option })
		if i < 0 {
			list = append(list, *p)
		} else {
			list[i].Bytes += p.Bytes
		}
	}
	return list
}

// Free makes parts garbage.
func (l *Ledger) Free(parts ...*Part) {
	for _, p := range parts {
		if i := slices.Index(l.held, p); i >= 0 {
			l.held = slices.Delete(l.held, i, i+1)
			l.live -= float64(p.Bytes)
		}
	}
}

// Shrink makes what a part has beyond so many bytes garbage.
func (l *Ledger) Shrink(p *Part, bytes float64) {
	if less := p.Bytes - clamp(bytes); less > 0 && slices.Contains(l.held, p) {
		p.Bytes -= less
		l.live -= float64(less)
	}
}

// Pass adds an allocation that is garbage at once.
func (l *Ledger) Pass(what, option string, bytes float64) { l.Free(l.Hold(what, option, bytes)) }

// Garbage adds small or passing allocations of so many bytes in all, which the collector
// keeps from filling more than it lets garbage fill.
func (l *Ledger) Garbage(bytes float64) {
	l.heap = min(l.heap+bytes, max(l.heap, smallestHeap, l.growth()*max(l.marked, l.live)))
	l.peak = max(l.peak, l.heap)
	if l.heap >= max(smallestHeap, l.growth()*l.marked) {
		l.heap, l.marked = l.live, l.live
	}
}

// Collect is a collection that the program asks for.
func (l *Ledger) Collect() { l.heap, l.marked = l.live, l.live }

// overhead is what the process has resident for a byte of its heap: with gaps between
// objects, the collector's own tables, and what it has freed but not given back.
const overhead = 1.08

// small is what things take that are not worth an entry.
const small = 8 << 20

// Estimate returns the sum so far.
func (l *Ledger) Estimate() Estimate {
	e := l.estimate
	e.Thrifty = l.Thrifty
	e.Peak = clamp(small + overhead*l.peak)
	e.Parts = slices.Clone(e.Parts)
	slices.SortStableFunc(e.Parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return e
}

// clamp makes a number of bytes one that an int64 holds.
func clamp(bytes float64) int64 { return int64(min(bytes, math.MaxInt64/4)) }
