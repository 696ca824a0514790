package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

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
		l.finish()
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
