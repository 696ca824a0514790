package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/safetensors"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model/op"
)

// ErrFile is wrapped by errors about model files that are damaged, of another version, or
// not model files.
var ErrFile = errors.New("model: the file cannot be used")

// A Description is saved with a model. It says how to use the model and where it comes
// from. Points is the only part with training data.
type Description struct {
	// Points [n, p] are the preprocessed training points of an Embedding, which can place new
	// points only with them. nil leaves them out of the file.
	Points *data.Matrix

	// Preprocessing is applied to new points; nil means none.
	Preprocessing *Preprocessing
	// Images says how to prepare images for a ResNet; nil means unknown.
	Images *ImageInput
	// Training has the options of the training.
	Training FitInfo
	// Labels are the names of the classes of the training points.
	Labels []string
	// Config is the configuration of the run, as text.
	Config string
	// Version is the version of the program.
	Version string
}

// FitInfo has the options of a finished run for placing new points in its embedding.
type FitInfo struct {
	// Objective is the loss.
	Objective op.ContrastiveOptions `json:"objective"`
	// LogConst is the logarithm of the loss's constant at the end: see
	// op.Contrastive.
	LogConst float64 `json:"theta"`
	// Negatives is the number of negatives for each edge, at least 1.
	Negatives int `json:"negatives"`
	// Neighbors is the number of neighbours that attract a point, at least 1.
	Neighbors int `json:"neighbors"`
	// LR is the last phase's initial learning rate, divided by the number of edges in a batch
	// if Objective.Mean is set. Clip is the bound of the gradients.
	LR   float64 `json:"lr"`
	Clip float64 `json:"clip"`
	// Seed is the seed of the run.
	Seed uint64 `json:"seed"`
}

// check refuses values that no run can have.
func (t *FitInfo) check() {
	const most = 1 << 30
	kind.Need(t.Negatives >= 0 && t.Negatives <= most && t.Neighbors >= 0 && t.Neighbors <= most && t.LR >= 0 && t.Clip >= 0, ErrFile,
		"training: got %d negatives, %d neighbours, learning rate %g and gradients up to %g, want up to %d of both, and numbers of at least 0",
		t.Negatives, t.Neighbors, t.LR, t.Clip, most)
}

// ImageInput says how images are prepared for a network. They are brought to Size×Size
// pixels with values in [0, 1]. Then Mean is subtracted and the result is divided by Std,
// for red, green and blue.
type ImageInput struct {
	Size int        `json:"size"`
	Mean [3]float64 `json:"mean"`
	Std  [3]float64 `json:"std"`
}

// check refuses invalid values.
func (in *ImageInput) check() {
	ok := in.Size >= 1 && in.Size <= 1<<12
	for c, std := range in.Std {
		// NaN fails these comparisons, too.
		ok = ok && math.Abs(in.Mean[c]) <= 1e6 && std >= 1e-6 && std <= 1e6
	}
	kind.Need(ok, ErrFile,
		"images: got %d pixels a side, means %v and standard deviations %v, want 1 to %d pixels, means within ±1e6 and deviations of 1e-6 to 1e6",
		in.Size, in.Mean, in.Std, 1<<12)
}

// A Mapper maps points to positions. *MLP is one. Any number of goroutines may use it.
type Mapper interface {
	// Size returns the numbers of values of a point and of its position.
	Size() (in, out int)
	// ProjectTo writes the positions [r, out] of the points x [r, in].
	ProjectTo(dst, x []float32) error
}

// Saved is the content of a model file.
type Saved struct {
	Description
	// Network is the trained network; nil for an Embedding or a ResNet.
	Network Mapper
	// ResNet is the trained ResNet; nil for other models.
	ResNet *ResNet[float32]
	// Table [n, d] holds the positions of the training points if the model was an Embedding.
	Table []float32
	N, D  int
	// FromPyTorch reports whether the file is the state of a PyTorch module of the same
	// architecture, not written by cne. It then has no Description.
	FromPyTorch bool
}

// Keys of the metadata.
const (
	architectureKey  = "architecture"
	preprocessingKey = "preprocessing"
	imagesKey        = "images"
	trainingKey      = "training"
	labelsKey        = "labels"
	configKey        = "config"
	versionKey       = "version"

	modelKind   = "model"
	modelFormat = 2

	tableTensor          = "weight" // torch.nn.Embedding's name
	trainingPointsTensor = "training_points"
)

// architecture is the JSON under architectureKey.
type architecture struct {
	Kind string `json:"kind"` // mlp, resnet18 (any ResNet) or table
	// Widths are the widths of an MLP's layers, with Activation between them, or the widths
	// of ResNetOptions. Layers have Activations, one each.
	Widths      []int    `json:"widths,omitempty"`
	Activation  string   `json:"activation,omitempty"`
	Activations []string `json:"activations,omitempty"`
	// Points and Dim are an Embedding's size.
	Points int    `json:"points,omitempty"`
	Dim    int    `json:"dim,omitempty"`
	DType  string `json:"dtype"`
}

