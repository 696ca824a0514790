package op

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/option"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
)

// A Metric is a similarity of two rows.
type Metric int

const (
	// Euclidean is the Cauchy kernel q = 1/(1+‖a−b‖²).
	Euclidean Metric = iota
	// Cosine is q = exp(a·b/τ) for rows of unit length; see Normalize.
	Cosine
)

var metricNames = kind.Names[Metric]{Package: "op", Type: "Metric", What: "metric", Err: ErrInput, Words: []string{"euclidean", "cosine"}}

func (m Metric) String() string { return metricNames.String(m) }

// MarshalText implements encoding.TextMarshaler by the metric's name.
func (m Metric) MarshalText() ([]byte, error) { return metricNames.Text(m) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Metric) UnmarshalText(text []byte) error { return metricNames.Parse(m, text) }

// Words returns the names of all metrics.
func (Metric) Words() []string { return slices.Clone(metricNames.Words) }

// ContrastiveOptions say which loss Contrastive computes. The zero value is
// Neg-t-SNE on Euclidean distances, unclamped, summed over the batch.
type ContrastiveOptions struct {
	Loss   Loss   `json:"loss" key:"name"`
	Metric Metric `json:"metric" key:"metric"`
	// Temperature is τ of the cosine metric; 0 means 0.5.
	Temperature float64 `json:"temperature,omitempty" key:"temperature" in:"[0.01,1e6]"`
	// Clamp bounds the arguments of logarithms from below. For InfoNC it bounds every
	// similarity, not their sum. Below the bound the gradient is zero. Clamp applies only to
	// the Euclidean metric. At 0 a tiny bound remains to keep the arithmetic finite.
	Clamp float64 `json:"clamp" key:"clamp" in:"[0,1)"`
	// Scale is a factor of the loss; 0 means 1.
	Scale float64 `json:"scale,omitempty" key:"scale,null" in:"[1e-30,1e30]"`
	// Mean divides the loss by the number of edges in the batch. (The mean of the paper's
	// program is over all terms of Neg, NC and UMAP, 1 + m for each edge.)
	Mean bool `json:"mean,omitempty"`
}

// Check returns an *option.Error that wraps ErrInput if an option is invalid. Contrastive
// calls it.
func (o ContrastiveOptions) Check() error {
	var fault *option.Error
	info := o.Loss.Info()
	switch err := option.Check(o); {
	case errors.As(err, &fault):
		fault.Key = "loss." + fault.Key
	case o.Metric == Cosine && info.EuclideanOnly:
		fault = &option.Error{Key: "loss.metric", Got: "cosine", Other: "loss.name", OtherGot: info.Word, Want: "euclidean"}
	default:
		return nil
	}
	fault.Err = ErrInput
	return fault
}

// CheckWidth returns an *option.Error that wraps ErrInput if the options are invalid for
// rows of the given width. key is the option with the width.
func (o ContrastiveOptions) CheckWidth(key string, width int) error {
	if o.Metric == Cosine && width == 1 { // a cosine would be 1 or −1
		return &option.Error{Key: key, Got: "1", Other: "loss.metric", OtherGot: "cosine", Want: "2 or more", Err: ErrInput}
	}
	return nil
}

// Contrastive returns the contrastive loss of a batch of b edges, a scalar.
//
// features [r, d] holds the embedding of the heads and then of the tails: row i and row
// b+i are the ends of edge i. Rows from 2b on, if there are any, serve only as negatives.
// theta is a scalar: log c for Neg, log Z for NC, log ρ for InfoNC; UMAP ignores it.
// layout is a NegativeLayout (int32). With ListedNegatives, head i has the negatives
// negatives[j, i] for j = 0 … m−1, where negatives is [m, b] (int32). (This is the
// paper's matrix of tails, transposed and without the column of the positives. For a
// batch of one edge it has no rows.) With other layouts only the width b of negatives is
// used.
//
// The loss is differentiable with respect to features and theta. After Gorgonia has
// differentiated the node, the gradient is computed in the same pass over the pairs as
// the loss. The gradient nodes use state of the last pass: a graph must not run on two
// machines at once.
func Contrastive(features, negatives, layout, theta *gorgonia.Node, options ContrastiveOptions) (*gorgonia.Node, error) {
	o, err := newContrastive(options)
	if err != nil {
		return nil, err
	}
	return apply(o, features, negatives, layout, theta)
}

