//go:build cu

package device_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// small is a convolution of zeros, in memory on the device.
func small(t *testing.T, d *device.Device) device.Convolution {
	t.Helper()
	m, err := d.Alloc(4096)
	check(t, err)
	t.Cleanup(m.Free)
	at := m.Pointer()
	check(t, d.Zero(at, 4096))
	return device.Convolution{Part: device.ConvolutionResult, N: 1, H: 4, W: 4, C: 4, K: 4, KH: 3, KW: 3, OH: 4, OW: 4, Stride: 1, Pad: 1,
		Images: at, Weights: at.At(256, 4), Result: at.At(512, 4)}
}

// notesOf returns what a device tells OnNote from now on.
func notesOf(d *device.Device) *[]string {
	var all []string
	d.OnNote(func(sentence string) { all = append(all, sentence) })
	all = nil // drop the notes about its opening
	return &all
}

// A device looks for cuDNN once, at its first convolution, and notes what it has found.
// CNE_LIBCUDNN names the library; none means none. A named one that cannot be used is
// an error.
func TestLibraryOfConvolutionsOnDevice(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's libraries are what they are")
	}
	library := os.Getenv("CNE_LIBCUDA")
	for name, c := range map[string]struct {
		named, status string
		software      string // what is added to it
		note, failure string
	}{
		"named":                {named: library, software: ", cuDNN 9.5.1", note: "convolutions are computed by cuDNN 9.5.1"},
		"none":                 {named: "none", note: "convolutions are products with patches of the images, as CNE_LIBCUDNN=none asks for"},
		"named and missing":    {named: "/nowhere/libcudnn.so", failure: "cuda:0: CNE_LIBCUDNN names a cuDNN that cannot be used (/nowhere/libcudnn.so: not found); set it to the libcudnn.so of cuDNN 8 or 9, or to none to do without"},
		"named and broken":     {named: library, status: "1001", failure: "cuda:0: CNE_LIBCUDNN names a cuDNN that cannot be used (" + library + ": status 1001 of cudnnCreate); set it to the libcudnn.so of cuDNN 8 or 9, or to none to do without"},
		"named, out of memory": {named: library, status: "4004", failure: "cuda:0 has too little memory: cuDNN needs more than the "},
		"version 8, the same":  {named: library, status: "2", failure: "cuda:0 has too little memory: cuDNN needs more than the "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CNE_LIBCUDNN", c.named)
			t.Setenv("FAKECUDNN_STATUS", c.status)
			d := fakecuda.Open(t)
			before := d.Properties().Software
			if strings.Contains(before, "cuDNN") {
				t.Errorf("before the first convolution it has %q", before)
			}
			notes := notesOf(d)
			convolution := small(t, d)
			for range 2 {
				err := d.Convolve(convolution)
				switch {
				case c.failure != "":
					if err == nil || !strings.HasPrefix(err.Error(), c.failure) || errors.Is(err, device.ErrNoConvolution) || errors.Is(err, device.ErrUnavailable) == errors.As(err, new(*device.MemoryError)) {
						t.Errorf("the error is %v, want %s", err, c.failure)
					}
				case c.software != "" && err != nil, c.software == "" && err != device.ErrNoConvolution:
					t.Errorf("the error is %v", err)
				}
			}
			if got := d.Properties().Software; got != before+c.software {
				t.Errorf("it has %q, want %q", got, before+c.software)
			}
			var want []string
			if c.note != "" {
				want = []string{c.note}
			}
			if !slices.Equal(*notes, want) {
				t.Errorf("it tells %q, want %q", *notes, want)
			}
		})
	}
}

// If memory is short, cuDNN gets what the pool keeps: if CNE_LIBCUDNN names the
// library, and, in a process started with it in its library path, if it is found there.
func TestLibraryOfConvolutionsFindsMemoryOnDevice(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	const inner = "CNE_TEST_WITH_CUDNN_IN_PATH"
	found := os.Getenv(inner) != ""
	if !found {
		fakecuda.Convolutions(t, true)
	}
	d := fakecuda.Open(t)
	d.Unpooled = false
	convolution := small(t, d)
	kept, err := d.Alloc(4 << 20)
	check(t, err)
	used, _ := fakecuda.Usage()
	fakecuda.Memory(t, used+1000)
	if !found {
		if err, full := d.Convolve(convolution), new(device.MemoryError); !errors.As(err, &full) || full.For != "cuDNN" {
			t.Errorf("without memory the error is %v", err)
		}
	}
	kept.Free()
	check(t, d.Convolve(convolution))
	if found {
		return
	}
	folder := t.TempDir()
	check(t, os.Symlink(os.Getenv("CNE_LIBCUDA"), filepath.Join(folder, "libcudnn.so.9")))
	self, err := os.Executable()
	check(t, err)
	again := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), inner+"=1", "CNE_LIBCUDNN=", "LD_LIBRARY_PATH="+folder)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("where cuDNN is found: %v\n%s", err, out)
	}
}

// The first convolution cannot be captured. The capture that tried ends cleanly, and
// later ones work.
func TestFirstConvolutionInCaptureOnDevice(t *testing.T) {
	fakecuda.Convolutions(t, true)
	d := fakecuda.Open(t)
	convolution := small(t, d)
	_, err := d.Capture(func() error { return d.Convolve(convolution) })
	if want := "cuda:0: a convolution must have run before one is captured: to open cuDNN needs what a capture forbids"; err == nil || err.Error() != want {
		t.Fatalf("the error is %v, want %s", err, want)
	}
	if err := d.Convolve(convolution); err == device.ErrNoConvolution {
		t.Skip("there is no cuDNN")
	} else if err != nil {
		t.Fatal(err)
	}
	r, err := d.Capture(func() error { return d.Convolve(convolution) })
	check(t, err)
	check(t, r.Run(), r.Close())
}

// A failure in a convolution is one of the device, with TF32 or without. A convolution
// that the library does not support is ErrNoConvolution each time, and noted once.
func TestConvolveOnDevice(t *testing.T) {
	fakecuda.Convolutions(t, true)
	d := fakecuda.Open(t)
	c := small(t, d)
	if d.Convolve(c) == device.ErrNoConvolution {
		t.Skip("there is no cuDNN")
	}
	for _, tf32 := range []bool{true, false} {
		d.TF32 = tf32
		check(t, d.Convolve(c))
	}
	wrong := c
	wrong.OH = 5
	notes := notesOf(d)
	for range 2 {
		if err := d.Convolve(wrong); err != device.ErrNoConvolution {
			t.Errorf("a convolution that there is not gave %v", err)
		}
	}
	if want := []string{"cuDNN has no way for the result of a convolution of [1,4,4,4] with [4,3,3,4], stride 1 and padding 1; products with patches compute it"}; !slices.Equal(*notes, want) {
		t.Errorf("it tells %q, want %q", *notes, want)
	}
	fakecuda.Fail(t, 0, fakecuda.LaunchFailed)
	if err := errors.Join(d.Launch("sum", device.Launch{Grid: 1, Block: 1}, 0, 0, 0, 0), d.Synchronize()); !errors.Is(err, device.ErrLost) {
		t.Fatalf("the device did not fail: %v", err)
	}
	if err := d.Convolve(c); !errors.Is(err, device.ErrLost) {
		t.Errorf("a device that failed returned %v", err)
	}
}
