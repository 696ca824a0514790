package parallel_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
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

// A loop with BodyWithWorker visits every item once, and no two bodies have one worker at
// a time.
func TestSeats(t *testing.T) {
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		defer runtime.GOMAXPROCS(old)
		for _, tc := range []struct{ n, grain, seats int }{{0, 4, 2}, {1, 4, 2}, {5, 4, 1}, {100, 3, 2}, {1000, 7, 3}, {1000, 7, 16}} {
			visits, taken := make([]atomic.Int32, tc.n), make([]atomic.Int32, tc.seats)
			l := parallel.Loop{Workers: tc.seats, BodyWithWorker: func(seat, p, lo, hi int) {
				if taken[seat].Add(1) != 1 {
					t.Errorf("%+v: seat %d is taken twice", tc, seat)
				}
				if lo != p*tc.grain || hi-lo > tc.grain || hi <= lo {
					t.Errorf("%+v: piece %d is [%d,%d)", tc, p, lo, hi)
				}
				for i := lo; i < hi; i++ {
					visits[i].Add(1)
					runtime.Gosched()
				}
				taken[seat].Add(-1)
			}}
			for range 3 {
				l.Run(tc.n, tc.grain)
			}
			for i := range visits {
				if v := visits[i].Load(); v != 3 {
					t.Errorf("%+v procs=%d: item %d visited %d times in 3 runs", tc, procs, i, v)
				}
			}
		}
	}
}

// What is computed ahead comes to its end beside loops that are waited for.
func TestAhead(t *testing.T) {
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		defer runtime.GOMAXPROCS(old)
		var ahead, now atomic.Int64
		var group sync.WaitGroup
		group.Go(func() {
			l := parallel.Loop{Ahead: true, Body: func(_, lo, hi int) { ahead.Add(int64(hi - lo)); parallel.Yield() }}
			for range 50 {
				l.Run(20, 3)
			}
		})
		l := parallel.Loop{Body: func(_, lo, hi int) { now.Add(int64(hi - lo)) }}
		for range 50 {
			l.Run(20, 3)
		}
		group.Wait()
		if ahead.Load() != 1000 || now.Load() != 1000 {
			t.Errorf("GOMAXPROCS %d: %d and %d items, want 1000 each", procs, ahead.Load(), now.Load())
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
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		sums := make([]int, 10)
		l := parallel.Loop{Body: func(p, lo, hi int) { sums[p] += hi - lo }}
		l.Run(95, 10)
		// testing.AllocsPerRun would run it on one processor.
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 1000 {
			l.Run(95, 10)
		}
		runtime.ReadMemStats(&after)
		if allocs := after.Mallocs - before.Mallocs; allocs > 200 { // a worker or two may be new
			t.Errorf("GOMAXPROCS %d: %d allocations in 1000 runs", procs, allocs)
		}
		if sums[0] != 10010 || sums[9] != 5005 {
			t.Errorf("GOMAXPROCS %d: pieces saw %v items in 1001 runs", procs, sums)
		}
		runtime.GOMAXPROCS(old)
	}
}

// A body that ends its goroutine does not leave Run waiting.
func TestForNoticesGoexit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		var calls atomic.Int32
		parallel.For(2, 1, func(int, int, int) {
			if calls.Add(1) == 2 { // on whichever goroutine
				runtime.Goexit()
			}
			for calls.Load() < 2 { // the two bodies run at the same time
				runtime.Gosched()
			}
		})
	}()
	if r := <-done; r != nil && !strings.Contains(fmt.Sprint(r), "has ended its goroutine") {
		t.Errorf("recovered %v", r)
	}
}

// Loops may run beside and inside each other.
func TestLoopsTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var total atomic.Int64
	parallel.For(8, 1, func(int, int, int) {
		for range 50 {
			parallel.For(20, 3, func(_, lo, hi int) { total.Add(int64(hi - lo)) })
		}
	})
	if got := total.Load(); got != 8*50*20 {
		t.Errorf("%d items, want %d", got, 8*50*20)
	}
}

// Loops that are over before a helper has come, because the processors are busy, do not
// wait for it, and it does not take part in the wrong one.
func TestLoopsBesideOtherWork(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var stop atomic.Bool
	var busy, loops sync.WaitGroup
	for range 3 {
		busy.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	for range 3 {
		loops.Go(func() {
			var sums [5]int
			l := parallel.Loop{Body: func(p, lo, hi int) { sums[p] += hi - lo }}
			for range 2000 {
				l.Run(50, 10)
			}
			if sums != [5]int{20000, 20000, 20000, 20000, 20000} {
				t.Errorf("the pieces saw %v items", sums)
			}
		})
	}
	loops.Wait()
	stop.Store(true)
	busy.Wait()
}

// A loop of four pieces of 10 µs: how much of it a second core takes over
// depends on how soon it comes.
func BenchmarkShortLoop(b *testing.B) {
	sums := make([]float64, 4*64)
	l := parallel.Loop{Body: func(p, _, _ int) {
		for i := range 4000 {
			sums[64*p] += math.Sqrt(float64(i))
		}
	}}
	for _, pieces := range []int{1, 4} {
		b.Run(fmt.Sprintf("pieces=%d", pieces), func(b *testing.B) {
			for range b.N {
				l.Run(pieces, 1)
			}
		})
	}
}
