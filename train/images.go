package train

import (
	"cne/model"
	"cne/model/op"
)

// An ImageSource gives a model of images what it sees of points, such as views of
// them that are drawn at random.
type ImageSource interface {
	// Shape returns the size of an image: channels, height, width.
	Shape() [3]int
	// ImagesTo writes the images of points to dst [len(points), channels, height,
	// width]. Epochs count from 0. It is called for every batch, in order, ahead of
	// the batch's step and on another goroutine: it may depend on nothing that
	// training changes. An error ends the run with it.
	ImagesTo(dst []float32, points []int32, epoch int) error
}

// A DeviceImageSource makes images on a device, too.
type DeviceImageSource interface {
	ImageSource
	// ImagesOn returns what makes them there. It is called once, before the first
	// batch.
	ImagesOn(d *model.Device) (DeviceImages, error)
}

// DeviceImages makes images on a device.
type DeviceImages interface {
	// Launch writes the images of points [r] (int32) to dst [r, channels, height,
	// width] (float32); both arrays are on the device. It need not wait until that
	// has been done. Epochs count from 0.
	Launch(dst, points *op.Array, epoch int) error
	// Close frees their memory on the device.
	Close()
}
