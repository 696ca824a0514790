package op

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/kind"
)

// A Device runs operations: the CPU (nil) or an accelerator such as a GPU. It is the same
// type as model.Device; model.OpenDevice opens one by name.
type Device = device.Device

// A Pointer is an address in an accelerator's memory.
type Pointer = device.Pointer

// An Arg is an argument of a kernel on an accelerator: a pointer or a number.
type Arg = device.Arg

// elementSize is the size of a float32 or int32, in bytes.
const elementSize = 4

// deviceMemory holds an array's elements on an accelerator; it is zero for an array in
// the program's memory.
type deviceMemory struct {
	device   *Device
	engine   *device.Engine // for Value; nil until it is needed
	memory   *device.Memory // nil if the array does not own its memory
	held     *device.Memory // of a view: the owner's memory, so it is not collected
	at       Pointer
	capacity int // bytes
}

// grow allocates memory for the given number of bytes, in whole words.
func (r *deviceMemory) grow(bytes int) error {
	bytes = (bytes + 3) &^ 3
	if bytes <= r.capacity {
		return nil
	}
	m, err := r.device.Alloc(bytes)
	if err != nil {
		return err
	}
	if r.memory != nil {
		r.memory.Free()
	}
	r.memory, r.at, r.capacity = m, m.Pointer(), bytes
	return nil
}

func (r *deviceMemory) toEngine() *device.Engine {
	if r.engine == nil {
		r.engine = device.NewEngine(r.device)
	}
	return r.engine
}

// Device returns the device that holds the elements.
func (a *Array) Device() *Device {
	if a.on.device != nil {
		return a.on.device
	}
	return device.CPU()
}

// Pointer returns the address of the elements of an array on an accelerator.
func (a *Array) Pointer() Pointer { return a.on.at }

// Arg returns the address of the elements as an argument of a kernel.
func (a *Array) Arg() Arg { return Arg(a.on.at) }

// Free releases the memory that the array owns on an accelerator; the array is then
// empty. On the CPU it does nothing.
func (a *Array) Free() {
	if a.on.memory != nil {
		a.on.memory.Free()
		a.on.memory, a.on.at, a.on.capacity = nil, 0, 0
	}
}

// View makes a an array of the given shape over the elements of another array of its
// type, starting with element first, on the same device. It is valid until the other is
// resized or freed.
func (a *Array) View(of *Array, first int, shape ...int) error {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if a.dtype != of.dtype || len(shape) > MaxDims || first < 0 || n < 0 || first+n > of.Cap() {
		return fmt.Errorf("op: view of %v of shape %v: got elements %d to %d of %d of %v", a.dtype, slices.Clone(shape), first,
			first+n, of.Cap(), of.dtype)
	}
	a.f32, a.f64, a.i32 = part(of.f32, first, n), part(of.f64, first, n), part(of.i32, first, n)
	a.Free()
	a.on = deviceMemory{device: of.on.device, held: of.on.held}
	if of.on.memory != nil {
		a.on.held = of.on.memory
	}
	if of.on.device != nil {
		a.on.at, a.on.capacity = of.on.at.At(first, a.bytesEach()), n*a.bytesEach()
	}
	a.dims = copy(a.shape[:], shape)
	return nil
}

func part[E any](s []E, first, n int) []E {
	if s == nil {
		return nil
	}
	return s[first : first+n : first+n]
}

// Copy gives dst the shape and elements of src, from any device to any other. Their types
// must be equal, or float32 and bfloat16: elements are widened, or rounded to the nearest
// bfloat16, ties to even.
func Copy(dst, src *Array) error {
	if src.half() && dst.dtype == tensor.Float32 || dst.half() && src.dtype == tensor.Float32 {
		return convert(dst, src)
	}
	if src.dtype != dst.dtype {
		return fmt.Errorf("op: value: got type %v, want %v", src.dtype, dst.dtype)
	}
	if err := dst.Resize(src.Shape()); err != nil {
		return err
	}
	to, from := dst.on.device, src.on.device
	switch {
	case to == nil && from == nil:
		copy(dst.f32, src.f32)
		copy(dst.f64, src.f64)
		copy(dst.i32, src.i32)
		return nil
	case to == from:
		return to.Copy(dst.on.at, src.on.at, src.Len()*src.bytesEach())
	case from == nil && src.dtype == tensor.Float32:
		return device.Upload(to, dst.on.at, src.f32[:src.Len()])
	case from == nil:
		return device.Upload(to, dst.on.at, src.i32[:src.Len()])
	case to == nil && src.dtype == tensor.Float32:
		return device.Download(from, dst.f32[:src.Len()], src.on.at)
	case to == nil:
		return device.Download(from, dst.i32[:src.Len()], src.on.at)
	}
	if src.half() {
		return fmt.Errorf("op: an array of bfloat16 on %s cannot be copied to one on another accelerator", from.Name())
	}
	var between Array
	between.dtype = src.dtype
	if err := Copy(&between, src); err != nil {
		return err
	}
	return Copy(dst, &between)
}

