package parallel

import "sync"

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
