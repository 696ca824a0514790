package cne

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/finite"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// Errors of this package wrap one of these, or an error of the packages that it
// calls.
var (
	// ErrOption is the cause of errors about options without a meaning, or that
	// contradict each other.
	ErrOption = errors.New("cne: bad option")
	// ErrPoints is the cause of errors about points that cannot be embedded or
	// projected: too few, of another width, or with values that are no finite
	// numbers.
	ErrPoints = errors.New("cne: bad points")
	// ErrEqualPoints is the error about points for a network that are all equal; it is
	// an ErrPoints, too.
	ErrEqualPoints = fmt.Errorf("%w: all are equal, and a network places equal points at one position", ErrPoints)
	// ErrImages is the cause of Load's error about a network for images, which places
	// no points: see package simclr.
	ErrImages = errors.New("cne: the file holds a network for images")
	// ErrNoTrainingPoints is the error of Project for a table that was saved
	// without its training points.
	ErrNoTrainingPoints = errors.New("cne: the table was saved without its training points, beside which alone it can place new ones")
)

// None, where a field says so, leaves out what its zero value would stand for.
const None = -1

// The defaults, which the zero value of Options stands for.
const (
	DefaultNeighbors     = 15
	DefaultComponents    = 50
	DefaultDim           = 2
	DefaultNegatives     = 5
	DefaultBatchSize     = 1024
	DefaultTableEpochs   = 750
	DefaultNetworkEpochs = 50
	DefaultTableLR       = 1
	DefaultNetworkLR     = 0.001
	DefaultClip          = 4
	DefaultClamp         = 1e-10
)

// Options say how points are embedded. The zero value of each field has the
// meaning stated; all together are the default run of "cne train", which is the
// paper's Neg-t-SNE.
type Options struct {
	// Scaling brings the points to a common scale; "" means data.ScaleUnit. It is
	// kept with the embedding, and done to new points.
	Scaling data.Scaling
	// GraphMetric is the distance by which points are near each other; the zero value
	// is data.Euclidean. With data.Cosine and data.Correlation the points come to
	// length 1 once they are scaled, and the model sees them so. (Metric is about
	// positions.)
	GraphMetric data.Metric
	// Components is the number of principal components between which the distances
	// for the graph are taken where points are wider; 0 means 50, and None the
	// points themselves.
	Components int
	// Neighbors is k of the symmetric kNN graph; 0 means 15.
	Neighbors int
	// Search is how neighbours are found; the zero value, neighbors.Auto, finds the
	// nearest exactly unless there are more than 100 000 points.
	Search neighbors.SearchMethod
	// Graph, if there is one, takes the place of the kNN graph:
	// neighbors.FromNeighbors makes one of neighbours that were found elsewhere,
	// neighbors.ReadNPZ reads one of scipy's.
	Graph *neighbors.Graph
	// TrainOn, if it is not nil, are the rows of the points, counted from 0 and ascending,
	// that Embed learns from; data.DrawRows draws some. The embedding is then that of
	// these points alone, bit for bit, and all others are placed as Project places them.
	// Points that are not all in memory are read with data.OpenRows, for PrepareSet, and
	// placed by Embedding.PlaceAll.
	TrainOn []int
	// SampleEdges draws the edges of an epoch in proportion to their weights, as UMAP
	// does (train.Options.Weights), instead of taking each once: those of Graph, or of
	// the kNN graph UMAP's (neighbors.FuzzyGraph).
	SampleEdges bool

	// Hidden are the widths of a network's hidden layers, between which ReLUs
	// stand: model.DefaultHidden are the paper's. Nil means a table of positions
	// instead of a network; an empty list that is not nil is a network of a single
	// linear layer.
	Hidden []int
	// OnComponents has the network see the principal components, not the points.
	OnComponents bool
	// Dim is the width of the embedding; 0 means 2.
	Dim int
	// Float64 computes in float64 instead of float32.
	Float64 bool
	// Start [n, Dim] are the positions from which a table begins, as they are; see
	// Neighborhood.StartFrom. Nil means the first principal components, the Laplacian
	// eigenmaps of the graph if SpectralStart says so, embeddings of ever smaller groups
	// of neighbours if CoarseStart does, or normally distributed positions if RandomStart
	// does, scaled so that the first axis has the standard deviation StartStd; 0 means 1.
	Start         *data.Matrix
	SpectralStart bool
	CoarseStart   bool
	RandomStart   bool
	StartStd      float64

	// Loss is one of the paper's four; the zero value is Neg-t-SNE.
	Loss op.Loss
	// Metric is the similarity of two positions; the zero value is the Cauchy
	// kernel of their Euclidean distance. Temperature is that of the cosine; 0
	// means 0.5.
	Metric      op.Metric
	Temperature float64
	// Negatives is m, the number of negatives for each edge; 0 means 5, train.Full
	// all other points of the batch. Sampling says how they are drawn.
	Negatives int
	Sampling  train.Sampling
	// Place is where on the spectrum between t-SNE and UMAP Neg-t-SNE and
	// InfoNC-t-SNE stand: train.AtS, or train.AtZBar for Neg-t-SNE. The zero value
	// is the paper's Z̄ = |X|/m, and ρ = 1.
	Place train.Place
	// Scale multiplies the loss; 0 means 0.5 for InfoNC-t-SNE, as in the paper's
	// runs, and 1 for the others.
	Scale float64
	// Clamp bounds the arguments of logarithms from below; 0 means 1e-10, None no
	// bound.
	Clamp float64
	// Mean takes the mean of a batch's losses instead of their sum.
	Mean bool
	// ExcludePositive leaves the positive pair out of InfoNC-t-SNE's denominator.
	ExcludePositive bool
	// LogZ is where NC-t-SNE's log Z starts, counted per pair of points (see
	// train.Normalization.Z), and FixZ keeps it there, or where a phase says.
	LogZ float64
	FixZ bool

	// Epochs is the number of passes over all edges; 0 means 750 for a table and
	// 50 for a network.
	Epochs int
	// BatchSize is the number of edges of a batch; 0 means 1024.
	BatchSize int
	// Adam moves the parameters of a table by Adam, and SGD those of a network by
	// stochastic gradient descent; otherwise it is the other way round. Momentum
	// is that of the latter. WeightDecay is the L2 penalty of both.
	Adam, SGD             bool
	Momentum, WeightDecay float64
	// LR is the step size at the beginning, which Anneal lets fall; 0 means 1 for
	// stochastic gradient descent and 0.001 for Adam. WarmUp is for how many epochs
	// it first rises from 0. LRZ is the step size of log Z; 0 means 0.001.
	LR, LRZ float64
	Anneal  train.Anneal
	WarmUp  int
	// Clip bounds each element of the gradients; 0 means 4, None no bound.
	Clip float64
	// EarlyExaggeration runs the first third of the epochs, rounded up, at max(s, 1),
	// where Place says s.
	EarlyExaggeration bool
	// Phases, if there are any, are run one after the other in place of Epochs,
	// Anneal, WarmUp and Place; LR and Negatives are those of phases that have none. A
	// phase in which NC-t-SNE's log Z is to start again says where.
	Phases []train.Phase

	// Seed decides all that is random. The same seed gives the same embedding, bit
	// for bit, on any number of cores.
	Seed uint64
	// Device is where it is computed; nil means the CPU.
	Device *model.Device
	// Hooks are called after every epoch, with how the run goes (train.State) and the
	// model as it is. Watch, unless it is nil, is called after every batch: see
	// train.Options.
	Hooks []train.Hook
	Watch func(epoch, done, batches int, loss float64)
	// Log, unless it is nil, is told what begins that takes long.
	Log *slog.Logger
	// Checkpoints says when the state of the run is kept; nil means never. Resume is
	// such a state, from which a run with the same points and options goes on to the
	// same embedding, bit for bit; nil starts from the beginning. A spectrum, which has
	// several runs, takes SpectrumCheckpoints in place of both.
	Checkpoints         *train.Checkpoints
	Resume              *train.Checkpoint
	SpectrumCheckpoints *SpectrumCheckpoints
}

