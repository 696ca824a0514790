package cne

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
	"cne/train/quality"
)

// An Embedding has the positions of points, and can place new points. Any number of
// goroutines may call Project, ProjectInto, ProjectSet and ProjectRows at once, with the
// same results as one after the other. They must not run while a field is changed, or
// UseTrainingPoints, UseDevice or LearnNetwork runs.
type Embedding struct {
	// Positions [n, Dim] has a row for each point. It is nil for a network loaded from a file,
	// which has no training points, or if its device failed.
	Positions *data.Matrix
	// Division is Options.Division, once the points that were not trained on have positions;
	// otherwise it is nil. Positions then has all rows but those left out.
	Division *Division
	// Neighborhood is what Fit was called on; nil for a loaded embedding.
	Neighborhood *Neighborhood
	// Result is how the training ended.
	Result train.Result
	// Description is saved with the embedding and may be changed before Save: the names
	// of classes, the configuration and the program's version.
	Description model.Description
	// FromPyTorch reports whether the loaded file is PyTorch's. It has no Description, so
	// points are not preprocessed.
	FromPyTorch bool

	model          saver         // written by Save
	mu             sync.Mutex    // guards mapper until it is made
	mapper         model.Mapper  // places new points; without a network it is nil until the first use
	trainPoints    *data.Matrix  // preprocessed; nil for a network
	trainPositions *data.Matrix  // positions of Division.Trained; nil if Positions has only these
	device         *model.Device // where points are placed without a network; nil for the CPU
	placer         atomic.Pointer[placer]
}

// Trainable is a model that can be trained and saved: a non-parametric embedding
// (*model.Embedding) or a network (*model.Parametric).
type Trainable interface {
	model.Model
	// Save writes the model and the description to a file.
	Save(path string, d *model.Description) error
}

// A saver writes itself to a file.
type saver interface {
	Save(path string, d *model.Description) error
}

// Embed embeds points [n, D]. It does not change them. With Options.Division, it trains on
// some rows, and then places the others.
//
// Errors about points wrap ErrPoints, errors about options ErrOption, and errors about
// Resume train.ErrCheckpoint. If ctx is done, the run diverges (*train.DivergedError), or
// a hook or Checkpoints.Save fails, Embed returns the error and, if training had begun,
// the embedding so far (with Options.Division, only of the rows that are trained on).
func Embed(ctx context.Context, points *data.Matrix, o Options) (_ *Embedding, err error) {
	defer kind.Catch(&err)
	kind.Check(checkPoints(points))
	trained := points
	if o.Division == nil {
		trained = points.Clone()
	}
	h := kind.Got(Prepare(ctx, &data.Dataset{Points: trained}, o))
	e, err := h.Fit(ctx, o)
	if err != nil || o.Division == nil {
		return e, err
	}
	if e.mapper == nil { // not a network
		e.device = o.Device
		defer func() { _ = e.UseDevice(nil) }() // cannot fail; the caller may then close the device
	}
	positions, err := e.ProjectSet(ctx, &data.Dataset{Points: points}, Projection{Division: o.Division})
	if err == nil {
		e.trainPositions, e.Positions, e.Division = e.Positions, positions, o.Division
	}
	return e, err
}

// Fit trains a model to preserve the neighbourhood. Embed calls it after Prepare.
//
// o must agree with Prepare's options in the fields that describe the points and the graph
// (Scaling to Density), and in Hidden and OnComponents. The others may differ, so one
// Neighborhood can be fitted several times. Errors are as for Embed.
func (h *Neighborhood) Fit(ctx context.Context, o Options) (*Embedding, error) {
	m, err := h.NewModel(ctx, &o)
	if err != nil {
		return nil, err
	}
	return h.FitModel(ctx, m, o)
}

// FitModel is Fit for a model that NewModel made with the same options.
func (h *Neighborhood) FitModel(ctx context.Context, m Trainable, o Options) (*Embedding, error) {
	if err := h.check(&o); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, badOption("got no model to fit, want one of NewModel")
	}
	if n, _ := m.Points(); n != h.Graph.N {
		return nil, badOption("got a model of %d points, want %d as in the graph", n, h.Graph.N)
	}
	doubt(h.Graph.N, o)
	return h.fitModel(ctx, m, h.Graph.Heads(), h.Graph.Indices, &o)
}

