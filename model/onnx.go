package model

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model/op"
)

// ErrONNX is wrapped by errors about models that an ONNX file cannot express.
var ErrONNX = errors.New("model: it cannot be written as ONNX")

// WriteONNX writes the network and the preprocessing as an ONNX file. Its input "points" [N,
// width] are points as they were read, its output "positions" [N, out]. The largest
// difference from ProjectTo is about 10⁻⁶ of the largest position. Points without a
// direction, which cne does not place, get the position of the zero vector. Points are
// float64 if the preprocessing has an Offset, because float32 does not hold them.
//
// The error wraps ErrONNX for a preprocessing of counts, and one that fills missing values.
func (n *MLP[T]) WriteONNX(w io.Writer, p *Preprocessing) (err error) {
	defer kind.Catch(&err)
	kind.Check(n.onDevice.pull())
	width, out := n.Size()
	g, x, remarks := new(onnxGraph), "points", map[string]string{}
	var axes []float64
	if p != nil {
		width = p.Width
		x = kind.Got(p.addTo(g, x))
		if p.PCA != nil {
			axes = p.PCA.Axes
		}
		if p.Columns != nil {
			names := kind.Got(json.Marshal(p.Columns))
			remarks["columns"] = string(names)
		}
	}
	for l := range len(n.widths) - 1 {
		weights, bias := n.parameters[2*l], n.parameters[2*l+1]
		values, out, in := selection.As[float32](op.Data[T](weights.Value)), n.widths[l+1], n.widths[l]
		if l == 0 && axes != nil { // the components are part of the first layer
			values, in = selection.As[float32](timesAxes(op.Data[T](weights.Value), axes, in)), width
		}
		if n.acts[l] == densest {
			newModes(n.layer(l)).addTo(g, x, "positions")
			break
		}
		name := selection.If(l < len(n.widths)-2, strconv.Itoa(2*l), "positions")
		x = gemm(g, name, x, weights.Name, values, bias.Name, selection.As[float32](op.Data[T](bias.Value)), out, in)
		switch after := strconv.Itoa(2*l + 1); n.acts[l] {
		case op.ReLUActivation:
			x = g.add(after, "Relu", []string{x})
		case op.SoftmaxActivation:
			x = g.add(after, "Softmax", []string{x}, onnxAttribute{Name: "axis", Value: 1})
		}
	}
	points := onnxValue{Name: "points", Shape: []any{"N", width}}
	if p != nil && p.Scaler != nil && p.Scaler.Offset != nil {
		points.Type = onnxDouble
	}
	return g.write(w, points, onnxValue{Name: "positions", Shape: []any{"N", out}}, remarks)
}

// gemm adds a linear layer. With transB = 0, OpenCV 4.6 would transpose a square weight.
func gemm(g *onnxGraph, output, x, name string, weights []float32, biasName string, bias []float32, out, in int) string {
	return g.add(output, "Gemm", []string{x, g.constant(name, weights, out, in), g.constant(biasName, bias, out)},
		onnxAttribute{Name: "transB", Value: 1})
}

