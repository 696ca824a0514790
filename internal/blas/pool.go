package blas

import "sync"

// A pool keeps what is used again and again. Unlike one of package sync, it
// keeps it for good: no more is made than is in use at one time.
type pool[T any] struct {
	make func() *T

	mu   sync.Mutex
	free []*T
}

func (p *pool[T]) get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return p.make()
	}
	x := p.free[last]
	p.free = p.free[:last]
	return x
}

func (p *pool[T]) put(x *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, x)
}
