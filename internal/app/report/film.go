package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cne/configs"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/plot"
)

// A Film is the embedding of a run after some of its epochs.
type Film struct {
	Frames []plot.Frame // their captions name the epochs
	Labels *data.Labels // of the points; may be nil
}

// mostFrames is the number of frames of a film. Of more snapshots some are shown.
const mostFrames = 250

// ReadFilm reads the snapshots of a run in the order of their epochs, with the
// embedding of a finished run as the last; o says where the labels are.
func ReadFilm(ctx context.Context, folder string, o file.Options) (*Film, error) {
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
	epochs = evenly(epochs, mostFrames)
	f := &Film{}
	add := func(epoch int, m *data.Matrix) {
		f.Frames = append(f.Frames, plot.Frame{Embedding: m, Caption: fmt.Sprintf("epoch %d", epoch)})
	}
	last := epochs[len(epochs)-1]
	for _, e := range epochs {
		set, err := file.Read(ctx, []string{snapshot(e)}, file.Options{})
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
	file, err := rundir.TrainedFile(folder, ".csv", ".npy")
	if err != nil {
		file = snapshot(last)
	}
	end, err := rundir.OpenEmbedding(ctx, []string{file}, o)
	if err != nil {
		return nil, err
	}
	if n := rundir.ReadMetrics(folder).Epochs; n > last {
		add(n, end.Points)
	}
	for i, frame := range f.Frames {
		if m := frame.Embedding; m.N != end.Points.N || m.D != end.Points.D {
			return nil, fmt.Errorf("%s has %d points of %d coordinates, but %s has %d of %d; remove the snapshots of another run",
				snapshot(epochs[i]), m.N, m.D, file, end.Points.N, end.Points.D)
		}
	}
	f.Labels = end.Labels
	return f, nil
}

// Animation returns the film as a moving picture.
func (f *Film) Animation(p configs.Plot) *plot.Animation {
	return &plot.Animation{Scatter: *Scatter(f.Frames[len(f.Frames)-1].Embedding, f.Labels, p), Frames: f.Frames}
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
