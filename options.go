package cne

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"

	"cne/data"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/option"
	"cne/internal/simd"
	"cne/internal/text"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// Errors that the caller's arguments can cause wrap one of these. The exceptions are
// train.ErrCheckpoint (for Options.Resume), *train.DivergedError (LR may be too high),
// model.ErrFile (of Load), and package data's errors about files (of points that are read
// in blocks). Other errors come from the context, the file system, the device, or the
// caller's own code, such as Hooks and Cache.
var (
	// ErrOption is wrapped by errors about invalid or contradictory options.
	ErrOption = errors.New("cne: bad option")
	// ErrPoints is wrapped by errors about points that cannot be embedded or projected: too
	// few, of another width, or with values that are not finite. It is also wrapped by
	// errors about an empty Embedding or Neighborhood.
	ErrPoints = errors.New("cne: bad points")
	// ErrEqualPoints is wrapped by errors about a network whose points are all equal. It
	// wraps ErrPoints.
	ErrEqualPoints = fmt.Errorf("%w: all are equal, and a network places equal points at one position", ErrPoints)
	// ErrImages is wrapped by errors about loading a network for images: see package simclr.
	ErrImages = errors.New("cne: the file holds a network for images")
	// ErrNoTrainingPoints is wrapped by errors about projecting without a network if the
	// embedding was saved without its training points.
	ErrNoTrainingPoints = errors.New("cne: a map without a network needs its training points to place others, and they were not saved with it; UseTrainingPoints supplies them")
)

// The defaults for zero (or nil) fields of Options. For Components, Clip and Clamp, nil
// means the default and 0 none. DefaultTableEpochs is for positions without a network,
// DefaultTableLR for SGD, and DefaultNetworkLR for Adam.
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
	DefaultRetries       = 3 // of a preset's rates
	DefaultClamp         = 1e-10
)

// SparseComponents is the number of components for sparse points with AutoComponents.
const SparseComponents = 100

// AutoComponents as Options.Components means 50 components, or 100 for sparse points (see
// ChooseComponents). Dense points are used as they are if an exact search over them is cheap (up
// to 22 000 images of MNIST), or if GraphMetric is data.Cosine or data.Correlation and points have
// at most 1024 values; but not if all their distances are alike (neighbors.Contrast above 0.85),
// or if a network sees the components (OnComponents).
const AutoComponents = -1

// maxExactWork and maxExactValues are the largest n²·d and n·d for which AutoComponents
// uses n points of d values as they are.
const (
	maxExactWork   = 4e11
	maxExactValues = 1e8
)

// maxAngularWidth is the largest width for which AutoComponents uses points as they are
// if their directions are compared. Their variance is spread over too many components for
// 50 to hold it.
const maxAngularWidth = 1024

