package device

import (
	"fmt"
	"unsafe"
)

// A StreamID says which of an accelerator's two streams a request goes to.
type StreamID int

// The streams of an accelerator.
const (
	MainStream StreamID = iota
	// SideStream has the lower priority.
	SideStream
)

// A Stream executes kernels, fills and copies in the order of their requests. An
// accelerator has two, Main and Side, which work at the same time: for memory that both
// use, one must wait for an Event of the other, or the program for one of them.
//
// Memory that Side uses must be freed only once the program has waited for it; and since
// memory may have been another's before it was allocated, Side must wait for an Event
// that Main recorded after that.
type Stream struct {
	device *Device
	id     StreamID
}

// Main returns the stream of the device's own methods.
func (d *Device) Main() *Stream {
	if d == nil {
		return &cpu.main
	}
	return &d.main
}

// Side returns the stream for work at the same time as Main's. It cannot be used while the
// goroutine captures.
func (d *Device) Side() *Stream {
	if d == nil {
		return &cpu.side
	}
	return &d.side
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device { return s.device }

// do is Device.do for a request of the stream.
func (s *Stream) do(f func() error) error {
	return s.device.do(func() error {
		if s.id == SideStream {
			if s.device.recorder != 0 {
				return errCaptured
			}
			s.device.sideUsed = true
		}
		return f()
	})
}

// submit is do for an operation that the device carries out in its turn.
func (s *Stream) submit(f func() error) error {
	return s.do(func() error {
		s.device.count()
		return f()
	})
}

// Launch runs a kernel of package kernels, with as many arguments as it has parameters,
// of their types.
func (s *Stream) Launch(kernel string, l Launch, args ...Arg) error {
	if l.Grid < 1 || l.Block < 1 || l.Block > 1024 || len(args) > MaxArgs {
		return fmt.Errorf("device: kernel %s: got %d blocks of %d threads and %d arguments, want 1 block or more of 1 to 1024 threads and at most %d arguments", kernel, l.Grid, l.Block, len(args), MaxArgs)
	}
	d := s.device
	return s.submit(func() error {
		for i, a := range args {
			d.args[i] = uint64(a)
		}
		if err := d.backend.Launch(s.id, kernel, l, &d.args, len(args)); err != nil {
			return fmt.Errorf("kernel %s: %w", kernel, err)
		}
		return nil
	})
}

// Each is Device.Each.
func (s *Stream) Each(kernel string, n int, args ...Arg) error {
	if n == 0 {
		return nil
	}
	return s.Launch(kernel, Launch{Grid: (n + blockOfEach - 1) / blockOfEach, Block: blockOfEach}, args...)
}

// Fill sets words of 32 bits of the device's memory.
func (s *Stream) Fill(dst Pointer, word uint32, words int) error {
	if words == 0 {
		return s.do(func() error { return nil })
	}
	return s.submit(func() error { return s.device.backend.Fill(s.id, dst, word, words) })
}

// Synchronize waits until all requests of the stream are done, and returns what went wrong.
func (s *Stream) Synchronize() error {
	return s.do(func() error { return s.device.backend.Synchronize(s.id) })
}

// UploadTo copies elements to the device's memory, once all requests of the stream are
// done.
func UploadTo[T any](s *Stream, dst Pointer, src []T) error {
	return s.do(func() error {
		if len(src) == 0 {
			return nil
		}
		return s.device.backend.Upload(s.id, dst, unsafe.Pointer(&src[0]), len(src)*int(unsafe.Sizeof(src[0])))
	})
}

// DownloadFrom waits for all requests of the stream, and copies elements from the device's
// memory.
func DownloadFrom[T any](s *Stream, dst []T, src Pointer) error {
	return s.do(func() error {
		if len(dst) == 0 {
			return nil
		}
		return s.device.backend.Download(s.id, unsafe.Pointer(&dst[0]), src, len(dst)*int(unsafe.Sizeof(dst[0])))
	})
}

// An Event is a position in a stream that another stream can wait for.
type Event struct {
	device *Device
	of     BackendEvent
}

// A BackendEvent is a driver's Event.
type BackendEvent interface {
	Record(on StreamID) error
	Await(on StreamID) error
	Close() error
}

// NewEvent returns an event that was not recorded: nothing waits for it.
func (d *Device) NewEvent() (e *Event, err error) {
	e = &Event{device: d}
	return e, d.do(func() (err error) {
		e.of, err = d.backend.NewEvent()
		return err
	})
}

// Record makes the event stand for all requests of a stream so far.
func (s *Stream) Record(e *Event) error {
	return s.do(func() error { return e.of.Record(s.id) })
}

// Wait makes later requests of the stream wait for the last recording of an event. The
// program itself does not wait.
func (s *Stream) Wait(e *Event) error {
	return s.do(func() error { return e.of.Await(s.id) })
}

// Close frees the event.
func (e *Event) Close() error {
	if e.of == nil {
		return nil
	}
	return e.device.do(e.of.Close)
}
