package main

import (
	"context"
	"runtime"

	"cne/configs"
	"cne/data"
	"cne/internal/figures"
	"cne/internal/memory"
	"cne/internal/rundir"
)

// What can be known before the points are read, which may take long, is looked at here.

// refuse says why a run that begins cannot have its folder, or cannot be made of its
// data, as far as this is known before they are read; inputs are the files that it reads.
// It changes nothing, so that a run that fails before it can begin leaves nothing behind.
func (r *runState[C]) refuse(ctx context.Context, more configs.MemoryOptions, inputs ...string) error {
	if !r.resumed {
		if err := rundir.Check(*r.common().Dir, r.force, inputs...); err != nil {
			return err
		}
	}
	return r.checkSize(r.schema.DataSize(ctx, r.config), more)
}

// checkSize says why a run cannot be made of data of a size: by what they are, or by the
// memory that it would take. What there is of that bounds the garbage of the run.
func (r *runState[C]) checkSize(size data.Size, more configs.MemoryOptions) error {
	more.Device = r.device
	if err := r.schema.CheckSize(r.config, size, nil); err != nil {
		return err
	}
	memory.Bound()
	return r.schema.CheckMemory(r.config, size, more, nil)
}

// exactly is the size of n points, or images, of so many values.
func exactly(n, width int) data.Size { return data.Size{Low: n, High: n, Likely: n, Width: width} }

// all returns how many points were read.
func (in *inputs) all() int {
	n := in.points.Points.N
	if in.heldRows != nil {
		n += len(in.heldRows)
	}
	return n
}

// memory returns what a spectrum takes more of than a run: tables that are trained at the
// same time. Networks are trained one after the other.
func (s *spectrum) memory() configs.MemoryOptions {
	if s.config.Model.Kind != "table" || !s.device.OnHost() {
		return configs.MemoryOptions{}
	}
	return configs.MemoryOptions{Embeddings: min(len(s.axis.values), runtime.GOMAXPROCS(0))}
}

// checkPicture says whether the picture of an embedding of the points can be drawn, so
// that it need not be trained to find out.
func (in *inputs) checkPicture(c *configs.Config) error {
	if !c.Output.Plot {
		return nil
	}
	n, others := in.points.Points.N, 0
	var held *data.Labels
	if in.held != nil {
		others, held = in.held.Points.N, in.held.Labels
	}
	return figures.Check(n, others, in.points.Labels, held, c.Model.Dim, c.Plot)
}
