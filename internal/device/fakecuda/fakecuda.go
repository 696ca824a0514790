//go:build cu

package fakecuda

/*
#cgo linux LDFLAGS: -ldl
#include <stddef.h>
#include <stdlib.h>

void *cneshim_symbol(const char *name);

static int set_memory(size_t bytes) {
  void (*f)(size_t) = (void (*)(size_t))cneshim_symbol("fakecuda_memory");
  if (f) f(bytes);
  return f != 0;
}
static int set_failure(long launches, int code) {
  void (*f)(long, int) = (void (*)(long, int))cneshim_symbol("fakecuda_fail");
  if (f) f(launches, code);
  return f != 0;
}
static int get_usage(size_t *bytes, size_t *count) {
  void (*f)(size_t *, size_t *) = (void (*)(size_t *, size_t *))cneshim_symbol("fakecuda_usage");
  if (f) f(bytes, count);
  return f != 0;
}
static int set_order(unsigned long order) {
  void (*f)(unsigned long) = (void (*)(unsigned long))cneshim_symbol("fakecuda_order");
  if (f) f(order);
  return f != 0;
}
static int set_registers(const char *kernel, unsigned registers) {
  void (*f)(const char *, unsigned) = (void (*)(const char *, unsigned))cneshim_symbol("fakecuda_registers");
  if (f) f(kernel, registers);
  return f != 0;
}
static int is_checked(void) {
  int (*f)(void) = (int (*)(void))cneshim_symbol("fakecuda_checked");
  return f && f();
}
static void get_transfers(long *up, long *down) {
  void (*f)(long *, long *) = (void (*)(long *, long *))cneshim_symbol("fakecuda_transfers");
  *up = *down = -1;
  if (f) f(up, down);
}
static long get_contexts(void) {
  long (*f)(void) = (long (*)(void))cneshim_symbol("fakecuda_contexts");
  return f ? f() : -1;
}
static long get_launches(void) {
  long (*f)(void) = (long (*)(void))cneshim_symbol("fakecuda_launches");
  return f ? f() : -1;
}
*/
import "C"

import (
	"os"
	"strconv"
	"testing"
	"unsafe"

	"cne/internal/device"
	_ "cne/internal/device/cuda" // the driver
)

// Open returns the first GPU, or the stand-in for it, with TF32 off and each allocation
// on its own, so that its bounds are checked. Without either the test is skipped, or
// fails if the environment variable CUDA_TESTS is "required". The device is closed
// after the test.
func Open(t testing.TB) *device.Device {
	t.Helper()
	d, err := device.Open("cuda")
	if err != nil {
		if os.Getenv("CUDA_TESTS") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	d.TF32, d.Unpooled = false, true
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// InUse reports whether the device is the stand-in. On a GPU, the functions below do
// nothing or skip the test.
func InUse() bool { return C.get_launches() >= 0 }

// TF32 runs a test with products and convolutions that may use TF32. With the stand-in
// it runs twice, with operands rounded to 10 stored bits of mantissa and truncated to them,
// since NVIDIA does not say which a GPU does; unit is the largest relative change of an
// operand.
// The test is skipped where the stand-in has no TF32.
func TF32(t *testing.T, d *device.Device, test func(t *testing.T, unit float64)) {
	t.Helper()
	if InUse() && !Checked() {
		t.Skip("this stand-in has no TF32; its checked build has")
	}
	defer func(before bool) { d.TF32 = before }(d.TF32)
	d.TF32 = true
	if !InUse() {
		test(t, 0x1p-10)
		return
	}
	for how, unit := range map[string]float64{"round": 0x1p-11, "cut": 0x1p-10} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("FAKECUDA_TF32", how)
			test(t, unit)
		})
	}
}

// Convolutions has devices compute convolutions with or without cuDNN until the end of
// the test. The stand-in has a cuDNN of its own; elsewhere it is the machine's. A test
// with cuDNN is skipped if CNE_LIBCUDNN is none, as for tools that should not look into
// cuDNN.
func Convolutions(t testing.TB, cuDNN bool) {
	t.Helper()
	const variable, none = "CNE_LIBCUDNN", "none"
	switch {
	case !cuDNN:
		t.Setenv(variable, none)
	case os.Getenv(variable) == none:
		t.Skip("CNE_LIBCUDNN=none asks for no cuDNN")
	case InUse():
		t.Setenv(variable, os.Getenv("CNE_LIBCUDA"))
	}
}

// Memory sets how many bytes of memory the stand-in has.
func Memory(t testing.TB, bytes int64) {
	t.Helper()
	if C.set_memory(C.size_t(bytes)) == 0 {
		t.Skip("a GPU's memory cannot be changed")
	}
	t.Cleanup(func() { C.set_memory(4 << 30) })
}

// Checked reports whether the stand-in is its checked build.
func Checked() bool { return C.is_checked() != 0 }

// A Failure is an error of CUDA.
type Failure int

// Failures that a device can have.
const (
	IllegalAddress   Failure = 700
	LaunchFailed     Failure = 719
	EccUncorrectable Failure = 214
)

// Fail lets launches more kernels run, including kernels of graphs. The next one fails,
// and so does all that follows until the end of the test. As on GPUs, the failure shows in
// the next call or, in the checked build, in the next that waits for the device.
func Fail(t testing.TB, launches int, with Failure) {
	t.Helper()
	if C.set_failure(C.long(launches), C.int(with)) == 0 {
		t.Skip("a GPU cannot be made to fail")
	}
	t.Cleanup(func() { C.set_failure(-1, 0) })
}

// Registers sets the number of registers of a kernel's thread until the end of the test:
// another driver's compiler may use another number.
func Registers(t testing.TB, kernel string, registers int) {
	t.Helper()
	set := func(kernel string) bool {
		name := C.CString(kernel)
		defer C.free(unsafe.Pointer(name))
		return C.set_registers(name, C.uint(registers)) != 0
	}
	if !set(kernel) {
		t.Skip("a GPU's compiler cannot be told how many registers a kernel has")
	}
	t.Cleanup(func() { set("") })
}

// Orders of the blocks of a grid and of the threads of a block. Any other number shuffles
// them, with that seed.
const (
	Forwards  = 0 // the threads of a block in lockstep
	Backwards = 1 // each warp as far ahead of the others as it can get
)

// Order sets the order of blocks and threads until the end of the test; a GPU has its own.
// Without Order, the environment variable FAKECUDA_ORDER gives the order, or it is forwards.
func Order(t *testing.T, order uint64) {
	t.Helper()
	if C.set_order(C.ulong(order)) == 0 {
		return
	}
	t.Cleanup(func() {
		usual, _ := strconv.ParseUint(os.Getenv("FAKECUDA_ORDER"), 10, 64)
		C.set_order(C.ulong(usual))
	})
}

// Usage returns how many bytes of the stand-in's memory are allocated, and in how many
// allocations.
func Usage() (bytes int64, count int) {
	var b, n C.size_t
	C.get_usage(&b, &n)
	return int64(b), int(n)
}

// Contexts returns the number of contexts that the process has made so far.
func Contexts() int { return int(C.get_contexts()) }

// Launches returns the number of kernels launched so far, without kernels of graphs.
func Launches() int { return int(C.get_launches()) }

// Transfers returns how many copies were made so far from the program's memory to the
// device's, and back.
func Transfers() (up, down int) {
	var u, d C.long
	C.get_transfers(&u, &d)
	return int(u), int(d)
}
