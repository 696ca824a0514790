package device

import (
	"errors"
	"fmt"
)

// ErrNoConvolution is the error of Convolve where the device's libraries do not
// compute a convolution: none is there, or none knows this one.
var ErrNoConvolution = errors.New("device: no library computes the convolution")

// A ConvolutionPart is one of the three arrays of a convolution. Two of them, or
// their gradients, give that of the third.
type ConvolutionPart int

// The parts of a convolution.
const (
	ConvolutionImages ConvolutionPart = iota
	ConvolutionWeights
	ConvolutionResult
)

// A Convolution is one of float32 images [N, H, W, C] with weights [K, KH, KW, C]:
// a result [N, OH, OW, K] with OH = ⌊(H+2·Pad−KH)/Stride⌋+1 and OW in the same way,
// where rows and columns of zeros are thought around the images, Pad on each side. It
// is a correlation: the weights are not turned round.
type Convolution struct {
	// Part says what is computed: the result; or, from the result's gradient in
	// its place, the gradient of the images or of the weights.
	Part        ConvolutionPart
	N, H, W, C  int
	K, KH, KW   int
	OH, OW      int
	Stride, Pad int
	// Images, Weights and Result are the arrays.
	Images, Weights, Result Pointer
}

// Convolve computes a part of a convolution, in the same way whenever it is asked
// for the same one. Device.TF32 governs it as it does products. An error is
// ErrNoConvolution where no library can.
func (d *Device) Convolve(c Convolution) error {
	if d.OnHost() {
		return ErrHost
	}
	defer d.tell() // the first convolution finds out which library computes them
	defer d.holdScratch()()
	err := d.retried(0, func() error { return d.backend.Convolve(&c, d.TF32, d.scratchOf) })
	if errors.Is(err, ErrNoConvolution) {
		return ErrNoConvolution
	}
	return err
}

// Scratch calls f with memory of so many bytes for what an operation needs while it
// is computed. All share it: while f runs, no other goroutine gets it. It stays where
// it is as long as it is large enough, so that a capture can contain what f asks for.
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

// holdScratch keeps other goroutines from the scratch memory until the function that it
// returns is called. A capture holds it already.
func (d *Device) holdScratch() (release func()) {
	if d.recording() {
		return func() {}
	}
	d.scratch.Lock()
	return d.scratch.Unlock
}

// scratchOf returns scratch memory of so many bytes. What is outgrown is kept, since
// captures may refer to it; it is half of what follows at most.
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
	full := new(MemoryError)
	if least := classOf(bytes); least < size && errors.As(err, &full) {
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

// retried calls f while nothing else is asked of the device, and once more if there
// was too little memory: what is no longer referred to may be enough, and what the
// pool keeps for other sizes. It allocates so many bytes.
func (d *Device) retried(bytes int, f func() error) error {
	err := d.do(f)
	if err == nil {
		return nil
	}
	full := new(MemoryError)
	if !errors.As(err, &full) {
		return err
	}
	collect()
	err = d.do(func() error {
		if err := d.backend.Synchronize(); err != nil {
			return err
		}
		if err := d.pool.empty(d.backend.Free); err != nil {
			return err
		}
		return f()
	})
	if errors.As(err, &full) {
		if bytes > 0 {
			full.Needed = int64(bytes)
		}
		return full
	}
	return err
}

// String describes a convolution for an error.
func (c *Convolution) String() string {
	return fmt.Sprintf("[%d,%d,%d,%d] with [%d,%d,%d,%d], stride %d and padding %d", c.N, c.H, c.W, c.C, c.K, c.KH, c.KW, c.C, c.Stride, c.Pad)
}