// Options say how points are embedded. The zero value is the paper's Neg-t-SNE,
// PresetPaper; PresetAuto.Apply gives the options of "cne train" for a number of points.
//
// The tags describe configurations: key names the field there and in an OptionError, in is
// the range of values other than zero, and words stand for numbers outside the range or,
// of a bool, for false and true. So learn_z is true by default: its field FixZ means the
// opposite.
type Options struct {
	// Scaling scales the points; "" means data.ScaleAuto. New points are scaled in the
	// same way.
	Scaling data.Scaling `key:"data.scale"`
	// GraphMetric is the distance between points; the zero value is data.Euclidean. For
	// data.Cosine and data.Correlation the scaled points are normalised to length 1, also
	// for the model. For data.Manhattan, data.Hamming, data.Jaccard and data.Haversine no
	// components are taken. (Metric is about positions.)
	GraphMetric data.Metric `key:"graph.metric"`
	// Components is the number of principal components used to find neighbours if points
	// are wider; nil means 50, and 0 none. See AutoComponents.
	Components *int `key:"graph.pca,given" in:"[0,inf)" words:"auto=-1"`
	// Neighbors is k of the symmetric kNN graph; 0 means 15.
	Neighbors int `key:"graph.k" in:"[1,inf)"`
	// Search is how neighbours are found; the zero value, neighbors.Auto, is exact up to
	// 100 000 points. Among sparse points without Components the search is always exact.
	Search neighbors.SearchMethod `key:"graph.search"`
	// Graph, if not nil, replaces the kNN graph: neighbors.FromNeighbors makes one from
	// given neighbours, neighbors.ReadFile reads one of scipy's.
	Graph *neighbors.Graph
	// MinNeighbors is the least number of neighbours per point in Neighborhood.Nearest,
	// for measures of quality that need more than the graph.
	MinNeighbors int
	// Cache, if not nil, keeps what Prepare finds for later runs.
	Cache Cache
	// Division, if not nil, says which rows of the points are trained on, as DivisionRules
	// divide them; Graph and Start are of these. Their positions are the same as if there
	// were no other points. Embed then places the others. If not all points fit into
	// memory, read the rows to train on with file.ReadRows, call Prepare and Fit without
	// Division, and place the others with Embedding.ProjectRows.
	Division *Division
	// SampleEdges draws the edges of an epoch in proportion to their weights, as UMAP
	// does (train.Options.Weights), instead of taking each once. The weights are Graph's,
	// or UMAP's for the kNN graph (neighbors.FuzzyGraph).
	SampleEdges bool `key:"graph.weighted_sampling"`
	// Density says how much of the points' density the embedding keeps: the weights of
	// the kNN graph's edges are multiplied by a power of the distances to the neighbours
	// (neighbors.Graph.KeepDensity). 0 means not at all; 2 gives lengths about proportional
	// to distances. Less is taken where densities are very different. It has no effect on Graph.
	Density float64 `key:"graph.density" in:"[0,4]"`

	// Hidden are the widths of a network's hidden layers, each followed by a ReLU:
	// model.DefaultHidden are the paper's. Nil means positions without a network, an empty
	// list that is not nil a single linear layer.
	Hidden []int `key:"model.hidden" in:"[1,65536]"`
	// OnComponents makes the principal components, not the points, the network's input.
	OnComponents bool `key:"model.input" words:"points pca"`
	// Dim is the width of the embedding; 0 means 2.
	Dim int `key:"model.dim" in:"[1,65536]"`
	// Float64 computes in float64 instead of float32.
	Float64 bool `key:"model.dtype" words:"float32 float64"`
	// Init says how positions without a network are initialised. They are scaled to the
	// standard deviation InitStd along the first axis; 0 means 1. Start [n, Dim] are the
	// positions for InitGiven. They are not scaled; see Neighborhood.StartFrom.
	Init    Init
	InitStd float64 `key:"model.init_std" in:"[1e-20,1e18]"`
	Start   *data.Matrix

	// Loss is one of the paper's four; the zero value is Neg-t-SNE.
	Loss op.Loss `key:"loss.name"`
	// Metric is the similarity of two positions; the zero value is the Cauchy kernel of
	// their Euclidean distance. Temperature divides the cosine; 0 means 0.5.
	Metric      op.Metric `key:"loss.metric"`
	Temperature float64   `key:"loss.temperature" in:"[0.01,1e6]"`
	// Negatives is m, the number of negatives for each edge; 0 means 5, train.Full all
	// other points of the batch, and train.All all pairs of points. Sampling says how they
	// are drawn.
	Negatives int            `key:"loss.negatives" in:"[1,inf)" words:"full=-1 all=-2"`
	Sampling  train.Sampling `key:"loss.sampling"`
	// Spectrum is the position of Neg-t-SNE and InfoNC-t-SNE on the spectrum between
	// t-SNE and UMAP. The zero value is the paper's: Z̄ = n²/m for Neg-t-SNE of n points,
	// and for InfoNC-t-SNE ρ = 1, the divisor of the repulsive term.
	Spectrum train.SpectrumParam `key:"loss"`
	// Scale multiplies the loss; 0 means 0.5 for InfoNC-t-SNE, as in the paper's
	// runs, and 1 for the others.
	Scale float64 `key:"loss.scale,null" in:"[1e-30,1e30]"`
	// Clamp bounds the arguments of logarithms from below, 0 ≤ Clamp < 1; nil means
	// 1e-10, and 0 no bound.
	Clamp *float64 `key:"loss.clamp,given" in:"[0,1)"`
	// LogZ is the initial log Z of NC-t-SNE, per pair of points (see
	// train.Normalization.Z). FixZ keeps it at this value, or at a phase's.
	LogZ float64 `key:"loss.log_z" in:"[-60,60]"`
	FixZ bool    `key:"loss.learn_z" words:"true false"`

	// Pull draws positions without a network towards Towards [n, Dim], or the first principal
	// components: see train.Phase. The positions are turned to fit them at the start.
	Pull    float64 `key:"loss.pull" in:"[0,1e6]"`
	Towards *data.Matrix

	// Epochs is the number of passes over all edges; 0 means 50 for a network, otherwise
	// 750.
	Epochs int `key:"train.epochs,null" in:"[1,inf)"`
	// BatchSize is the number of edges of a batch; 0 means 1024.
	BatchSize int `key:"train.batch_size" in:"[2,inf)"`
	// Optimizer updates the parameters; the zero value is Adam for a network, otherwise SGD.
	// Momentum is for SGD only, WeightDecay, an L2 penalty, for both.
	Optimizer   Optimizer `key:"train.optimizer,null"`
	Momentum    float64   `key:"train.momentum" in:"[0,1)"`
	WeightDecay float64   `key:"train.weight_decay" in:"[0,inf)"`
	// LR is the initial learning rate; 0 means 1 for SGD and 0.001 for Adam. Schedule lowers
	// it. WarmUp is the number of epochs at the start during which it rises from 0. LRZ is
	// the learning rate of log Z: nil means 0.001, and 0 fixes log Z as FixZ does. (In
	// train.Options, 0 means 0.001.)
	LR       float64        `key:"train.lr,null" in:"(0,inf)"`
	LRZ      *float64       `key:"train.lr_z,given" in:"[0,inf)"`
	Schedule train.Schedule `key:"train.anneal"`
	WarmUp   int            `key:"train.warm_up" in:"[0,inf)"`
	// Retries is how often a phase that diverges begins again, each time at a third of its
	// learning rate. Presets but PresetPaper set 3 if neither LR nor Phases is set. OnRetry,
	// if not nil, is called each time; Spectrum may call it from several goroutines.
	Retries int `key:"train.retries" in:"[0,10]"`
	OnRetry func(train.Retry) error
	// Clip bounds each element of the gradients; nil means 4, and 0 no bound.
	Clip *float64 `key:"train.clip,given" in:"[0,inf)"`
	// EarlyExaggeration runs the first third of the epochs (train.EarlyEpochs) at max(s, 1),
	// where s is the position of Spectrum.
	EarlyExaggeration bool `key:"train.early_exaggeration"`
	// Phases, if any, run one after the other instead of one phase of Epochs. If Epochs is
	// not 0, it is the total, and the last phase gets the remaining epochs.
	Phases []Phase `key:"train.phases" item:"phase"`

	// Seed seeds all random numbers.
	Seed uint64 `key:"seed" in:"[0,inf)"`
	// Device computes; nil means the CPU. A trained network stays on it, so the device must
	// stay open for Project. Without a network, Project runs on the CPU. Embedding.UseDevice
	// changes both.
	Device *model.Device
	// Hooks are called after every epoch with the progress (train.State) and the model.
	// OnBatch, if not nil, is called after every batch: see train.Options.
	Hooks   []train.Hook
	OnBatch func(epoch, done, batches int, loss float64)
	// Log, if not nil, reports the start of each slow step.
	Log *slog.Logger
	// Gather moves groups of points without edges between them towards each other after
	// training (initial.Gather). It has no effect on networks or with Float64 or a Pull. All
	// presets but PresetPaper set it.
	Gather bool
	// Checkpoints says when the state of the run is saved; nil means never. Resume is such
	// a state. A run with the same points and options continues from it to the embedding
	// of an uninterrupted run; nil starts from the beginning. A spectrum has several runs
	// and takes SpectrumCheckpoints instead.
	Checkpoints         *train.Checkpoints
	Resume              *train.Checkpoint
	SpectrumCheckpoints *SpectrumCheckpoints

	spread bool // few columns are alike, so that components hold little of the variance
}

