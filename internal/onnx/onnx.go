// Package onnx writes neural networks as ONNX files, in the form that most programs read:
// operator set 13, format 7, weights of float32 in the file, and shapes of input and output.
package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	format, operatorSet = 7, 13
	// maxBytes is the largest message of protocol buffers.
	maxBytes = math.MaxInt32
)

// A message is an encoded message of protocol buffers; the fields' numbers are onnx.proto's.
type message []byte

func (m *message) number(field protowire.Number, v int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
}

func (m *message) message(field protowire.Number, fill func(m *message)) {
	var inner message
	fill(&inner)
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), inner)
}

// A Graph is a network. Its nodes must be added in the order of their computation.
type Graph struct {
	body    message
	invalid error // the first
}

// An Attribute is an argument of a node: Value is an int or an []int.
type Attribute struct {
	Name  string
	Value any
}

// Add adds a node with an operator of ONNX, and returns output, the name of its result.
func (g *Graph) Add(output, operator string, inputs []string, attributes ...Attribute) string {
	g.body.message(1, func(node *message) {
		for _, name := range inputs {
			node.text(1, name)
		}
		node.text(2, output)
		node.text(3, output)
		node.text(4, operator)
		for _, a := range attributes {
			node.message(5, func(m *message) {
				m.text(1, a.Name)
				switch v := a.Value.(type) {
				case int:
					m.number(3, v)
					m.number(20, 2) // an INT
				case []int:
					for _, i := range v {
						m.number(8, i)
					}
					m.number(20, 7) // INTS
				}
			})
		}
	})
	return output
}

// Constant adds an array, and returns its name.
func (g *Graph) Constant(name string, values []float32, shape ...int) string {
	g.body.message(5, func(tensor *message) {
		for _, n := range shape {
			tensor.number(1, n)
		}
		tensor.number(2, 1) // of FLOAT
		tensor.text(8, name)
		raw := make([]byte, 0, 4*len(values))
		for _, v := range values {
			if v-v != 0 && g.invalid == nil {
				g.invalid = fmt.Errorf("onnx: %s: got %v, want finite numbers of float32", name, v)
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		*tensor = protowire.AppendBytes(protowire.AppendTag(*tensor, 9, protowire.BytesType), raw)
	})
	return name
}

// A Value is the input or output of a network. Each dimension is an int, or a string that
// names a number that may vary.
type Value struct {
	Name  string
	Shape []any
}

func (v Value) encode(m *message) {
	m.text(1, v.Name)
	m.message(2, func(m *message) {
		m.message(1, func(m *message) {
			m.number(1, 1) // of FLOAT
			m.message(2, func(m *message) {
				for _, n := range v.Shape {
					m.message(1, func(m *message) {
						if size, ok := n.(int); ok {
							m.number(1, size)
						} else {
							m.text(2, fmt.Sprint(n))
						}
					})
				}
			})
		})
	})
}

// Write writes the network, with remarks for programs that read them. It refuses networks of
// 2 GiB or more, and constants that are not finite.
func (g *Graph) Write(w io.Writer, input, output Value, remarks map[string]string) error {
	if g.invalid != nil {
		return g.invalid
	}
	var m message
	m.number(1, format)
	m.text(2, "cne")
	m.message(7, func(graph *message) {
		*graph = append(*graph, g.body...)
		graph.text(2, "cne")
		graph.message(11, input.encode)
		graph.message(12, output.encode)
	})
	m.message(8, func(m *message) { m.number(2, operatorSet) })
	for _, key := range slices.Sorted(maps.Keys(remarks)) {
		m.message(14, func(m *message) {
			m.text(1, key)
			m.text(2, remarks[key])
		})
	}
	if len(m) > maxBytes {
		return fmt.Errorf("onnx: got a network of %d bytes, want less than 2 GiB", len(m))
	}
	_, err := w.Write(m)
	return err
}
