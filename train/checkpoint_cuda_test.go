//go:build cu

package train

import (
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// A run begun anywhere can resume anywhere.
func TestCheckpointOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, on := range [][2]*device.Device{{d, d}, {d, device.CPU()}, {device.CPU(), d}} {
		goesOn(t, on[0], on[1])
	}
}
