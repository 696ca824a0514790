package report

import (
	"context"
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
