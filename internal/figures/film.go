package figures

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"

	"cne/configs"
	"cne/data"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/internal/rundir"
)

// A Film is the embedding of a run after some of its epochs.
type Film struct {
	Frames []plot.Frame // their captions name the epochs
	Labels *data.Labels // of the points; may be nil

	folder string
	file   string // with the labels
	epochs []int
}

// Bounds of the size of a film, of which so many frames are shown, and of a
// page, whose positions take so many bytes before they are written as text. Of
// more snapshots some are shown.
const (
	mostFrames  = 250
	largestPage = 15 << 20
)

// ReadFilm reads the snapshots of a run in the order of their epochs, with the
// embedding of a finished run as the last; o says where the labels are. A page
// gets no more of them than it loads quickly.
func ReadFilm(ctx context.Context, folder string, o data.Options, page bool) (*Film, error) {
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("the run cannot be read (%w); check the path", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; name the folder of a run, which holds the snapshots", folder)
	}
	epochs, err := rundir.SnapshotEpochs(filepath.Join(folder, rundir.Snapshots))
	if err != nil {
		return nil, err
	}
	if len(epochs) == 0 {
		return nil, fmt.Errorf("there are no snapshots in %s; train with output.snapshots", folder)
	}
	snapshot := func(epoch int) string { return filepath.Join(folder, rundir.Snapshots, rundir.SnapshotName(epoch)) }
	most := mostFrames
	if page {
		info, err := os.Stat(snapshot(epochs[0]))
		if err != nil {
			return nil, fmt.Errorf("the snapshots cannot be read: %w", err)
		}
		most = min(most, max(2, int(largestPage/(1+info.Size()))))
	}
	epochs = evenly(epochs, most)
	f := &Film{folder: folder}
	add := func(epoch int, m *data.Matrix) {
		f.epochs = append(f.epochs, epoch)
		f.Frames = append(f.Frames, plot.Frame{Embedding: m, Caption: fmt.Sprintf("epoch %d", epoch)})
	}
	last := epochs[len(epochs)-1]
	for _, e := range epochs {
		set, err := data.Open(ctx, []string{snapshot(e)}, data.Options{})
		if err != nil {
			return nil, err
		}
		add(e, set.Points)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// Of a run that goes on or was killed there may be no embedding, or an old
	// one, but its labels are right.
	file, err := rundir.LearntFile(folder)
	if err != nil {
		file = snapshot(last)
	}
	end, err := rundir.OpenEmbedding(ctx, file, o)
	if err != nil {
		return nil, err
	}
	if n := rundir.ReadMetrics(folder).Epochs; n > last {
		add(n, end.Points)
	}
	for i, frame := range f.Frames {
		if m := frame.Embedding; m.N != end.Points.N || m.D != end.Points.D {
			return nil, fmt.Errorf("%s has %d points of %d coordinates, but %s has %d of %d; remove the snapshots of another run",
				snapshot(f.epochs[i]), m.N, m.D, file, end.Points.N, end.Points.D)
		}
	}
	f.Labels, f.file = end.Labels, file
	return f, nil
}

// scatter returns what all pictures of the film have in common.
func (f *Film) scatter(p configs.Plot) *plot.Scatter {
	return Scatter(f.Frames[len(f.Frames)-1].Embedding, f.Labels, p)
}

// Animation returns the film as a moving picture.
func (f *Film) Animation(p configs.Plot) *plot.Animation {
	return &plot.Animation{Scatter: *f.scatter(p), Frames: f.Frames}
}

// Page returns an explorer with a slider over the epochs. What was recorded of
// them stands beside them. It has the annotations that are wanted, and besides those of
// the run.
func (f *Film) Page(ctx context.Context, log *slog.Logger, p configs.Plot, w Wanted) (*explorer.Page, error) {
	embeddings := make([]*data.Matrix, len(f.Frames))
	for i := range embeddings {
		embeddings[i] = f.Frames[i].Embedding
	}
	flat, note, err := plot.OnePlane(embeddings)
	if err != nil {
		return nil, err
	}
	records, err := rundir.ReadRecords(ctx, f.folder)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		records = &rundir.Records{} // a page without them is as good
	}
	page := Page(f.scatter(p), "", nil, nil)
	page.Slider, page.Views = "epoch", nil
	for i, epoch := range f.epochs {
		facts := recordedFacts(records, epoch)
		if note != "" {
			facts = append(facts, explorer.Fact{Name: "shown", Value: note})
		}
		page.Views = append(page.Views, explorer.View{Name: f.Frames[i].Caption, Embedding: flat[i], Facts: facts})
	}
	a, err := f.annotations(ctx, log, w)
	if err != nil {
		return nil, err
	}
	a.AddTo(page)
	return page, nil
}

// annotations reads what is known of the points of the film: those that the run trained on.
func (f *Film) annotations(ctx context.Context, log *slog.Logger, w Wanted) (*Annotations, error) {
	c := runConfig(log, f.folder, false)
	n := f.Frames[0].Embedding.N
	rows, err := rundir.ReadRows(filepath.Join(f.folder, rundir.RowsFile), math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if rows != nil {
		return runAnnotations(ctx, log, c, w, n, rows)
	}
	heldRows, err := rundir.ReadRows(filepath.Join(f.folder, rundir.HeldRowsFile), math.MaxInt32)
	if err != nil {
		return nil, err
	}
	held := len(heldRows)
	if heldRows == nil {
		set, err := rundir.OpenHeldOut(ctx, f.file, data.Options{})
		if err != nil {
			return nil, err
		}
		held, _ = set.Dims()
	}
	a, err := runAnnotations(ctx, log, c, w, n+held, nil)
	if err != nil || held == 0 {
		return a, err
	}
	var trained []int // a run puts those of files of their own behind the others
	for i := range n + held {
		if _, isHeld := slices.BinarySearch(heldRows, i); !isHeld && len(trained) < n {
			trained = append(trained, i)
		}
	}
	return a.take(trained), nil
}

// recordedFacts returns what was recorded of an epoch.
func recordedFacts(r *rundir.Records, epoch int) []explorer.Fact {
	i := slices.Index(r.Epochs, float64(epoch))
	if i < 0 {
		return nil
	}
	var facts []explorer.Fact
	for _, f := range []struct{ curve, name, format string }{
		{"loss", "loss", "%.4f"},
		{"partition_function", "partition function", "%.3g"},
		{"z", "learnt Z", "%.3g"},
		{"kl", "KL divergence", "%.3f"},
	} {
		if v := r.Curves[f.curve][i]; !math.IsNaN(v) {
			facts = append(facts, explorer.Fact{Name: f.name, Value: fmt.Sprintf(f.format, v)})
		}
	}
	return facts
}

// evenly returns n of some numbers, evenly spread from the first to the last,
// or all if there are no more; n is at least 2.
func evenly(all []int, n int) []int {
	if len(all) <= n {
		return all
	}
	out := make([]int, n)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(n-1)]
	}
	return out
}
