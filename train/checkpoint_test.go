package train_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A run to be stopped and gone on with: a model at its start, and options.
type resumable struct {
	model   func(t testing.TB) model.Model
	options func() train.Options
}

const resumePoints = 40

func resumeEdges() (heads, tails []int32) {
	for i := range int32(resumePoints) {
		for _, step := range []int32{1, 2, 5} {
			heads, tails = append(heads, i), append(tails, (i+step)%resumePoints)
		}
	}
	return heads, tails
}

func resumeTable(o op.ContrastiveOptions) func(t testing.TB) model.Model {
	return func(t testing.TB) model.Model { return tableOf[float32](t, resumePoints, 2, 3, o) }
}

func resumeMLP[T op.Float](o op.ContrastiveOptions) func(t testing.TB) model.Model {
	return func(t testing.TB) model.Model {
		return networkOf(t, normal[T](resumePoints, 6, 4), 6, []int{9, 7}, 2, 5, o)
	}
}

func resumables() map[string]resumable {
	phases := []train.Phase{
		{Epochs: 2, LR: 0.01, Negatives: 3},
		{Epochs: 3, LR: 0.02, Negatives: 4, Schedule: train.Cosine, WarmUp: 1},
	}
	options := func(optimizer, optimizerZ func() train.Optimizer) func() train.Options {
		return func() train.Options {
			return train.Options{Phases: phases, BatchSize: 25, Seed: 11, Clip: 4, Optimizer: optimizer(), OptimizerZ: optimizerZ()}
		}
	}
	// with changes options.
	with := func(options func() train.Options, change func(o *train.Options)) func() train.Options {
		return func() train.Options {
			o := options()
			o.Phases = slices.Clone(o.Phases)
			change(&o)
			return o
		}
	}
	sgd := func() train.Optimizer { return new(train.SGD) }
	momentum := func() train.Optimizer { return &train.SGD{Momentum: 0.9, WeightDecay: 1e-3} }
	adam := func() train.Optimizer { return new(train.Adam) }
	loss := func(l op.Loss) op.ContrastiveOptions { return op.ContrastiveOptions{Loss: l, Clamp: 1e-10} }
	return map[string]resumable{
		"table, sgd":             {resumeTable(loss(op.Neg)), options(sgd, sgd)},
		"table, momentum":        {resumeTable(loss(op.InfoNC)), options(momentum, sgd)},
		"table, adam, learnt Z":  {resumeTable(loss(op.NC)), options(adam, adam)},
		"mlp, adam":              {resumeMLP[float32](loss(op.UMAP)), options(adam, adam)},
		"mlp, adam, learnt Z":    {resumeMLP[float64](loss(op.NC)), options(adam, adam)},
		"mlp, momentum, float64": {resumeMLP[float64](loss(op.Neg)), options(momentum, momentum)},
		"table, all negatives":   {resumeTable(loss(op.InfoNC)), with(options(sgd, sgd), func(o *train.Options) { o.Phases[1].Negatives = train.Full })},
		"table, all pairs":       {resumeTable(loss(op.InfoNC)), with(options(sgd, sgd), func(o *train.Options) { o.Phases[1].Negatives = train.All })},
		"table, exaggerated": {resumeTable(loss(op.Neg)), with(options(sgd, sgd), func(o *train.Options) {
			o.Phases[1].ExaggerateEarly, o.Phases[1].Spectrum = true, train.FromS(0)
		})},
		"table, fixed Z":     {resumeTable(loss(op.NC)), with(options(sgd, sgd), func(o *train.Options) { o.FixZ, o.LogZ = true, -3 })},
		"table, Z again":     {resumeTable(loss(op.NC)), with(options(sgd, sgd), func(o *train.Options) { o.Phases[1].LogZ = new(float64) })},
		"mlp, adam, Z again": {resumeMLP[float64](loss(op.NC)), with(options(adam, adam), func(o *train.Options) { o.LogZ, o.Phases[1].LogZ = -2, new(float64) })},
		"table, cosine, mean": {resumeTable(op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Mean: true}),
			with(options(sgd, sgd), func(o *train.Options) { o.Phases[0].Spectrum = train.FromS(0.5) })},
	}
}

// outcome is what must not differ between a run that stopped and one that did
// not.
type outcome struct {
	embedding []float32
	params    [][]float64
	logZ      float64
	loss      float64
	epochs    int
}

// outcome returns how a run ends.
func (r resumable) outcome(t *testing.T, options train.Options) outcome {
	t.Helper()
	m := r.model(t)
	heads, tails := resumeEdges()
	result := trained(t, m, heads, tails, options)
	n, d := m.Points()
	o := outcome{embedding: make([]float32, n*d), logZ: result.LogZ, loss: result.Loss, epochs: result.Epochs}
	must(t, m.EmbedTo(o.embedding))
	for _, p := range m.Parameters() {
		var values []float64
		for _, v := range op.Data[float32](p.Value) {
			values = append(values, float64(v))
		}
		o.params = append(o.params, append(values, op.Data[float64](p.Value)...))
	}
	return o
}