type contrastive struct {
	base
	options ContrastiveOptions

	// differentiated is set once a gradient node exists.
	differentiated bool

	single   loops[float32]
	double   loops[float64]
	onDevice deviceLoop
}

func newContrastive(options ContrastiveOptions) (*contrastive, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	options.Temperature, options.Scale = cmp.Or(options.Temperature, 0.5), cmp.Or(options.Scale, 1)
	o := &contrastive{
		base:    newStateful("contrastive_"+options.Loss.String(), matrix, table, indices, real, real),
		options: options,
	}
	o.single.init(options)
	o.double.init(options)
	return o, nil
}

func (o *contrastive) ResultShape(dst []int, in []*Array) ([]int, error) {
	f, n, layout, theta := in[0], in[1], in[2], in[3]
	if f.dims != 2 || n.dims != 2 || layout.dims != 1 || layout.shape[0] == 0 || theta.Len() != 1 ||
		f.shape[0] < 2*n.shape[1] || n.shape[1] == 0 || f.shape[1] == 0 {
		return nil, kind.Errorf(ErrInput,
			"op: contrastive: got shapes %v, %v, %v and %v, want features [r,d] with r ≥ 2b, negatives [m,b], a layout [k] and a scalar",
			f.Shape(), n.Shape(), layout.Shape(), theta.Shape())
	}
	return dst, nil
}

func (o *contrastive) Run(dst *Array, in []*Array) error {
	f, n, layout := in[0], in[1], NegativeLayout(in[2].i32)
	b := n.shape[1]
	if err := layout.check(b, f.Rows()); err != nil {
		return err
	}
	if layout.listed() {
		if bad := outOfRange(n.i32, f.Rows()); bad >= 0 {
			return kind.Errorf(ErrInput, "op: contrastive: negative %d of head %d: got row %d, want 0 to %d", bad/b, bad%b, n.i32[bad], f.Rows()-1)
		}
	}
	if f.dtype == tensor.Float64 {
		dst.f64[0] = o.double.run(f.f64, f.shape[1], n.i32, layout, b, in[3].f64[0], o.differentiated)
		return nil
	}
	dst.f32[0] = float32(o.single.run(f.f32, f.shape[1], n.i32, layout, b, float64(in[3].f32[0]), o.differentiated))
	return nil
}

func (o *contrastive) DiffWRT(int) []bool { return []bool{true, false, false, true} }

func (o *contrastive) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	o.differentiated = true
	df, err := apply(&contrastiveGrad{newStateful(o.name+"_grad", matrix, real, real, matrix), o}, in[0], out, grad)
	if err != nil {
		return nil, err
	}
	dTheta, err := apply(&contrastiveGradTheta{newStateful(o.name+"_grad_theta", real, real, real, real), o}, in[3], out, grad)
	if err != nil {
		return nil, err
	}
	return gorgonia.Nodes{df, nil, nil, dTheta}, nil
}

// contrastiveGrad is the gradient with respect to the features. Its inputs are the
// features (for their shape), the loss, after which it must run, and the incoming
// gradient.
type contrastiveGrad struct {
	base
	of *contrastive
}

func (o *contrastiveGrad) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		return o.of.double.gradTo(dst.f64, in[2].f64[0])
	}
	return o.of.single.gradTo(dst.f32, float64(in[2].f32[0]))
}

// contrastiveGradTheta is the derivative with respect to theta; its inputs are
// theta, the loss and the gradient that comes in.
type contrastiveGradTheta struct {
	base
	of *contrastive
}

