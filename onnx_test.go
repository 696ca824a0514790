package cne_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"cne"
	"cne/data"
	"cne/data/counts"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
)

// fields calls f for each field of a message of protocol buffers.
func fields(t *testing.T, m []byte, f func(number protowire.Number, v uint64, inner []byte)) {
	t.Helper()
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			t.Fatal("it is not a message of protocol buffers")
		}
		m = m[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(m)
			f(number, v, nil)
			m = m[n:]
		case protowire.BytesType:
			inner, n := protowire.ConsumeBytes(m)
			if n < 0 {
				t.Fatal("it is cut off")
			}
			f(number, 0, inner)
			m = m[n:]
		default:
			t.Fatalf("field %d has kind %d", number, kind)
		}
	}
}

// An array is a tensor of the reader below.
type array struct {
	shape []int
	x     []float64
}

type onnxNode struct {
	operator, output string
	inputs           []string
	ints             map[string][]int
}

// An onnxFile is what a file of this package may contain.
type onnxFile struct {
	format, operators uint64
	nodes             []onnxNode
	constants         map[string]array
	input, output     string
	shapes            map[string]string
	types             map[string]uint64
	remarks           map[string]string
}

func readONNX(t *testing.T, file []byte) *onnxFile {
	t.Helper()
	f := &onnxFile{constants: map[string]array{}, shapes: map[string]string{}, types: map[string]uint64{}, remarks: map[string]string{}}
	value := func(m []byte) (name string) {
		fields(t, m, func(n protowire.Number, _ uint64, inner []byte) {
			if n == 1 {
				name = string(inner)
				return
			}
			fields(t, inner, func(_ protowire.Number, _ uint64, inner []byte) {
				fields(t, inner, func(n protowire.Number, v uint64, inner []byte) {
					if n == 1 {
						f.types[name] = v
					}
					fields(t, inner, func(_ protowire.Number, _ uint64, inner []byte) {
						fields(t, inner, func(_ protowire.Number, v uint64, inner []byte) {
							f.shapes[name] += fmt.Sprintf(" %d%s", v, inner)
						})
					})
				})
			})
		})
		return name
	}
	node := func(m []byte) {
		x := onnxNode{ints: map[string][]int{}}
		fields(t, m, func(n protowire.Number, _ uint64, inner []byte) {
			switch n {
			case 1:
				x.inputs = append(x.inputs, string(inner))
			case 2:
				x.output = string(inner)
			case 4:
				x.operator = string(inner)
			case 5:
				name := ""
				fields(t, inner, func(n protowire.Number, v uint64, inner []byte) {
					if n == 1 {
						name = string(inner)
					} else if n != 20 {
						x.ints[name] = append(x.ints[name], int(v))
					}
				})
			}
		})
		f.nodes = append(f.nodes, x)
	}
	constant := func(m []byte) {
		name, a, kind := "", array{}, uint64(0)
		fields(t, m, func(n protowire.Number, v uint64, inner []byte) {
			switch n {
			case 1:
				a.shape = append(a.shape, int(v))
			case 2:
				kind = v
			case 8:
				name = string(inner)
			case 9:
				for i := 0; kind == 11 && i < len(inner); i += 8 {
					a.x = append(a.x, math.Float64frombits(binary.LittleEndian.Uint64(inner[i:])))
				}
				for i := 0; kind == 1 && i < len(inner); i += 4 {
					a.x = append(a.x, float64(math.Float32frombits(binary.LittleEndian.Uint32(inner[i:]))))
				}
			}
		})
		if _, twice := f.constants[name]; twice {
			t.Errorf("two constants %s", name)
		}
		f.constants[name] = a
	}
	fields(t, file, func(n protowire.Number, v uint64, inner []byte) {
		switch n {
		case 1:
			f.format = v
		case 8:
			fields(t, inner, func(_ protowire.Number, v uint64, _ []byte) { f.operators = v })
		case 14:
			var pair []string
			fields(t, inner, func(_ protowire.Number, _ uint64, inner []byte) { pair = append(pair, string(inner)) })
			f.remarks[pair[0]] = pair[1]
		case 7:
			fields(t, inner, func(n protowire.Number, _ uint64, inner []byte) {
				switch n {
				case 1:
					node(inner)
				case 5:
					constant(inner)
				case 11:
					f.input = value(inner)
				case 12:
					f.output = value(inner)
				}
			})
		}
	})
	return f
}

