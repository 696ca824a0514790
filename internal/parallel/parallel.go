// Package parallel spreads loops over the processor's cores in pieces whose
// bounds depend only on the size of the work, never on the number of cores.
// A computation that keeps one partial result per piece and adds them up in
// the order of the pieces therefore gives the same bits whatever GOMAXPROCS is.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pieces returns how many pieces of at most grain items n items make.
func Pieces(n, grain int) int {
	if n <= 0 {
		return 0
	}
	return (n + grain - 1) / grain
}

// For calls body(piece, lo, hi) once for each piece [lo, hi) of at most grain
// items out of n, on up to GOMAXPROCS goroutines, and returns when all calls
// have. Pieces are numbered from 0 in the order of their items. With a single
// piece, or a single processor, body runs on the calling goroutine. A panic in
// body is raised again on the calling goroutine.
func For(n, grain int, body func(piece, lo, hi int)) {
	l := Loop{Body: body}
	l.Run(n, grain)
}

// ForContext is For, but skips pieces that have not begun when ctx ends. It returns
// ctx's error, which may come although all pieces were handled.
func ForContext(ctx context.Context, n, grain int, body func(piece, lo, hi int)) error {
	For(n, grain, func(piece, lo, hi int) {
		if ctx.Err() == nil {
			body(piece, lo, hi)
		}
	})
	return ctx.Err()
}

// A Pool keeps values that goroutines use one at a time, again and again, such as the
// scratch memory of the pieces of a loop. Unlike a sync.Pool it never drops a value: no
// more are made than are in use at one time. The value put back last is used first,
// while it is still in a core's cache.
type Pool[T any] struct {
	// New makes a value; if it is nil, Get returns a zero T.
	New func() *T

	mu   sync.Mutex
	free []*T
}

// Get returns a value that is not in use.
func (p *Pool[T]) Get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last >= 0 {
		x := p.free[last]
		p.free = p.free[:last]
		return x
	}
	if p.New == nil {
		return new(T)
	}
	return p.New()
}

// Put gives a value back.
func (p *Pool[T]) Put(x *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, x)
}

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

const (
	// spinTime is how long a waiting goroutine spins before it sleeps. Waking it takes up to
	// 0.1 ms, as long as many loops of a training step. While it spins it lets all others
	// run.
	spinTime = 200 * time.Microsecond
	// busyTime is how long the caller of a loop spins without yielding: the last pieces
	// are about to be done, and another goroutine may take longer.
	busyTime = 20 * time.Microsecond
	// checksPerYield is the number of checks between two yields, which take as long.
	checksPerYield = 64
)

// Yield lets other goroutines run, such as one that a loop waits for. The Body of a loop
// that is Ahead calls it every few microseconds. With a single processor it does nothing,
// since no other goroutine can wait then.
func Yield() {
	if runtime.GOMAXPROCS(0) > 1 {
		runtime.Gosched()
	}
}

// A latch lets one goroutine wait until another opens it, again and again. The
// zero value is closed.
type latch struct {
	// state goes from closed to opened and back, or by way of asleep when the waiting
	// goroutine sleeps. Above its two lowest bits it holds the number that the latch was
	// opened with.
	state atomic.Uint64
	once  sync.Once
	wake  chan struct{}
}

const (
	closed uint64 = iota
	asleep
	opened
	stateBits = 2
)

// open lets the goroutine that waits, or waits next, continue.
func (l *latch) open(number uint64) {
	if l.state.Swap(number<<stateBits|opened) == asleep {
		l.wake <- struct{}{}
	}
}

// revoke closes the latch if it is still open with this number, because the waiting
// goroutine has not continued. It reports whether it closed the latch.
func (l *latch) revoke(number uint64) bool {
	return l.state.CompareAndSwap(number<<stateBits|opened, closed)
}

// wait returns when the latch has been opened, and closes it. During the time busy it does
// not let other goroutines run.
func (l *latch) wait(busy time.Duration) {
	for !l.spin(busy) {
		l.once.Do(func() { l.wake = make(chan struct{}, 1) })
		if l.state.CompareAndSwap(closed, asleep) {
			<-l.wake
		}
	}
}

// spin closes the latch and reports whether it was opened within spinTime.
func (l *latch) spin(busy time.Duration) bool {
	since := time.Now()
	for {
		for range checksPerYield {
			if state := l.state.Load(); state&opened != 0 && l.state.CompareAndSwap(state, closed) {
				return true
			}
		}
		waited := time.Since(since)
		if waited > spinTime {
			return false
		}
		if waited > busy {
			runtime.Gosched()
		}
	}
}

// A worker is a goroutine that helps with loops, one after the other.
type worker struct {
	loop   *Loop
	index  int    // in that loop
	starts uint64 // the number of loops it was started for; only start changes it
	ready  latch
}

// A task is the help of a worker with one loop.
type task struct {
	*worker
	number uint64
}

// idle are the workers without a loop; the last one was busy last.
var idle struct {
	sync.Mutex
	workers []*worker
}

// start has an idle worker, or a new one, help with a loop.
func start(l *Loop, index int) task {
	idle.Lock()
	var w *worker
	if n := len(idle.workers); n > 0 {
		w = idle.workers[n-1]
		idle.workers = idle.workers[:n-1]
	}
	idle.Unlock()
	if w == nil {
		w = new(worker)
		go w.work()
	}
	w.loop, w.index = l, index
	w.starts++
	j := task{w, w.starts}
	w.ready.open(j.number)
	return j
}

// cancel takes the loop back from a worker that has not begun with it, and reports whether
// it did.
func (t task) cancel() bool {
	if !t.ready.revoke(t.number) {
		return false
	}
	t.loop = nil // its memory can then be freed
	idle.Lock()
	defer idle.Unlock()
	idle.workers = append(idle.workers, t.worker)
	return true
}

// work helps with one loop after the other. Workers beyond the number of
// processors end.
func (w *worker) work() {
	for {
		w.ready.wait(0)
		l := w.loop
		w.loop = nil
		if !w.help(l) {
			return
		}
	}
}

// help takes part in a loop, and reports whether the worker is still wanted.
func (w *worker) help(l *Loop) (wanted bool) {
	ended := true
	defer func() {
		if ended {
			l.fail("parallel: the body of a loop has ended its goroutine")
		}
		if l.helpers.Add(-1) == 0 {
			l.done.open(0)
		}
	}()
	l.take(w.index)
	ended = false
	idle.Lock()
	defer idle.Unlock()
	if wanted = len(idle.workers) < runtime.GOMAXPROCS(0); wanted {
		idle.workers = append(idle.workers, w)
	}
	return wanted
}