// network tells whether a network is trained.
func (o *Options) network() bool { return o.Hidden != nil }

// adam tells whether Adam moves the parameters.
func (o *Options) adam() bool { return !o.SGD && (o.Adam || o.network()) }

// orElse returns v, or the default that its zero value stands for.
func orElse[T int | float64 | data.Scaling](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// orNone is orElse of a bound for which None stands for no bound, 0.
func orNone(v, otherwise float64) float64 {
	if v == None {
		return 0
	}
	return orElse(v, otherwise)
}

func badOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOption, fmt.Sprintf(format, args...))
}

// Check says what is wrong with the options for n points; Embed calls it first.
func (o *Options) Check(n int) error {
	if err := o.checkGraph(n); err != nil {
		return err
	}
	switch dim := orElse(o.Dim, DefaultDim); {
	case dim < 0:
		return badOption("%d dimensions; take 1 or more, or 0 for %d", dim, DefaultDim)
	case o.Adam && o.SGD:
		return badOption("both Adam and SGD; take one of them")
	case o.Momentum != 0 && o.adam():
		return badOption("a momentum of %g, which Adam does not have; take SGD, or leave it out", o.Momentum)
	case o.OnComponents && (!o.network() || o.Components == None):
		return badOption("OnComponents, but no Hidden or no Components; a network alone sees points, and there must be components")
	case o.EarlyExaggeration && len(o.Phases) > 0:
		return badOption("both EarlyExaggeration and Phases; write the exaggeration as a phase")
	case o.Start != nil && (o.network() || o.RandomStart || o.SpectralStart || o.CoarseStart),
		o.SpectralStart && (o.network() || o.RandomStart || o.CoarseStart), o.CoarseStart && (o.network() || o.RandomStart):
		return badOption("Start, SpectralStart, CoarseStart, RandomStart or Hidden together; only a table starts somewhere, and at one place")
	case o.Start != nil && (o.Start.N != n || o.Start.D != dim || len(o.Start.X) != n*dim):
		return badOption("a start of %d×%d for %d points in %d dimensions", o.Start.N, o.Start.D, n, dim)
	case o.Start != nil && !finite.All(o.Start.X):
		return badOption("a start with a value that is no finite number")
	case !(o.StartStd >= 0) || math.IsInf(o.StartStd, 0):
		return badOption("a start with a standard deviation of %g; take a positive number, or 0 for 1", o.StartStd)
	case slices.ContainsFunc(o.Hidden, func(width int) bool { return width < 1 }):
		return badOption("hidden layers of the widths %d; take 1 or more for each", o.Hidden)
	case !(o.Scale >= 0):
		return badOption("a loss times %g; take a positive number, or 0 for the loss's own", o.Scale)
	case o.Clamp < 0 && o.Clamp != None || o.Clamp >= 1 || math.IsNaN(o.Clamp):
		return badOption("a clamp of %g; take a number in [0, 1), 0 for %g, or None", o.Clamp, DefaultClamp)
	}
	if err := errors.Join(o.Objective().Check(), o.method(o.WeightDecay).Init(nil)); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	edges := n * max(1, orElse(o.Neighbors, DefaultNeighbors))
	if o.Graph != nil {
		edges = o.Graph.Edges()
	}
	fit := o.FitOptions()
	if err := fit.Check(o.Objective(), n, edges); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	return nil
}

