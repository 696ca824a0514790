package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"cne/internal/kind"
	"cne/internal/safetensors"
	"cne/internal/selection"
	"cne/model"
	"cne/model/op"
)

// Checkpoints say when the state of a run is saved. The state is also saved at the end of
// the run, and when its context is done.
type Checkpoints struct {
	// Epochs is the number of epochs after which the run is saved again; 0 means that only
	// Interval counts.
	Epochs int
	// Interval is the time after which the run is saved again, between two batches; 0 means
	// that only Epochs counts.
	Interval time.Duration
	// Save saves a checkpoint. The checkpoint shares memory with the run, so Save must write
	// or copy it before it returns. An error ends the run.
	Save func(*Checkpoint) error
}

// A Checkpoint is the state of a run between two batches: all that is needed to continue
// and end with the same bits as a run that never stopped.
type Checkpoint struct {
	// Progress says how far the run has come.
	Progress Progress
	// Notes are for the caller's use, for example to identify the run.
	Notes map[string]string

	// arrays are the arrays of engine.arrays. Their names begin with one of the prefixes
	// below.
	arrays []NamedArray
}

// A Stateful model has state in addition to its parameters that its steps change, such as
// the running statistics of batch normalisation. Checkpoints include it.
type Stateful interface {
	// State returns the arrays of the state, the same ones every time: a checkpoint
	// is restored by writing to them.
	State() []NamedArray
}

// Progress is how far a run has come.
type Progress struct {
	// Epochs is the number of epochs done, and Batches the number of batches done of
	// the next epoch.
	Epochs  int `json:"epochs"`
	Batches int `json:"batches"`
	// Loss is the loss of the last whole epoch, Sum the sum of the edges' losses since.
	Loss float64 `json:"loss"`
	Sum  float64 `json:"sum"`
	// Least is the lowest loss of an epoch, and First the mean loss of FirstEdges edges at the
	// start of the phase.
	Least      float64 `json:"least"`
	First      float64 `json:"first"`
	FirstEdges int     `json:"first_edges"`
	// Elapsed is the time that the whole epochs took, and ElapsedSince the time that
	// the batches since took.
	Elapsed      time.Duration `json:"elapsed"`
	ElapsedSince time.Duration `json:"elapsed_since"`

	// Follows is the number of these epochs that an earlier run did (Options.Follows). Total
	// is the planned number of epochs at the end.
	Follows int `json:"follows,omitempty"`
	Total   int `json:"total"`

	// Retries says how often each phase has begun again (Options.Retries).
	// Start is the progress at the start of the phase, if the phase can begin again.
	Retries []int     `json:"retries,omitempty"`
	Start   *Progress `json:"start,omitempty"`

	// These must be equal in a run that continues from the checkpoint.
	Seed      uint64 `json:"seed"`
	BatchSize int    `json:"batch_size"`
	Points    int    `json:"points"`
	Edges     int    `json:"edges"`
	// Precision is the precision of the model's products, if it is not float32.
	Precision string `json:"precision,omitempty"`
}

const (
	parameterPrefix  = "parameter."
	statePrefix      = "state."
	optimizerPrefix  = "method."
	optimizerZPrefix = "method_z."
	startPrefix      = "start." // before the others, for the state at the start of the phase

	// logZName is the name of the parameter log Z.
	logZName = "log_z"

	// progressKey and notePrefix are the keys of a checkpoint's metadata.
	progressKey = "progress"
	notePrefix  = "note."

	// checkpointFormat changes when the rest of a run would be another, for example
	// because negatives are drawn in another way.
	checkpointKind   = "checkpoint"
	checkpointFormat = 4
)

// ErrCheckpoint is wrapped by errors about checkpoints that are damaged, of another
// version, or of another run.
var ErrCheckpoint = errors.New("train: the checkpoint cannot be used")

// saves records when, and where, a run was last saved.
type saves struct {
	last time.Time
	at   position
	any  bool
}

// precisionOf returns the precision of a model's products, "" for float32.
func precisionOf(m model.Model) string {
	if p, ok := m.(interface{ Precision() op.Precision }); ok && p.Precision() != op.Float32 {
		return p.Precision().String()
	}
	return ""
}

// saveIf hands a checkpoint to the caller if one is wanted.
func (r *run) saveIf(wanted bool) error {
	if !wanted {
		return nil
	}
	c := r.checkpoint()
	if r.start != nil && r.start.Progress.position() != c.Progress.position() {
		c.Progress.Start = &r.start.Progress
		c.arrays = append(c.arrays, prefixed(startPrefix, r.start.arrays)...)
	}
	err := r.Checkpoints.Save(c)
	r.saves = saves{last: time.Now(), at: r.epochState.position, any: true}
	return err
}