func (o *contrastiveGradTheta) Run(dst *Array, in []*Array) error {
	if dst.dtype == tensor.Float64 {
		dst.f64[0] = in[2].f64[0] * o.of.double.dTheta
		return nil
	}
	dst.f32[0] = in[2].f32[0] * float32(o.of.single.dTheta)
	return nil
}

// loops are the loops over the pairs of a batch, with the state of the last one.
type loops[T Float] struct {
	options ContrastiveOptions
	listed  pairLoop[T]
	planar  planarLoop[T]
	gemm    gemmLoop[T]
	norm    float64 // scale, and 1/b for the mean
	dTheta  float64
	// The gradient of the last batch is norm times the sum of parts.
	parts [][]T
	grad  []T // of the dense loops
}

func (s *loops[T]) init(options ContrastiveOptions) {
	s.options = options
	s.listed.init(options)
	s.planar.init(options)
	s.gemm.init(options)
}

// run computes the loss and, if asked, leaves its gradient for gradTo.
func (s *loops[T]) run(features []T, d int, negatives []int32, layout NegativeLayout, b int, theta float64, withGrad bool) float64 {
	var sum simd.Sum
	s.parts = s.parts[:0]
	if layout.listed() {
		sum = s.listed.run(features, d, negatives, b, theta, withGrad)
		for i := range parallel.Pieces(b, s.listed.grain) {
			s.parts = append(s.parts, s.listed.pieces[i].grad)
		}
	} else {
		s.grad = grow(s.grad, len(features))
		run := s.gemm.run
		if s.planar.takes(d) && layout.images(b) == b {
			run = s.planar.run
		}
		sum = run(features, d, len(features)/d, b, layout, theta, withGrad, s.grad)
		s.parts = append(s.parts, s.grad)
	}
	if !withGrad {
		s.parts = s.parts[:0]
	}
	s.norm = s.options.Scale
	if s.options.Mean {
		s.norm /= float64(b)
	}
	s.dTheta = s.norm * sum.DTheta
	return s.norm * sum.Loss
}

// gradTo writes the gradient of the last run times a factor to dst.
func (s *loops[T]) gradTo(dst []T, factor float64) error {
	if len(s.parts) == 0 || len(dst) != len(s.parts[0]) {
		return errNoLoss
	}
	copy(dst, s.parts[0])
	for _, part := range s.parts[1:] {
		simd.Add(dst, part)
	}
	if f := T(factor * s.norm); f != 1 {
		simd.Scale(dst, f)
	}
	return nil
}

var errNoLoss = errors.New("op: the gradient of a contrastive loss was asked for before the loss was computed")

// overRun calls body for the ranges [from, to) of rows that make up a run of m rows,
// starting at first and wrapping around. The rows of a call are all heads, all tails, or
// all others.
func overRun(b, rows, first, m int, body func(from, to int)) {
	parts := [3][2]int{{0, b}, {b, 2 * b}, {2 * b, rows}}
	for m > 0 { // at most twice: a run wraps around once
		for _, p := range parts {
			size := p[1] - p[0]
			if n := min(m, size-first); n > 0 {
				body(p[0]+first, p[0]+first+n)
				m -= n
			}
			first = max(0, first-size)
		}
	}
}

// constant returns the constant c of a loss with m negatives, as its kernels take it: with
// the cosine metric log c.
func constant[T Float](o ContrastiveOptions, theta float64, m int) T {
	perNegative := o.Loss.Info().Constant == LearntZ
	if o.Metric == Cosine {
		if perNegative {
			theta += elementary.Log(float64(m))
		}
		return T(theta)
	}
	c := T(elementary.Exp(theta))
	if perNegative {
		c *= T(m)
	}
	return c
}

// atLeast returns s with n elements or more. It keeps those that there are.
func atLeast[E any](s []E, n int) []E { return append(s, make([]E, max(0, n-len(s)))...) }

// grow returns a slice of n elements. It reuses the memory of s if that is large enough.
func grow[E any](s []E, n int) []E {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]E, n)
}