// addTo adds the preprocessing of x to a graph, but for the product with the axes of the
// components, and returns its result.
func (p *Preprocessing) addTo(g *onnxGraph, x string) (string, error) {
	switch {
	case p.Counts != nil:
		return "", fmt.Errorf("%w: its points are counts of genes, which cne finds by name and normalises", ErrONNX)
	case p.Fill != nil:
		return "", fmt.Errorf("%w: it replaces missing values, which hardly a program that reads ONNX can; one trained with data.missing refuse (or drop, if values are missing) can be written", ErrONNX)
	}
	with := func(output, operator, x, name string, values []float32, shape ...int) string {
		return g.add(output, operator, []string{x, g.constant(name, values, shape...)})
	}
	// A mean is subtracted in two parts, because float32 would round it.
	subtract := func(output, x string, mean []float64) string {
		high := selection.As[float32](mean)
		low := make([]float32, len(mean))
		for j, v := range high {
			low[j] = float32(mean[j] - float64(v))
		}
		x = with(output, "Sub", x, output+".mean", high, len(high))
		if slices.Max(low) != 0 || slices.Min(low) != 0 {
			x = with(output+".exact", "Sub", x, output+".rest", low, len(low))
		}
		return x
	}
	if s := p.Scaler; s != nil {
		if s.Offset != nil {
			raw, _ := binary.Append(nil, binary.LittleEndian, s.Offset) // of fixed size
			x = g.add("exact", "Sub", []string{x, g.tensor("offset", onnxDouble, raw, p.Width)})
			x = g.add("shifted", "Cast", []string{x}, onnxAttribute{Name: "to", Value: onnxFloat})
		}
		switch s.Kind {
		case data.ScaleUnit:
			x = with("scaled", "Div", x, "divisor", []float32{s.Divisor}, 1)
		case data.ScaleStandard:
			sd, varies := selection.As[float32](s.SD), slices.Repeat([]float32{1}, p.Width)
			for j, v := range sd {
				if v == 0 { // the column becomes 0
					sd[j], varies[j] = 1, 0
				}
			}
			x = with("scaled", "Div", subtract("centered", x, s.Mean), "deviation", sd, p.Width)
			if slices.Contains(varies, 0) {
				x = with("varying", "Mul", x, "varies", varies, p.Width)
			}
		}
	}
	if p.Metric == data.Jaccard {
		x = g.add("set", "Sign", []string{g.add("magnitude", "Abs", []string{x})})
	}
	if p.Metric == data.Correlation {
		mean := with("mean", "MatMul", x, "average", slices.Repeat([]float32{1 / float32(p.Width)}, p.Width), p.Width, 1)
		means := with("means", "MatMul", mean, "spread", slices.Repeat([]float32{1}, p.Width), 1, p.Width) // OpenCV does not subtract a column
		x = g.add("relative", "Sub", []string{x, means})
	}
	if p.Metric.Angular() {
		same := g.add("same", "Identity", []string{x}) // onnx-go takes no node with one input twice
		squares := with("length2", "MatMul", g.add("squares", "Mul", []string{x, same}), "ones", slices.Repeat([]float32{1}, p.Width), p.Width, 1)
		length := with("length", "Add", g.add("root", "Sqrt", []string{squares}), "least", []float32{1e-30}, 1)
		x = g.add("direction", "Div", []string{x, length})
	}
	if p.PCA != nil {
		x = subtract("components", x, p.PCA.Mean)
	}
	return x, nil
}

