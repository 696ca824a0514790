package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

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

// A countsSource is counts in memory as a pointSource.
type countsSource struct {
	counts  *data.Counts
	scaling *data.CountScaling
	at      int // the next cell
}

// openCounts opens the input of a model that was trained on counts.
func (p *projection) openCounts(ctx context.Context) (pointSource, error) {
	scaling := p.embedding.Description.Preprocessing.Counts
	p.data.Columns = scaling.Names
	counts, err := data.OpenCounts(ctx, p.input, p.data)
	if err != nil {
		return nil, err
	}
	return &countsSource{counts: counts, scaling: scaling}, nil
}

// checkCounts returns an error if one of the inputs is counts, for a model that
// was not trained on any.
func (p *projection) checkCounts() error {
	if i := slices.IndexFunc(p.input, data.IsCounts); i >= 0 {
		return fmt.Errorf("%s holds counts of single-cell sequencing, but the model was not trained on counts; give points of the kind that it was trained on", p.input[i])
	}
	return nil
}

func (s *countsSource) D() int { return len(s.scaling.Genes) }

func (s *countsSource) Labeled() bool { return false }

func (s *countsSource) Labels() []string { return nil }

func (s *countsSource) Next(dst *data.Matrix) (int, error) {
	n := min(dst.N, s.counts.Cells-s.at)
	if n == 0 {
		return 0, io.EOF
	}
	if err := s.scaling.ApplyTo(dst.Rows(0, n), s.counts, s.at); err != nil {
		return 0, fmt.Errorf("%s: %w", s.counts.Name, err)
	}
	s.at += n
	return n, nil
}

func (s *countsSource) Row(i int) string {
	if s.counts.CellNames != nil {
		return fmt.Sprintf("%s: cell %d (%s)", s.counts.Name, i+1, s.counts.CellNames[i])
	}
	return fmt.Sprintf("%s: cell %d", s.counts.Name, i+1)
}

func (s *countsSource) Close() error { return nil }
