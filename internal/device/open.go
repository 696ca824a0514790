package device

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"cne/internal/kind"
)

// A Driver gives access to accelerators.
type Driver interface {
	// Count returns the number of accelerators. An error says why none can be used, and
	// what would help, as the end of a sentence.
	Count() (int, error)
	// Open opens one of them.
	Open(number int) (Backend, error)
}

// CUDA is the driver of NVIDIA's GPUs, nil without the build tag cu. Its package sets it when
// it is initialised.
var CUDA Driver

// CheckName returns an error for an invalid name of a device. Valid are auto, cpu, cuda
// and cuda:n, where n counts from 0.
func CheckName(name string) error {
	if name == "auto" || name == "cpu" {
		return nil
	}
	_, err := parseName(name)
	return err
}

// parseName returns the number of the accelerator of a name.
func parseName(name string) (number int, err error) {
	vendor, digits, numbered := strings.Cut(name, ":")
	if numbered {
		number, err = strconv.Atoi(digits)
	}
	if vendor != "cuda" || err != nil || number < 0 {
		return 0, fmt.Errorf("device: got %q, want auto, cpu, cuda or cuda:n", name)
	}
	return number, nil
}

// Open opens a device by name: cpu; cuda for NVIDIA's first GPU and cuda:n for number
// n, from 0; auto for the first GPU if it can be used, else the CPU. Device.Reason then
// says which it is and why. If the device is not available, the error wraps ErrUnavailable
// and says what is missing.
func Open(name string) (*Device, error) {
	switch name {
	case "cpu":
		return &Device{name: "cpu", reason: "computing on the CPU, as asked for"}, nil
	case "auto":
		d, err := open(0)
		if err != nil {
			return &Device{name: "cpu", reason: "computing on the CPU: " + err.Error()}, nil
		}
		d.reason = fmt.Sprintf("computing on %s, %s", d.name, d.Properties())
		return d, nil
	}
	number, err := parseName(name)
	if err != nil {
		return nil, err
	}
	d, err := open(number)
	if err != nil {
		return nil, fmt.Errorf("device %s cannot be used: %w", name, err)
	}
	d.reason = fmt.Sprintf("computing on %s, %s, as asked for", d.name, d.Properties())
	return d, nil
}

// DriverInstalled reports whether a driver of a vendor seems to be installed, or is named:
// users then expect an accelerator to be used.
func DriverInstalled() bool {
	return os.Getenv("CNE_LIBCUDA") != "" ||
		slices.ContainsFunc([]string{"/proc/driver/nvidia", "/usr/lib/wsl/lib/libcuda.so.1"}, func(path string) bool {
			_, err := os.Stat(path)
			return err == nil
		})
}

// open opens an accelerator. Errors are of the kind ErrUnavailable.
func open(number int) (*Device, error) {
	if CUDA == nil {
		return nil, kind.Errorf(ErrUnavailable, "this program was built without CUDA (build it with the tag cu, as docs/gpu.md says)")
	}
	count, err := CUDA.Count()
	switch {
	case err != nil:
		return nil, kind.Errorf(ErrUnavailable, "%v", err)
	case count == 0:
		return nil, kind.Errorf(ErrUnavailable, "the driver sees no GPU")
	case number >= count:
		return nil, kind.Errorf(ErrUnavailable, "GPU: got number %d, want 0 to %d", number, count-1)
	}
	b, err := CUDA.Open(number)
	if err != nil {
		return nil, kind.Errorf(ErrUnavailable, "%v", err)
	}
	return New(fmt.Sprintf("cuda:%d", number), b), nil
}

// String describes an accelerator for a log.
func (p Properties) String() string {
	return fmt.Sprintf("%s with %d multiprocessors (%s)", p.Name, p.Multiprocessors, p.Software)
}