// A Phase is a part of a run with its own schedule: see train.Phase. Fields that are nil
// or 0 are taken from Options, except Epochs, which is at least 1. In the phases given to
// Spectrum, Epochs may be 0, too.
type Phase struct {
	Epochs    int                 `key:"epochs" in:"[1,inf)"`
	LR        float64             `key:"lr,null" in:"(0,inf)"`
	Spectrum  train.SpectrumParam `key:",squash"`
	Negatives int                 `key:"negatives,null" in:"[1,inf)" words:"full=-1 all=-2"`
	Schedule  *train.Schedule     `key:"anneal"`
	WarmUp    *int                `key:"warm_up" in:"[0,inf)"`
	// LogZ is the phase's initial log Z of NC-t-SNE; nil continues with the value of the
	// phase before.
	LogZ *float64 `key:"log_z" in:"[-60,60]"`
	Pull *float64 `key:"pull" in:"[0,1e6]"`
}

// An Init is a method to initialise positions without a network.
type Init int

const (
	// InitPCA uses the first principal components.
	InitPCA Init = iota
	// InitDiffusion uses the first principal components, averaged over neighbours in the
	// graph.
	InitDiffusion
	// InitMultilevel refines embeddings of ever smaller groups of neighbours.
	InitMultilevel
	// InitRandom draws positions from a normal distribution.
	InitRandom
	// InitGiven uses the positions Options.Start.
	InitGiven
)

