package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cne/internal/safetensors"
	"cne/model/op"
)

// resNetStem is the tensor by which the state of a ResNet is known.
const resNetStem = "conv1.weight"

// Save writes the network to a safetensors file, complete or not at all: the
// parameters and the running statistics, with the names and shapes that PyTorch
// gives them. What d holds goes into the metadata, with a checksum.
func (n *ResNet[T]) Save(path string, d *Description) error {
	if err := n.onDevice.pull(); err != nil {
		return err
	}
	f := &safetensors.File{Tensors: map[string]safetensors.Tensor{}}
	for name, a := range n.Tensors() {
		f.Tensors[name] = tensorOf[T](a)
	}
	o := n.options
	return save(path, f, architecture{Kind: kindResNet, Widths: []int{o.Width, o.Hidden, o.Out}, DType: op.Dtype[T]().String()}, d)
}

// decodeResNet makes a network of a file's tensors. widths, if there are any,
// must be theirs.
func decodeResNet(f *safetensors.File, widths []int) (*ResNet[float32], error) {
	options, err := resNetOptionsOf(f)
	if err != nil {
		return nil, err
	}
	if found := []int{options.Width, options.Hidden, options.Out}; widths != nil && !slices.Equal(widths, found) {
		return nil, fmt.Errorf("widths: got %v, want %v as described", found, widths)
	}
	n, err := newResNet[float32](options, nil)
	if err != nil {
		return nil, err
	}
	tensors := n.Tensors()
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		if tensors[name] == nil && !strings.HasSuffix(name, ".num_batches_tracked") {
			return nil, fmt.Errorf("tensor %q belongs to another architecture than the ResNet18 for small images", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		to := tensors[name]
		from, err := resNetTensor(f, name, to.Shape()...)
		if err != nil {
			return nil, err
		}
		values := op.Data[float32](to)
		if err := copyNarrowed(values, from); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if err := checkFinite(values); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if strings.HasSuffix(name, "running_var") && slices.Min(values) < 0 {
			return nil, fmt.Errorf("tensor %q: got a variance of %g, want 0 or more", name, slices.Min(values))
		}
	}
	return n, nil
}

// copyNarrowed writes the elements of a tensor of F32 or F64 to dst.
func copyNarrowed(dst []float32, t safetensors.Tensor) error {
	if t.DType == safetensors.F32 {
		return safetensors.Copy(dst, t)
	}
	wide, err := t.Float64s()
	for i, v := range wide {
		dst[i] = float32(v)
	}
	return err
}

// resNetOptionsOf returns the widths of a file's tensors, from which it follows
// that the file is about as large as the network.
func resNetOptionsOf(f *safetensors.File) (o ResNetOptions, err error) {
	if t, ok := f.Tensors[resNetStem]; ok && len(t.Shape) == 4 {
		o.Width = t.Shape[0]
	}
	if t, ok := f.Tensors["fc1.weight"]; ok && len(t.Shape) == 2 {
		o.Hidden = t.Shape[0]
	}
	if t, ok := f.Tensors["fc2.weight"]; ok && len(t.Shape) == 2 {
		o.Out = t.Shape[0]
	}
	_, errStem := resNetTensor(f, resNetStem, o.Width, 3, 3, 3)
	_, errStage := resNetTensor(f, "layer4.1.conv2.weight", 8*o.Width, 8*o.Width, 3, 3)
	_, errHidden := resNetTensor(f, "fc1.weight", o.Hidden, 8*o.Width)
	_, errOut := resNetTensor(f, "fc2.weight", o.Out, o.Hidden)
	for _, err := range []error{errStem, errStage, errHidden, errOut} {
		if err != nil {
			return o, err
		}
	}
	if o.Width == 0 || o.Hidden == 0 || o.Out == 0 {
		return o, errors.New("it has layers without channels")
	}
	return o.complete()
}

// resNetTensor returns a tensor of a file, which must have that shape and hold
// numbers of a type that is known.
func resNetTensor(f *safetensors.File, name string, shape ...int) (safetensors.Tensor, error) {
	t, ok := f.Tensors[name]
	if !ok {
		return t, fmt.Errorf("it has no tensor %q; save the state of the whole module", name)
	}
	if t.DType != safetensors.F32 && t.DType != safetensors.F64 {
		return t, fmt.Errorf("tensor %q: got the type %s, want F32 or F64", name, t.DType)
	}
	if !slices.Equal(t.Shape, shape) {
		return t, fmt.Errorf("tensor %q: got the shape %v, want %v", name, t.Shape, shape)
	}
	return t, nil
}
