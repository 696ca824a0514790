//go:build cu

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// alone runs a test again in a process of its own, with more in its environment, and reports
// whether this is that process.
func alone(t *testing.T, env ...string) bool {
	t.Helper()
	const inner = "CNE_TEST_ALONE"
	if os.Getenv(inner) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	again.Env = append(append(os.Environ(), inner+"=1"), env...)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// A GPU that was opened keeps its context, and nothing in it, until the process ends. One
// that fails, or where products do not start, keeps none.
func TestDeviceKeepsItsContext(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's driver does not count contexts")
	}
	if !alone(t) {
		return
	}
	t.Run("refused", func(t *testing.T) {
		t.Setenv("FAKECUDA_CUBLAS_STATUS", "1")
		for range 2 {
			if _, err := device.Open("cuda"); err == nil {
				t.Fatal("a device without products was opened")
			}
		}
	})
	refused := fakecuda.Contexts()
	if refused != 2 {
		t.Errorf("two devices that did not start had %d contexts, want 2", refused)
	}
	open := func(t *testing.T) *device.Device {
		t.Helper()
		d, err := device.Open("cuda")
		if err == nil {
			_, err = d.Alloc(1 << 20) // Close frees it
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	closed := func(t *testing.T, all ...*device.Device) {
		t.Helper()
		for _, d := range all {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if bytes, count := fakecuda.Usage(); bytes != 0 || count != 0 {
			t.Errorf("closed devices leave %d bytes in %d pieces", bytes, count)
		}
	}
	for range 3 {
		closed(t, open(t), open(t))
	}
	if n := fakecuda.Contexts() - refused; n != 1 {
		t.Errorf("devices, one after the other, had %d contexts, want 1", n)
	}
	t.Run("failed", func(t *testing.T) {
		d, other := open(t), open(t)
		fakecuda.Fail(t, 0, fakecuda.LaunchFailed)
		if err := errors.Join(d.Launch("sum", device.Launch{Grid: 1, Block: 1}, 0, 0, 0, 0), d.Synchronize()); !errors.Is(err, device.ErrLost) {
			t.Fatalf("the device did not fail: %v", err)
		}
		if err := errors.Join(d.Close(), other.Synchronize()); !errors.Is(err, device.ErrLost) {
			t.Fatalf("the other device did not fail: %v", err)
		}
		closed(t, other)
	})
	closed(t, open(t))
	closed(t, open(t))
	if n := fakecuda.Contexts() - refused; n != 2 {
		t.Errorf("devices before and after a failure had %d contexts, want 2", n)
	}
}

// cuBLAS and cuDNN are found in the packages of a virtual environment, and notes say where.
func TestDeviceWithLibrariesOfPython(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's libraries are where they are")
	}
	if known, err := exec.Command("ldconfig", "-p").Output(); err != nil || strings.Contains(string(known), "libcublas.so") || strings.Contains(string(known), "libcudnn.so") {
		t.Skip("this machine may have a cuBLAS or a cuDNN")
	}
	environment := t.TempDir()
	for _, library := range []string{"cu13/lib/libcublas.so.13", "cudnn/lib/libcudnn.so.9"} {
		file := filepath.Join(environment, "lib/python3.12/site-packages/nvidia", library)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.Symlink(os.Getenv("CNE_LIBCUDA"), file)); err != nil {
			t.Fatal(err)
		}
	}
	if !alone(t, "CNE_LIBCUBLAS=", "CNE_LIBCUDNN=", "LD_LIBRARY_PATH=", "CONDA_PREFIX=", "PATH=", "PYTHONUSERBASE=/nowhere", "VIRTUAL_ENV="+environment) {
		return
	}
	packages := filepath.Join(os.Getenv("VIRTUAL_ENV"), "lib/python3.12/site-packages/nvidia")
	t.Run("missing", func(t *testing.T) {
		t.Setenv("VIRTUAL_ENV", "/nowhere/else")
		const want = "cuBLAS was not found (libcublas.so.13, libcublas.so.12, libcublas.so.11 or libcublas.so, neither where the dynamic linker looks nor in Python's packages in /nowhere/else or /nowhere); " +
			"install it for CUDA 13 (pip install nvidia-cublas), add its folder to LD_LIBRARY_PATH, or name the file in CNE_LIBCUBLAS"
		if _, err := device.Open("cuda"); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
	d, err := device.Open("cuda")
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	d.OnNote(func(note string) { notes = append(notes, note) })
	m, err := d.Alloc(1024)
	if err != nil {
		t.Fatal(err)
	}
	x := m.Pointer()
	convolution := device.Convolution{N: 1, H: 4, W: 4, C: 4, K: 4, KH: 1, KW: 1, OH: 4, OW: 4, Stride: 1, Images: x, Weights: x, Result: x}
	if err := errors.Join(d.Multiply(device.Product{M: 4, N: 4, K: 4, Alpha: 1, A: x, LDA: 4, B: x, LDB: 4, C: x, LDC: 4}), d.Convolve(convolution), d.Close()); err != nil {
		t.Fatal(err)
	}
	for _, note := range []string{
		"products of matrices are computed by " + packages + "/cu13/lib/libcublas.so.13",
		"convolutions are computed by cuDNN 9.5.1 of " + packages + "/cudnn/lib/libcudnn.so.9",
	} {
		if !slices.Contains(notes, note) {
			t.Errorf("the notes %q lack %q", notes, note)
		}
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
