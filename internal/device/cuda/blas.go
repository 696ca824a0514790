//go:build cu

package cuda

/*
#include <stdlib.h>
#include "extra.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"cne/internal/device"
)

// blasHasNoMemory is CUBLAS_STATUS_ALLOC_FAILED.
const blasHasNoMemory = 3

// blas is the process's cuBLAS: the library that starts first is used in all contexts.
// The mutex covers the search for it.
var blas struct {
	sync.Mutex
	name string
}

// The oldest and the newest version of CUDA whose cuBLAS has all the functions used
// here, with the same signatures.
const oldestBLAS, newestBLAS = 11, 13

// blasOf returns the version of CUDA whose cuBLAS suits a driver: its own, or the
// newest known.
func blasOf(driver int) int { return min(max(driver/1000, oldestBLAS), newestBLAS) }

// blasNames are the libraries to try with a driver for a version of CUDA (1000·major +
// 10·minor), in order: its own version's, then older ones, which every driver supports.
// Newer ones, which start only with NVIDIA's compatibility packages, come last: their
// error says more than "not found".
func blasNames(driver int) []string {
	var names []string
	own := blasOf(driver)
	for v := own; v >= oldestBLAS; v-- {
		names = append(names, "libcublas.so."+strconv.Itoa(v))
	}
	for v := own + 1; v <= newestBLAS; v++ {
		names = append(names, "libcublas.so."+strconv.Itoa(v))
	}
	return append(names, "libcublas.so")
}

// blasPackage are Python's packages of cuBLAS by the version of CUDA.
var blasPackage = map[int]string{11: "nvidia-cublas-cu11", 12: "nvidia-cublas-cu12", 13: "nvidia-cublas"}

// createBLAS creates the backend's cuBLAS handle.
func (b *backend) createBLAS(driver int) error {
	blas.Lock()
	defer blas.Unlock()
	if blas.name != "" {
		err := b.blasHandle()
		if err == nil || errors.Is(err, errOutOfMemory) || errors.Is(err, device.ErrLost) {
			return err
		}
		return fmt.Errorf("%s, which this process computes with already, does not start here (%w); name another cuBLAS in CNE_LIBCUBLAS", blas.name, err)
	}
	names, explicit, prefixes := blasNames(driver), os.Getenv("CNE_LIBCUBLAS"), pythons()
	files := candidates(names, prefixes)
	if explicit != "" {
		files = []string{explicit}
	}
	started, failed, err := start(files, func(name string) error {
		if err := openBLAS(name); err != nil {
			return err
		}
		// A library that does not start stays open: it may have started threads or
		// registered exit handlers.
		return b.blasHandle()
	}, errOutOfMemory, device.ErrLost)
	switch {
	case err != nil:
		return err
	case started != "":
		blas.name = started
		sentence, broken := "products of matrices are computed by "+started, failed.found()
		if len(broken) > 0 {
			sentence += fmt.Sprintf(", since cuBLAS does not start otherwise (%v)", broken)
		}
		if len(broken) > 0 || started != explicit && filepath.IsAbs(started) {
			b.note(sentence)
		}
		return nil
	case explicit != "":
		return fmt.Errorf("CNE_LIBCUBLAS names a cuBLAS that cannot be used (%v); set it to the libcublas.so of CUDA %d or older, or to nothing", failed, blasOf(driver))
	case len(failed.found()) == 0:
		return fmt.Errorf("cuBLAS was not found (%s); install it for CUDA %d (pip install %s), add its folder to LD_LIBRARY_PATH, or name the file in CNE_LIBCUBLAS",
			lookedFor(names, prefixes), blasOf(driver), blasPackage[blasOf(driver)])
	}
	return fmt.Errorf("no cuBLAS starts (%v); install cuBLAS for CUDA %d, which the driver is made for, or name another in CNE_LIBCUBLAS", failed, blasOf(driver))
}

// openBLAS looks cuBLAS's functions up in a library.
func openBLAS(name string) error {
	var why [whySize]C.char
	library := C.CString(name)
	defer C.free(unsafe.Pointer(library))
	if C.blas_open(library, &why[0], whySize) == 0 {
		return notOpened(name, C.GoString(&why[0]))
	}
	return nil
}

// blasHandle creates a handle with the cuBLAS that is open.
func (b *backend) blasHandle() error {
	s := C.blas_create(&b.blas)
	if s == 0 {
		return nil
	}
	b.blas = nil // a failed call leaves no valid handle there
	if s == blasHasNoMemory {
		return errOutOfMemory
	}
	// The status does not always say why: the device may have failed, or may lack
	// memory.
	if err := b.failure(b.stream.Synchronize()); errors.Is(err, device.ErrLost) {
		return err
	}
	if free, _, err := cu.MemInfo(); err == nil && free < workspaceBytes {
		return errOutOfMemory
	}
	return notStarted(int(s), "cublasCreate")
}

// blasError returns the error of a status of cuBLAS; nil for success.
func blasError(what string, s C.int) error {
	if s == 0 {
		return nil
	}
	return fmt.Errorf("cuBLAS's status %d of %s", int(s), what)
}
