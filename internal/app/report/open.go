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

// OpenScatter reads an embedding, of files or of a run folder with the points that were
// held out, and returns its picture and the files.
func OpenScatter(ctx context.Context, inputs []string, o file.Options, p configs.Plot) (files []string, s *plot.Scatter, err error) {
	if files, err = rundir.EmbeddingFiles(inputs); err != nil {
		return nil, nil, err
	}
	set, err := rundir.OpenEmbedding(ctx, files, o)
	if err != nil {
		return nil, nil, err
	}
	var held *data.Dataset
	if len(inputs) == 1 && files[0] != inputs[0] {
		if held, err = rundir.OpenHeldOut(ctx, files[0], o); err != nil {
			return nil, nil, err
		}
	}
	if held == nil {
		return files, Scatter(set.Points, set.Labels, p), ctx.Err()
	}
	return files, ScatterWithHeldOut(set.Points, held.Points, set.Labels, held.Labels, p), ctx.Err()
}

// OpenStrip reads several embeddings and returns the picture of them side by side. Without
// titles they are called by their names.
func OpenStrip(ctx context.Context, inputs, titles []string, o file.Options, p configs.Plot) (*plot.Strip, error) {
	var sets []*data.Dataset
	var names []string
	for _, input := range inputs {
		found, err := rundir.EmbeddingFile(input)
		if err != nil {
			return nil, err
		}
		set, err := rundir.OpenEmbedding(ctx, []string{found}, o)
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sets, names = append(sets, set), append(names, filepath.Base(file.TrimEnding(input)))
	}
	if len(titles) > 0 {
		names = titles
	}
	strip := Strip(sets, names)
	for _, panel := range strip.Panels {
		panel.PointSize, panel.NameClasses = p.PointSize, p.Names
	}
	return strip, nil
}

// OpenCurves reads the records of runs and returns the picture of their curves.
func OpenCurves(ctx context.Context, inputs []string, p configs.Plot) (*plot.Curves, error) {
	runs := make([]*rundir.Records, len(inputs))
	for i, input := range inputs {
		var err error
		if runs[i], err = rundir.ReadRecords(ctx, input); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return Curves(runs, inputs, p), nil
}

// mostFrames is the number of frames of a film. Of more snapshots some are shown.
const mostFrames = 250

// OpenFilm reads the snapshots of a run and returns a film of them in the order of their
// epochs, with the embedding of a finished run as the last; o says where the labels are.
func OpenFilm(ctx context.Context, folder string, o file.Options, p configs.Plot) (*plot.Animation, error) {
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
	var frames []plot.Frame
	add := func(epoch int, m *data.Matrix) {
		frames = append(frames, plot.Frame{Embedding: m, Caption: fmt.Sprintf("epoch %d", epoch)})
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
	for i, frame := range frames {
		if m := frame.Embedding; m.N != end.Points.N || m.D != end.Points.D {
			return nil, fmt.Errorf("%s has %d points of %d coordinates, but %s has %d of %d; remove the snapshots of another run",
				snapshot(epochs[i]), m.N, m.D, file, end.Points.N, end.Points.D)
		}
	}
	return &plot.Animation{Scatter: *Scatter(frames[len(frames)-1].Embedding, end.Labels, p), Frames: frames}, nil
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