var initNames = kind.Names[Init]{
	Package: "cne", Type: "Init", What: "start", Err: ErrOption,
	Words: []string{"pca", "diffusion", "multilevel", "random", "given"},
}

func (i Init) String() string { return initNames.String(i) }

// MarshalText implements encoding.TextMarshaler.
func (i Init) MarshalText() ([]byte, error) { return initNames.Text(i) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Init) UnmarshalText(text []byte) error { return initNames.Parse(i, text) }

// Words returns the names of all methods except InitGiven.
func (Init) Words() []string { return initNames.Words[:InitGiven:InitGiven] }

// Optimizer is an optimisation method.
type Optimizer int

const (
	// SGD is stochastic gradient descent (train.SGD).
	SGD Optimizer = 1 + iota
	// Adam is train.Adam.
	Adam
)

var optimizerNames = kind.Names[Optimizer]{
	Package: "cne", Type: "Optimizer", What: "optimiser", Err: ErrOption, Words: []string{"auto", "sgd", "adam"},
}

func (o Optimizer) String() string { return optimizerNames.String(o) }

// MarshalText implements encoding.TextMarshaler.
func (o Optimizer) MarshalText() ([]byte, error) { return optimizerNames.Text(o) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Optimizer) UnmarshalText(text []byte) error { return optimizerNames.Parse(o, text) }

// Words returns the names of the optimisers.
func (Optimizer) Words() []string { return optimizerNames.Words[SGD:] }

// network reports whether a network is trained.
func (o *Options) network() bool { return o.Hidden != nil }

// adam reports whether the optimiser is Adam.
func (o *Options) adam() bool { return o.Optimizer == Adam || o.Optimizer == 0 && o.network() }

// or returns *v, or otherwise if v is nil.
func or[T any](v *T, otherwise T) T { return *cmp.Or(v, &otherwise) }

func badOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOption, fmt.Sprintf(format, args...))
}

// Check returns an error if the options are invalid for n points to train on: with Division,
// the number of these. Embed calls it first. Its errors wrap ErrOption, and most wrap an
// *OptionError. If there are too few points for the neighbours, the error wraps ErrPoints.
func (o *Options) Check(n int) (err error) {
	defer kind.Catch(&err)
	dim, k := cmp.Or(o.Dim, DefaultDim), cmp.Or(o.Neighbors, DefaultNeighbors)
	kind.Check(o.checkGraph(n))
	kind.Check(asOption(o.checkModel(n)))
	kind.Check(asOption(errors.Join(o.Objective().Check(), o.Objective().CheckWidth("model.dim", dim), o.optimizer(o.WeightDecay).Init(nil))))
	edges := n * max(1, k)
	if o.Graph != nil {
		edges = o.Graph.Edges()
	}
	kind.Check(o.checkFit(n, edges))
	switch { // CheckSize relies on this order: these come last, without numbers in Want
	case !o.network() && dim > math.MaxInt32/max(1, n):
		return asOption(&OptionError{Key: "model.dim", Got: fmt.Sprintf("%d for %d points", dim, n), Want: "fewer dimensions"})
	case o.Graph == nil && k >= n:
		return &OptionError{Key: "graph.k", Got: fmt.Sprintf("%d for %d points", k, n),
			Want: "fewer than the points that are trained on", Err: ErrPoints}
	case o.MinNeighbors >= n:
		return &OptionError{Key: "quality.k", Got: fmt.Sprintf("%d for %d points", o.MinNeighbors, n),
			Want: "fewer than the points that are trained on", Err: ErrPoints}
	}
	return nil
}