// fitOptions returns the options of train.Fit. With SampleEdges or Density they include the
// weights of the graph's edges, and with a Pull the positions to pull towards.
func (h *Neighborhood) fitOptions(ctx context.Context, o *Options) (train.Options, error) {
	fit := o.FitOptions()
	if o.pulls() {
		towards, err := h.towards(ctx, o)
		if err != nil {
			return fit, err
		}
		fit.Towards = towards.X
	}
	if o.SampleEdges || o.Density > 0 && o.Graph == nil {
		fit.Weights = h.Graph.Weights
	}
	return fit, nil
}

// towards returns the positions [n, Dim] that a Pull is towards: Towards, or the principal
// components, which are computed once.
func (h *Neighborhood) towards(ctx context.Context, o *Options) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	if o.Towards != nil {
		return o.Towards, nil
	}
	if dim := cmp.Or(o.Dim, DefaultDim); h.components == nil || h.components.D != dim {
		found := kind.Got(initial.Components(ctx, h.Reduced, dim))
		table := kind.Got(initial.Table[float32](found, dim, 1, o.Seed))
		h.components = &data.Matrix{N: found.N, D: dim, X: table}
	}
	return h.components, nil
}

func (h *Neighborhood) fitModel(ctx context.Context, m Trainable, heads, tails []int32, o *Options) (*Embedding, error) {
	fit, err := h.fitOptions(ctx, o)
	if err != nil {
		return nil, err
	}
	memory.FreeGarbage(len(tails))
	result, fitted := train.Fit(ctx, m, heads, tails, fit)
	memory.FreeGarbage(len(tails))
	if fitted != nil && result.Edges == 0 { // training has not begun
		if errors.Is(fitted, train.ErrInput) {
			fitted = fmt.Errorf("%w: %w", ErrOption, fitted)
		}
		return nil, fitted
	}
	e := &Embedding{
		Neighborhood: h, Result: result, model: m,
		Description: model.Description{
			Preprocessing: h.preprocessing(o),
			Training: model.FitInfo{
				Objective: o.Objective(), LogConst: result.LogConst, Negatives: result.Negatives,
				Neighbors: cmp.Or(o.Neighbors, DefaultNeighbors), LR: result.LR, Clip: or(o.Clip, DefaultClip), Seed: o.Seed,
			},
		},
	}
	switch m := m.(type) {
	case *model.Parametric[float32]:
		m.Network().Freeze()
		e.mapper = m.Network()
	case *model.Parametric[float64]:
		m.Network().Freeze()
		e.mapper = m.Network()
	default:
		e.trainPoints = h.Reduced
	}
	n, d := m.Points()
	positions := data.NewMatrix(n, d)
	err = m.EmbedTo(positions.X)
	if err == nil {
		if e.Positions = positions; n > 2 && slices.Equal(positions.X[d:], positions.X[:(n-1)*d]) {
			o.logger().Warn("all points have ended at one place; train.weight_decay and model.init_std can cause this")
		}
	}
	if table, ok := m.(*model.Embedding[float32]); ok && o.Gather && !o.pulls() && fitted == nil && err == nil {
		if moved := initial.Gather(h.Graph, positions); moved > 0 {
			copy(table.Table(), positions.X)
			o.logger().Info("groups of points without edges between them were moved together", "groups", moved)
		}
	}
	if fitted != nil {
		return e, fitted // fitted says why the positions are missing
	}
	if err == nil && simd.FirstNotFinite(positions.X) >= 0 { // the last step was too large
		return e, &train.DivergedError{Epoch: result.Epochs, LR: result.LR, Cause: errors.New("the positions are not finite")}
	}
	return e, err
}