// A deviceLoop computes a contrastive loss on an accelerator, and holds its unscaled
// gradients.
//
// Only the device knows the contents of the layout, so the kernel is chosen only by
// shapes. A layout of more than one number, or negatives without rows, suggest that the
// negatives are runs of consecutive rows. (Package train passes negatives without rows if
// none are listed.) The choice affects speed only: each kernel reads the layout on the
// device and handles every kind of negatives that its inputs' shapes allow.
type deviceLoop struct {
	// gradient [rows, d] is the gradient of the last batch, without norm, in fixed point; if
	// inFloats, floats has it instead. parts [blocks, 2] are sums of losses and of
	// derivatives with respect to theta, and pairs [tile, rows] a tile of cosines over τ.
	// dTheta is one number.
	gradient, floats, parts, pairs, dTheta scratch
	inFloats                               bool
	norm                                   float64 // Scale, times 1/b for the mean
	ready                                  bool    // the gradient is computed
}

const (
	// threadsPerBlock is the number of threads of a block of heads or of rows.
	threadsPerBlock = 128
	// threadsOfTotal is the number of threads of the block that adds up the others' sums.
	threadsOfTotal = 1024
	// devicePairs bounds the pairs of a tile of cosines over τ: 256 MiB.
	devicePairs = 1 << 26
	// maxThreadWidth is the largest width of rows that one thread holds.
	maxThreadWidth = 4
)

// KernelForWidth returns the name and arguments of the kernel for points of width
// coordinates. The name ends with the width if there is such a kernel. Otherwise it ends
// with "any", and the last argument is the width.
func KernelForWidth(kernel string, width int, args ...Arg) (string, []Arg) {
	if HasOwnKernels(width) {
		return fmt.Sprintf(kernel, strconv.Itoa(width)), args
	}
	return fmt.Sprintf(kernel, "any"), append(args, device.Int(width))
}

// HasOwnKernels reports whether there are kernels for only this width.
func HasOwnKernels(width int) bool { return width == 2 || width == 3 }

// Launch implements Launcher.
func (o *contrastive) Launch(d *Device, dst *Array, in []*Array) (err error) {
	defer kind.Catch(&err)
	kind.Check(o.options.CheckOnDevice())
	s, f, n, layout, theta := &o.onDevice, in[0], in[1], in[2], in[3]
	b := n.shape[1]
	dTheta := s.dTheta.of(d, tensor.Float32, 1)
	s.norm = o.options.Scale
	if o.options.Mean {
		s.norm /= float64(b)
	}
	dense := layout.Len() > 1 || n.shape[0] == 0
	s.inFloats = dense && o.options.Metric == Cosine
	s.ready = o.differentiated
	blocks := b
	if s.inFloats {
		o.launchGemm(d, f, layout, theta, b)
	} else {
		blocks = o.launchPairs(d, f, n, layout, theta, dense)
	}
	return d.Launch("contrast_total", device.Launch{Grid: 1, Block: threadsOfTotal}, dst.Arg(), dTheta.Arg(),
		s.parts.array.Arg(), device.Int(blocks), device.F32(s.norm))
}

// flags returns the flags of the kernels: 1 if they compute the gradient.
func (o *contrastive) flags() device.Arg { return device.Int(selection.If(o.differentiated, 1, 0)) }

