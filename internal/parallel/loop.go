package parallel

import (
	"runtime"
	"sync/atomic"
)

// A Loop is For for a loop that runs many times: once its first run is over,
// it does not allocate. Body must be set, and not changed while Run runs. A
// Loop must not run twice at a time, and so not from its own Body.
type Loop struct {
	// Body handles the items [lo, hi) of one piece.
	Body func(piece, lo, hi int)

	n, grain int
	next     atomic.Int64
	jobs     []job        // of the run at hand
	helpers  atomic.Int32 // that have neither finished nor been sent away
	done     latch
	panicked atomic.Pointer[any]
}

// Run calls Body for each piece of at most grain items out of n, as For does.
// The calls begin in the order of the pieces.
func (l *Loop) Run(n, grain int) {
	pieces := Pieces(n, grain)
	workers := min(pieces, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for p := range pieces {
			l.Body(p, p*grain, min(n, (p+1)*grain))
		}
		return
	}
	l.n, l.grain = n, grain
	l.next.Store(0)
	l.helpers.Store(int32(workers - 1))
	for range workers - 1 {
		l.jobs = append(l.jobs, hire(l))
	}
	l.take()
	l.dismiss()
	if r := l.panicked.Swap(nil); r != nil {
		panic(*r)
	}
}

// dismiss ends a run whose pieces have all been taken. It does not wait for helpers
// that have not begun, because the processors have other work.
func (l *Loop) dismiss() {
	working := true
	for _, j := range l.jobs {
		if j.cancel() {
			working = l.helpers.Add(-1) > 0
		}
	}
	l.jobs = l.jobs[:0]
	if working {
		l.done.wait()
	}
}

// finish tells that a helper has no more to do.
func (l *Loop) finish() {
	if l.helpers.Add(-1) == 0 {
		l.done.open(0)
	}
}

// fail notes what Run shall panic with. (That it is a function of its own keeps
// the value off the heap where there is no panic.)
func (l *Loop) fail(r any) { l.panicked.CompareAndSwap(nil, &r) }

// take handles pieces until none is left.
func (l *Loop) take() {
	defer func() {
		if r := recover(); r != nil {
			l.fail(r)
		}
	}()
	for {
		p := int(l.next.Add(1)) - 1
		lo := p * l.grain
		if lo >= l.n {
			return
		}
		l.Body(p, lo, min(l.n, lo+l.grain))
	}
}
