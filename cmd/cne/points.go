package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cne/internal/app/points"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
)

// errReading is the error of a run that was interrupted before it had its points.
var errReading = errors.New("interrupted while the points were read; nothing was written")

// read reads the data of a run and checks them.
func (r *pointRun) read(ctx context.Context) (err error) {
	c := r.config
	r.start = time.Now()
	if err := r.refuse(ctx); err != nil {
		return err
	}
	defer func() {
		r.load = time.Since(r.start)
		if ctx.Err() != nil {
			err = errReading
		}
	}()
	in, err := points.Read(ctx, c, r.origins, r.Log)
	if err != nil {
		return err
	}
	n, width := in.Points.Dims()
	r.Log.Info("read the points", "data", in.Points.Name, "points", n, "width", width)
	if m := in.Points.Points; m != nil {
		if different := m.Distinct(); different < n-n/10 {
			in.Different = different
			r.Log.Info("many points are equal, and a map cannot keep which of equal neighbours are the nearest", "points", n, "different", different)
		}
	}
	in.LogCounts()
	if in.MaybeCounts() {
		r.Log.Warn("all values are whole numbers, like counts, and are not normalised; give counts of cells as a folder of 10x or as Matrix Market (scripts/h5ad2npy writes one), and use graph.metric: cosine for counts of words")
	}
	if in.Held != nil {
		held, _ := in.Held.Dims()
		r.Log.Info("held out", "points", held)
	}
	if err := r.choosePreset(n); err != nil {
		return err
	}
	if err := r.checkSize(in.Size()); err != nil {
		return err
	}
	if in.Annotations, err = report.ReadAnnotations(ctx, r.Log, rundir.TableOf(c), report.WantedBy(c), in.Total(), in.PageRows()); err != nil {
		return err
	}
	if r.from == nil {
		in.Earlier, err = rundir.ReadInitEmbedding(ctx, c)
	}
	r.in = in
	return err
}

// choosePreset applies the preset for the number of points that were read. The heads of
// the files may not have this number.
func (r *pointRun) choosePreset(n int) error {
	if r.resumed {
		return nil
	}
	if r.given.LoadedFor() != n {
		r.given.Points = n
		c, _, err := r.schema.Load(&r.given)
		if err != nil {
			return err
		}
		c.Output.Dir = r.config.Output.Dir
		if c.Graph.File != nil { // it has its own number of neighbours
			c.Embed.Neighbors = r.config.Embed.Neighbors
		}
		*r.config = *c
	}
	if p := r.config.Preset; p.For(n) != p {
		r.Log.Info(fmt.Sprintf("preset: %s is %s for so few points", p, p.For(n)), "points", n)
	}
	return nil
}