// checkGraph is the part of Check that is about the neighborhood.
func (o *Options) checkGraph(n int) error {
	switch {
	case o.TrainOn != nil:
		return badOption("TrainOn, which Embed alone has; prepare those points alone, and place the others with PlaceAll")
	case o.Components < None:
		return badOption("%d principal components; take 1 or more, 0 for %d, or None", o.Components, DefaultComponents)
	case o.GraphMetric != "" && !slices.Contains(o.GraphMetric.Words(), string(o.GraphMetric)):
		return badOption("the metric %q of points; take one of %v", o.GraphMetric, o.GraphMetric.Words())
	case o.Neighbors < 0:
		return badOption("%d neighbours; take 1 or more, or 0 for %d", o.Neighbors, DefaultNeighbors)
	case o.Graph == nil:
		return nil
	case o.Search == neighbors.Approximate:
		return badOption("both an approximate search and a graph of one's own, which needs none; leave one of them out")
	case o.Graph.N != n:
		return badOption("a graph of %d points for %d; build it of the same points", o.Graph.N, n)
	}
	if err := o.Graph.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	return nil
}

// Objective returns the loss of a batch.
func (o *Options) Objective() op.ContrastiveOptions {
	return op.ContrastiveOptions{
		Loss: o.Loss, Metric: o.Metric, Temperature: orElse(o.Temperature, 0.5), Clamp: orNone(o.Clamp, DefaultClamp),
		Scale: orElse(o.Scale, o.Loss.Info().Scale), Mean: o.Mean, ExcludePositive: o.ExcludePositive,
	}
}

// method returns a new optimiser.
func (o *Options) method(weightDecay float64) train.Method {
	if o.adam() {
		return &train.Adam{WeightDecay: weightDecay}
	}
	return &train.SGD{Momentum: o.Momentum, WeightDecay: weightDecay}
}

// phases returns what is run one after the other.
func (o *Options) phases() []train.Phase {
	epochs, lr, negatives := DefaultTableEpochs, float64(DefaultTableLR), orElse(o.Negatives, DefaultNegatives)
	if o.network() {
		epochs = DefaultNetworkEpochs
	}
	if o.adam() {
		lr = DefaultNetworkLR
	}
	lr = orElse(o.LR, lr)
	if len(o.Phases) == 0 {
		return []train.Phase{{
			Epochs: orElse(o.Epochs, epochs), LR: lr, Anneal: o.Anneal, WarmUp: o.WarmUp,
			Place: o.Place, ExaggerateEarly: o.EarlyExaggeration, Negatives: negatives,
		}}
	}
	phases := slices.Clone(o.Phases)
	for i := range phases {
		p := &phases[i]
		p.LR, p.Negatives = orElse(p.LR, lr), orElse(p.Negatives, negatives)
	}
	return phases
}

// FitOptions returns the options of the training.
func (o *Options) FitOptions() train.Options {
	return train.Options{
		Phases: o.phases(), BatchSize: o.BatchSize, Seed: o.Seed, Device: o.Device, Sampling: o.Sampling,
		Method: o.method(o.WeightDecay), Clip: orNone(o.Clip, DefaultClip),
		LogZ: o.LogZ, FixZ: o.FixZ, MethodZ: o.method(0), LRZ: o.LRZ,
		Hooks: o.Hooks, Watch: o.Watch, Checkpoints: o.Checkpoints, Resume: o.Resume,
	}
}