func readCheckpoint(t *testing.T, path string) *train.Checkpoint {
	t.Helper()
	c, err := train.ReadCheckpoint(path)
	must(t, err)
	return c
}

func sameOutcome(t *testing.T, what string, got, want outcome) {
	t.Helper()
	if !slices.Equal(got.embedding, want.embedding) {
		t.Errorf("%s: another embedding", what)
	}
	for i := range want.params {
		if !slices.Equal(got.params[i], want.params[i]) {
			t.Errorf("%s: parameter %d differs", what, i)
		}
	}
	if got.logZ != want.logZ || got.loss != want.loss || got.epochs != want.epochs {
		t.Errorf("%s: log Z %v, loss %v, %d epochs; want %v, %v, %d", what, got.logZ, got.loss, got.epochs, want.logZ, want.loss, want.epochs)
	}
}

// A run that goes on from any of its checkpoints, read back from a file, ends
// with the bits of the run that never stopped.
func TestResumeGivesTheSameBits(t *testing.T) {
	for name, r := range resumables() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			saved := 0
			options := r.options()
			options.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error {
				saved++
				c.Notes = map[string]string{"n": strconv.Itoa(saved)}
				return c.WriteFile(filepath.Join(dir, strconv.Itoa(saved)))
			}}
			want := r.outcome(t, options)
			if saved < 10 {
				t.Fatalf("%d checkpoints", saved)
			}
			for i := 1; i <= saved; i++ {
				c := readCheckpoint(t, filepath.Join(dir, strconv.Itoa(i)))
				if c.Notes["n"] != strconv.Itoa(i) {
					t.Errorf("notes %v", c.Notes)
				}
				options := r.options()
				options.Resume = c
				sameOutcome(t, "from checkpoint "+strconv.Itoa(i), r.outcome(t, options), want)
			}
		})
	}
}

// A clone stays as it is while its run, and those that go on from it, move on.
func TestClone(t *testing.T) {
	for name, r := range resumables() {
		t.Run(name, func(t *testing.T) {
			var clone *train.Checkpoint
			options := r.options()
			options.Checkpoints = &train.Checkpoints{Epochs: 3, Save: func(c *train.Checkpoint) (err error) {
				if clone == nil {
					c.Notes = map[string]string{"n": "first"}
					clone, err = c.Clone()
					c.Notes["n"] = "later"
				}
				return err
			}}
			want := r.outcome(t, options)
			if clone.Notes["n"] != "first" || clone.Progress.Epochs != 3 {
				t.Errorf("the clone has the notes %v and is at %+v", clone.Notes, clone.Progress)
			}
			for range 2 {
				options := r.options()
				options.Resume = clone
				sameOutcome(t, "from the clone", r.outcome(t, options), want)
			}
		})
	}
}

// When the context ends, the run is saved where it is.
func TestInterruptedRunIsSaved(t *testing.T) {
	heads, tails := resumeEdges()
	r := resumables()["table, adam, learnt Z"]
	want := r.outcome(t, r.options())
	path := filepath.Join(t.TempDir(), "c")
	ctx, cancel := context.WithCancel(context.Background())
	options := r.options()
	options.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
		if s.Epoch == 3 {
			cancel()
		}
		return nil
	})}
	options.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }}
	if _, err := train.Fit(ctx, r.model(t), heads, tails, options); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	options = r.options()
	options.Resume = readCheckpoint(t, path)
	if p := options.Resume.Progress; p.Epochs != 3 || p.Batches != 0 {
		t.Errorf("saved at %+v", p)
	}
	sameOutcome(t, "resumed", r.outcome(t, options), want)
}

// Checkpoints are taken after so many epochs, and at the end, once.
func TestCheckpointsByEpoch(t *testing.T) {
	heads, tails := resumeEdges()
	r := resumables()["table, sgd"]
	for every, want := range map[int][]int{0: {5}, 1: {1, 2, 3, 4, 5}, 2: {2, 4, 5}, 7: {5}} {
		var epochs []int
		options := r.options()
		options.Checkpoints = &train.Checkpoints{Epochs: every, Interval: time.Hour, Save: func(c *train.Checkpoint) error {
			epochs = append(epochs, c.Progress.Epochs)
			return nil
		}}
		trained(t, r.model(t), heads, tails, options)
		if !slices.Equal(epochs, want) {
			t.Errorf("every %d epochs: saved after epochs %v, want %v", every, epochs, want)
		}
	}
}