const (
	kindMLP    = "mlp"
	kindResNet = "resnet18"
	kindTable  = "table"

	activationReLU = "relu"
)

// activationsOfLandmarks are the words for landmarkActs in files.
var activationsOfLandmarks = []string{activationReLU, activationReLU, "none", "softmax", "densest"}

// Save writes the network to a safetensors file, atomically. The tensors have the names
// and shapes of a torch.nn.Sequential of Linear modules, each but the last followed by its
// activation (torch.nn.Identity if it has none); the metadata holds d and a checksum. A nil d
// means an empty one.
func (n *MLP[T]) Save(path string, d *Description) error {
	if err := n.onDevice.pull(); err != nil {
		return err
	}
	f := &safetensors.File{Tensors: map[string]safetensors.Tensor{}}
	for _, p := range n.parameters {
		f.Tensors[p.Name] = tensorOf[T](p.Value)
	}
	a := architecture{Kind: kindMLP, Widths: n.widths, Activation: activationReLU, DType: op.Dtype[T]().String()}
	if n.hasLandmarks() {
		a.Activation, a.Activations = "", activationsOfLandmarks
	}
	return save(path, f, a, d)
}

// Save writes the coordinates to a safetensors file as MLP.Save writes a network, with the
// name and shape that torch.nn.Embedding has.
func (e *Embedding[T]) Save(path string, d *Description) (err error) {
	defer kind.Catch(&err)
	kind.Check(e.onDevice.pull())
	f := &safetensors.File{Tensors: map[string]safetensors.Tensor{tableTensor: tensorOf[T](e.table)}}
	if d != nil && d.Points != nil {
		kind.Check(putPoints(f, trainingPointsTensor, d.Points))
	}
	return save(path, f, architecture{Kind: kindTable, Points: e.n, Dim: e.d, DType: op.Dtype[T]().String()}, d)
}

func tensorOf[T op.Float](a *op.Array) safetensors.Tensor {
	return safetensors.New(op.Data[T](a), a.Shape()...)
}

func save(path string, f *safetensors.File, a architecture, d *Description) error {
	d = cmp.Or(d, &Description{})
	metadata := map[string]string{
		"format":   "pt", // some of PyTorch's loaders ask for it
		configKey:  d.Config,
		versionKey: d.Version,
	}
	maps.Copy(metadata, f.Metadata)
	f.Metadata = metadata
	values := map[string]any{
		architectureKey: a,
		trainingKey:     d.Training,
		labelsKey:       d.Labels,
	}
	if d.Preprocessing != nil {
		values[preprocessingKey] = d.Preprocessing
	}
	if d.Images != nil {
		values[imagesKey] = d.Images
	}
	for key, v := range values {
		if err := f.PutValue(key, v); err != nil {
			return err
		}
	}
	f.Seal(modelKind, modelFormat)
	return f.WriteFile(path)
}

// Load reads a model written by Save, or the state of a PyTorch module (Saved.FromPyTorch).
// The module must consist of linear layers with ReLU between them, or be a ResNet18 with
// ResNet's names and shapes. Errors name the file; they wrap ErrFile if its contents are
// damaged or not such a model.
func Load(path string) (*Saved, error) { return safetensors.ReadAs(path, ErrFile, decode) }

// decode reads a model. It fails as kind.Need does, like all functions below that read a part
// of a file.
func decode(f *safetensors.File) *Saved {
	s := &Saved{FromPyTorch: !f.Sealed()}
	a := architecture{Kind: kindMLP}
	if s.FromPyTorch && hasTensor(f, resNetStem) {
		a.Kind = kindResNet
	}
	if !s.FromPyTorch {
		kind.Check(f.Unseal(modelKind, modelFormat))
		s.describe(f, &a)
	}
	switch a.Kind {
	case kindMLP:
		s.decodeMLP(f, &a)
	case kindResNet:
		s.ResNet = decodeResNet(f, a.Widths)
	case kindTable:
		s.decodeTable(f, &a)
	default:
		kind.Fail(ErrFile, "it has the architecture %q, which this version of cne does not know; use the version that wrote it", a.Kind)
	}
	if p := s.Preprocessing; p != nil && s.Network != nil {
		in, _ := s.Network.Size()
		kind.Need(p.Out() == in, ErrFile, "preprocessing: got points of %d values, want %d for the network", p.Out(), in)
	}
	return s
}

