package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Loop is For for a loop that runs many times: once its first run is over,
// it does not allocate. Body must be set, and not changed while Run runs.
type Loop struct {
	// Body handles the items [lo, hi) of one piece.
	Body func(piece, lo, hi int)

	n, grain int
	next     atomic.Int64
	wg       sync.WaitGroup
	panicked atomic.Pointer[any]
	work     func()
}

// Run calls Body for each piece of at most grain items out of n, as For does.
func (l *Loop) Run(n, grain int) {
	pieces := Pieces(n, grain)
	workers := min(pieces, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for p := range pieces {
			l.Body(p, p*grain, min(n, (p+1)*grain))
		}
		return
	}
	if l.work == nil {
		l.work = func() {
			defer l.wg.Done()
			l.take()
		}
	}
	l.n, l.grain = n, grain
	l.next.Store(0)
	l.wg.Add(workers)
	for range workers - 1 {
		go l.work()
	}
	l.work()
	l.wg.Wait()
	if r := l.panicked.Swap(nil); r != nil {
		panic(*r)
	}
}

// take handles pieces until none is left.
func (l *Loop) take() {
	defer func() {
		if r := recover(); r != nil {
			l.panicked.CompareAndSwap(nil, &r)
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
