//go:build cu

package device_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// CNE_LIBCUDNN names the library; none does without one.
func TestLibraryOfConvolutionsOnDevice(t *testing.T) {
	if !fakecuda.Here() {
		t.Skip("a GPU's libraries are what they are")
	}
	for name, want := range map[string]string{os.Getenv("CNE_LIBCUDA"): "cuDNN 9.5.1", "none": "no cuDNN"} {
		t.Setenv("CNE_LIBCUDNN", name)
		if got := fakecuda.Open(t).Properties().Software; !strings.HasSuffix(got, ", "+want) {
			t.Errorf("with %s the device has %q", name, got)
		}
	}
	const missing = "/nowhere/libcudnn.so"
	t.Setenv("CNE_LIBCUDNN", missing)
	if _, err := device.Open("cuda"); !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), missing+" is no cuDNN of version 8 or 9; set CNE_LIBCUDNN") {
		t.Errorf("a library that is not there gave %v", err)
	}
}

// A failure of the device in a convolution is one of the device, with TF32 or
// without; what the library does not know is ErrNoConvolution, each time.
func TestConvolveOnDevice(t *testing.T) {
	t.Setenv("CNE_LIBCUDNN", os.Getenv("CNE_LIBCUDA"))
	d := fakecuda.Open(t)
	if strings.Contains(d.Properties().Software, "no cuDNN") {
		t.Skip("there is no cuDNN")
	}
	m, err := d.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	at := m.Pointer()
	if err := d.Zero(at, 4096); err != nil {
		t.Fatal(err)
	}
	c := device.Convolution{Part: device.ConvolutionResult, N: 1, H: 4, W: 4, C: 4, K: 4, KH: 3, KW: 3, OH: 4, OW: 4, Stride: 1, Pad: 1,
		Images: at, Weights: at.At(256, 4), Result: at.At(512, 4)}
	for _, tf32 := range []bool{true, false} {
		d.TF32 = tf32
		if err := d.Convolve(c); err != nil {
			t.Fatal(err)
		}
	}
	wrong := c
	wrong.OH = 5
	for range 2 {
		if err := d.Convolve(wrong); err != device.ErrNoConvolution {
			t.Errorf("a convolution that there is not gave %v", err)
		}
	}
	fakecuda.Fail(t, 0, fakecuda.LaunchFailed)
	if err := errors.Join(d.Launch("sum", device.Launch{Grid: 1, Block: 1}, 0, 0, 0, 0), d.Synchronise()); !errors.Is(err, device.ErrLost) {
		t.Fatalf("the device did not fail: %v", err)
	}
	if err := d.Convolve(c); !errors.Is(err, device.ErrLost) {
		t.Errorf("a device that failed returned %v", err)
	}
}
