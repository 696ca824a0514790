//go:build cu

package cuda

/*
#include <stdlib.h>
#include "dnn.h"
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"cne/internal/device"
)

// workspaceLimit is how much memory cuDNN may use for one convolution, in bytes.
const workspaceLimit = 1 << 30

// cuDNN computes convolutions where it is installed.
type cuDNN struct {
	library *C.dnn // nil where it is not
	plans   map[planKey]*plan
}

// A planKey is what the plan of a convolution depends on.
type planKey struct {
	convolution device.Convolution // without the arrays
	tf32        bool
}

// A plan is how a convolution is computed: in the first of cuDNN's ways that has
// not failed.
type plan struct {
	of  C.dnn_plan
	way int
}

// open opens cuDNN for a stream. CNE_LIBCUDNN names the library; "none" does without.
func (n *cuDNN) open(stream unsafe.Pointer) error {
	name := os.Getenv("CNE_LIBCUDNN")
	if name == "none" {
		return nil
	}
	n.plans = map[planKey]*plan{}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	if n.library = C.dnn_open(c); n.library == nil {
		if name != "" {
			return fmt.Errorf("%s is no cuDNN of version 8 or 9; set CNE_LIBCUDNN to its libcudnn.so, or to none to do without", name)
		}
		return nil
	}
	if s := C.dnn_create(n.library, stream); s != 0 {
		err := fmt.Errorf("cuDNN does not start (status %d of cudnnCreate); see whether it belongs to this version of CUDA, or set CNE_LIBCUDNN to none to do without", int(s))
		_ = n.close()
		return err
	}
	return nil
}

// String returns the version for people.
func (n *cuDNN) String() string {
	if n.library == nil {
		return "no cuDNN"
	}
	v := int(C.dnn_version(n.library))
	if v < 10000 { // before version 9
		return fmt.Sprintf("cuDNN %d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("cuDNN %d.%d.%d", v/10000, v/100%100, v%100)
}

func (n *cuDNN) close() error {
	if n.library == nil {
		return nil
	}
	for _, p := range n.plans {
		C.dnn_free(n.library, &p.of)
	}
	s := C.dnn_destroy(n.library)
	n.library = nil
	if s != 0 {
		return fmt.Errorf("cuDNN's status %d of cudnnDestroy", int(s))
	}
	return nil
}

// planOf returns the plan of a convolution. Which ways there are depends on the
// convolution and the GPU alone: nothing is timed, so that the same one is computed
// in the same way in every run.
func (n *cuDNN) planOf(c *device.Convolution, tf32 bool) *plan {
	key := planKey{*c, tf32}
	key.convolution.Images, key.convolution.Weights, key.convolution.Result = 0, 0, 0
	p := n.plans[key]
	if p != nil {
		return p
	}
	p = new(plan)
	n.plans[key] = p
	shape := C.dnn_shape{
		n: C.int(c.N), h: C.int(c.H), w: C.int(c.W), c: C.int(c.C), k: C.int(c.K), kh: C.int(c.KH), kw: C.int(c.KW),
		oh: C.int(c.OH), ow: C.int(c.OW), stride: C.int(c.Stride), pad: C.int(c.Pad),
	}
	switch c.Part {
	case device.ConvolutionImages:
		shape.part = C.dnn_images
	case device.ConvolutionWeights:
		shape.part = C.dnn_weights
	default:
		shape.part = C.dnn_result
	}
	allowed := C.int(0)
	if tf32 {
		allowed = 1
	}
	if C.dnn_make(n.library, &p.of, &shape, allowed) != 0 {
		p.of.count = 0 // cuDNN does not know such convolutions
	}
	return p
}

// Convolve computes a convolution by cuDNN.
func (b *backend) Convolve(c *device.Convolution, tf32 bool, scratch func(bytes int) (device.Pointer, error)) error {
	if b.dnn.library == nil {
		return device.ErrNoConvolution
	}
	defer b.enter()()
	p := b.dnn.planOf(c, tf32)
	for ; p.way < int(p.of.count); p.way++ {
		bytes := int(p.of.ways[p.way].workspace)
		if bytes > workspaceLimit {
			continue
		}
		workspace, err := device.Pointer(0), error(nil)
		if bytes > 0 {
			if workspace, err = scratch(bytes); err != nil {
				return err
			}
		}
		if C.dnn_run(b.dnn.library, &p.of, C.int(p.way), C.uintptr_t(c.Images), C.uintptr_t(c.Weights), C.uintptr_t(c.Result), C.uintptr_t(workspace)) == 0 {
			return nil
		}
		if err := b.failure(b.stream.Synchronize(), 0); err != nil {
			return fmt.Errorf("convolution of %v: %w", c, err)
		}
	}
	return device.ErrNoConvolution
}