// checkpoint returns the present state, without the start of the phase.
func (r *run) checkpoint() *Checkpoint {
	return &Checkpoint{
		Progress: Progress{
			Epochs: r.epochState.epoch, Batches: r.epochState.batch, Loss: r.result.Loss, Sum: r.epochState.sum,
			Least: r.lowestLoss, First: r.firstLoss, FirstEdges: r.firstEdges, Retries: slices.Clone(r.retries),
			Elapsed: r.result.Elapsed, ElapsedSince: r.epochState.elapsed, Follows: r.Follows.Epochs, Total: r.epochs,
			Seed: r.Seed, BatchSize: r.size, Points: r.n, Edges: r.edges, Precision: precisionOf(r.model),
		},
		arrays: r.engine.arrays(),
	}
}

func (p *Progress) position() position { return position{p.Epochs, p.Batches} }

// restore puts the run into the state of a checkpoint.
func (r *run) restore(c *Checkpoint) (err error) {
	defer kind.Catch(&err)
	p := &c.Progress
	same := func(what string, saved, now any) {
		kind.Expect(saved == now, ErrCheckpoint, "%s of its run: got %v, want %v", what, saved, now)
	}
	same("seed", p.Seed, r.Seed)
	same("batch size", p.BatchSize, r.size)
	same("number of epochs before it", p.Follows, r.Follows.Epochs)
	same("number of points", p.Points, r.n)
	same("number of edges", p.Edges, r.edges)
	same("precision", cmp.Or(p.Precision, op.Float32.String()), cmp.Or(precisionOf(r.model), op.Float32.String()))
	for i, phase := range r.Phases {
		kind.Expect(!phase.ExaggerateEarly || p.Total == r.epochs, ErrCheckpoint,
			"epochs of its run: got %d, want %d, as phase %d exaggerates a share of them", p.Total, r.epochs, i+1)
	}
	inRun := p.Epochs >= p.Follows && p.Epochs <= r.epochs && p.Batches >= 0 && p.Batches < r.batches && (p.Epochs < r.epochs || p.Batches == 0)
	kind.Expect(inRun, ErrCheckpoint, "got %d epochs and %d batches, want at most %d epochs of %d batches",
		p.Epochs, p.Batches, r.epochs, r.batches)
	for i, n := range p.Retries {
		kind.Expect(n <= 0 || i < len(r.Phases), ErrCheckpoint,
			"phase %d of its run, which diverged: want one of at most %d phases", i+1, len(r.Phases))
		for range n {
			r.lowerRate(i)
		}
	}
	now, start := &Checkpoint{Progress: *p}, &Checkpoint{}
	for _, a := range c.arrays {
		if name, ok := strings.CutPrefix(a.Name, startPrefix); ok {
			start.arrays = append(start.arrays, NamedArray{name, a.Value})
		} else {
			now.arrays = append(now.arrays, a)
		}
	}
	if p.Start != nil && r.Retries > 0 {
		start.Progress, r.start = *p.Start, start
	}
	return r.copyFrom(now)
}

// copyFrom takes over the arrays and the position of a checkpoint.
func (r *run) copyFrom(c *Checkpoint) (err error) {
	defer kind.Catch(&err)
	kind.Check(restore(r.engine.arrays(), c.arrays))
	p := &c.Progress
	r.epochState.position = p.position()
	r.epochState.sum, r.epochState.elapsed, r.lowestLoss = p.Sum, p.ElapsedSince, p.Least
	r.firstLoss, r.firstEdges = p.First, p.FirstEdges
	r.result.Epochs, r.result.Loss, r.result.Elapsed = p.Epochs, p.Loss, p.Elapsed
	return r.engine.restored()
}

// restore copies the elements of a checkpoint's arrays to the arrays of a run.
func restore(want, arrays []NamedArray) (err error) {
	defer kind.Catch(&err)
	saved := make(map[string]*op.Array, len(arrays))
	for _, s := range arrays {
		saved[s.Name] = s.Value
	}
	for _, s := range want {
		from, ok := saved[s.Name]
		kind.Expect(ok, ErrCheckpoint, "got no %s, which the model and the optimisers of this run have", s.Name)
		kind.Expect(ofOneType(s.Name, from, s.Value) && slices.Equal(from.Shape(), s.Value.Shape()), ErrCheckpoint,
			"%s: got %v of shape %v, want %v of shape %v", s.Name, from.Dtype(), from.Shape(), s.Value.Dtype(), s.Value.Shape())
	}
	kind.Expect(len(saved) == len(want), ErrCheckpoint,
		"got %d arrays, want %d for the model and the optimisers of this run", len(saved), len(want))
	for _, s := range want {
		kind.Check(copyArray(s.Value, saved[s.Name]))
	}
	return nil
}