// run computes the network in float64, and checks that every constant is used.
func (f *onnxFile) run(t *testing.T, x array) []float64 {
	t.Helper()
	values, used := map[string]array{f.input: x}, map[string]bool{}
	for _, n := range f.nodes {
		var in []array
		for _, name := range n.inputs {
			v, ok := values[name]
			if c, constant := f.constants[name]; constant {
				v, ok = c, true
				used[name] = true
			}
			if !ok {
				t.Fatalf("%s reads %s, which is not there", n.output, name)
			}
			in = append(in, v)
		}
		values[n.output] = n.compute(t, in)
	}
	if len(used) != len(f.constants) {
		t.Errorf("%d of %d constants are used", len(used), len(f.constants))
	}
	return values[f.output].x
}

func (n *onnxNode) compute(t *testing.T, in []array) array {
	a := in[0]
	each := func(f func(v float64) float64) array {
		y := array{a.shape, slices.Clone(a.x)}
		for i, v := range y.x {
			y.x[i] = f(v)
		}
		return y
	}
	pair := func(f func(v, w float64) float64) array {
		b, y := in[1], array{a.shape, slices.Clone(a.x)}
		for i, v := range y.x {
			switch {
			case slices.Equal(a.shape, b.shape):
				y.x[i] = f(v, b.x[i])
			case len(b.shape) == 1:
				y.x[i] = f(v, b.x[i%len(b.x)])
			default: // [N, 1]
				y.x[i] = f(v, b.x[i/a.shape[1]])
			}
		}
		return y
	}
	product := func(b array, transposed bool, bias []float64) array {
		rows, k := a.shape[0], a.shape[1]
		columns := len(b.x) / k
		y := array{[]int{rows, columns}, make([]float64, rows*columns)}
		for i := range rows {
			for j := range columns {
				for e := range k {
					w := b.x[(e*columns+j)%len(b.x)]
					if transposed {
						w = b.x[j*k+e]
					}
					y.x[i*columns+j] += a.x[i*k+e] * w
				}
				if bias != nil {
					y.x[i*columns+j] += bias[j]
				}
			}
		}
		return y
	}
	switch n.operator {
	case "Identity":
		return a
	case "Cast":
		return each(func(v float64) float64 { return float64(float32(v)) })
	case "Relu":
		return each(func(v float64) float64 { return max(v, 0) })
	case "Softmax":
		y := each(func(v float64) float64 { return v })
		for i := 0; i < len(y.x); i += a.shape[1] {
			row := y.x[i : i+a.shape[1]]
			top, total := slices.Max(row), 0.0
			for j, v := range row {
				row[j] = math.Exp(v - top)
				total += row[j]
			}
			for j := range row {
				row[j] /= total
			}
		}
		return y
	case "Abs":
		return each(math.Abs)
	case "Sign":
		return each(func(v float64) float64 { return max(-1, min(1, v*math.MaxFloat64)) })
	case "Sqrt":
		return each(math.Sqrt)
	case "Add":
		return pair(func(v, w float64) float64 { return v + w })
	case "Sub":
		return pair(func(v, w float64) float64 { return v - w })
	case "Mul":
		return pair(func(v, w float64) float64 { return v * w })
	case "Div":
		return pair(func(v, w float64) float64 { return v / w })
	case "MatMul":
		return product(in[1], false, nil)
	case "Gemm":
		if !slices.Equal(n.ints["transB"], []int{1}) {
			t.Error("a layer has no transB")
		}
		return product(in[1], true, in[2].x)
	case "ReduceMax": // of rows
		y := array{[]int{a.shape[0], 1}, nil}
		for i := 0; i < len(a.x); i += a.shape[1] {
			y.x = append(y.x, slices.Max(a.x[i:i+a.shape[1]]))
		}
		return y
	case "Flatten":
		return array{[]int{a.shape[0], len(a.x) / a.shape[0]}, a.x}
	case "GlobalAveragePool":
		y, area := array{[]int{a.shape[0], a.shape[1], 1, 1}, make([]float64, a.shape[0]*a.shape[1])}, a.shape[2]*a.shape[3]
		for i, v := range a.x {
			y.x[i/area] += v / float64(area)
		}
		return y
	case "Conv":
		return convolved(a, in[1], in[2].x, n.ints["strides"][0], n.ints["pads"][0])
	}
	t.Fatalf("the operator %s is not known", n.operator)
	return array{}
}

