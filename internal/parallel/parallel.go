// Package parallel spreads loops over the processor's cores in pieces whose
// bounds depend only on the size of the work, never on the number of cores.
// A computation that keeps one partial result per piece and adds them up in
// the order of the pieces therefore gives the same bits whatever GOMAXPROCS is.
package parallel

import (
	"context"
	"sync"
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