// ofOneType reports whether an array can be restored from another of its name. log Z and
// its optimiser's state are float64 on the CPU and float32 on a device, and a run may
// continue on the other of the two.
func ofOneType(name string, from, to *op.Array) bool {
	return from.Dtype() == to.Dtype() || name == parameterPrefix+logZName || strings.HasPrefix(name, optimizerZPrefix)
}

// copyArray copies the elements of an array to one of the same shape, wherever they
// are, and rounds them to its type.
func copyArray(to, from *op.Array) (err error) {
	defer kind.Catch(&err)
	if to.Dtype() == from.Dtype() {
		return op.Copy(to, from)
	}
	source, rounded := onHost(from), kind.Got(op.NewArray(nil, to.Dtype(), from.Shape()...))
	// Of each pair, one has no elements of its type: then neither has the other.
	selection.Convert(op.Data[float64](rounded), op.Data[float32](source))
	selection.Convert(op.Data[float32](rounded), op.Data[float64](source))
	return op.Copy(to, rounded)
}

// onHost returns an array in the host's memory: the array itself, or a copy. It fails as
// kind.Need does.
func onHost(a *op.Array) *op.Array {
	if a.Device().OnHost() {
		return a
	}
	return hostCopy(a)
}

// hostCopy returns a copy of an array in the host's memory, or fails as kind.Need does.
func hostCopy(a *op.Array) *op.Array {
	copied := kind.Got(op.NewArray(nil, a.Dtype(), a.Shape()...))
	kind.Check(op.Copy(copied, a))
	return copied
}

// numberOf returns the only element of an array, or fails as kind.Need does.
func numberOf(a *op.Array) float64 {
	number := kind.Got(op.ArrayOf([]float64{0}, 1))
	kind.Check(copyArray(number, a))
	return op.Data[float64](number)[0]
}

// Clone returns a copy that shares no memory with the run. Several runs can continue from
// it, one after the other or at the same time: the runs of a spectrum, for example, from
// the end of the early phase that they share.
func (c *Checkpoint) Clone() (_ *Checkpoint, err error) {
	defer kind.Catch(&err)
	copied := &Checkpoint{Progress: c.Progress, Notes: maps.Clone(c.Notes), arrays: make([]NamedArray, len(c.arrays))}
	for i, s := range c.arrays {
		copied.arrays[i] = NamedArray{s.Name, hostCopy(s.Value)}
	}
	return copied, nil
}

// WriteFile writes the checkpoint to a file, atomically, with a checksum over its
// contents.
func (c *Checkpoint) WriteFile(path string) (err error) {
	defer kind.Catch(&err)
	progress := kind.Got(json.Marshal(c.Progress))
	f := &safetensors.File{
		Metadata: map[string]string{progressKey: string(progress)},
		Tensors:  make(map[string]safetensors.Tensor, len(c.arrays)),
	}
	for k, v := range c.Notes {
		f.Metadata[notePrefix+k] = v
	}
	for _, s := range c.arrays {
		a := onHost(s.Value)
		if v := op.Data[float64](a); v != nil {
			f.Tensors[s.Name] = safetensors.New(v, a.Shape()...)
		} else {
			f.Tensors[s.Name] = safetensors.New(op.Data[float32](a), a.Shape()...)
		}
	}
	f.Seal(checkpointKind, checkpointFormat)
	return f.WriteFile(path)
}

// ReadCheckpoint reads what WriteFile has written. Errors name the file; they wrap
// ErrCheckpoint if its contents are damaged, of another kind, or of an unknown version.
func ReadCheckpoint(path string) (*Checkpoint, error) {
	return safetensors.ReadAs(path, ErrCheckpoint, decodeCheckpoint)
}

func decodeCheckpoint(f *safetensors.File) *Checkpoint {
	kind.Check(f.Unseal(checkpointKind, checkpointFormat))
	c := &Checkpoint{Notes: map[string]string{}}
	err := json.Unmarshal([]byte(f.Metadata[progressKey]), &c.Progress)
	kind.Need(err == nil, ErrCheckpoint, "progress: %w", err)
	for k, v := range f.Metadata {
		if name, ok := strings.CutPrefix(k, notePrefix); ok {
			c.Notes[name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		a, err := arrayOf(f.Tensors[name])
		kind.Need(err == nil, ErrCheckpoint, "%s: %w", name, err)
		c.arrays = append(c.arrays, NamedArray{name, a})
	}
	return c
}

// arrayOf returns a tensor's elements as an array.
func arrayOf(t safetensors.Tensor) (_ *op.Array, err error) {
	defer kind.Catch(&err)
	if t.DType == safetensors.F64 {
		return op.ArrayOf(kind.Got(t.Float64s()), t.Shape...)
	}
	return op.ArrayOf(kind.Got(t.Float32s()), t.Shape...)
}
