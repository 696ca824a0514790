package device

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

func TestConvolve(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	for _, tf32 := range []bool{true, false} {
		d.TF32 = tf32
		must(t, d.Convolve(Convolution{N: 1000, H: 1, W: 1}))
	}
	if !slices.Equal(p.multiply, []bool{true, false}) {
		t.Errorf("TF32 was allowed: %v", p.multiply)
	}
	if p.allocs != 1 {
		t.Errorf("the second of two equal convolutions allocated memory")
	}
	if err := d.Convolve(Convolution{N: 1, H: 2, W: 1}); err != ErrNoConvolution {
		t.Errorf("what the library does not know gave %v", err)
	}
	if err := CPU().Convolve(Convolution{}); err != ErrHost {
		t.Errorf("the CPU returned %v", err)
	}
	p.fails = ErrLost
	if err := d.Convolve(Convolution{N: 1, H: 1, W: 1}); !errors.Is(err, ErrLost) {
		t.Errorf("a device that failed returned %v", err)
	}
}

// The pool's free memory makes room for a convolution's.
func TestConvolveMakesRoom(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	m := alloc(t, d, 900<<10)
	full := new(MemoryError)
	if err := d.Convolve(Convolution{N: 500 << 10, H: 1, W: 1}); !errors.As(err, &full) || full.Device != "cuda:0" || full.Needed < 500<<10 {
		t.Errorf("a full device returned %v", err)
	}
	m.Free()
	if err := d.Convolve(Convolution{N: 500 << 10, H: 1, W: 1}); err != nil {
		t.Error(err)
	}
}

func TestScratch(t *testing.T) {
	d, p := newDevice(t, 1<<20)
	var seen []Pointer
	for _, bytes := range []int{1000, 500, 1000, 1100, 2000, 1} {
		err := d.Scratch(bytes, func(at Pointer) error {
			p.bytes(at, bytes)
			seen = append(seen, at)
			return nil
		})
		must(t, err)
	}
	// The workspace grows at least twofold, and the old one stays in place for
	// captures.
	if a, b := seen[0], seen[3]; !slices.Equal(seen, []Pointer{a, a, a, b, b, b}) || a == b || p.memory[a] == nil {
		t.Errorf("scratch memory was at %v", seen)
	}
	if used, kept := d.Usage(); used != p.used() || kept != 0 {
		t.Errorf("%d bytes are used and %d kept, want %d and 0", used, kept, p.used())
	}
	// Where there is no room for that, it grows as far as needed.
	for _, bytes := range []int{400 << 10, 450 << 10} { // and 800 KiB are not left
		if err := d.Scratch(bytes, func(Pointer) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if err := d.Scratch(700<<10, nil); err == nil {
		t.Error("there was room for more than there is")
	}
	failed := errors.New("failed")
	if err := d.Scratch(1, func(Pointer) error { return failed }); err != failed {
		t.Errorf("what failed returned %v", err)
	}
	full := new(MemoryError)
	if err := d.Scratch(2<<20, nil); !errors.As(err, &full) || full.Needed != 2<<20 {
		t.Errorf("a device that is too small returned %v", err)
	}
	if err := CPU().Scratch(1, nil); err != ErrHost {
		t.Errorf("the CPU returned %v", err)
	}
}

// One goroutine at a time has the workspace, replays included.
func TestScratchIsOnes(t *testing.T) {
	d, _ := newDevice(t, 1<<20)
	r, err := d.Capture(func() error { return nil })
	must(t, err)
	inside := 0
	var all sync.WaitGroup
	for range 4 {
		all.Add(2)
		go func() {
			defer all.Done()
			for range 100 {
				if err := d.Scratch(8, func(at Pointer) error {
					inside++ // two at once would race, and miscount
					return d.Zero(at, 8)
				}); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer all.Done()
			for range 100 {
				if err := r.Run(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if inside != 400 {
		t.Errorf("%d calls were counted, want 400", inside)
	}
}
