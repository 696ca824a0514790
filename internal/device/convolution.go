package device

import (
	"cmp"
	"errors"
	"fmt"

	"cne/internal/selection"
)

// ErrNoConvolution is the error of Convolve where no library of the device computes the
// convolution: none is installed, or none supports it.
var ErrNoConvolution = errors.New("device: no library computes the convolution")

// A ConvolutionPart is one of the three arrays of a convolution. Two of them, or their
// gradients, determine the third or its gradient.
type ConvolutionPart int

// The parts of a convolution.
const (
	ConvolutionImages ConvolutionPart = iota
	ConvolutionWeights
	ConvolutionResult
)

// A Convolution of images [N, H, W, C] with weights [K, KH, KW, C] has a result
// [N, OH, OW, K] with OH = ⌊(H+2·Pad−KH)/Stride⌋+1, and OW likewise; the images are
// padded with Pad rows and columns of zeros on each side. It is a cross-correlation:
// the weights are not flipped.
type Convolution struct {
	// Part says which array is computed: the result, or the gradient of the images or of
	// the weights. For a gradient, Result is the result's gradient.
	Part        ConvolutionPart
	N, H, W, C  int
	K, KH, KW   int
	OH, OW      int
	Stride, Pad int
	// Images, Weights and Result are the addresses of the arrays, of float32 numbers.
	Images, Weights, Result Pointer
	// BFloat16 says that all three are of bfloat16, the upper halves of float32 numbers.
	// Products are exact. Sums are float32, and rounded when complete.
	BFloat16 bool
}

// Convolve computes a part of a convolution, always in the same way for the same
// convolution. Device.TF32 applies as to products of float32. The error is
// ErrNoConvolution where no library supports it.
func (d *Device) Convolve(c Convolution) error {
	if d.OnHost() {
		return ErrHost
	}
	defer d.flushNotes() // the first convolution finds out which library computes them
	defer d.holdScratch()()
	err := d.retried(0, func() error {
		err := d.backend.Convolve(&c, d.TF32, d.scratchOf)
		if err == nil {
			d.count()
		}
		return err
	})
	if errors.Is(err, ErrNoConvolution) {
		return ErrNoConvolution
	}
	return err
}

// Scratch calls f with a workspace of the given size. All operations share it: no other
// goroutine gets it while f runs. It only moves to grow, so a capture may refer to it.
func (d *Device) Scratch(bytes int, f func(p Pointer) error) error {
	if d.OnHost() {
		return ErrHost
	}
	defer d.holdScratch()()
	var p Pointer
	err := d.retried(bytes, func() (err error) {
		p, err = d.scratchOf(bytes)
		return err
	})
	if err != nil {
		return err
	}
	return f(p)
}

// holdScratch locks the workspace until the function that it returns is called. A
// capture has locked it already.
func (d *Device) holdScratch() (release func()) {
	if d.recording() {
		return func() {}
	}
	d.scratch.Lock()
	return d.scratch.Unlock
}

// scratchOf returns a workspace of the given size. A workspace that is too small is kept,
// since captures may refer to it; its successor is at least twice as large if memory
// suffices.
func (d *Device) scratchOf(bytes int) (Pointer, error) {
	s := &d.scratch
	if n := len(s.memory); n > 0 && bytes <= s.bytes {
		return s.memory[n-1], nil
	}
	size := classOf(max(bytes, 2*s.bytes))
	if d.Unpooled {
		size = int64(max(bytes, 4))
	}
	p, err := d.backend.Alloc(size)
	shortage := new(MemoryError)
	if least := classOf(bytes); least < size && errors.As(err, &shortage) {
		size = least // if there is no room to grow
		p, err = d.backend.Alloc(size)
	}
	if err != nil {
		return 0, err
	}
	s.memory, s.bytes = append(s.memory, p), int(size)
	d.pool.allocated += size
	d.pool.used += size
	return p, nil
}

// retried calls f with the device locked. If memory does not suffice, it frees
// unreferenced memory and the pool's memory of other sizes, and calls f once more. bytes
// is the size that f allocates.
func (d *Device) retried(bytes int, f func() error) error {
	err := d.do(f)
	if _, ok := errors.AsType[*MemoryError](err); !ok {
		return err
	}
	collect()
	err = d.do(func() error {
		if err := cmp.Or(d.backend.Synchronize(), d.pool.empty(d.backend.Free)); err != nil {
			return err
		}
		return f()
	})
	if shortage, ok := errors.AsType[*MemoryError](err); ok {
		if bytes > 0 {
			shortage.Needed = int64(bytes)
		}
		return shortage
	}
	return err
}

// String describes a convolution for an error.
func (c *Convolution) String() string {
	in := selection.If(c.BFloat16, " in bfloat16", "")
	return fmt.Sprintf("[%d,%d,%d,%d] with [%d,%d,%d,%d], stride %d and padding %d%s", c.N, c.H, c.W, c.C, c.K, c.KH, c.KW, c.C,
		c.Stride, c.Pad, in)
}
