package op

import (
	"fmt"
	"reflect"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/blas"
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
	n := tensor.ProdInts(shape)
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
func Copy(dst, src *Array) (err error) {
	defer kind.Catch(&err)
	if src.half() && dst.dtype == tensor.Float32 || dst.half() && src.dtype == tensor.Float32 {
		return convert(dst, src)
	}
	if src.dtype != dst.dtype {
		return fmt.Errorf("op: value: got type %v, want %v", src.dtype, dst.dtype)
	}
	kind.Check(dst.Resize(src.Shape()))
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
	kind.Check(Copy(&between, src))
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
// package do, except Deviation and those of SoftmaxActivation. A kernel without code for
// accelerators may Copy its inputs to the CPU, Run there and Copy the result back.
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

// of returns the array with a shape. Its elements are undefined. It fails as kind.Need does,
// like all functions of this package that compute on an accelerator and return no error.
func (s *scratch) of(d *Device, dtype tensor.Dtype, shape ...int) *Array {
	if s.array == nil || s.array.on.device != d {
		s.array = kind.Got(NewArray(d, dtype, shape...))
	}
	kind.Check(s.array.Resize(shape))
	return s.array
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

// bits16 is a bfloat16 in memory: the upper half of a float32.
type bits16 uint16

// DtypeBFloat16 is the type of arrays of bfloat16. Only accelerators have such arrays.
// Copy rounds float32 to bfloat16 and widens it again. The nodes of a graph are still
// float32; ResultDtype returns the stored type.
var DtypeBFloat16 = tensor.Dtype{Type: reflect.TypeFor[bits16]()}

// A Storer is a Kernel whose result an accelerator may store in another type than the
// node's.
type Storer interface {
	Kernel

	// StoredAs returns the stored type of the result, given the stored types of the
	// operands.
	StoredAs(in []tensor.Dtype) tensor.Dtype
}

// ResultDtype returns the stored type of a node's result, which kernel k computes on a
// device from operands of the stored types in. Results of float32 may be stored as
// DtypeBFloat16 on an accelerator; gradients are stored in the type of their arrays, or
// as float32.
func ResultDtype(d *Device, k Kernel, node *gorgonia.Node, in []tensor.Dtype) tensor.Dtype {
	if s, ok := k.(Storer); ok && !d.OnHost() && node.Dtype() == tensor.Float32 {
		return s.StoredAs(in)
	}
	return node.Dtype()
}

// Operations that keep the type of their first operand.

// StoredAs implements Storer.
func (o *batchNorm) StoredAs(in []tensor.Dtype) tensor.Dtype { return in[0] }

// StoredAs implements Storer.
func (o *batchNormAdd) StoredAs(in []tensor.Dtype) tensor.Dtype { return in[0] }

// StoredAs implements Storer.
func (o *batchNormGrad) StoredAs(in []tensor.Dtype) tensor.Dtype { return in[0] }

// StoredAs implements Storer.
func (o *pairwise) StoredAs(in []tensor.Dtype) tensor.Dtype { return in[0] }

// StoredAs implements Storer.
func (o *globalAvgPoolGrad) StoredAs(in []tensor.Dtype) tensor.Dtype { return in[0] }

// StoredAs implements Storer. A result that is computed in bfloat16 stays in it; a
// gradient has the type of its operand.
func (o *convPass) StoredAs(in []tensor.Dtype) tensor.Dtype {
	switch {
	case o.of != convResult:
		return in[o.of]
	case o.precision == BFloat16:
		return DtypeBFloat16
	}
	return tensor.Float32
}

// half reports whether the elements are of bfloat16.
func (a *Array) half() bool { return a.dtype == DtypeBFloat16 }

// bytesEach returns the size of an element on an accelerator.
func (a *Array) bytesEach() int {
	if a.half() {
		return elementSize / 2
	}
	return elementSize
}

// convert is Copy between float32 and bfloat16, on one accelerator or between it and the
// program's memory.
func convert(dst, src *Array) (err error) {
	defer kind.Catch(&err)
	half, wide := src, dst
	if dst.half() {
		half, wide = dst, src
	}
	d := half.on.device
	switch wide.on.device {
	case d:
		kind.Check(dst.Resize(src.Shape()))
		return launchConversion(d, dst, src)
	case nil:
	default:
		return fmt.Errorf("op: an array of bfloat16 on %s cannot be copied to or from one on another accelerator", d.Name())
	}
	there := kind.Got(NewArray(d, tensor.Float32, src.Shape()...))
	defer there.Free()
	kind.Check(Copy(there, src))
	return Copy(dst, there)
}

// launchConversion rounds float32 to bfloat16 or widens bfloat16, as the types say, on an
// accelerator.
func launchConversion(d *Device, dst, src *Array) error {
	n, width := dst.Len(), 1
	if byFours(dst.Len(), dst, src) {
		width = 4
	}
	return d.Each(conversions.of(src.half(), width), n/width, dst.Arg(), src.Arg(), device.Int(n))
}

var conversions = variants{"round", "round_4", "widen", "widen_4"} // from float32, and from bfloat16

// variants are the forms of a kernel: for float32 one element and four elements at a
// time, then the same for bfloat16.
type variants [4]string

// of returns the kernel for width elements at a time, 1 or 4.
func (v *variants) of(half bool, width int) string {
	k := width / 4
	if half {
		k += 2
	}
	return v[k]
}

// A rounded is an operation's copy of an operand in bfloat16.
type rounded struct{ scratch }

// of returns an operand itself if it is bfloat16, otherwise a rounded copy.
func (r *rounded) of(d *Device, a *Array) *Array {
	if a.half() {
		return a
	}
	to := r.like(d, a.Shape())
	kind.Check(launchConversion(d, to, a))
	return to
}

// like returns an array of bfloat16 of a shape, with undefined elements.
func (r *rounded) like(d *Device, shape []int) *Array {
	return r.scratch.of(d, DtypeBFloat16, shape...)
}

// each runs one of the kernels on the elements of arrays of one size.
func (v *variants) each(d *Device, dst *Array, in ...*Array) error {
	n, width := dst.Len(), 1
	if byFours(n, append(in, dst)...) {
		width = 4
	}
	args := []Arg{dst.Arg()}
	for _, a := range in {
		if a.half() != dst.half() {
			return kind.Errorf(ErrInput, "op: %s: got arrays of float32 and of bfloat16, want one type", v[0])
		}
		args = append(args, a.Arg())
	}
	return d.Each(v.of(dst.half(), width), n/width, append(args, device.Int(n))...)
}

// byFours reports whether a kernel can take n elements of arrays four at a time: their
// number is a multiple of 4, and the addresses are multiples of 16 bytes.
func byFours(n int, arrays ...*Array) bool {
	return n%4 == 0 && !slices.ContainsFunc(arrays, func(a *Array) bool { return a.Pointer()%16 != 0 })
}

// A Precision is the rounding of the factors of a convolution's products. Sums are always
// float32, and so is all that the CPU stores. With BFloat16 an accelerator also stores
// the results of convolutions, and results computed from them, in bfloat16 (see
// ResultDtype).
type Precision int

const (
	// Float32 rounds nothing.
	Float32 Precision = iota
	// BFloat16 rounds to 7 stored bits of mantissa, with the exponents of float32.
	BFloat16
)

var precisionNames = kind.Names[Precision]{
	Package: "op", Type: "Precision", What: "precision", Err: ErrInput,
	Words: []string{"float32", "bf16"},
}

func (p Precision) String() string { return precisionNames.String(p) }

// MarshalText implements encoding.TextMarshaler by the precision's name.
func (p Precision) MarshalText() ([]byte, error) { return precisionNames.Text(p) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Precision) UnmarshalText(text []byte) error { return precisionNames.Parse(p, text) }

// Words returns the names of all precisions.
func (Precision) Words() []string { return slices.Clone(precisionNames.Words) }

// Native reports whether the processor has instructions for such products. Without them, the
// results take far longer.
func (p Precision) Native() bool { return p == Float32 || blas.BFloat16() }

// suffix returns the suffix of operations' names for this precision, "" for float32.
func (p Precision) suffix() string {
	if p == Float32 {
		return ""
	}
	return "_" + p.String()
}
