package main

import (
	"context"

	"cne/configs"
	"cne/data"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
)

// What can be known before the points are read, which may take long, is looked at here.

// refuse says why a run that begins cannot have its folder, or cannot be made of its
// data, as far as this is known before they are read.
// It changes nothing, so that a run that fails before it can begin leaves nothing behind.
func (r *runState[C]) refuse(ctx context.Context) error {
	if !r.resumed {
		if err := rundir.Check(*r.common().Dir, r.force, r.common().Inputs...); err != nil {
			return err
		}
	}
	if err := r.schema.CheckColumns(ctx, r.config, r.from != nil); err != nil {
		return err
	}
	return r.checkSize(r.schema.DataSize(ctx, r.config))
}

// checkSize says why a run cannot be made of data of a size: by what they are, or by the
// memory that it would take.
func (r *runState[C]) checkSize(size data.Size) error {
	if err := r.schema.CheckSize(r.config, size, nil); err != nil {
		return err
	}
	return r.schema.CheckMemory(r.config, size, r.device, nil)
}

// checkRead says why a run cannot be made of what was read, and drawn. It reads what is
// known of the points besides, and the embedding from which they start unless they have.
func checkRead(ctx context.Context, r *runState[configs.Config], in *inputs) (err error) {
	if err := r.checkSize(in.size()); err != nil {
		return err
	}
	if err := report.Check(in.points, in.held, r.config); err != nil {
		return err
	}
	n, _ := in.points.Dims()
	if in.held != nil {
		held, _ := in.held.Dims()
		n += held
	}
	if in.annotations, err = report.ReadAnnotations(ctx, r.Log, rundir.TableOf(r.config), report.WantedBy(r.config), n, in.pageRows()); err == nil && r.from == nil {
		in.earlier, err = rundir.ReadEarlier(ctx, r.config)
	}
	if ctx.Err() != nil {
		return errReading
	}
	return err
}

// size returns that of what was read, before some were held out.
func (in *inputs) size() data.Size {
	size := in.points.Size(len(in.heldRows))
	if in.sampled != nil {
		size = in.points.Size(in.sampled.Beside())
	}
	if len(in.heldRows) > 0 {
		size.Nonzeros += in.held.Points.Nonzeros()
	}
	return size
}
