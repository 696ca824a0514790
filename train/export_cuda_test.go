//go:build cu

package train

import (
	"cne/internal/device"
	"cne/model/op"
)

// A DeviceMethod is a method whose steps on a device tests can take one by one.
type DeviceMethod struct{ deviceMethod }

// OnDevice returns SGD or Adam as a DeviceMethod.
func OnDevice(m Method) DeviceMethod { return DeviceMethod{m.(deviceMethod)} }

// Numbers is deviceMethod's numbers.
func (m DeviceMethod) Numbers(lr, clip float64) [8]float32 { return m.numbers(lr, clip) }

// Launch is deviceMethod's launch.
func (m DeviceMethod) Launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error {
	return m.launch(d, rows, numbers, status)
}
