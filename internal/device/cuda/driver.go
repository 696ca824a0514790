//go:build cu

package cuda

/*
#cgo linux LDFLAGS: -ldl
#include "extra.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"cne/internal/device"
)

func init() { device.CUDA = driver{} }

// driver implements device.Driver for NVIDIA's GPUs.
type driver struct{}

func (driver) Count() (int, error) {
	if why := C.extra_missing(); why != nil {
		return 0, fmt.Errorf("there is no NVIDIA driver (%s); install it, or start the container with its GPUs", C.GoString(why))
	}
	if state := C.extra_state(); state == noDevice {
		return 0, errNoGPU
	} else if state != 0 {
		return 0, fmt.Errorf("NVIDIA's driver does not start (error %d of cuInit); see whether nvidia-smi works", int(state))
	}
	if v := cu.Version(); v < oldest {
		return 0, fmt.Errorf("NVIDIA's driver is too old: it is for CUDA %d.%d; take one for CUDA 11.8 or newer", v/1000, v%1000/10)
	}
	if name := C.extra_open(); name != nil {
		return 0, fmt.Errorf("NVIDIA's driver has no %s; take one for CUDA 11.8 or newer", C.GoString(name))
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, fmt.Errorf("NVIDIA's driver does not count its GPUs: %w", err)
	}
	if n == 0 {
		return 0, errNoGPU
	}
	return n, nil
}

// errNoGPU: the driver has no GPUs.
var errNoGPU = errors.New("NVIDIA's driver sees no GPU; see whether nvidia-smi lists one, and whether CUDA_VISIBLE_DEVICES hides it")

const (
	// noDevice is CUDA_ERROR_NO_DEVICE.
	noDevice = 100
	// oldest is the first version that knows PTX 7.8, which the kernels are in.
	oldest = 11080
)

func (driver) Open(number int) (device.Backend, error) {
	b, err := open(number)
	if err != nil {
		return nil, fmt.Errorf("the GPU cannot be opened: %w", err)
	}
	return b, nil
}
