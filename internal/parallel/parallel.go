// Package parallel spreads loops over the processor's cores in pieces whose
// bounds depend on the size of the work alone, never on the number of cores.
// A computation that keeps one partial result per piece and adds them up in
// the order of the pieces therefore gives the same bits whatever GOMAXPROCS is.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
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
	pieces := Pieces(n, grain)
	workers := min(pieces, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for p := range pieces {
			body(p, p*grain, min(n, (p+1)*grain))
		}
		return
	}
	var (
		next     atomic.Int64
		wg       sync.WaitGroup
		panicked atomic.Pointer[any]
	)
	work := func() {
		defer func() {
			if r := recover(); r != nil {
				panicked.CompareAndSwap(nil, &r)
			}
		}()
		for {
			p := int(next.Add(1)) - 1
			if p >= pieces {
				return
			}
			body(p, p*grain, min(n, (p+1)*grain))
		}
	}
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if r := panicked.Load(); r != nil {
		panic(*r)
	}
}
