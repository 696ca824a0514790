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
func convert(dst, src *Array) error {
	d := dst.on.device
	if src.half() {
		d = src.on.device
	}
	if (dst.on.device != nil && dst.on.device != d) || (src.on.device != nil && src.on.device != d) {
		return fmt.Errorf("op: an array of bfloat16 on %s cannot be copied to or from one on another accelerator", d.Name())
	}
	here := func(a *Array) (*Array, error) { // a copy of a on the accelerator
		if a.on.device == d {
			return a, nil
		}
		return NewArray(d, tensor.Float32, src.Shape()...)
	}
	to, err := here(dst)
	if err != nil {
		return err
	}
	from, err := here(src)
	if err != nil {
		return err
	}
	if from != src {
		defer from.Free()
		if err := Copy(from, src); err != nil {
			return err
		}
	}
	if err := to.Resize(src.Shape()); err != nil {
		return err
	}
	if err := launchConversion(d, to, from); err != nil || to == dst {
		return err
	}
	defer to.Free()
	return Copy(dst, to)
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
func (r *rounded) of(d *Device, a *Array) (*Array, error) {
	if a.half() {
		return a, nil
	}
	to, err := r.like(d, a.Shape())
	if err != nil {
		return nil, err
	}
	return to, launchConversion(d, to, a)
}

// like returns an array of bfloat16 of a shape, with undefined elements.
func (r *rounded) like(d *Device, shape []int) (*Array, error) {
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

// Native reports whether the processor has instructions for such products. Without them,
// the results are the same but take far longer.
func (p Precision) Native() bool { return p == Float32 || blas.BFloat16() }

// suffix returns the suffix of operations' names for this precision, "" for float32.
func (p Precision) suffix() string {
	if p == Float32 {
		return ""
	}
	return "_" + p.String()
}
