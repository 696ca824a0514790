//go:build cu

package train

import (
	"cne/internal/device"
	"cne/model/op"
)

// A DeviceOptimizer is an optimiser whose steps on a device tests can take one by one.
type DeviceOptimizer struct{ deviceOptimizer }

// OnDevice returns SGD or Adam as a DeviceOptimizer.
func OnDevice(m Optimizer) DeviceOptimizer { return DeviceOptimizer{m.(deviceOptimizer)} }

// Numbers returns the numbers of the next step and counts it.
func (m DeviceOptimizer) Numbers(lr, clip float64) [8]float32 {
	m.took(1)
	return m.numbers(0, lr, clip)
}

// Launch is deviceOptimizer's launch.
func (m DeviceOptimizer) Launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error {
	return m.launch(d, rows, numbers, status)
}
