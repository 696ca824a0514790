//go:build cu

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// Errors by their numbers in cuda.h, which says after which of them the context or
// process must be given up.
func TestDeviceIsLostByErrors(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU cannot be made to fail")
	}
	for _, c := range []struct {
		number fakecuda.Failure
		lost   bool
	}{
		{1, false},   // INVALID_VALUE
		{4, true},    // DEINITIALIZED
		{201, true},  // INVALID_CONTEXT
		{214, true},  // ECC_UNCORRECTABLE
		{218, false}, // INVALID_PTX
		{220, true},  // NVLINK_UNCORRECTABLE
		{226, true},  // CONTAINED
		{400, false}, // INVALID_HANDLE
		{700, true},  // ILLEGAL_ADDRESS
		{701, false}, // LAUNCH_OUT_OF_RESOURCES
		{702, true},  // LAUNCH_TIMEOUT
		{709, true},  // CONTEXT_IS_DESTROYED
		{710, true},  // ASSERT
		{714, true},  // HARDWARE_STACK_ERROR
		{715, true},  // ILLEGAL_INSTRUCTION
		{716, true},  // MISALIGNED_ADDRESS
		{717, true},  // INVALID_ADDRESS_SPACE
		{718, true},  // INVALID_PC
		{719, true},  // LAUNCH_FAILED
		{720, false}, // COOPERATIVE_LAUNCH_TOO_LARGE
		{721, true},  // TENSOR_MEMORY_LEAK
		{801, false}, // NOT_SUPPORTED
		{810, true},  // MPS_CLIENT_TERMINATED
		{911, true},  // EXTERNAL_DEVICE
		{999, true},  // UNKNOWN
	} {
		t.Run(fmt.Sprint(c.number), func(t *testing.T) {
			d := fakecuda.Open(t)
			m, err := d.Alloc(4)
			if err != nil {
				t.Fatal(err)
			}
			fakecuda.Fail(t, 0, c.number)
			x := device.Arg(m.Pointer())
			if err := d.Each("sum", 1, x, x, x, device.Int(1)); err != nil {
				t.Fatalf("the launch itself returned %v", err)
			}
			err = d.Synchronize()
			if err == nil || !strings.HasPrefix(err.Error(), "cuda:0: ") || errors.Is(err, device.ErrLost) != c.lost {
				t.Fatalf("the error is %v; that the device is lost should be %t", err, c.lost)
			}
			if again := d.Zero(m.Pointer(), 4); c.lost && again != err {
				t.Errorf("the next call returned %v, not %v", again, err)
			}
		})
	}
}

// cuBLAS may not start because memory is short, and its status need not say so.
func TestDeviceWhereProductsDoNotStart(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's libraries are what they are")
	}
	fakecuda.Open(t)
	full := "the GPU cannot be opened: its memory is full; see with nvidia-smi what uses it"
	for name, c := range map[string]struct {
		status string
		memory int64
		want   string
	}{
		"no memory": {"3", 4 << 30, full},
		"little":    {"1", 48 << 20, full}, // the device above has 32 MiB of it
		"broken":    {"1", 4 << 30, "the GPU cannot be opened: " + os.Getenv("CNE_LIBCUBLAS") + ", which this process computes with already, does not start here (status 1 of cublasCreate); name another cuBLAS in CNE_LIBCUBLAS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKECUDA_CUBLAS_STATUS", c.status)
			fakecuda.Memory(t, c.memory)
			if _, err := device.Open("cuda"); !errors.Is(err, device.ErrUnavailable) || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
}