// WriteONNX writes the network as an ONNX file. Its input "images" [N, 3, size, size] has
// pixels from 0 to 1, which the network normalises as in says, or, if that is nil, images of
// any size that are normalised. Its output is "positions" [N, Out], the head's, or with
// represent "representation" [N, Width()].
func (n *ResNet[T]) WriteONNX(w io.Writer, in *ImageInput, represent bool) (err error) {
	defer kind.Catch(&err)
	kind.Check(n.onDevice.pull())
	g, x, shape := new(onnxGraph), "images", []any{"N", 3, "H", "W"}
	convolve := func(output, x string, weights, bias []float32, out, in, size, stride int) string {
		at := func(name string, v ...int) onnxAttribute { return onnxAttribute{Name: name, Value: v} }
		pad := (size - 1) / 2
		return g.add(output, "Conv", []string{x, g.constant(output+".weight", weights, out, in, size, size),
			g.constant(output+".bias", bias, out)},
			at("kernel_shape", size, size), at("strides", stride, stride), at("pads", pad, pad, pad, pad), at("dilations", 1,
				1), onnxAttribute{Name: "group", Value: 1})
	}
	if in != nil {
		shape[2], shape[3] = in.Size, in.Size
		weights, bias := make([]float32, 9), make([]float32, 3)
		for c, std := range in.Std {
			weights[4*c], bias[c] = float32(1/std), float32(-in.Mean[c]/std)
		}
		x = convolve("normalized", x, weights, bias, 3, 3, 1, 1)
	}
	tensors := n.Tensors()
	values := func(name string) []T { return op.Data[T](tensors[name]) }
	// layer adds a convolution with its batch normalisation.
	layer := func(x, conv, norm string, stride int) string {
		shape := tensors[conv+".weight"].Shape()
		weights, bias := selection.As[float32](values(conv+".weight")), selection.As[float32](values(norm+".bias"))
		gamma, mean, variance := values(norm+".weight"), values(norm+".running_mean"), values(norm+".running_var")
		each := len(weights) / shape[0]
		for o := range shape[0] {
			scale := float64(gamma[o]) / math.Sqrt(float64(variance[o])+op.NormEpsilon)
			for i, v := range values(conv + ".weight")[o*each : (o+1)*each] {
				weights[o*each+i] = float32(float64(v) * scale)
			}
			bias[o] = float32(float64(values(norm + ".bias")[o]) - float64(float64(mean[o])*scale))
		}
		return convolve(conv, x, weights, bias, shape[0], shape[1], shape[2], stride)
	}
	relu := func(x string) string { return g.add(x+".relu", "Relu", []string{x}) }
	of := shapes[n.options.Small]
	x = relu(layer(x, "conv1", "bn1", of.stride))
	for stage, stride := range of.stages {
		for block := range of.blocks {
			name, short := fmt.Sprintf("layer%d.%d", stage+1, block), x
			if block == 0 && tensors[name+".shortcut.0.weight"] != nil {
				short = layer(x, name+".shortcut.0", name+".shortcut.1", stride)
			}
			x = layer(relu(layer(x, name+".conv1", name+".bn1", stride)), name+".conv2", name+".bn2", 1)
			x, stride = relu(g.add(name, "Add", []string{x, short})), 1
		}
	}
	x = g.add("pooled", "GlobalAveragePool", []string{x})
	width, output := n.Width(), "representation"
	x = g.add(output, "Flatten", []string{x})
	if !represent {
		linear := func(output, x, name string, out, in int) string {
			return gemm(g, output, x, name+".weight", selection.As[float32](values(name+".weight")), name+".bias", selection.As[float32](values(name+".bias")), out, in)
		}
		o := n.options
		x = relu(linear("hidden", x, "fc1", o.Hidden, width))
		width, output = o.Out, linear("positions", x, outputLayer, o.Out, o.Hidden)
	}
	return g.write(w, onnxValue{Name: "images", Shape: shape}, onnxValue{Name: output, Shape: []any{"N", width}}, nil)
}

// A network becomes a file that most programs read: operator set 13, format 7, weights of
// float32 in the file, and shapes of input and output.
const (
	onnxFormat, operatorSet = 7, 13
	// maxONNXBytes is the largest message of protocol buffers.
	maxONNXBytes = math.MaxInt32

	onnxFloat, onnxDouble = 1, 11 // the types of numbers
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
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		if v-v != 0 && g.invalid == nil {
			g.invalid = fmt.Errorf("onnx: %s: got %v, want finite numbers of float32", name, v)
		}
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return g.tensor(name, onnxFloat, raw, shape...)
}

// tensor adds an array of a type, and returns its name.
func (g *onnxGraph) tensor(name string, of int, raw []byte, shape ...int) string {
	g.body.message(5, func(tensor *onnxMessage) {
		for _, n := range shape {
			tensor.number(1, n)
		}
		tensor.number(2, of)
		tensor.text(8, name)
		*tensor = protowire.AppendBytes(protowire.AppendTag(*tensor, 9, protowire.BytesType), raw)
	})
	return name
}

// An onnxValue is the input or output of a network. Each dimension is an int, or a string that
// names a number that may vary.
type onnxValue struct {
	Name  string
	Type  int // 0: onnxFloat
	Shape []any
}

func (v onnxValue) encode(m *onnxMessage) {
	m.text(1, v.Name)
	m.message(2, func(m *onnxMessage) {
		m.message(1, func(m *onnxMessage) {
			m.number(1, cmp.Or(v.Type, onnxFloat))
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
