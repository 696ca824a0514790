//go:build cu

package cuda

/*
#include <stdlib.h>
#include "dnn.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"gorgonia.org/cu"

	"cne/internal/device"
	"cne/internal/kind"
)

// workspaceLimit is how much memory cuDNN may use for one convolution, in bytes.
const workspaceLimit = 1 << 30

// cuDNN computes convolutions where it is installed. The first convolution opens it, so
// that runs without convolutions neither wait for it nor depend on it.
type cuDNN struct {
	library *C.dnn // nil if there is none
	plans   map[planKey]*plan
	// tried is set after the search, which happens once, so that a run computes all its
	// convolutions in the same way. failed is then the error of the library that
	// CNE_LIBCUDNN names.
	tried  bool
	failed error
	// refused is set once the GPU had no memory for it.
	refused bool
}

// A planKey is what the plan of a convolution depends on.
type planKey struct {
	convolution device.Convolution // without the arrays
	tf32        bool
}

// A plan is how a convolution is computed: by the first of cuDNN's algorithms that has
// not failed. told is set once it was reported that none is left.
type plan struct {
	of   C.dnn_plan
	way  int
	told bool
}

// dnnNames are the libraries to look for, in order.
var dnnNames = []string{"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}

// errDNNOutOfMemory: the GPU has no memory for cuDNN.
var errDNNOutOfMemory = errors.New("it finds no memory on the GPU")

// openDNN opens cuDNN on its first call. It fails only for a library that CNE_LIBCUDNN
// names, or if the device does; otherwise, without a usable cuDNN, convolutions are
// left to kernels and cuBLAS.
func (b *backend) openDNN() error {
	n := &b.dnn
	if n.tried {
		return n.failed
	}
	if b.capturing {
		return errors.New("a convolution must have run before one is captured: to open cuDNN needs what a capture forbids")
	}
	const instead = "convolutions are products with patches of the images instead, which takes longer"
	explicit, prefixes := os.Getenv("CNE_LIBCUDNN"), pythons()
	files := []string{explicit}
	switch explicit {
	case "":
		files = candidates(dnnNames, prefixes)
	case "none":
		n.tried = true
		b.note("convolutions are products with patches of the images, as CNE_LIBCUDNN=none asks for")
		return nil
	}
	started, failed, err := start(files, b.createDNN, errDNNOutOfMemory, device.ErrLost)
	switch {
	case errors.Is(err, device.ErrLost):
		return err
	case err != nil && (explicit != "" || !n.refused):
		// The first time, the device frees memory that nothing uses and tries again.
		n.refused = true
		return b.outOfMemory(&device.MemoryError{For: "cuDNN"})
	case err != nil:
		b.note("cuDNN finds no memory on the GPU; " + instead)
	case n.library != nil:
		b.about.Software += ", " + n.String()
		sentence := "convolutions are computed by " + n.String()
		broken := failed.found()
		if len(broken) > 0 || started != explicit && filepath.IsAbs(started) {
			sentence += " of " + started
		}
		if len(broken) > 0 {
			sentence += fmt.Sprintf(", since cuDNN does not start otherwise (%v)", broken)
		}
		b.note(sentence)
	case explicit != "":
		n.failed = kind.Errorf(device.ErrUnavailable,
			"CNE_LIBCUDNN names a cuDNN that cannot be used (%v); set it to the libcudnn.so of cuDNN 8 or 9, or to none to do without", failed)
	case len(failed.found()) == 0:
		b.note(fmt.Sprintf("cuDNN was not found (%s); %s; pip install nvidia-cudnn-cu%d brings it", lookedFor(dnnNames, prefixes),
			instead, blasOf(cu.Version())))
	default:
		b.note(fmt.Sprintf("cuDNN does not start (%v); %s", failed.found(), instead))
	}
	n.tried = true
	return n.failed
}

// createDNN opens a library and creates its handle for the backend's stream.
func (b *backend) createDNN(name string) error {
	var why [whySize]C.char
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	library := C.dnn_open(c, &why[0], whySize)
	if library == nil {
		return notOpened(name, C.GoString(&why[0]))
	}
	s := C.dnn_create(library, b.streamPointer())
	if s == 0 {
		b.dnn.library, b.dnn.plans = library, map[planKey]*plan{}
		return nil
	}
	// The library stays open, as a cuBLAS that does not start does.
	C.dnn_destroy(library) // its status adds nothing to this one
	if s == dnnHasNoMemory8 || s == dnnHasNoMemory9 {
		return errDNNOutOfMemory
	}
	if err := b.failure(b.stream.Synchronize()); errors.Is(err, device.ErrLost) {
		return err
	}
	return notStarted(int(s), "cudnnCreate")
}

const (
	// dnnHasNoMemory8 is CUDNN_STATUS_ALLOC_FAILED of version 8, and dnnHasNoMemory9
	// CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED of version 9. Neither
	// version has the other's.
	dnnHasNoMemory8 = 2
	dnnHasNoMemory9 = 4004
)

// String returns the version of an open cuDNN, for people.
func (n *cuDNN) String() string {
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

// planOf returns the plan of a convolution. It depends only on the convolution and the GPU:
// nothing is timed, so that every run computes alike.
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
		oh: C.int(c.OH), ow: C.int(c.OW), stride: C.int(c.Stride), pad: C.int(c.Pad), part: C.int(c.Part), // numbered alike
	}
	numbers := C.int(C.dnn_float32)
	switch {
	case c.BFloat16:
		numbers = C.dnn_bfloat16
	case tf32:
		numbers = C.dnn_tf32
	}
	if C.dnn_make(n.library, &p.of, &shape, numbers) != 0 {
		p.of.count = 0 // cuDNN does not support such convolutions
	}
	return p
}

// Convolve computes a convolution by cuDNN.
func (b *backend) Convolve(c *device.Convolution, tf32 bool, scratch func(bytes int) (device.Pointer, error)) error {
	defer b.enter()()
	if err := b.openDNN(); err != nil {
		return err
	}
	if b.dnn.library == nil {
		return device.ErrNoConvolution
	}
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
		if C.dnn_run(b.dnn.library, &p.of, C.int(p.way), C.uintptr_t(c.Images), C.uintptr_t(c.Weights), C.uintptr_t(c.Result),
			C.uintptr_t(workspace)) == 0 {
			return nil
		}
		if err := b.failure(b.stream.Synchronize()); err != nil {
			return fmt.Errorf("convolution of %v: %w", c, err)
		}
	}
	if !p.told {
		p.told = true
		b.note(fmt.Sprintf("cuDNN has no way for %s of a convolution of %v; products with patches compute it", partName[c.Part], c))
	}
	return device.ErrNoConvolution
}

// partName is what a note calls a part of a convolution.
var partName = map[device.ConvolutionPart]string{
	device.ConvolutionResult: "the result", device.ConvolutionImages: "the images' gradient",
	device.ConvolutionWeights: "the weights' gradient",
}
