package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A network becomes a file that most programs read: operator set 13, format 7, weights of
// float32 in the file, and shapes of input and output.
const (
	onnxFormat, operatorSet = 7, 13
	// maxONNXBytes is the largest message of protocol buffers.
	maxONNXBytes = math.MaxInt32
)

// An onnxMessage is an encoded message of protocol buffers; the fields' numbers are onnx.proto's.
type onnxMessage []byte

func (m *onnxMessage) number(field protowire.Number, v int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *onnxMessage) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
}

func (m *onnxMessage) message(field protowire.Number, fill func(m *onnxMessage)) {
	var inner onnxMessage
	fill(&inner)
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), inner)
}

// An onnxGraph is a network. Its nodes must be added in the order of their computation.
type onnxGraph struct {
	body    onnxMessage
	invalid error // the first
}

// An onnxAttribute is an argument of a node: Value is an int or an []int.
type onnxAttribute struct {
	Name  string
	Value any
}

// add adds a node with an operator of ONNX, and returns output, the name of its result.
func (g *onnxGraph) add(output, operator string, inputs []string, attributes ...onnxAttribute) string {
	g.body.message(1, func(node *onnxMessage) {
		for _, name := range inputs {
			node.text(1, name)
		}
		node.text(2, output)
		node.text(3, output)
		node.text(4, operator)
		for _, a := range attributes {
			node.message(5, func(m *onnxMessage) {
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

// constant adds an array, and returns its name.
func (g *onnxGraph) constant(name string, values []float32, shape ...int) string {
	g.body.message(5, func(tensor *onnxMessage) {
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

// An onnxValue is the input or output of a network. Each dimension is an int, or a string that
// names a number that may vary.
type onnxValue struct {
	Name  string
	Shape []any
}

func (v onnxValue) encode(m *onnxMessage) {
	m.text(1, v.Name)
	m.message(2, func(m *onnxMessage) {
		m.message(1, func(m *onnxMessage) {
			m.number(1, 1) // of FLOAT
			m.message(2, func(m *onnxMessage) {
				for _, n := range v.Shape {
					m.message(1, func(m *onnxMessage) {
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

// write writes the network, with remarks for programs that read them. It refuses networks of
// 2 GiB or more, and constants that are not finite.
func (g *onnxGraph) write(w io.Writer, input, output onnxValue, remarks map[string]string) error {
	if g.invalid != nil {
		return g.invalid
	}
	var m onnxMessage
	m.number(1, onnxFormat)
	m.text(2, "cne")
	m.message(7, func(graph *onnxMessage) {
		*graph = append(*graph, g.body...)
		graph.text(2, "cne")
		graph.message(11, input.encode)
		graph.message(12, output.encode)
	})
	m.message(8, func(m *onnxMessage) { m.number(2, operatorSet) })
	for _, key := range slices.Sorted(maps.Keys(remarks)) {
		m.message(14, func(m *onnxMessage) {
			m.text(1, key)
			m.text(2, remarks[key])
		})
	}
	if len(m) > maxONNXBytes {
		return fmt.Errorf("onnx: got a network of %d bytes, want less than 2 GiB", len(m))
	}
	_, err := w.Write(m)
	return err
}