// A finished run goes on when more epochs are asked for.
func TestResumeWithMoreEpochs(t *testing.T) {
	heads, tails := resumeEdges()
	r := resumables()["mlp, adam"]
	options := r.options()
	path := filepath.Join(t.TempDir(), "c")
	options.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }}
	trained(t, r.model(t), heads, tails, options)
	options = r.options()
	options.Phases = slices.Clone(options.Phases)
	options.Phases[1].Epochs += 2
	options.Resume = readCheckpoint(t, path)
	result, err := train.Fit(context.Background(), r.model(t), heads, tails, options)
	if err != nil || result.Epochs != 7 {
		t.Errorf("%d epochs, error %v", result.Epochs, err)
	}
}

// A run that stopped early goes on without phases that it had not begun.
func TestResumeWithFewerPhases(t *testing.T) {
	heads, tails := resumeEdges()
	r := resumables()["mlp, adam"]
	options := r.options()
	ctx, cancel := context.WithCancel(t.Context())
	options.OnBatch = func(epoch, batch, batches int, loss float64) { cancel() }
	var stopped *train.Checkpoint
	options.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) (err error) {
		stopped, err = c.Clone()
		return err
	}}
	if _, err := train.Fit(ctx, r.model(t), heads, tails, options); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	options = r.options()
	options.Phases, options.Resume = options.Phases[:1], stopped
	result, err := train.Fit(t.Context(), r.model(t), heads, tails, options)
	if err != nil || result.Epochs != 2 {
		t.Errorf("%d epochs, error %v", result.Epochs, err)
	}
	stopped.Progress.Retries = []int{0, 1}
	if _, err = train.Fit(t.Context(), r.model(t), heads, tails, options); !errors.Is(err, train.ErrCheckpoint) {
		t.Errorf("of a later phase that diverged: error %v", err)
	}
}

func TestResumeRefuses(t *testing.T) {
	heads, tails := resumeEdges()
	r := resumables()["table, adam, learnt Z"]
	path := filepath.Join(t.TempDir(), "c")
	options := r.options()
	options.Checkpoints = &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }}
	trained(t, r.model(t), heads, tails, options)
	for name, tc := range map[string]struct {
		change func(o *train.Options)
		model  func(t testing.TB) model.Model
		want   string
	}{
		"seed":       {func(o *train.Options) { o.Seed++ }, r.model, "seed of its run: got 11, want 12"},
		"batch size": {func(o *train.Options) { o.BatchSize = 30 }, r.model, "batch size"},
		"fewer":      {func(o *train.Options) { o.Phases = o.Phases[:1] }, r.model, "got 5 epochs and 0 batches, want at most 2 epochs of 5 batches"},
		"optimizer":  {func(o *train.Options) { o.Optimizer = new(train.SGD) }, r.model, "got 8 arrays, want 5 for the model and the optimisers of this run"},
		"model":      {func(*train.Options) {}, resumeMLP[float32](op.ContrastiveOptions{Loss: op.NC}), "got no parameter.0.weight, which the model and the optimisers of this run have"},
		"other table": {func(*train.Options) {}, func(t testing.TB) model.Model {
			return tableOf[float32](t, resumePoints, 3, 3, op.ContrastiveOptions{Loss: op.NC})
		}, "parameter.embedding: got float32 of shape [40 2], want float32 of shape [40 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			options := r.options()
			tc.change(&options)
			options.Resume = readCheckpoint(t, path)
			_, err := train.Fit(context.Background(), tc.model(t), heads, tails, options)
			if !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Checkpoints of another version, and other files, are not read.
func TestReadCheckpointRefusesOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		format int
		want   string
	}{
		"newer": {"checkpoint", 5, "got 5, want 4; a newer version of cne wrote the file"},
		"older": {"checkpoint", 1, "an older version of cne wrote the file"},
		"model": {"model", 1, "wrong kind of file"},
		"plain": {"", 0, `want kind "checkpoint"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c")
			f := &safetensors.File{Metadata: map[string]string{"progress": "{}"}}
			if tc.kind != "" {
				f.Seal(tc.kind, tc.format)
			}
			must(t, f.WriteFile(path))
			if _, err := train.ReadCheckpoint(path); !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Whatever byte of a checkpoint is damaged, it is refused, and so is every
// shorter file.
func TestReadCheckpointRefusesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	e := tableOf[float32](t, 3, 1, 1, op.ContrastiveOptions{})
	trained(t, e, []int32{0, 1, 2}, []int32{1, 2, 0}, train.Options{
		Phases: []train.Phase{{Epochs: 1, LR: 0.1, Negatives: 1}}, BatchSize: 2, Optimizer: new(train.Adam),
		Checkpoints: &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }},
	})
	good, err := os.ReadFile(path)
	must(t, err)
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		for what, content := range map[string][]byte{"damaged": bad, "cut off": good[:i]} {
			must(t, os.WriteFile(path, content, 0o666))
			if _, err := train.ReadCheckpoint(path); !errors.Is(err, train.ErrCheckpoint) {
				t.Errorf("%s at byte %d: %v", what, i, err)
			}
		}
	}
}