func convolved(a, w array, bias []float64, stride, pad int) array {
	n, in, h, wide, out, size := a.shape[0], a.shape[1], a.shape[2], a.shape[3], w.shape[0], w.shape[2]
	rows, columns := (h+2*pad-size)/stride+1, (wide+2*pad-size)/stride+1
	y := array{[]int{n, out, rows, columns}, make([]float64, n*out*rows*columns)}
	for at := range y.x {
		c, o, i, k := at%columns, at/columns%rows, at/columns/rows%out, at/columns/rows/out
		sum := bias[i]
		for ch := range in {
			for dy := range size {
				for dx := range size {
					r, s := o*stride+dy-pad, c*stride+dx-pad
					if r >= 0 && r < h && s >= 0 && s < wide {
						sum += a.x[((k*in+ch)*h+r)*wide+s] * w.x[((i*in+ch)*size+dy)*size+dx]
					}
				}
			}
		}
		y.x[at] = sum
	}
	return y
}

// A runner runs an ONNX file in another program: on rows of float32 in x, at once and the
// first alone.
type runner struct {
	name string
	path []string // of the program
	need string   // fails unless the runtime is there
	run  string   // reads net.onnx, shape and x, and writes y
}

var runners = []runner{
	{"onnxruntime", []string{"node"}, "require('onnxruntime-node')", `
const ort = require('onnxruntime-node'), fs = require('fs');
(async () => { for (const folder of process.argv.slice(1)) {
  process.chdir(folder);
  const b = fs.readFileSync('x'), shape = JSON.parse(fs.readFileSync('shape'));
  const x = new Float32Array(b.buffer, b.byteOffset, b.length / 4), s = await ort.InferenceSession.create('net.onnx'), out = [];
  for (const n of [shape[0], 1]) {
    const t = new ort.Tensor('float32', x.slice(0, x.length / shape[0] * n), [n].concat(shape.slice(1)));
    const y = (await s.run({[s.inputNames[0]]: t}))[s.outputNames[0]].data;
    out.push(Buffer.from(y.buffer, y.byteOffset, y.byteLength));
  }
  fs.writeFileSync('y', Buffer.concat(out));
}})().catch(e => { console.error(e); process.exit(1) });`},
	{"OpenCV", []string{"python3", "/usr/bin/python3"}, "import cv2, numpy", `
import json, os, sys, cv2, numpy as np
for folder in sys.argv[1:]:
    os.chdir(folder)
    x = np.fromfile("x", np.float32).reshape(json.load(open("shape")))
    net, out = cv2.dnn.readNetFromONNX("net.onnx"), []
    for part in x, x[:1]:
        net.setInput(part)
        out.append(net.forward().reshape(-1).copy())
    np.concatenate(out).tofile("y")`},
	{"checker", []string{"python3", "/usr/bin/python3"}, "import onnx", `
import sys, onnx
for folder in sys.argv[1:]:
    onnx.checker.check_model(onnx.load(folder + "/net.onnx"), full_check=True)`},
}

// evalFlag is the flag with which a program takes code.
func evalFlag(program string) string {
	if program == "node" {
		return "-e"
	}
	return "-c"
}

var found = map[string]string{} // the programs of the runners

// find returns the program with the runtime, or "".
func (r *runner) find() string {
	program, known := found[r.name]
	for i := 0; !known && i < len(r.path); i++ {
		if exec.Command(r.path[i], evalFlag(r.path[i]), r.need).Run() == nil {
			program, known = r.path[i], true
		}
	}
	found[r.name] = program
	return program
}

// An onnxCase is a file with an input of a shape, and the results of cne.
type onnxCase struct {
	name, folder string
	shape        []int
	want         []float32
}

