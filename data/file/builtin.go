package file

import (
	"bytes"
	_ "embed" // for the two files below
	"fmt"

	"cne/data"
)

//go:embed builtin/t10k-images-idx3-ubyte.gz
var mnistTestImages []byte

//go:embed builtin/t10k-labels-idx1-ubyte.gz
var mnistTestLabels []byte

const builtinName = "mnist10k"

// BuiltinNames returns the names that Builtin knows.
func BuiltinNames() []string { return []string{builtinName} }

// Builtin returns data that the program carries inside itself. The one name
// is "mnist10k": MNIST's 10 000 test images of 28×28 pixels (values 0 to 255)
// with their digits. Another name gives ErrOption.
func Builtin(name string) (*data.Dataset, error) {
	if name != builtinName {
		return nil, errorf(data.ErrOption, "built-in data set: got %q, want one of %q", name, BuiltinNames())
	}
	ds, err := Decode(bytes.NewReader(mnistTestImages), Options{})
	if err != nil {
		return nil, fmt.Errorf("built-in data set %s: %w", name, err)
	}
	labels, err := builtinLabels()
	if err != nil {
		return nil, fmt.Errorf("built-in data set %s: %w", name, err)
	}
	ds.Name, ds.Labels = name, data.NewLabels(labels)
	return ds, ds.Check()
}

// BuiltinSize returns the size of what Builtin returns.
func BuiltinSize(name string) (data.Size, error) {
	if name != builtinName {
		_, err := Builtin(name)
		return data.UnknownSize, err
	}
	return data.SizeOf(10000, 28*28), nil
}

func builtinLabels() ([]string, error) {
	in, err := newInput(bytes.NewReader(mnistTestLabels))
	if err != nil {
		return nil, err
	}
	r, err := idxHeader.labels(in)
	if err != nil {
		return nil, err
	}
	return r.allLabels()
}
