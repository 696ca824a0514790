package data

import (
	"bytes"
	"context"
	_ "embed" // for the two files below
	"fmt"
)

//go:embed builtin/t10k-images-idx3-ubyte.gz
var mnistTestImages []byte

//go:embed builtin/t10k-labels-idx1-ubyte.gz
var mnistTestLabels []byte

// BuiltinNames returns the names that Builtin knows.
func BuiltinNames() []string { return []string{"mnist10k"} }

// Builtin returns data that the program carries inside itself. The one name
// is "mnist10k": MNIST's 10 000 test images of 28×28 pixels (values 0 to 255)
// with their digits. Another name gives ErrOption.
func Builtin(name string) (*Dataset, error) {
	if name != "mnist10k" {
		return nil, errorf(ErrOption, "there is no built-in data set %q; the names are %q", name, BuiltinNames())
	}
	ds, err := ReadIDX(bytes.NewReader(mnistTestImages))
	if err != nil {
		return nil, fmt.Errorf("built-in data set %s: %w", name, err)
	}
	labels, err := builtinLabels(mnistTestLabels)
	if err != nil {
		return nil, fmt.Errorf("built-in data set %s: %w", name, err)
	}
	ds.Name, ds.Labels = name, NewLabels(labels)
	return ds, ds.Check()
}

// BuiltinImages returns the images of which the points of Builtin consist, with
// the same labels.
func BuiltinImages(name string) (*Images, error) {
	ds, err := Builtin(name)
	if err != nil {
		return nil, err
	}
	s, err := newByteSource(context.Background(), bytes.NewReader(mnistTestImages))
	if err != nil {
		return nil, err
	}
	p, err := readPictureArray(s, formatIDX)
	if err != nil {
		return nil, fmt.Errorf("built-in data set %s: %w", name, err)
	}
	return &Images{Name: ds.Name, N: ds.Points.N, H: p.h, W: p.w, C: p.c, Pixels: p.pixels, Labels: ds.Labels}, nil
}

func builtinLabels(file []byte) ([]string, error) {
	s, err := newByteSource(context.Background(), bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	a, err := idxHeader(s)
	if err != nil {
		return nil, err
	}
	b, err := a.labels(s)
	if err != nil {
		return nil, err
	}
	return b.readLabels()
}
