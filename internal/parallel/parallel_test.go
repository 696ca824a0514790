package parallel_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"cne/internal/parallel"
)

func TestForVisitsEveryItemOnce(t *testing.T) {
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		defer runtime.GOMAXPROCS(old)
		for _, tc := range []struct{ n, grain int }{{0, 4}, {1, 4}, {4, 4}, {5, 4}, {1000, 7}} {
			visits := make([]atomic.Int32, tc.n)
			var pieces atomic.Int32
			parallel.For(tc.n, tc.grain, func(p, lo, hi int) {
				pieces.Add(1)
				if lo != p*tc.grain || hi-lo > tc.grain || hi <= lo {
					t.Errorf("n=%d grain=%d: piece %d is [%d,%d)", tc.n, tc.grain, p, lo, hi)
				}
				for i := lo; i < hi; i++ {
					visits[i].Add(1)
				}
			})
			if got, want := int(pieces.Load()), parallel.Pieces(tc.n, tc.grain); got != want {
				t.Errorf("n=%d grain=%d: %d pieces, want %d", tc.n, tc.grain, got, want)
			}
			for i := range visits {
				if v := visits[i].Load(); v != 1 {
					t.Errorf("n=%d grain=%d procs=%d: item %d visited %d times", tc.n, tc.grain, procs, i, v)
				}
			}
		}
	}
}

func TestForRaisesPanicOnCaller(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v, want boom", r)
		}
	}()
	parallel.For(100, 1, func(p, _, _ int) {
		if p == 50 {
			panic("boom")
		}
	})
	t.Error("For returned")
}

func TestLoopDoesNotAllocate(t *testing.T) {
	for _, procs := range []int{1, 2} {
		old := runtime.GOMAXPROCS(procs)
		sums := make([]int, 10)
		l := parallel.Loop{Body: func(p, lo, hi int) { sums[p] += hi - lo }}
		l.Run(95, 10)
		if allocs := testing.AllocsPerRun(100, func() { l.Run(95, 10) }); allocs != 0 {
			t.Errorf("GOMAXPROCS %d: %g allocations", procs, allocs)
		}
		if sums[0] != 1020 || sums[9] != 510 {
			t.Errorf("GOMAXPROCS %d: pieces saw %v items in 102 runs", procs, sums)
		}
		runtime.GOMAXPROCS(old)
	}
}