// doubt warns, once for each reason, of runs after which maps of n points have lost most
// neighbours.
func doubt(n int, runs ...Options) {
	z, said := train.Normalization{N: n}, make(map[string]bool)
	for _, o := range runs {
		phases, path := o.phases(), 0.0
		last := phases[len(phases)-1]
		warn := func(holds bool, message, key string, value any) {
			if line := fmt.Sprint(message, value); holds && !said[line] {
				said[line] = true
				o.logger().Warn(message, key, value)
			}
		}
		logConst := func(at train.SpectrumParam) float64 { return z.LogConst(o.Loss, at, 1) }
		for _, p := range phases {
			path += float64(p.LR * float64(p.Epochs))
		}
		if s := last.Spectrum.S; s != nil && *s < 0 && o.Loss == op.InfoNC && o.Metric == op.Euclidean {
			warn(true, "with loss.name infonc and s below 0 a map grows without end; with neg it does not", "s", *s)
		} else if zBar := last.Spectrum.ZBar; s != nil || zBar != nil && *zBar != 0 {
			tSNE := logConst(train.FromS(0))
			at := math.Round(100*(logConst(last.Spectrum)-tSNE)/max(1, logConst(train.FromS(1))-tSNE)) / 100
			warn(at < -1 || at > 2, "so far from t-SNE (s = 0) and UMAP (s = 1) a map keeps few neighbours", "s", at)
		}
		warn(last.Negatives == train.All && last.LR > max(7, float64(n)/1000),
			"with loss.negatives all, so large a train.lr scatters most points; 1 to 7 are good rates", "lr", last.LR)
		warn(o.Metric == op.Cosine && cmp.Or(o.Dim, DefaultDim) < 3,
			"with loss.metric cosine a map is a circle, which keeps few neighbours; euclidean uses the plane", "metric", o.Metric)
		warn(path < 1 && o.WithDefaults().Optimizer == SGD,
			"train.lr is so small for this number of epochs that the points hardly leave their initial positions", "lr", last.LR)
	}
}

// check returns an error if the options do not fit the neighbourhood, or it lacks what
// they need.
func (h *Neighborhood) check(o *Options) error {
	switch {
	case h == nil || h.Graph == nil || h.Reduced == nil:
		return fmt.Errorf("%w: got a neighbourhood without a graph, want one of Prepare", ErrPoints)
	case h.Reduced.N != h.Graph.N:
		return fmt.Errorf("%w: got %d of them, want %d as in the graph", ErrPoints, h.Reduced.N, h.Graph.N)
	case o.Graph != nil && o.Graph != h.Graph:
		return badOption("got another Graph than the neighbourhood has")
	case o.network() && !o.OnComponents && h.Scaled == nil:
		return badOption("Hidden: got hidden layers only in Fit, want them in Prepare, too, which drops a network's input without them")
	}
	if err := o.Check(h.Graph.N); err != nil {
		return err
	}
	return o.checkFit(h.Graph.N, h.Graph.Edges())
}

