package train

import (
	"cne/internal/device"
	"cne/model/op"
)

type StepNumbers [8]float32

type Remote interface {
	Method
	Numbers(lr, clip float64) StepNumbers
	Launch(d *device.Device, rows *op.Array, numbers, status device.Pointer) error
}