// An onnxCheck checks ONNX files: each by the reader above, and all together by the programs
// that are there, which take long to start.
type onnxCheck []onnxCase

// far returns the first value that differs from the results by more than 10⁻⁶ of the
// largest, 10⁻⁵ with landmarks, or −1, and the largest difference as a share of it.
func (c *onnxCase) far(n int, value func(i int) float64) (at int, worst float64) {
	largest, most := 0.0, 1e-6
	if strings.Contains(c.name, "landmarks") {
		most = 1e-5
	}
	for _, v := range c.want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range n {
		off := math.Abs(value(i) - float64(c.want[i%len(c.want)]))
		if worst = max(worst, off/largest); !(off <= most*largest) {
			return i, worst
		}
	}
	return -1, worst
}

// add checks a file by the reader above, and keeps it for run.
func (all *onnxCheck) add(t *testing.T, folder string, file []byte, shape []int, x, want []float32) {
	t.Helper()
	f := readONNX(t, file)
	if f.format != 7 || f.operators != 13 {
		t.Errorf("format %d with operators %d", f.format, f.operators)
	}
	in := array{shape, make([]float64, len(x))}
	for i, v := range x {
		in.x[i] = float64(v)
	}
	c := onnxCase{t.Name(), filepath.Join(folder, strconv.Itoa(len(*all))), shape, want}
	*all = append(*all, c)
	got := f.run(t, in)
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	if at, worst := c.far(len(got), func(i int) float64 { return got[i] }); at >= 0 {
		t.Errorf("exact: value %d is %v, want %v: %.2g of the largest", at, got[at], want[at], worst)
	}
	must(t, os.Mkdir(c.folder, 0o777))
	put := func(name string, content []byte) {
		must(t, os.WriteFile(filepath.Join(c.folder, name), content, 0o666))
	}
	put("net.onnx", file)
	put("shape", bytes.ReplaceAll(fmt.Append(nil, shape), []byte(" "), []byte(",")))
	var raw bytes.Buffer
	must(t, binary.Write(&raw, binary.LittleEndian, x))
	put("x", raw.Bytes())
}

// run checks the files by the programs: with all of the input, and with the first row of it.
func (all onnxCheck) run(t *testing.T) {
	for _, r := range runners {
		program := r.find()
		if program == "" {
			t.Logf("%s is not there", r.name)
			continue
		}
		args := []string{evalFlag(program), r.run}
		for _, c := range all {
			args = append(args, c.folder)
		}
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", r.name, err, out)
			continue
		}
		for _, c := range all {
			if r.name == "checker" {
				break
			}
			text, err := os.ReadFile(filepath.Join(c.folder, "y"))
			must(t, err)
			n := len(c.want) + len(c.want)/c.shape[0]
			if len(text) != 4*n {
				t.Errorf("%s: %s: %d bytes for %d values", c.name, r.name, len(text), len(c.want))
				continue
			}
			value := func(i int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(text[4*i:]))) }
			at, worst := c.far(n, value)
			if at >= 0 {
				t.Errorf("%s: %s: value %d is %v, want %v", c.name, r.name, at, value(at), c.want[at%len(c.want)])
			}
			t.Logf("%s: %s: %.2g of the largest", c.name, r.name, worst)
		}
	}
}