// checkFit checks the options of the training on a graph.
func (o *Options) checkFit(points, edges int) error {
	fit := o.FitOptions()
	err := fit.Check(o.Objective(), points, edges)
	if fault, ok := errors.AsType[*OptionError](err); ok && !o.ofPhase(fault) {
		fault.List, fault.Item = "", ""
	}
	return asOption(err)
}

// ofPhase reports whether the invalid value is set in a phase, not in the options that
// all phases share.
func (o *Options) ofPhase(fault *OptionError) bool {
	var i int
	if _, err := fmt.Sscanf(fault.Item, "phase %d", &i); err != nil || i > len(o.Phases) {
		return false
	}
	phase := reflect.ValueOf(o.Phases[i-1])
	return fault.Key == "train.epochs" || fault.Other == "train.epochs" ||
		slices.ContainsFunc(option.Fields(phase.Type()), func(f option.Field) bool {
			return strings.HasSuffix(fault.Key, "."+f.Key) && !phase.FieldByIndex(f.Index).IsZero()
		})
}

// asOption wraps err in ErrOption; nil stays nil.
func asOption(err error) error {
	if err == nil || errors.Is(err, ErrOption) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOption, err)
}

// An OptionError describes the invalid value of an option. Its fields, strings except
// Err, are
//
//	Key              the option's key, such as "train.clip"
//	Got, Want        its value, and what is allowed
//	Other, OtherGot  the option that does not allow the value, and its value; may be ""
//	List, Item       the list and its entry that has the option, such as "train.phases" and
//	                 "phase 2"; may be ""
//	Err              the wrapped error; may be nil
type OptionError = train.OptionError

// wantsAll reports whether a phase has all pairs of points as negatives.
func (o *Options) wantsAll() bool {
	return slices.ContainsFunc(o.phases(), func(p train.Phase) bool { return p.Negatives == train.All })
}

// pulls reports whether a phase has a pull.
func (o *Options) pulls() bool {
	return slices.ContainsFunc(o.phases(), func(p train.Phase) bool { return p.Pull > 0 })
}

// checkModel checks the options of the model, its start and its optimiser.
func (o *Options) checkModel(n int) error {
	dim := cmp.Or(o.Dim, DefaultDim)
	total := totalEpochs(o.Phases)
	switch {
	case !initNames.Valid(o.Init):
		return &OptionError{Key: "model.init", Got: o.Init.String(), Want: text.Enumerate(o.Init.Words())}
	case (o.network() || dim != 2 || o.Float64) && o.wantsAll():
		return &OptionError{Key: "loss.negatives", Got: "all", Want: "full, or float32 positions without a network in two dimensions"}
	case o.network() && o.pulls():
		return &OptionError{Key: "loss.pull", Got: "a pull", Other: "model.kind", OtherGot: "mlp", Want: "0, or a table"}
	case o.Momentum != 0 && o.adam():
		return &OptionError{Key: "train.momentum", Got: fmt.Sprint(o.Momentum), Other: "train.optimizer", OtherGot: "adam", Want: "0"}
	case o.OnComponents && !o.network():
		return &OptionError{Key: "model.input", Got: "pca", Other: "model.kind", OtherGot: "table", Want: "points"}
	case o.OnComponents && o.components() == 0:
		return &OptionError{Key: "model.input", Got: "pca", Other: "graph.pca", OtherGot: "0", Want: "points, or a number of components"}
	case slices.ContainsFunc(o.Phases, func(p Phase) bool { return p.Epochs < 1 }):
		i := slices.IndexFunc(o.Phases, func(p Phase) bool { return p.Epochs < 1 })
		return &OptionError{Key: "train.epochs", Got: fmt.Sprint(o.Phases[i].Epochs), List: "train.phases",
			Item: fmt.Sprintf("phase %d", i+1), Want: "1 or more"}
	case len(o.Phases) > 0 && o.Epochs != total && o.Epochs != 0 && o.Epochs <= total-o.Phases[len(o.Phases)-1].Epochs:
		return &OptionError{Key: "train.epochs", Got: fmt.Sprint(o.Epochs), Other: "train.phases",
			OtherGot: fmt.Sprintf("of %d epochs", total), Want: "null, or more than all phases but the last have"}
	case len(o.Phases) > 0 && o.EarlyExaggeration:
		return &OptionError{Key: "train.early_exaggeration", Got: "true", Other: "train.phases",
			OtherGot: fmt.Sprintf("of %d epochs", total), Want: "false, or the exaggeration as a phase"}
	case o.network() && o.Init != InitPCA && o.Init != InitRandom:
		return &OptionError{Key: "model.init", Got: o.Init.String(), Other: "model.kind", OtherGot: "mlp", Want: "pca"}
	case o.Start != nil && o.Init != InitGiven:
		return badOption("got Start without InitGiven")
	case o.Towards != nil && !o.pulls():
		return badOption("got Towards without Pull")
	}
	return cmp.Or(checkPositions("Start", o.Start, n, dim), checkPositions("Towards", o.Towards, n, dim))
}