// describe reads the metadata, and takes their tensors out of the file.
func (s *Saved) describe(f *safetensors.File, a *architecture) {
	for _, x := range []struct {
		key   string
		to    any
		maybe bool
	}{
		{architectureKey, a, false},
		{trainingKey, &s.Training, false},
		{labelsKey, &s.Labels, false},
		{preprocessingKey, &s.Preprocessing, true},
		{imagesKey, &s.Images, true},
	} {
		if _, ok := f.Metadata[x.key]; ok || !x.maybe {
			kind.Check(f.Value(x.key, x.to))
		}
	}
	known := a.Activation == activationReLU && a.Activations == nil
	if len(a.Widths) == 1+len(landmarkActs) && a.Activation == "" {
		known = slices.Equal(a.Activations, activationsOfLandmarks)
	}
	kind.Need(a.Kind != kindMLP || known && a.Widths != nil, ErrFile,
		"it has the architecture %q with the activation %q, which this version of cne does not know; use the version that wrote it",
		a.Kind, cmp.Or(a.Activation, strings.Join(a.Activations, ", ")))
	s.Training.check()
	kind.Check(s.Preprocessing.Check())
	if s.Images != nil {
		s.Images.check()
	}
	s.Config, s.Version = f.Metadata[configKey], f.Metadata[versionKey]
}

// decodeMLP makes the network from a file's tensors. Widths, if any, must agree with them.
func (s *Saved) decodeMLP(f *safetensors.File, a *architecture) {
	layers := layersOf(f)
	outputs := selection.Map(layers, func(l layer) int { return l.weight.Shape[0] })
	found := append([]int{layers[0].weight.Shape[1]}, outputs...)
	kind.Need(a.Widths == nil || slices.Equal(a.Widths, found), ErrFile, "widths of the layers: got %v, want %v as described", found, a.Widths)
	dtype := layers[0].weight.DType
	for _, l := range layers {
		kind.Need(l.weight.DType == dtype && l.bias.DType == dtype, ErrFile,
			"layer %d: got another type, want %s as of the first", l.number, dtype)
	}
	switch dtype {
	case safetensors.F32:
		s.Network = mlpOf[float32](found, layers, a.Activations != nil)
	case safetensors.F64:
		s.Network = mlpOf[float64](found, layers, a.Activations != nil)
	default:
		kind.Fail(ErrFile, "weights: got the type %s, want F32 or F64", dtype)
	}
}

// A layer is a linear layer of a file.
type layer struct {
	number       int // of the module
	prefix       string
	weight, bias safetensors.Tensor
}

// layersOf returns the linear layers of a file. All tensors must belong to them:
// <prefix><number>.weight and .bias, with the same prefix for all.
func layersOf(f *safetensors.File) (layers []layer) {
	belongs := func(ok bool, name string) {
		kind.Need(ok, ErrFile, "tensor %q belongs to another architecture than linear layers (0.weight, 0.bias, 2.weight …)", name)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		module, ok := strings.CutSuffix(name, ".weight")
		if !ok {
			module, ok := strings.CutSuffix(name, ".bias")
			belongs(ok && hasTensor(f, module+".weight"), name)
			continue
		}
		digits := len(module) - len(strings.TrimRight(module, "0123456789"))
		number, err := strconv.Atoi(module[len(module)-digits:])
		belongs(err == nil, name)
		l := layer{number: number, prefix: module[:len(module)-digits], weight: f.Tensors[name]}
		l.bias, ok = f.Tensors[module+".bias"]
		kind.Need(ok, ErrFile, "it has a tensor %q but no %q", name, module+".bias")
		kind.Need(len(l.weight.Shape) == 2 && len(l.bias.Shape) == 1 && l.weight.Shape[0] == l.bias.Shape[0], ErrFile,
			"tensors %q and %q: got the shapes %v and %v, want [out, in] and [out]", name, module+".bias", l.weight.Shape, l.bias.Shape)
		layers = append(layers, l)
	}
	kind.Need(len(layers) > 0, ErrFile, "it has no layers")
	slices.SortFunc(layers, func(a, b layer) int { return cmp.Compare(a.number, b.number) })
	for i, l := range layers[1:] {
		before := layers[i]
		belongs(l.prefix == before.prefix && l.number != before.number, l.prefix+strconv.Itoa(l.number)+".weight")
		kind.Need(l.weight.Shape[1] == before.weight.Shape[0], ErrFile,
			"layer %d: got an input of %d values, want %d as layer %d gives", l.number, l.weight.Shape[1], before.weight.Shape[0], before.number)
	}
	return layers
}

func hasTensor(f *safetensors.File, name string) bool {
	_, ok := f.Tensors[name]
	return ok
}

// mlpOf makes a network of layers of type T.
func mlpOf[T op.Float](widths []int, layers []layer, landmarks bool) *MLP[T] {
	n := kind.Got(newMLP[T](widths))
	if landmarks {
		n.acts = landmarkActs
	}
	for i, l := range layers {
		for k, from := range []safetensors.Tensor{l.weight, l.bias} {
			v := op.Data[T](n.parameters[2*i+k].Value)
			err := cmp.Or(safetensors.Copy(v, from), checkFinite(v))
			kind.Need(err == nil, ErrFile, "layer %d: %w", l.number, err)
		}
	}
	n.Freeze()
	return n
}