// Programs that read ONNX place points where Project does: raw points, prepared in every way
// that a network knows.
func TestWriteONNX(t *testing.T) {
	var all onnxCheck
	folder, digits := t.TempDir(), pixels(64)
	s := rng.New(1, rng.Sample)
	columns := data.NewMatrix(64, 9) // of several scales, far from 0
	for i := range columns.X {
		j := i % 9
		columns.X[i] = float32(100*float64(j) + s.Normal()*float64(j+1))
		if j == 5 {
			columns.X[i] = 3 // constant
		}
	}
	columns.Columns = []string{"a", "b", "c", "d", "e", "f", "g \"h\"", "i", "j"}
	for name, x := range map[string]struct {
		points *data.Matrix
		change func(*cne.Options)
	}{
		"pixels":                {digits, func(o *cne.Options) { o.Hidden = model.DefaultHidden }},
		"one layer":             {digits, func(o *cne.Options) { o.Hidden = []int{} }},
		"float64":               {digits, func(o *cne.Options) { o.Float64 = true }},
		"components":            {digits, func(o *cne.Options) { o.OnComponents, o.Components = true, new(20) }},
		"components, cosine":    {digits, func(o *cne.Options) { o.OnComponents, o.Components, o.GraphMetric = true, new(20), data.Cosine }},
		"cosine":                {digits, func(o *cne.Options) { o.GraphMetric = data.Cosine }},
		"correlation":           {digits, func(o *cne.Options) { o.GraphMetric = data.Correlation }},
		"jaccard":               {digits, func(o *cne.Options) { o.GraphMetric = data.Jaccard }},
		"none":                  {digits, func(o *cne.Options) { o.Scaling = data.ScaleNone }},
		"standard":              {columns, func(o *cne.Options) { o.Scaling = data.ScaleStandard }},
		"standard, cosine":      {columns, func(o *cne.Options) { o.Scaling, o.GraphMetric = data.ScaleStandard, data.Cosine }},
		"standard, components":  {columns, func(o *cne.Options) { o.Scaling, o.OnComponents, o.Components = data.ScaleStandard, true, new(4) }},
		"square, 5 dimensions":  {columns, func(o *cne.Options) { o.Scaling, o.Hidden, o.Dim = data.ScaleStandard, []int{9, 9}, 5 }},
		"landmarks":             {digits, func(o *cne.Options) { o.Hidden = nil }},
		"landmarks, standard":   {columns, func(o *cne.Options) { o.Hidden, o.Scaling = nil, data.ScaleStandard }},
		"landmarks, components": {digits, func(o *cne.Options) { o.Hidden, o.Components = nil, new(20) }},
		"unit, several columns": {columns, func(o *cne.Options) { o.Scaling = data.ScaleUnit }},
	} {
		t.Run(name, func(t *testing.T) {
			o := cne.Options{Epochs: 3, Neighbors: 5, Hidden: []int{20, 7}}
			x.change(&o)
			e := embed(t, x.points, o)
			if o.Hidden == nil {
				must(t, e.LearnNetwork(t.Context(), nil))
			}
			test := x.points.Clone()
			if name == "standard" {
				test.Row(0)[5] = 7 // a constant column changes nothing
			}
			var file, again bytes.Buffer
			must(t, e.WriteONNX(&file))
			all.add(t, folder, file.Bytes(), []int{test.N, test.D}, test.X, project(t, e, test).X)
			f := readONNX(t, file.Bytes())
			if want := fmt.Sprintf(" 0N %d", test.D); f.shapes["points"] != want || f.shapes["positions"] != fmt.Sprintf(" 0N %d", e.Dim()) {
				t.Errorf("the shapes are %v", f.shapes)
			}
			if test.Columns != nil && f.remarks["columns"] != `["a","b","c","d","e","f","g \"h\"","i","j"]` {
				t.Errorf("the remarks are %v", f.remarks)
			}
			path := filepath.Join(t.TempDir(), model.RunFile)
			must(t, e.Save(path))
			loaded, err := cne.Load(path)
			must(t, err)
			must(t, loaded.WriteONNX(&again))
			if !bytes.Equal(file.Bytes(), again.Bytes()) {
				t.Error("a loaded network has another file")
			}
		})
	}
	all.run(t)
}

// Points that float32 does not hold, such as times in milliseconds, are float64 in the file.
func TestWriteONNXOfOffset(t *testing.T) {
	const n = 60
	s, rows, x := rng.New(3, rng.Sample), make([][]float64, n), array{[]int{n, 2}, nil}
	for i := range rows {
		rows[i] = []float64{1.7e12 + 100*s.Float64(), 10000 + s.Float64()}
		x.x = append(x.x, rows[i]...)
	}
	for _, scaling := range []data.Scaling{data.ScaleUnit, data.ScaleStandard, data.ScaleNone} {
		m, err := data.FromRows(rows)
		must(t, err)
		e := embed(t, m, few(func(o *cne.Options) { o.Hidden, o.Scaling = []int{9}, scaling }))
		var file bytes.Buffer
		must(t, e.WriteONNX(&file))
		f, want := readONNX(t, file.Bytes()), project(t, e, m).X
		if f.types["points"] != 11 || f.types["positions"] != 1 {
			t.Errorf("%v: the types are %v, want DOUBLE and FLOAT", scaling, f.types)
		}
		c, got := onnxCase{want: want}, f.run(t, x)
		if at, worst := c.far(len(got), func(i int) float64 { return got[i] }); at >= 0 {
			t.Errorf("%v: value %d is %v, want %v: %.2g of the largest", scaling, at, got[at], want[at], worst)
		}
	}
}

