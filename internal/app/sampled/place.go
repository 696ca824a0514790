package sampled

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"cne"
	"cne/data"
	"cne/internal/app/projection"
	"cne/internal/app/rundir"
	"cne/internal/atomicfile"
	"cne/model"
)

// toldEvery is how often it is told how many points are placed.
const toldEvery = 30 * time.Second

// Place goes through all points and writes their positions into a run folder, in their
// order: those that were learnt from as they lie in e, the others as e places them. It
// writes the forms that the configuration asks for, each complete or not at all, and the
// names of the points. Of nil Points it does nothing.
func (p *Points) Place(ctx context.Context, dir *rundir.Dir, e *cne.Embedding) error {
	if p == nil {
		return nil
	}
	begun := time.Now()
	err := p.place(ctx, dir, e)
	p.Took = time.Since(begun)
	if ctx.Err() != nil {
		return errors.New("interrupted while the other points were placed; those trained on are in " + dir.Path(rundir.SampleName+".npy"))
	}
	return err
}

func (p *Points) place(ctx context.Context, dir *rundir.Dir, e *cne.Embedding) error {
	if err := p.checkFiles(); err != nil {
		return err
	}
	from, err := p.reopen(ctx, e.Description.Preprocessing)
	if err != nil {
		return err
	}
	defer from.Close()
	out := &p.config.Output
	p.log.Info("placing the other points", "points", p.Others())
	w := &writer{log: p.tell(), reader: &labeledReader{Source: from}}
	if out.CSV || out.Parquet {
		if err := p.readLabels(ctx, w); err != nil {
			return err
		}
	}
	if out.Parquet {
		w.kept = data.NewMatrix(p.N, e.Dim())
	}
	write := func(array io.WriteSeeker, table io.Writer) error {
		if err := w.begin(array, table, e.Dim()); err != nil {
			return err
		}
		n, err := e.PlaceAll(ctx, w.reader, p.Rows, w.write)
		if bad := new(cne.PointError); errors.As(err, &bad) {
			return fmt.Errorf("%s: %s; fix the values, and resume the run", from.Row(bad.Row), bad.Fault)
		}
		if err == nil && n != p.N {
			err = fmt.Errorf("there are %d points now, but there were %d as the run began; bring the others back, and resume the run", n, p.N)
		}
		if err != nil {
			return err
		}
		return errors.Join(w.end(), p.checkFiles())
	}
	var failed error
	err = atomicfile.WriteSeek(dir.Path("embedding.npy"), func(array io.WriteSeeker) error {
		if !out.CSV {
			failed = write(array, nil)
			return failed
		}
		err := atomicfile.Write(dir.Path("embedding.csv"), func(table io.Writer) error {
			failed = write(array, table)
			return failed
		})
		return err
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("cannot write the embedding into %s: %w", dir.Root(), err)
	}
	return p.writeRest(ctx, dir, w)
}

// writeRest writes what needs all points at a time.
func (p *Points) writeRest(ctx context.Context, dir *rundir.Dir, w *writer) (err error) {
	var names []string
	if spec := p.config.Data.Names; spec != nil {
		if _, names, err = rundir.ReadColumn(ctx, rundir.TableOf(p.config), *spec, p.N, nil); err != nil {
			return fmt.Errorf("data.names: %w", err)
		}
	}
	if err := dir.WriteNames(names); err != nil || w.kept == nil {
		return err
	}
	var labels *data.Labels
	if w.labels != nil {
		labels = data.NewLabels(w.labels)
	}
	return dir.WriteFile("embedding.parquet", func(out io.Writer) error { return data.WriteParquet(out, w.kept, labels, names) })
}

// tell returns what is called with the number of points that are placed, and tells of it
// now and then.
func (p *Points) tell() func(n int) {
	begun := time.Now()
	last := begun
	return func(n int) {
		if now := time.Now(); now.Sub(last) >= toldEvery {
			last = now
			p.log.Info("placed", "points", n, "of", p.N, "per second", math.Round(float64(n)/now.Sub(begun).Seconds()))
		}
	}
}

// reopen opens the points to go through all of them, as they were prepared for training.
func (p *Points) reopen(ctx context.Context, before *model.Preprocessing) (projection.Source, error) {
	if p.builtin != nil {
		return projection.OfDataset(p.builtin), nil
	}
	o := p.config.Data.Options()
	o.Labels = nil
	return data.OpenBlocks(ctx, p.config.Data.Path, before.Reading(o))
}

// readLabels has the labels written, which come with the points or from files of their own.
func (p *Points) readLabels(ctx context.Context, w *writer) (err error) {
	w.labeled = w.reader.Labeled()
	if files := p.config.Data.Labels; len(files) > 0 {
		w.labeled = true
		w.given, err = data.OpenLabels(ctx, files, p.N)
	}
	w.reader.wanted = w.labeled && w.given == nil
	return err
}

// A labeledReader keeps the labels of a block until its points are placed, while the next
// is read.
type labeledReader struct {
	projection.Source
	wanted bool
	blocks [][]string // of the blocks that are not placed yet
}

// Next implements cne.BlockReader.
func (r *labeledReader) Next(dst *data.Matrix) (int, error) {
	n, err := r.Source.Next(dst)
	if r.wanted && n > 0 {
		r.blocks = append(r.blocks, slices.Clone(r.Labels()))
	}
	return n, err
}

// A writer writes positions as they come.
type writer struct {
	log     func(n int)
	reader  *labeledReader
	labeled bool
	given   []string // labels of all points, from files of their own; nil: the reader's
	array   *data.NPYWriter
	table   *data.CSVWriter // nil for none

	kept   *data.Matrix // all positions, where they are wanted, and
	labels []string     // their labels
}

// begin begins the files; table is nil for none.
func (w *writer) begin(array io.WriteSeeker, table io.Writer, d int) (err error) {
	if w.array, err = data.NewNPYWriter(array, d); err == nil && table != nil {
		w.table, err = data.NewCSVWriter(table, d, w.labeled)
	}
	return err
}

func (w *writer) write(lo int, positions *data.Matrix) error {
	var labels []string
	switch {
	case w.given != nil:
		if lo+positions.N > len(w.given) {
			return nil // more points than there were, which is told in the end
		}
		labels = w.given[lo : lo+positions.N]
	case w.labeled:
		labels, w.reader.blocks = w.reader.blocks[0], w.reader.blocks[1:]
	}
	if err := w.array.Write(positions); err != nil {
		return err
	}
	if w.table != nil {
		if err := w.table.Write(positions, labels); err != nil {
			return err
		}
	}
	if w.kept != nil && lo+positions.N <= w.kept.N {
		copy(w.kept.X[lo*w.kept.D:], positions.X)
		w.labels = append(w.labels, labels...)
	}
	w.log(lo + positions.N)
	return nil
}

func (w *writer) end() error {
	if w.table != nil {
		if err := w.table.Close(); err != nil {
			return err
		}
	}
	return w.array.Close()
}
