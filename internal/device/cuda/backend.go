//go:build cu

package cuda

/*
#include "extra.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"cne/internal/device"
	"cne/internal/device/kernels"
	"cne/internal/kind"
	"cne/internal/selection"
)

// workspaceBytes is the size of cuBLAS's workspace, as NVIDIA recommends for Hopper. It
// is set once, so that a capture allocates nothing.
const workspaceBytes = 32 << 20

// A backend is one GPU. Each method makes the GPU's context current on its thread,
// which takes some 25 ns; gorgonia.org/cu's own Ctx would pass each call to another
// thread, which takes 35 µs.
type backend struct {
	gpu       cu.Device
	context   cu.CUContext
	stream    cu.Stream
	functions map[string]*function
	modules   map[string]cu.Module // by file
	blas      unsafe.Pointer
	workspace cu.DevicePtr
	dnn       cuDNN
	allocated map[cu.DevicePtr]bool
	math      C.int // cuBLAS's current math mode
	capturing bool
	about     device.Properties
	notes     []string

	// params point to the arguments of a launch.
	args   [device.MaxArgs]uint64
	params [device.MaxArgs]unsafe.Pointer
}

// A function is a kernel as the driver knows it.
type function struct {
	cu.Function
	// shared is the dynamic shared memory that it may have, in bytes. Without asking,
	// that is 48 KiB less its static arrays.
	shared int
	params int
}

// Attributes that gorgonia.org/cu does not name.
const (
	maxSharedPerBlockOptIn cu.DeviceAttribute = 97  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
	clusterLaunch          cu.DeviceAttribute = 120 // CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
)

// kept are the GPUs whose primary context the process keeps until it ends or the GPU fails,
// once a backend of theirs has started. The last release of a context destroys it: to open
// the GPU again would take up to half a second, and cuBLAS and cuDNN would meet a second
// context.
var kept sync.Map

func open(number int) (b *backend, err error) {
	b = &backend{functions: map[string]*function{}, modules: map[string]cu.Module{}, allocated: map[cu.DevicePtr]bool{}}
	for i := range b.params {
		b.params[i] = unsafe.Pointer(&b.args[i])
	}
	defer kind.Catch(&err)
	b.gpu, err = cu.GetDevice(number)
	b.check(err)
	b.describe()
	if b.context, err = b.gpu.RetainPrimaryCtx(); err == cu.OutOfMemory {
		return nil, errOutOfMemory
	}
	b.check(err)
	if err := b.start(); err != nil {
		_ = b.Close() // its error adds nothing to this one
		return nil, err
	}
	if _, before := kept.LoadOrStore(b.gpu, true); !before {
		_, _ = b.gpu.RetainPrimaryCtx() // counts only, since the backend has it
	}
	return b, nil
}

// check fails as kind.Check does for an error of the driver.
func (b *backend) check(err error) { kind.Check(b.failure(err)) }

// start creates the stream and cuBLAS's handle in the backend's context.
func (b *backend) start() (err error) {
	defer b.enter()()
	defer kind.Catch(&err)
	b.stream, err = cu.MakeStream(cu.NonBlocking)
	b.check(err)
	driver := cu.Version()
	kind.Check(b.createBLAS(driver))
	if b.workspace, err = cu.MemAlloc(workspaceBytes); err == cu.OutOfMemory {
		return errOutOfMemory
	}
	b.check(err)
	var version C.int
	kind.Check(blasError("cublasSetWorkspace", C.blas_prepare(b.blas, b.streamPointer(), C.uintptr_t(b.workspace), workspaceBytes)))
	kind.Check(blasError("cublasGetVersion", C.blas_version(b.blas, &version)))
	b.about.Software = fmt.Sprintf("CUDA %d.%d, cuBLAS %d.%d", driver/1000, driver%1000/10, version/10000, version/100%100)
	if sentence := checkCache(); sentence != "" {
		b.note(sentence)
	}
	return nil
}

// describe sets the properties of the GPU. It fails for one that is too old.
func (b *backend) describe() {
	p := &b.about
	var err error
	p.Name, err = b.gpu.Name()
	b.check(err)
	var clusters int
	for _, a := range []struct {
		to *int
		of cu.DeviceAttribute
	}{
		{&clusters, clusterLaunch},
		{&p.Multiprocessors, cu.MultiprocessorCount},
		{&p.SharedPerBlock, maxSharedPerBlockOptIn},
		{&p.Major, cu.ComputeCapabilityMajor}, {&p.Minor, cu.ComputeCapabilityMinor},
	} {
		*a.to, err = b.gpu.Attribute(a.of)
		b.check(err)
	}
	p.Clusters = clusters != 0
	if p.Major < 8 {
		kind.Check(fmt.Errorf("%s has compute capability %d.%d; the kernels need 8.0 or more", p.Name, p.Major, p.Minor))
	}
}

func (b *backend) streamPointer() unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&b.stream))
}

// enter makes the context current until the function that it returns is called.
func (b *backend) enter() (leave func()) {
	runtime.LockOSThread()
	// A context that is gone shows in the call that follows.
	_ = cu.SetCurrentContext(b.context)
	return runtime.UnlockOSThread
}

// Errors of the driver that gorgonia.org/cu does not name.
const (
	contained           = cu.Success + 226 // CUDA_ERROR_CONTAINED
	tensorMemoryLeak    = cu.Success + 721 // CUDA_ERROR_TENSOR_MEMORY_LEAK
	mpsClientTerminated = cu.Success + 810 // CUDA_ERROR_MPS_CLIENT_TERMINATED
	externalDevice      = cu.Success + 911 // CUDA_ERROR_EXTERNAL_DEVICE
)

// lost are the driver's errors after which a context is unusable.
var lost = []error{
	cu.EccUncorrectable, cu.NvlinkUncorrectable, cu.IllegalAddress, cu.LaunchTimeout, cu.LaunchFailed, cu.IllegalInstruction,
	cu.Unknown, cu.Deinitialized, cu.InvalidContext, cu.ContextIsDestroyed, cu.HardwareStackError, cu.MisalignedAddress,
	cu.InvalidAddressSpace, cu.InvalidPc, cu.Assert, contained, tensorMemoryLeak, mpsClientTerminated, externalDevice,
}

// failure translates an error of the driver into one of package device.
func (b *backend) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case err == cu.OutOfMemory:
		return b.outOfMemory(&device.MemoryError{For: "the driver"})
	case slices.Contains(lost, err):
		return fmt.Errorf("%w (CUDA's error %v)", device.ErrLost, err)
	}
	return fmt.Errorf("CUDA's error %v", err)
}

// outOfMemory adds the free and the total memory to an error.
func (b *backend) outOfMemory(e *device.MemoryError) error {
	var err error
	if e.Free, e.Total, err = cu.MemInfo(); err != nil {
		return b.failure(err)
	}
	return e
}

// status translates the status of a driver function that gorgonia.org/cu lacks.
func (b *backend) status(s C.int, what string) error {
	if s == 0 {
		return nil
	}
	err := b.failure(like(cu.Success, int(s)))
	if shortage := new(device.MemoryError); errors.Is(err, device.ErrLost) || errors.As(err, &shortage) {
		return err
	}
	return fmt.Errorf("%w of %s", err, what)
}

// like converts a number to cu's type of errors, which is not exported.
func like[T ~int](_ T, number int) T { return T(number) }

func (b *backend) Properties() device.Properties { return b.about }

// note adds a sentence to Notes.
func (b *backend) note(sentence string) { b.notes = append(b.notes, sentence) }

func (b *backend) Notes() []string {
	notes := b.notes
	b.notes = nil
	return notes
}

func (b *backend) Alloc(bytes int64) (device.Pointer, error) {
	defer b.enter()()
	p, err := cu.MemAlloc(bytes)
	if err == cu.OutOfMemory {
		return 0, b.outOfMemory(&device.MemoryError{Needed: bytes})
	} else if err != nil {
		return 0, b.failure(err)
	}
	b.allocated[p] = true
	return device.Pointer(p), nil
}

func (b *backend) Free(p device.Pointer) error {
	defer b.enter()()
	delete(b.allocated, cu.DevicePtr(p))
	return b.failure(cmp.Or(b.stream.Synchronize(), cu.MemFree(cu.DevicePtr(p))))
}

func (b *backend) MemInfo() (free, total int64, err error) {
	defer b.enter()()
	free, total, err = cu.MemInfo()
	return free, total, b.failure(err)
}

func (b *backend) Upload(dst device.Pointer, src unsafe.Pointer, bytes int) error {
	defer b.enter()()
	return b.failure(cmp.Or(cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, int64(bytes), b.stream), b.stream.Synchronize()))
}

func (b *backend) Download(dst unsafe.Pointer, src device.Pointer, bytes int) error {
	defer b.enter()()
	return b.failure(cmp.Or(cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), int64(bytes), b.stream), b.stream.Synchronize()))
}

func (b *backend) Copy(dst, src device.Pointer, bytes int) error {
	defer b.enter()()
	return b.failure(cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), b.stream))
}

func (b *backend) Fill(dst device.Pointer, word uint32, words int) error {
	defer b.enter()()
	return b.failure(cu.MemsetD32Async(cu.DevicePtr(dst), uint(word), int64(words), b.stream))
}

func (b *backend) Synchronize() error {
	defer b.enter()()
	return b.failure(b.stream.Synchronize())
}

// kernel returns a kernel by name.
func (b *backend) kernel(name string) (*function, error) {
	if f := b.functions[name]; f != nil {
		return f, nil
	}
	file, params, ok := kernels.Find(name)
	if !ok {
		return nil, errors.New("there is no such kernel")
	}
	m, ok := b.modules[file]
	if !ok {
		var err error
		if m, err = cu.LoadData(kernels.PTX(file)); err != nil {
			return nil, fmt.Errorf("the driver does not compile the kernels of %s: %w", file, b.failure(err))
		}
		b.modules[file] = m
	}
	f, err := m.Function(name)
	if err != nil {
		return nil, b.failure(err)
	}
	b.functions[name] = &function{Function: f, params: params}
	return b.functions[name], nil
}

func (b *backend) Launch(kernel string, l device.Launch, args *[device.MaxArgs]uint64, count int) error {
	defer b.enter()()
	f, err := b.kernel(kernel)
	if err != nil {
		return err
	}
	if count != f.params {
		return fmt.Errorf("got %d arguments, want %d", count, f.params)
	}
	// The 48 KiB that a kernel has without asking include its static shared memory.
	if l.Shared > f.shared {
		if err := b.status(C.extra_allow_shared(*(*unsafe.Pointer)(unsafe.Pointer(&f.Function)), C.int(l.Shared)),
			"cuFuncSetAttribute"); err != nil {
			return fmt.Errorf("it cannot have %d bytes of shared memory: %w", l.Shared, err)
		}
		f.shared = l.Shared
	}
	b.args = *args
	return b.failure(f.Launch(l.Grid, 1, 1, l.Block, 1, 1, l.Shared, b.stream, b.params[:count]))
}

// Multiply computes the product's transpose, since cuBLAS is column-major: a row-major
// matrix is its transpose there.
func (b *backend) Multiply(p *device.Product, tf32 bool) error {
	defer b.enter()()
	mode := C.int(0)
	switch {
	case p.BFloat16:
		mode = 16 // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: parts of sums are float32, too
	case tf32:
		mode = 3 // CUBLAS_TF32_TENSOR_OP_MATH
	}
	if mode != b.math {
		if err := blasError("cublasSetMathMode", C.blas_math(b.blas, mode)); err != nil {
			return err
		}
		b.math = mode
	}
	var s C.int
	function := "cublasSgemm"
	if p.BFloat16 {
		function = "cublasGemmEx"
		s = C.blas_bfloat16(b.blas, toInt(p.TransB), toInt(p.TransA), C.int(p.N), C.int(p.M), C.int(p.K),
			C.float(p.Alpha), C.uintptr_t(p.B), C.int(p.LDB), C.uintptr_t(p.A), C.int(p.LDA),
			C.float(p.Beta), C.uintptr_t(p.C), C.int(p.LDC), toInt(p.RoundC))
	} else {
		s = C.blas_sgemm(b.blas, toInt(p.TransB), toInt(p.TransA), C.int(p.N), C.int(p.M), C.int(p.K),
			C.float(p.Alpha), C.uintptr_t(p.B), C.int(p.LDB), C.uintptr_t(p.A), C.int(p.LDA),
			C.float(p.Beta), C.uintptr_t(p.C), C.int(p.LDC))
	}
	if s == 0 {
		return nil
	}
	// cuBLAS does not say whether the device has failed.
	if err := b.failure(b.stream.Synchronize()); errors.Is(err, device.ErrLost) {
		return err
	}
	return blasError(function, s)
}

func toInt(yes bool) C.int { return C.int(selection.If(yes, 1, 0)) }

func (b *backend) Capture() error {
	defer b.enter()()
	err := b.status(C.extra_begin_capture(b.streamPointer()), "cuStreamBeginCapture")
	b.capturing = err == nil
	return err
}

func (b *backend) Captured() (device.Replay, error) {
	defer b.enter()()
	b.capturing = false
	r := &replay{backend: b}
	return r, b.status(C.extra_end_capture(b.streamPointer(), &r.graph), "cuStreamEndCapture")
}

// A replay is a CUDA graph.
type replay struct {
	backend *backend
	graph   unsafe.Pointer
}

func (r *replay) Run() error {
	defer r.backend.enter()()
	return r.backend.status(C.extra_launch_graph(r.graph, r.backend.streamPointer()), "cuGraphLaunch")
}

func (r *replay) Close() error {
	defer r.backend.enter()()
	return r.backend.status(C.extra_destroy_exec(r.graph), "cuGraphExecDestroy")
}

// Close releases everything, also after a start that failed.
func (b *backend) Close() error {
	defer b.enter()()
	var failed error
	keep := func(err error) { failed = cmp.Or(failed, err) } // later errors may follow from it
	if b.stream != (cu.Stream{}) {
		keep(b.failure(b.stream.Synchronize()))
	}
	if b.blas != nil {
		keep(blasError("cublasDestroy", C.blas_destroy(b.blas)))
	}
	keep(b.dnn.close())
	for _, m := range b.modules {
		keep(b.failure(m.Unload()))
	}
	// Another device may share the context, which would keep the memory.
	for p := range b.allocated {
		keep(b.failure(cu.MemFree(p)))
	}
	if b.workspace != 0 {
		keep(b.failure(cu.MemFree(b.workspace)))
	}
	if b.stream != (cu.Stream{}) {
		keep(b.failure(b.stream.Destroy()))
	}
	if errors.Is(failed, device.ErrLost) { // memory is freed only with the context
		if _, held := kept.LoadAndDelete(b.gpu); held {
			_ = b.gpu.ReleasePrimaryCtx() // the release below returns the same error
		}
	}
	keep(b.failure(b.gpu.ReleasePrimaryCtx()))
	return failed
}