// Random reports whether the embedding of given neighbours may depend on Seed: through its
// start, a network, batches or negatives.
func (o *Options) Random() bool {
	sampled := func(p Phase) bool { return cmp.Or(p.Negatives, o.Negatives) != train.All }
	return o.network() || o.Start != nil || o.Towards != nil || o.Init == InitRandom || o.Init == InitMultilevel || slices.ContainsFunc(o.Phases, sampled) ||
		len(o.Phases) == 0 && o.Negatives != train.All
}

// checkPositions checks positions that may be nil.
func checkPositions(name string, m *data.Matrix, n, dim int) error {
	switch {
	case m == nil:
		return nil
	case m.N != n || m.D != dim || len(m.X) != n*dim:
		return badOption("got a %s of %d×%d, want %d×%d", name, m.N, m.D, n, dim)
	case !simd.AllFinite(m.X):
		return badOption("got a %s with a value that is not finite", name)
	case n > 1 && m.Distinct() == 1:
		return badOption("got a %s of equal positions, want different ones", name)
	}
	return nil
}

// checkGraph checks the ranges of the options and the graph.
func (o *Options) checkGraph(n int) error {
	if err := option.Check(o); err != nil {
		return asOption(err)
	}
	metric := string(o.GraphMetric)
	switch {
	case o.GraphMetric.Direct() && o.components() > 0:
		return &OptionError{Key: "graph.pca", Got: fmt.Sprint(*o.Components), Other: "graph.metric", OtherGot: metric,
			Want: "auto or 0, since components have Euclidean distances", Err: ErrOption}
	case o.GraphMetric.Direct() && o.OnComponents:
		return &OptionError{Key: "model.input", Got: "pca", Other: "graph.metric", OtherGot: metric, Want: "points", Err: ErrOption}
	case (o.GraphMetric == data.Jaccard || o.GraphMetric == data.Precomputed) && o.Scaling == data.ScaleStandard,
		o.GraphMetric == data.Haversine && o.Scaling != "" && o.Scaling != data.ScaleAuto:
		return &OptionError{Key: "data.scale", Got: string(o.Scaling), Other: "graph.metric", OtherGot: metric, Want: "auto", Err: ErrOption}
	case o.MinNeighbors < 0:
		return badOption("MinNeighbors: got %d, want 0 or more", o.MinNeighbors)
	case o.Graph == nil:
		return nil
	case o.Search == neighbors.Approximate:
		return &OptionError{Key: "graph.search", Got: "approximate", Other: "graph.file", OtherGot: "a graph of one's own",
			Want: "auto", Err: ErrOption}
	case o.Graph.N != n:
		return badOption("got a Graph of %d points, want %d", o.Graph.N, n)
	}
	if err := o.Graph.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	return nil
}

// CheckSize is Check for points whose number or width may not be known exactly.
func (o *Options) CheckSize(size data.Size) error {
	if size.High >= 2 { // Check needs at least two points
		err := o.Check(size.High)
		if !errors.Is(err, ErrPoints) {
			err = option.InBoth(o.Check, max(2, size.Low), size.High)
		}
		if err != nil {
			return err
		}
	}
	return asOption(cmp.Or(o.checkWeights(size.Width), o.checkSparse(size)))
}

// checkWeights refuses networks whose weights cannot be numbered. width is the
// number of values of a point, 0 if it is not known.
func (o *Options) checkWeights(width int) error {
	if !o.network() {
		return nil
	}
	if o.OnComponents {
		width = min(width, o.components())
	}
	total, in := 0, width
	for _, out := range append(slices.Clone(o.Hidden), cmp.Or(o.Dim, DefaultDim)) {
		if total += in * out; total > math.MaxInt32 {
			return &OptionError{Key: "model.hidden", Got: fmt.Sprintf("%d for points of %d values", o.Hidden, width),
				Want: fmt.Sprintf("at most %d weights", math.MaxInt32)}
		}
		in = out
	}
	return nil
}

