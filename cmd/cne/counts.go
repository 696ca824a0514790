package main

import (
	"context"
	"fmt"
	"log/slog"

	"cne/configs"
	"cne/data"
	"cne/internal/text"
)

// openCounts reads counts of single-cell sequencing.
func (in *inputs) openCounts(ctx context.Context, c *configs.Data) (*data.Counts, error) {
	o := c.Options()
	o.Log = in.log
	if in.counts != nil {
		o.Columns = in.counts.Names
	}
	return data.OpenCounts(ctx, c.Path, o)
}

// readCounts reads the counts to train on and makes points of them.
func (in *inputs) readCounts(ctx context.Context, c *configs.Data) error {
	counts, err := in.openCounts(ctx, c)
	if err != nil {
		return err
	}
	if in.counts, err = data.FitCounts(counts, c.Genes); err != nil {
		return fmt.Errorf("%s: %w (data.path)", text.Few(c.Path, nil), err)
	}
	in.emptyCells = counts.EmptyCells()
	in.points, err = in.counts.Apply(counts)
	return err
}

// heldCounts reads counts that are held out and makes points of them as those
// to train on have become.
func (in *inputs) heldCounts(ctx context.Context, c *configs.Data) (*data.Dataset, error) {
	counts, err := in.openCounts(ctx, c)
	if err != nil {
		return nil, err
	}
	set, err := in.counts.Apply(counts)
	if err != nil {
		return nil, fmt.Errorf("data.holdout: %w", err)
	}
	return set, nil
}

// logCounts says what became of the counts.
func (in *inputs) logCounts(log *slog.Logger, wanted int) {
	if in.counts == nil {
		return
	}
	kept := len(in.counts.Genes)
	log.Info("made points of the counts", "genes", kept, "of", in.counts.Total, "median_library_size", in.counts.LibrarySize)
	if kept < wanted {
		log.Warn("fewer genes vary enough than data.genes asks for", "genes", kept, "wanted", wanted)
	}
	if in.emptyCells > 0 {
		log.Warn("cells without counts have become zeros", "cells", in.emptyCells)
	}
}
