package parallel_test

import (
	"testing"

	"cne/internal/parallel"
)

// A pool hands out nothing twice, and first what was put back last.
func TestPool(t *testing.T) {
	made := 0
	for name, p := range map[string]*parallel.Pool[[3]int]{
		"zero": {},
		"new":  {New: func() *[3]int { made++; return new([3]int) }},
	} {
		a, b := p.Get(), p.Get()
		if a == b {
			t.Fatalf("%s: one value twice", name)
		}
		p.Put(a)
		p.Put(b)
		if x, y := p.Get(), p.Get(); x != b || y != a {
			t.Errorf("%s: not in the order last put back, first out", name)
		}
	}
	if made != 2 {
		t.Errorf("%d values made, want 2", made)
	}
}