// What ONNX cannot express is an error.
func TestRefusesONNX(t *testing.T) {
	n, err := model.NewMLP[float32](3, nil, 2, 1)
	must(t, err)
	for name, p := range map[string]*model.Preprocessing{
		"counts": {Width: 3, Counts: &counts.Scaling{}},
		"means":  {Width: 3, Fill: []float32{1, 2, 3}},
	} {
		var file bytes.Buffer
		if err := n.WriteONNX(&file, p); !errors.Is(err, model.ErrONNX) || file.Len() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var file bytes.Buffer
	if err := embed(t, points(t, 20), few(nil)).WriteONNX(&file); !errors.Is(err, model.ErrONNX) {
		t.Errorf("a map without a network: %v", err)
	}
	if err := new(cne.Embedding).WriteONNX(&file); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("nothing: %v", err)
	}
	wide, err := model.NewMLP[float64](3, nil, 2, 1)
	must(t, err)
	trained, err := model.NewParametric(wide, make([]float64, 9), op.ContrastiveOptions{Clamp: 1e-10})
	must(t, err)
	op.Data[float64](trained.Parameters()[0].Value)[4] = 1e300
	if err := wide.WriteONNX(&file, nil); err == nil || file.Len() > 0 {
		t.Error("a weight beyond float32 is written")
	}
	if err := n.WriteONNX(fullDisk{}, nil); !errors.Is(err, errDisk) {
		t.Errorf("a full disk: %v", err)
	}
}

var errDisk = errors.New("no space")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errDisk }

// Programs that read ONNX represent and place images as the ResNet does.
func TestWriteONNXOfImages(t *testing.T) {
	var all onnxCheck
	for _, small := range []bool{false, true} {
		all.addImages(t, small)
	}
	all.run(t)
}

// addImages adds a ResNet.
func (all *onnxCheck) addImages(t *testing.T, small bool) {
	folder := t.TempDir()
	n, err := model.NewResNet[float32](model.ResNetOptions{Small: small, Width: 4, Hidden: 9, Out: 2}, 1)
	must(t, err)
	s := rng.New(2, rng.Sample)
	tensors := n.Tensors()
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		a := tensors[name]
		for i, v := range op.Data[float32](a) {
			if len(a.Shape()) == 1 { // normalisations are not the identity
				op.Data[float32](a)[i] = v + float32(0.3*s.Float64())
			}
		}
	}
	const images, size = 3, 16
	x := make([]float32, images*3*size*size)
	for i := range x {
		x[i] = float32(s.Float64())
	}
	in := &model.ImageInput{Size: size, Mean: [3]float64{0.49, 0.48, 0.45}, Std: [3]float64{0.2, 0.19, 0.21}}
	scaled := slices.Clone(x)
	for i, v := range x {
		c := i / (size * size) % 3
		scaled[i] = float32((float64(v) - in.Mean[c]) / in.Std[c])
	}
	h, z := make([]float32, images*n.Width()), make([]float32, images*2)
	must(t, errors.Join(n.RepresentTo(h, scaled, size, size), n.ProjectTo(z, scaled, size, size)))
	for _, tc := range []struct {
		in        *model.ImageInput
		represent bool
		x, want   []float32
	}{{in, false, x, z}, {in, true, x, h}, {nil, false, scaled, z}, {nil, true, scaled, h}} {
		var file bytes.Buffer
		must(t, n.WriteONNX(&file, tc.in, tc.represent))
		all.add(t, folder, file.Bytes(), []int{images, 3, size, size}, tc.x, tc.want)
	}
}
