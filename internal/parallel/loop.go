package parallel

import (
	"runtime"
	"sync/atomic"
)

// A Loop is For for a loop that runs many times: after its first run it does not
// allocate. Body or BodyWithWorker must be set, and must not change while Run runs. A
// Loop must not run twice at a time, and so not from its own Body.
type Loop struct {
	// Body handles the items [lo, hi) of one piece.
	Body func(piece, lo, hi int)
	// Instead of Body, BodyWithWorker gets the index of the worker that handles the piece,
	// below Workers; the caller is worker 0. A worker runs on the same core from run to
	// run if possible, and gets the same pieces unless it is slower than the others,
	// which then steal what it has not begun. Data kept for a worker or a piece thus
	// stay in one core's cache.
	BodyWithWorker func(worker, piece, lo, hi int)
	Workers        int
	// Ahead marks a loop that prepares what is needed later, while others wait for other
	// loops: it uses at most half of the processors. Its Body should call Yield every few
	// microseconds.
	Ahead bool

	n, grain int
	next     atomic.Int64
	ranges   []pieceRange // of the workers
	tasks    []task       // of the current run
	helpers  atomic.Int32 // that have neither finished nor been cancelled
	done     latch
	panicked atomic.Pointer[any]
}

// A pieceRange is the range of pieces assigned to one worker; others may steal the rest.
type pieceRange struct {
	next atomic.Int64
	end  int64
	_    [48]byte // keeps two ranges out of one cache line
}

// Run calls Body or BodyWithWorker for each piece of at most grain items out of n, as For does.
// The calls of Body begin in the order of the pieces.
func (l *Loop) Run(n, grain int) {
	pieces, workers := Pieces(n, grain), runtime.GOMAXPROCS(0)
	switch {
	case l.BodyWithWorker != nil:
		workers = min(workers, l.Workers)
	case l.Ahead:
		workers /= 2
	}
	workers = min(pieces, workers)
	l.n, l.grain = n, grain
	if workers <= 1 {
		for p := range pieces {
			l.piece(0, p)
		}
		return
	}
	l.next.Store(0)
	if l.BodyWithWorker != nil {
		l.divide(pieces, workers)
	}
	l.helpers.Store(int32(workers - 1))
	for worker := 1; worker < workers; worker++ {
		l.tasks = append(l.tasks, start(l, worker))
	}
	l.take(0)
	l.release()
	if r := l.panicked.Swap(nil); r != nil {
		panic(*r)
	}
}

// divide assigns ranges of pieces to workers.
func (l *Loop) divide(pieces, workers int) {
	for len(l.ranges) < workers {
		l.ranges = append(l.ranges, pieceRange{})
	}
	l.ranges = l.ranges[:workers]
	for worker := range l.ranges {
		s := &l.ranges[worker]
		s.next.Store(int64(worker * pieces / workers))
		s.end = int64((worker + 1) * pieces / workers)
	}
}

// piece handles one piece.
func (l *Loop) piece(worker, p int) {
	lo := p * l.grain
	hi := min(l.n, lo+l.grain)
	if l.BodyWithWorker != nil {
		l.BodyWithWorker(worker, p, lo, hi)
	} else {
		l.Body(p, lo, hi)
	}
}

// release ends a run whose pieces have all been taken. It does not wait for helpers
// that have not begun, because the processors have other work.
func (l *Loop) release() {
	working := true
	for _, j := range l.tasks {
		if j.cancel() {
			working = l.helpers.Add(-1) > 0
		}
	}
	l.tasks = l.tasks[:0]
	if working {
		l.done.wait(busyTime)
	}
}

// finish reports that a helper has no more to do.
func (l *Loop) finish() {
	if l.helpers.Add(-1) == 0 {
		l.done.open(0)
	}
}

// fail records the value that Run panics with. (A separate function keeps the value off
// the heap where there is no panic.)
func (l *Loop) fail(r any) { l.panicked.CompareAndSwap(nil, &r) }

// take handles pieces until none is left.
func (l *Loop) take(worker int) {
	defer func() {
		if r := recover(); r != nil {
			l.fail(r)
		}
	}()
	if l.BodyWithWorker == nil {
		for {
			p := int(l.next.Add(1)) - 1
			if p*l.grain >= l.n {
				return
			}
			l.piece(worker, p)
		}
	}
	for k := range l.ranges {
		s := &l.ranges[(worker+k)%len(l.ranges)]
		for p := s.next.Add(1) - 1; p < s.end; p = s.next.Add(1) - 1 {
			l.piece(worker, int(p))
		}
	}
}
