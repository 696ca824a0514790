package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a goroutine that waits keeps looking before it goes to
// sleep. To wake one that sleeps takes up to 0.1 ms, as long as many a loop of
// a training step; while it looks it lets all others run.
const patience = 200 * time.Microsecond

// A latch lets one goroutine wait until another opens it, again and again. The
// zero value is closed.
type latch struct {
	// state goes from closed to opened and back, or by way of asleep when the
	// waiting goroutine has lost patience.
	state atomic.Int32
	once  sync.Once
	wake  chan struct{}
}

const (
	closed int32 = iota
	asleep
	opened
)

// open lets the waiting goroutine go on, now or when it comes to wait.
func (l *latch) open() {
	if l.state.Swap(opened) == asleep {
		l.wake <- struct{}{}
	}
}

// wait returns when the latch has been opened, and closes it.
func (l *latch) wait() {
	if !l.look() {
		l.once.Do(func() { l.wake = make(chan struct{}, 1) })
		if l.state.CompareAndSwap(closed, asleep) {
			<-l.wake
		}
	}
	l.state.Store(closed)
}

// look tells whether the latch is opened before patience is over.
func (l *latch) look() bool {
	var since time.Time
	for i := 0; ; i++ {
		if l.state.Load() == opened {
			return true
		}
		if i%64 == 0 {
			if i == 0 {
				since = time.Now()
			} else if time.Since(since) > patience {
				return false
			}
		}
		runtime.Gosched()
	}
}

// A worker is a goroutine that helps with loops, one after the other.
type worker struct {
	loop  *Loop
	ready latch
}

// idle are the workers without a loop; the last one was busy last.
var idle struct {
	sync.Mutex
	workers []*worker
}

// hire gives a loop to an idle worker, or to a new one.
func hire(l *Loop) {
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
	w.loop = l
	w.ready.open()
}

// work helps with one loop after the other. Workers beyond the number of
// processors end.
func (w *worker) work() {
	for {
		w.ready.wait()
		l := w.loop
		w.loop = nil
		if !w.help(l) {
			return
		}
	}
}

// help takes part in a loop, and tells whether the worker is still wanted.
func (w *worker) help(l *Loop) (wanted bool) {
	ended := true
	defer func() {
		if ended {
			l.fail("parallel: the body of a loop has ended its goroutine")
		}
		l.finish()
	}()
	l.take()
	ended = false
	idle.Lock()
	defer idle.Unlock()
	if wanted = len(idle.workers) < runtime.GOMAXPROCS(0); wanted {
		idle.workers = append(idle.workers, w)
	}
	return wanted
}