// NewModel returns the model that Fit trains, with its initial parameters. Errors about
// options wrap ErrOption; a neighbourhood without a graph gives ErrPoints.
func (h *Neighborhood) NewModel(ctx context.Context, o *Options) (m Trainable, err error) {
	if err := h.check(o); err != nil {
		return nil, err
	}
	if o.Float64 {
		m, err = newModel[float64](ctx, h, o)
	} else {
		m, err = newModel[float32](ctx, h, o)
	}
	if errors.Is(err, model.ErrInput) || errors.Is(err, initial.ErrInput) {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return m, err
}

func newModel[T op.Float](ctx context.Context, h *Neighborhood, o *Options) (_ Trainable, err error) {
	defer kind.Catch(&err)
	dim := cmp.Or(o.Dim, DefaultDim)
	if !o.network() {
		table := kind.Got(startingTable[T](ctx, h, o, dim))
		return model.NewEmbedding(table, dim, o.Objective())
	}
	points := selection.If(o.OnComponents, h.Reduced, h.Scaled)
	network := kind.Got(model.NewMLP[T](points.D, o.Hidden, dim, o.Seed))
	if points.CSR == nil {
		return model.NewParametric(network, convert[T](points.X), o.Objective())
	}
	single, ok := any(network).(*model.MLP[float32])
	if !ok {
		return nil, badOption("got Float64 for sparse points, want float32, OnComponents, or dense points")
	}
	return model.NewSparseParametric(single, points, o.Objective())
}

// convert returns x converted to T, or x itself if its type is T.
func convert[T op.Float](x []float32) []T {
	if same, ok := any(x).([]T); ok {
		return same
	}
	return selection.As[T](x)
}

// preprocessing returns the steps that new points pass before a network maps them or,
// without a network, their neighbours are searched.
func (h *Neighborhood) preprocessing(o *Options) *model.Preprocessing {
	var p model.Preprocessing
	switch {
	case h.Preprocessing != nil:
		p = *h.Preprocessing
	case h.PCA != nil:
		p.Width = h.PCA.D
	default:
		p.Width = h.Reduced.D
	}
	if o.dropsScaled() {
		p.PCA = h.PCA
	}
	return &p
}

// StartFrom returns positions for InitGiven (Options.Start) from an earlier embedding [m,
// d], so the new embedding resembles it. rows[i] is the row of point i in earlier, or −1
// if the point is new. If rows is nil, the first m points are those of earlier. New points
// start near their neighbours: see initial.FromEarlier. Errors wrap ErrOption.
func (h *Neighborhood) StartFrom(earlier *data.Matrix, rows []int, seed uint64) (*data.Matrix, error) {
	if h == nil || h.Graph == nil {
		return nil, badOption("got no graph to start from, want one of Prepare")
	}
	start, err := initial.FromEarlier(h.Graph, earlier, rows, seed)
	if err != nil {
		return nil, badOption("%v", err)
	}
	return start, nil
}

// finerStd is the standard deviation of the first axis to which the positions of larger
// groups are scaled before smaller groups start from them. It is wide enough to keep
// groups apart, and narrow enough for attraction to act across them.
const finerStd = 20

// embedGroups returns the function that embeds groups of points for InitMultilevel. It
// uses InfoNC-t-SNE with the weights of the edges between groups.
func embedGroups(o *Options, dim int) initial.EmbedFunc {
	return func(ctx context.Context, g *neighbors.Graph, from *data.Matrix, first bool) (_ *data.Matrix, err error) {
		defer kind.Catch(&err)
		o.logger().Info("embedding groups of neighbours", "groups", g.N, "edges", g.Edges())
		std, arrange := float64(finerStd), train.Phase{Epochs: 4, LR: 0.5, Negatives: 5, Spectrum: train.FromS(1)}
		if first {
			std, arrange = 1, train.Phase{Epochs: 5, LR: 1, Negatives: 5, Spectrum: train.FromS(1)}
		}
		part := train.Phase{Epochs: 10, LR: 8, Negatives: 100, Spectrum: train.FromS(0)}
		table := kind.Got(initial.Table[float32](from, dim, std, o.Seed))
		m := kind.Got(model.NewEmbedding(table, dim, (&Options{Loss: op.InfoNC}).Objective()))
		kind.Got(train.Fit(ctx, m, g.Heads(), g.Indices, train.Options{
			Phases: []train.Phase{arrange, part}, Seed: o.Seed, Device: o.Device, Weights: g.Weights, Clip: DefaultClip,
			Retries: DefaultRetries, OnRetry: func(x train.Retry) error {
				o.logger().Info("groups diverged, and begin again with a lower learning rate", "lr", x.LR)
				return nil
			},
		}))
		positions := data.NewMatrix(g.N, dim)
		return positions, m.EmbedTo(positions.X)
	}
}

// startingTable returns the initial positions of a non-parametric embedding.
func startingTable[T op.Float](ctx context.Context, h *Neighborhood, o *Options, dim int) (_ []T, err error) {
	defer kind.Catch(&err)
	std := cmp.Or(o.InitStd, 1)
	var coordinates *data.Matrix
	switch {
	case o.Init == InitRandom || o.Resume != nil: // a resumed state replaces any start
		return initial.Random[T](h.Reduced.N, dim, std, o.Seed)
	case o.Init == InitGiven && o.Start == nil:
		return nil, badOption("got InitGiven without Start")
	case o.Init == InitGiven:
		start := o.Start.Relative(nil).Clone()
		kind.Check(h.turn(ctx, start, o))
		return convert[T](start.X), nil
	case o.Init == InitDiffusion:
		o.logger().Info("computing the initial positions", "from", "principal components and the graph")
		coordinates = kind.Got(initial.Diffusion(ctx, h.Graph, h.Reduced, dim))
	case o.Init == InitMultilevel:
		o.logger().Info("computing the initial positions", "from", "groups of neighbours")
		coordinates = kind.Got(initial.Multilevel(ctx, h.Graph, h.Reduced, dim, o.Seed, embedGroups(o, dim)))
	default:
		coordinates = kind.Got(initial.Components(ctx, h.Reduced, dim))
	}
	kind.Check(h.turn(ctx, coordinates, o))
	return initial.Table[T](coordinates, dim, std, o.Seed)
}

// turn aligns initial coordinates with what a pull of the first phase is towards.
func (h *Neighborhood) turn(ctx context.Context, coordinates *data.Matrix, o *Options) error {
	if o.phases()[0].Pull == 0 || coordinates.D != cmp.Or(o.Dim, DefaultDim) {
		return nil
	}
	towards, err := h.towards(ctx, o)
	if err == nil {
		_, _, err = quality.Align(coordinates, towards, false)
	}
	if errors.Is(err, quality.ErrUndefined) {
		return nil // all points coincide
	}
	return err
}