// Zero clears the elements.
func (a *Array) Zero() error {
	if a.on.device != nil {
		bytes := a.Len() * a.bytesEach()
		if a.on.memory == nil && (bytes%4 != 0 || a.on.at%4 != 0) {
			return kind.Errorf(ErrInput,
				"op: clearing bfloat16: got %d elements that share a word of 32 bits with others, want all of them", a.Len())
		}
		return a.on.device.Zero(a.on.at, (bytes+3)&^3) // in whole words: see grow
	}
	clear(a.f32)
	clear(a.f64)
	clear(a.i32)
	return nil
}

// A Launcher is a Kernel that also runs on accelerators, as all operations of this
// package do. A kernel without code for accelerators may Copy its inputs to the CPU, Run
// there and Copy the result back.
type Launcher interface {
	Kernel

	// Launch computes what Run computes, in float32, with dst and all of in on the
	// accelerator d. They may be stored in bfloat16 (see Storer). Launch may return before
	// the result is computed. It does not check row numbers in the inputs; they must be in
	// range.
	Launch(d *Device, dst *Array, in []*Array) error
}

// A scratch is an operation's temporary array on the accelerator that it runs on.
type scratch struct{ array *Array }

// of returns the array with a shape. Its elements are undefined.
func (s *scratch) of(d *Device, dtype tensor.Dtype, shape ...int) (*Array, error) {
	if s.array != nil && s.array.on.device == d {
		return s.array, s.array.Resize(shape)
	}
	a, err := NewArray(d, dtype, shape...)
	if err != nil {
		return nil, err
	}
	s.array = a
	return a, nil
}

// doOnDevice is do for values on an accelerator. The engine of the first input holds
// the result's memory.
func doOnDevice(k Kernel, shape []int, in []*Array) (gorgonia.Value, error) {
	l, ok := k.(Launcher)
	if !ok {
		return nil, fmt.Errorf("op: %v does not run on %s", k, in[0].on.device.Name())
	}
	e := in[0].on.toEngine()
	dtypes := make([]tensor.Dtype, len(in))
	for i, a := range in {
		dtypes[i] = a.dtype
		if a.on.device != e.Device() {
			return nil, fmt.Errorf("op: %v: input %d: got it on %s, want it on %s, where input 0 is", k, i, a.Device().Name(), e.Device().Name())
		}
	}
	dtype := in[0].dtype
	if s, ok := k.(Storer); ok {
		dtype = s.StoredAs(dtypes)
	} else if in[0].half() {
		dtype = tensor.Float32 // the type of a graph's nodes
	}
	v := tensor.New(tensor.Of(dtype), tensor.WithShape(shape...), tensor.WithEngine(e))
	var dst Array
	if err := dst.SetValue(v); err != nil {
		return nil, err
	}
	return v, l.Launch(e.Device(), &dst, in)
}

// Point makes a an array of the given shape over elements at an address on an
// accelerator. That memory must remain valid as long as a is used.
func (a *Array) Point(d *Device, at Pointer, shape ...int) error {
	if len(shape) > MaxDims {
		return fmt.Errorf("op: shape: got %v, want at most %d dimensions", slices.Clone(shape), MaxDims)
	}
	a.Free()
	a.f32, a.f64, a.i32 = nil, nil, nil
	a.dims = copy(a.shape[:], shape)
	a.on = deviceMemory{device: d, at: at, capacity: a.Len() * a.bytesEach()}
	return nil
}
