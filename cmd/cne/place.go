package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/atomicfile"
	"cne/internal/text"
)

// place places the held-out points and, if asked for, the rest of a sample, and writes their
// positions. It returns the positions of the held-out points, nil if there are none.
func (t *training) place(ctx context.Context, rest bool) (held *data.Matrix, err error) {
	in := t.in
	begun := time.Now()
	defer func() { t.projectTime = time.Since(begun) }()
	what := "held-out points were placed"
	if rest {
		what = "other points were placed; those trained on are in " + t.dir.Path(rundir.SampleName+".npy")
		held, err = t.placeRest(ctx)
	}
	if err == nil && held == nil && in.Held != nil {
		held, err = t.embedded.ProjectSet(ctx, in.Held, cne.Projection{})
	}
	bad := new(cne.PointError)
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted while the " + what)
	case errors.As(err, &bad) && in.Sampled():
		return nil, fmt.Errorf("%s: %s", bad.Name, bad.Fault)
	case err != nil || held == nil:
		return nil, err
	}
	_, names := in.Names()
	err = t.dir.WriteEmbedding(&t.config.Output, "holdout", held, in.Held.Labels, names)
	if err == nil && (t.config.Data.Holdout.Share > 0 || in.PageRows() != nil) {
		err = t.dir.WriteRows(rundir.HeldRowsFile, in.Division.Held)
	}
	return held, err
}

// placeRest reads all points of data.path and writes the positions of the training points
// and of the rest, with their names, in the formats of the configuration. It returns the
// positions of the held-out rows, or nil.
func (t *training) placeRest(ctx context.Context) (held *data.Matrix, err error) {
	in, d, out, e := t.in, &t.config.Data, &t.config.Output, t.embedded
	t.Log.Info("placing the other points", "points", in.Rest())
	if err := in.CheckFiles(); err != nil {
		return nil, err
	}
	if t.config.Model.Kind == "table" {
		if err := e.UseDevice(t.device); err != nil {
			return nil, err
		}
	}
	rows, err := in.OpenAll(ctx, e.Description.Preprocessing)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var given []string // labels of all points, if they have files of their own
	if labels := d.Options().Labels; len(labels) > 0 {
		if given, err = file.ReadLabels(ctx, labels, in.N); err != nil {
			return nil, err
		}
	}
	if d.Holdout != nil && d.Holdout.Share > 0 {
		held = data.NewMatrix(len(in.Division.Held), e.Dim())
	}
	names, err := in.AllNames(ctx)
	if err == nil && in.LeavesOut() {
		err = t.dir.WriteRows(rundir.RowsFile, in.Division.Placed(in.N))
	}
	if err == nil {
		err = t.dir.WriteNames(names)
	}
	if err != nil {
		return nil, err
	}
	all := &data.Matrix{D: e.Dim()} // for Parquet, which is written as a whole
	var labels []string
	files := []string{t.dir.Path("embedding.npy")}
	if out.CSV {
		files = append(files, t.dir.Path("embedding.csv"))
	}
	if err := writePositions(files, e.Dim(), given != nil || rows.Labeled(), names != nil, func(write positionWriter) error {
		read, written, report := 0, 0, t.ProgressLogger("placing the other points")
		err := e.ProjectRows(ctx, rows, cne.Projection{Division: in.Division}, func(b *cne.ProjectedBlock) error {
			if read += b.Positions.N; len(b.Rows) == 0 || b.Rows[len(b.Rows)-1] >= in.N {
				return nil // an error in the end, if there are more rows than in the beginning
			}
			if given != nil {
				b.Labels = text.Pick(given, b.Rows)
			}
			report(b.First, in.N)
			in.TakeHeld(b, held)
			if b.Positions.N == 0 {
				return nil
			}
			if out.Parquet {
				all.N, all.X, labels = all.N+b.Positions.N, append(all.X, b.Positions.X...), append(labels, b.Labels...)
			}
			named := names[min(written, len(names)):min(written+b.Positions.N, len(names))] // nil for nil
			written += b.Positions.N
			return write(b.Positions, b.Labels, named)
		})
		if want := in.N - len(in.Division.Left); err == nil && read != want {
			err = fmt.Errorf("data.path: got %d points, want %d as when the run began", read, want)
		}
		if err == nil {
			err = in.CheckFiles()
		}
		return err
	}); err != nil {
		return nil, err
	}
	if !out.Parquet {
		return held, nil
	}
	return held, t.dir.WriteFile("embedding.parquet", func(w io.Writer) error {
		var named *data.Labels
		if labels != nil {
			named = data.NewLabels(labels)
		}
		return file.WriteParquet(w, all, named, names)
	})
}

// A positionWriter writes the positions of consecutive points, and their labels and
// names.
type positionWriter func(positions *data.Matrix, labels, names []string) error

// writePositions has run write the positions of points to files that end in .npy or .csv,
// each complete or not at all.
func writePositions(paths []string, d int, labeled, named bool, run func(write positionWriter) error) error {
	if len(paths) == 0 {
		return run(func(*data.Matrix, []string, []string) error { return nil })
	}
	failed := func(err error) error {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", paths[0], err)
		}
		return err
	}
	var placed error
	err := atomicfile.WriteSeek(paths[0], func(w io.WriteSeeker) error {
		var write positionWriter
		var end func() error
		if strings.EqualFold(filepath.Ext(paths[0]), ".csv") {
			table, err := file.NewCSVWriter(w, d, labeled, named)
			if err != nil {
				return err
			}
			write, end = table.Write, table.Close
		} else {
			array, err := file.NewNPYWriter(w, d)
			if err != nil {
				return err
			}
			write, end = func(m *data.Matrix, _, _ []string) error { return array.Write(m) }, array.Close
		}
		placed = writePositions(paths[1:], d, labeled, named, func(others positionWriter) error {
			return run(func(m *data.Matrix, labels, names []string) error {
				if err := failed(write(m, labels, names)); err != nil {
					return err
				}
				return others(m, labels, names)
			})
		})
		if placed != nil {
			return placed
		}
		return end()
	})
	if placed != nil {
		return placed
	}
	return failed(err)
}