// checkSparse refuses options that sparse points do not allow.
func (o *Options) checkSparse(size data.Size) error {
	x := *o
	x.ChooseComponents(true, false)
	if size.Nonzeros == 0 || x.Reduces(size.Low, size.Width) == 0 { // they may become dense
		return nil
	}
	wide := o.network() && !o.OnComponents
	const orDense = ", or graph.pca: 0, which makes them dense if memory allows"
	switch {
	case o.Scaling == data.ScaleStandard:
		return &OptionError{Key: "data.scale", Got: "standard for sparse points", Want: "unit or none" + orDense}
	case o.GraphMetric == data.Correlation:
		return &OptionError{Key: "graph.metric", Got: "correlation for sparse points", Want: "cosine" + orDense}
	case wide && size.Width > model.MaxSparseWidth:
		return &OptionError{Key: "model.input", Got: fmt.Sprintf("points for sparse ones of %d values", size.Width),
			Want: fmt.Sprintf("pca, or at most %d values", model.MaxSparseWidth)}
	case wide && o.Float64:
		return &OptionError{Key: "model.input", Got: "points for sparse ones", Other: "model.dtype", OtherGot: "float64",
			Want: "pca, or model.dtype: float32"}
	}
	return nil
}

// Approximates reports whether the k nearest of n points of d values are found
// approximately: see neighbors.SearchMethod.
func (o *Options) Approximates(n, d, k int) bool {
	if o.GraphMetric == data.Precomputed {
		return false
	}
	if o.GraphMetric.Direct() { // the CPU searches
		return o.Search.Approximates(nil, n, d, k)
	}
	return o.Search.Approximates(o.Device, n, d, k)
}

// Objective returns the options of the loss.
func (o *Options) Objective() op.ContrastiveOptions {
	return op.ContrastiveOptions{
		Loss: o.Loss, Metric: o.Metric, Temperature: cmp.Or(o.Temperature, 0.5), Clamp: or(o.Clamp, DefaultClamp),
		Scale: cmp.Or(o.Scale, o.Loss.Info().Scale),
	}
}

// components returns the number of principal components; 0 means the points themselves.
func (o *Options) components() int {
	switch {
	case o.GraphMetric.Direct() && (o.Components == nil || o.autoComponents()):
		return 0
	case o.autoComponents():
		return DefaultComponents
	}
	return or(o.Components, DefaultComponents)
}

// KeepsZ reports whether NC-t-SNE's log Z stays fixed.
func (o *Options) KeepsZ() bool {
	return o.FixZ || o.LRZ != nil && *o.LRZ == 0 && o.Loss.Info().Constant == op.LearntZ
}

// optimizer returns a new optimiser.
func (o *Options) optimizer(weightDecay float64) train.Optimizer {
	if o.adam() {
		return &train.Adam{WeightDecay: weightDecay}
	}
	return &train.SGD{Momentum: o.Momentum, WeightDecay: weightDecay}
}

// WithDefaults returns the options with the defaults of Epochs, Optimizer and LR filled
// in.
func (o Options) WithDefaults() Options {
	epochs, lr := DefaultTableEpochs, float64(DefaultTableLR)
	if o.network() {
		epochs = DefaultNetworkEpochs
	}
	optimizer := SGD
	if o.adam() {
		optimizer, lr = Adam, DefaultNetworkLR
	}
	o.Epochs = cmp.Or(o.Epochs, totalEpochs(o.Phases), epochs)
	o.Optimizer, o.LR = optimizer, cmp.Or(o.LR, lr)
	return o
}

