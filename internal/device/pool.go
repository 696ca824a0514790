package device

import "errors"

// A pool keeps freed memory for allocations of the same size: the driver's own take
// longer than most kernels, and wait for all of them.
type pool struct {
	free            map[int64][]Pointer // by class
	allocated, used int64               // bytes
}

// classOf rounds a number of bytes up to a multiple of 256 and to one of few sizes, at
// most an eighth larger.
func classOf(bytes int) int64 {
	n := max(int64(bytes), 1)
	step := int64(256)
	for step*16 <= n {
		step *= 2
	}
	return (n + step - 1) / step * step
}

func (p *pool) take(class int64) (Pointer, bool) {
	list := p.free[class]
	if len(list) == 0 {
		return 0, false
	}
	at := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	return at, true
}

func (p *pool) put(at Pointer, bytes int) {
	class := classOf(bytes)
	p.free[class] = append(p.free[class], at)
	p.used -= class
}

// empty returns all free memory to the driver.
func (p *pool) empty(free func(Pointer) error) error {
	var failed error
	for class, list := range p.free {
		for _, at := range list {
			failed = errors.Join(failed, free(at))
			p.allocated -= class
		}
		delete(p.free, class)
	}
	return failed
}
