package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/atomicfile"
	"cne/model"
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
	if err == nil && held == nil && in.held != nil {
		held, err = t.embedded.ProjectSet(ctx, in.held, cne.Projection{})
	}
	bad := new(cne.PointError)
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted while the " + what)
	case errors.As(err, &bad) && in.sampled():
		return nil, fmt.Errorf("%s: %s", bad.Name, bad.Fault)
	case err != nil || held == nil:
		return nil, err
	}
	_, names := in.names()
	err = t.dir.WriteEmbedding(&t.config.Output, "holdout", held, in.held.Labels, names)
	if err == nil && in.heldRows != nil {
		err = t.dir.WriteRows(rundir.HeldRowsFile, in.heldRows)
	}
	return held, err
}

// placeRest reads all points of data.path and writes the positions of the training points
// and of the rest, with their names, in the formats of the configuration. It returns the
// positions of the held-out rows, or nil.
func (t *training) placeRest(ctx context.Context) (held *data.Matrix, err error) {
	in, d, out, e := t.in, &t.config.Data, &t.config.Output, t.embedded
	t.Log.Info("placing the other points", "points", in.rest)
	if err := in.checkFiles(); err != nil {
		return nil, err
	}
	if t.config.Model.Kind == "table" {
		if err := e.UseDevice(t.device); err != nil {
			return nil, err
		}
	}
	rows, err := in.open(ctx, e.Description.Preprocessing)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var given []string // labels of all points, if they have files of their own
	if len(d.Labels) > 0 {
		if given, err = file.ReadLabels(ctx, d.Labels, in.n); err != nil {
			return nil, err
		}
	}
	n := len(in.rows) + in.rest
	if n < in.n {
		held = data.NewMatrix(in.n-n, e.Dim())
	}
	names, err := in.allNames(ctx)
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
		read, written, tell := 0, 0, t.ProgressLogger("placing the other points")
		err := e.ProjectRows(ctx, rows, cne.Projection{Trained: in.rows}, func(b *cne.ProjectedBlock) error {
			if read += b.Positions.N; read > in.n {
				return nil // an error in the end
			}
			if given != nil {
				b.Labels = given[b.First:read]
			}
			tell(read, in.n)
			in.takeHeld(b, held)
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
		if err == nil && read != in.n {
			err = fmt.Errorf("data.path: got %d points, want %d as when the run began", read, in.n)
		}
		if err == nil {
			err = in.checkFiles()
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

// allNames reads the names of all points of data.path except the held-out points; nil
// without data.names.
func (in *inputs) allNames(ctx context.Context) ([]string, error) {
	key := in.config.Data.Names
	if key == nil {
		return nil, nil
	}
	_, names, err := rundir.ReadColumn(ctx, rundir.TableOf(in.config), *key, in.total(), nil)
	if err != nil {
		return nil, fmt.Errorf("data.names: %w", err)
	}
	a := report.Annotations{Names: names[:in.n]}
	names, _ = a.Split(0, nil, in.heldRows)
	return names, nil
}

// open opens all points of data.path, to be prepared like the training points.
func (in *inputs) open(ctx context.Context, before *model.Preprocessing) (file.Rows, error) {
	if in.builtin != nil {
		return file.Of(in.builtin), nil
	}
	o := in.config.Data.Options()
	o.Labels = nil
	return file.Open(ctx, in.config.Data.Path, before.Reading(o))
}

// takeHeld moves the positions of points that are held out from a block to their matrix.
func (in *inputs) takeHeld(b *cne.ProjectedBlock, held *data.Matrix) {
	if held == nil {
		return
	}
	kept := 0
	for i := range b.Positions.N {
		if k, out := slices.BinarySearch(in.heldRows, b.First+i); out {
			copy(held.Row(k), b.Positions.Row(i))
			continue
		}
		copy(b.Positions.Row(kept), b.Positions.Row(i))
		if b.Labels != nil {
			b.Labels[kept] = b.Labels[i]
		}
		kept++
	}
	b.Positions, b.Labels = b.Positions.Rows(0, kept), b.Labels[:min(kept, len(b.Labels))]
}

// checkFiles returns an error if a file of data.path has changed since it was read.
func (in *inputs) checkFiles() error {
	if in.builtin != nil {
		return nil
	}
	now, err := stat(in.config.Data.Path)
	if err != nil {
		return err
	}
	for i, info := range now {
		if before := in.infos[i]; !os.SameFile(before, info) || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) {
			return fmt.Errorf("%s has changed since training", in.config.Data.Path[i])
		}
	}
	return nil
}

// A positionWriter writes the positions of consecutive points, and their labels and
// names.
type positionWriter func(positions *data.Matrix, labels, names []string) error

// writePositions has place write the positions of points to files that end in .npy or .csv,
// each complete or not at all.
func writePositions(paths []string, d int, labeled, named bool, place func(write positionWriter) error) error {
	if len(paths) == 0 {
		return place(func(*data.Matrix, []string, []string) error { return nil })
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
			return place(func(m *data.Matrix, labels, names []string) error {
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