func checkFinite[T op.Float](v []T) error {
	if i := simd.FirstNotFinite(v); i >= 0 {
		return fmt.Errorf("value %d: got %v, want a finite number", i, v[i])
	}
	return nil
}

// decodeTable reads the positions of an Embedding.
func (s *Saved) decodeTable(f *safetensors.File, a *architecture) {
	t := kind.Got(f.Tensor(tableTensor))
	if s.Points = pointsIn(f, trainingPointsTensor); s.Points != nil {
		kind.Need(s.Points.N == a.Points, ErrFile, "training points: got %d, want %d, one for each position", s.Points.N, a.Points)
	}
	kind.Need(len(f.Tensors) == 1 && slices.Equal(t.Shape, []int{a.Points, a.Dim}) && a.Points > 0 && a.Dim > 0, ErrFile,
		"got %d tensors and a table of shape %v, want %d points in %d dimensions as described", len(f.Tensors), t.Shape, a.Points, a.Dim)
	s.N, s.D = a.Points, a.Dim
	s.Table = make([]float32, a.Points*a.Dim)
	kind.Check(cmp.Or(copyNarrowed(s.Table, t), checkFinite(s.Table)))
}

// The files of a run's folder with its model and, if they are kept, the training points of an
// Embedding.
const (
	RunFile    = "model.safetensors"
	PointsFile = "training_points.safetensors"
)

const (
	pointsKind   = "points"
	pointsTensor = "points"
	pointsFormat = 2
)

// SavePoints writes the preprocessed training points [n, p] of an Embedding to a separate
// file. It can place new points only with them. Their Offset is not written, because the
// preprocessing has it, too. The error is data.CheckPoints's or the file's.
func SavePoints(path string, points *data.Matrix) error {
	f := &safetensors.File{Tensors: map[string]safetensors.Tensor{}}
	if err := putPoints(f, pointsTensor, points); err != nil {
		return err
	}
	f.Seal(pointsKind, pointsFormat)
	return f.WriteFile(path)
}

// sparsePoints are sparse points in a file: the number of values of each point, and their
// columns and values.
type sparsePoints struct {
	Width   int       `json:"width"`
	Counts  []int32   `json:"counts,omitempty"`
	Columns []int32   `json:"columns,omitempty"`
	Values  []float32 `json:"values,omitempty"`
}

// putPoints puts points into a file: as a tensor of this name, or as sparsePoints.
func putPoints(f *safetensors.File, name string, m *data.Matrix) error {
	if err := data.CheckPoints(m); err != nil {
		return err
	}
	if m.CSR == nil {
		f.Tensors[name] = safetensors.New(m.X, m.N, m.D)
		return nil
	}
	s := sparsePoints{Width: m.D, Columns: m.CSR.Column, Values: m.CSR.Value}
	for i := range m.N {
		s.Counts = append(s.Counts, int32(m.CSR.Start[i+1]-m.CSR.Start[i]))
	}
	f.Metadata = map[string]string{}
	return f.PutValue(name, s)
}

// pointsIn takes the points of this name out of a file; nil if there are none.
func pointsIn(f *safetensors.File, name string) *data.Matrix {
	if _, sparse := f.Metadata[name]; !sparse {
		t, ok := f.Tensors[name]
		if !ok {
			return nil
		}
		delete(f.Tensors, name)
		x := kind.Got(t.Float32s())
		kind.Need(len(t.Shape) == 2 && len(x) > 0, ErrFile, "shape: got %v, want [points, values]", t.Shape)
		kind.Check(checkFinite(x))
		return &data.Matrix{N: t.Shape[0], D: t.Shape[1], X: x}
	}
	var s sparsePoints
	kind.Check(f.Value(name, &s))
	m := &data.Matrix{N: len(s.Counts), D: s.Width, CSR: &data.CSR{Start: make([]int, 1, len(s.Counts)+1), Column: s.Columns, Value: s.Values}}
	m.CSR.Start = append(m.CSR.Start, selection.As[int](s.Counts)...)
	selection.Accumulate(m.CSR.Start)
	kind.Check(m.Check())
	return m
}

// LoadPoints reads points written by SavePoints. Errors are as for Load.
func LoadPoints(path string) (*data.Matrix, error) {
	return safetensors.ReadAs(path, ErrFile, func(f *safetensors.File) *data.Matrix {
		kind.Check(f.Unseal(pointsKind, pointsFormat))
		m := pointsIn(f, pointsTensor)
		if m == nil {
			kind.Got(f.Tensor(pointsTensor)) // there is none
		}
		return m
	})
}