// launchPairs launches a kernel that sums the gradient in fixed point, and returns its
// number of blocks.
func (o *contrastive) launchPairs(d *Device, f, n, layout, theta *Array, dense bool) (blocks int) {
	s, rows, width, m, b := &o.onDevice, f.Rows(), f.shape[1], n.shape[0], n.shape[1]
	grouped, own := dense && width <= maxThreadWidth, HasOwnKernels(width)
	heads := threadsPerBlock / 32 // of a block
	switch {
	case grouped:
		heads = GroupHeads / 2
	case own:
		heads = threadsPerBlock
	}
	blocks = parallel.Pieces(b, heads)
	parts := s.parts.of(d, tensor.Float32, blocks, 2)
	var gradient *Array
	if o.differentiated {
		gradient = s.gradient.of(d, tensor.Float32, rows, width, 2)
		kind.Check(gradient.Zero())
	}
	limit := device.F32(float64(1 / simd.BoundOf[float32](o.options.Clamp).Clamp()))
	loss, flags := device.Int(int(o.options.Loss)), o.flags()
	kernel, args := "contrast_heads_%s", []Arg{addressOf(gradient), parts.Arg(), f.Arg()}
	if grouped {
		kernel = selection.If(own && o.options.Loss.Info().PerHead, "contrast_info_groups_%s", "contrast_groups_%s")
		args = append(args, layout.Arg(), theta.Arg(), device.Int(rows), device.Int(b), loss, flags, limit)
	} else {
		args = append(args, n.Arg(), layout.Arg(), theta.Arg(), device.Int(rows), device.Int(b), device.Int(m),
			loss, device.Int(int(o.options.Metric)), flags, limit, device.F32(1/o.options.Temperature))
	}
	kernel, args = KernelForWidth(kernel, width, args...)
	kind.Check(d.Launch(kernel, device.Launch{Grid: blocks, Block: threadsPerBlock}, args...))
	return blocks
}

// launchGemm computes the cosines over τ by matrix products, heads in tiles, and the
// gradient by products of their derivatives with the features.
func (o *contrastive) launchGemm(d *Device, f, layout, theta *Array, b int) {
	s, rows, width := &o.onDevice, f.Rows(), f.shape[1]
	tile := min(b, max(1, devicePairs/rows))
	parts, pairs := s.parts.of(d, tensor.Float32, b, 2), s.pairs.of(d, tensor.Float32, tile, rows)
	var floats *Array
	if o.differentiated {
		floats = s.floats.of(d, tensor.Float32, rows, width)
	}
	invTau := float32(1 / o.options.Temperature)
	for from := 0; from < b; from += tile {
		heads := f.Pointer().At(from*width, elementSize)
		count := min(tile, b-from)
		kind.Check(d.Multiply(device.Product{TransB: true, M: count, N: rows, K: width, Alpha: invTau,
			A: heads, LDA: width, B: f.Pointer(), LDB: width, C: pairs.Pointer(), LDC: rows}))
		kind.Check(d.Launch("contrast_gemm", device.Launch{Grid: count, Block: threadsPerBlock}, pairs.Arg(),
			Arg(parts.Pointer().At(2*from, elementSize)), layout.Arg(), theta.Arg(), device.Int(from), device.Int(rows), device.Int(b),
			device.Int(int(o.options.Loss)), o.flags()))
		if o.differentiated {
			kind.Check(d.Multiply(device.Product{TransA: true, M: rows, N: width, K: count, Alpha: invTau, A: pairs.Pointer(), LDA: rows,
				B: heads, LDB: width, Beta: float32(min(from, 1)), C: floats.Pointer(), LDC: width}))
			kind.Check(d.Multiply(device.Product{M: count, N: width, K: rows, Alpha: invTau, A: pairs.Pointer(), LDA: rows,
				B: f.Pointer(), LDB: width, Beta: 1, C: floats.Pointer().At(from*width, elementSize), LDC: width}))
		}
	}
}

// Launch implements Launcher.
func (o *contrastiveGrad) Launch(d *Device, dst *Array, in []*Array) error {
	s := &o.of.onDevice
	if !s.ready {
		return errNoLoss
	}
	kernel, from := "contrast_gradient", s.gradient.array
	if s.inFloats {
		kernel, from = "contrast_gradient_f", s.floats.array
	}
	return d.Each(kernel, dst.Len(), dst.Arg(), from.Arg(), in[2].Arg(), device.F32(s.norm), device.Int(dst.Len()))
}

// Launch implements Launcher.
func (o *contrastiveGradTheta) Launch(d *Device, dst *Array, in []*Array) error {
	s := &o.of.onDevice
	if !s.ready {
		return errNoLoss
	}
	return d.Launch("contrast_theta", device.Launch{Grid: 1, Block: 32}, dst.Arg(), s.dTheta.array.Arg(), in[2].Arg())
}