// phases returns the phases of the training.
func (o Options) phases() []train.Phase {
	o = o.WithDefaults()
	whole := train.Phase{
		Epochs: o.Epochs, LR: o.LR, Schedule: o.Schedule, WarmUp: o.WarmUp, Spectrum: o.Spectrum,
		ExaggerateEarly: o.EarlyExaggeration, Negatives: cmp.Or(o.Negatives, DefaultNegatives), Pull: o.Pull,
	}
	if len(o.Phases) == 0 {
		return []train.Phase{whole}
	}
	phases := make([]train.Phase, len(o.Phases))
	for i, p := range o.Phases {
		x := whole
		x.Epochs, x.LR, x.Negatives = p.Epochs, cmp.Or(p.LR, x.LR), cmp.Or(p.Negatives, x.Negatives)
		x.Schedule, x.WarmUp, x.LogZ = or(p.Schedule, x.Schedule), or(p.WarmUp, x.WarmUp), p.LogZ
		x.Pull = or(p.Pull, x.Pull)
		if p.Spectrum.Given() {
			x.Spectrum = p.Spectrum
		}
		phases[i] = x
	}
	phases[len(phases)-1].Epochs += o.Epochs - totalEpochs(o.Phases)
	return phases
}

// FitOptions returns the options that Fit passes to train.Fit. With SampleEdges or Density,
// Fit adds the weights of the graph's edges, and with a pull the positions to pull towards.
func (o *Options) FitOptions() train.Options {
	return train.Options{
		Phases: o.phases(), BatchSize: o.BatchSize, Seed: o.Seed, Device: o.Device, Sampling: o.Sampling,
		Optimizer: o.optimizer(o.WeightDecay), Clip: or(o.Clip, DefaultClip),
		LogZ: o.LogZ, FixZ: o.KeepsZ(), OptimizerZ: o.optimizer(0), LRZ: or(o.LRZ, 0.001),
		Retries: o.Retries, OnRetry: o.OnRetry, Hooks: o.Hooks, OnBatch: o.OnBatch, Checkpoints: o.Checkpoints, Resume: o.Resume,
	}
}

// A Memory is an estimate of the host memory of a run. Its fields are
//
//	Live int64     the least memory, in bytes, with which the run works
//	Peak int64     the bytes that the process takes without a memory limit
//	During string  the step that needs the most memory
//	Parts []Part   the arrays of this step, the largest first
//
// A part has the strings What and Key, the option that decides its size ("" if only the
// points do), and its Bytes, a float64.
type Memory = memory.Estimate

// Memory estimates the host memory that Embed needs for points of a size, on the CPU or
// with a Device. It reads no data. With Sample, size is the sample's, and the estimate is
// without the other points.
func (o *Options) Memory(size data.Size) Memory { return o.Workload(size).Estimate() }

// Workload returns the sizes on which Memory's estimate depends. A program that does more
// than Embed sets further fields, such as Held for held-out points, and calls Estimate.
func (o *Options) Workload(size data.Size) *memory.Points {
	x := *o
	o = &x
	o.ChooseComponents(size.Nonzeros > 0, false)
	n, d := size.Likely, max(1, size.Width)
	w := &memory.Points{
		N: n, Width: d, ValueBytes: 4, Nonzeros: size.Nonzeros, Components: o.Reduces(n, d), KeepsInput: !o.dropsScaled(),
		Neighbors: cmp.Or(o.Neighbors, DefaultNeighbors),
		Dim:       cmp.Or(o.Dim, DefaultDim), Hidden: o.Hidden, NumberBytes: 4, Batch: cmp.Or(o.BatchSize, DefaultBatchSize),
		Device: !o.Device.OnHost(),
	}
	w.Dense = size.Nonzeros == 0 || o.becomeDense(n, d)
	w.Approximate = (w.Dense || w.Components > 0) && o.Approximates(n, cmp.Or(w.Components, d), w.Neighbors)
	w.Dense = w.Dense || float64(size.Nonzeros) > neighbors.FilledShare*float64(n)*float64(d)
	if w.Components > 0 && !w.KeepsInput {
		w.ValueBytes = map[data.Storage]float64{data.InMemory: 4, data.AsBytes: 1}[size.Storage]
	} else if w.KeepsInput {
		w.ValueBytes = 5 // includes the nonzero values, as many as in MNIST
	}
	if o.Float64 {
		w.NumberBytes = 8
		if w.KeepsInput {
			w.ValueBytes = 12
		}
	}
	if o.adam() {
		w.Moments = 3
	} else if o.Momentum != 0 || o.WeightDecay != 0 {
		w.Moments = 1
	}
	w.AllPairs = true
	for _, p := range o.phases() {
		w.Listed = max(w.Listed, o.Sampling.Listed(p.Negatives, w.Batch))
		w.AllPairs = w.AllPairs && p.Negatives == train.All
	}
	return w
}
