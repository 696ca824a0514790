package cne

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"cne/data"
	"cne/internal/finite"
	"cne/internal/parallel"
	"cne/model"
	"cne/train"
)

// Save writes the embedding to a safetensors file, complete or not at all, with all
// that Project needs: of a table that is its training points, too; of a network it
// is its weights alone, with the names that PyTorch gives them.
func (e *Embedding) Save(path string) error {
	if e.model == nil {
		return errEmpty
	}
	d := e.Description
	d.Points = e.beside
	return e.model.Save(path, &d)
}

// SaveModel is Save without the training points of a table, which may be large, or
// not to be passed on: UseTrainingPoints gives them back to what is loaded.
func (e *Embedding) SaveModel(path string) error {
	if e.model == nil {
		return errEmpty
	}
	return e.model.Save(path, &e.Description)
}

// errEmpty is the error of an Embedding of nothing.
var errEmpty = fmt.Errorf("%w: the embedding is empty; Embed and Load make one", ErrPoints)

// Load reads an embedding that Save, or the program, has written, or a network of
// linear layers that PyTorch has. Errors name the file, and wrap model.ErrFile if
// its contents are at fault.
func Load(path string) (*Embedding, error) {
	saved, err := model.Load(path)
	if err != nil {
		return nil, err
	}
	e := &Embedding{Description: saved.Description, mapper: saved.Network, beside: saved.Points, Foreign: saved.Foreign}
	switch network := saved.Network.(type) {
	case saver:
		e.model = network
	case nil:
		if saved.ResNet != nil {
			return nil, fmt.Errorf("%w: %s", ErrImages, path)
		}
		e.Positions = &data.Matrix{N: saved.N, D: saved.D, X: saved.Table}
		if e.model, err = model.NewEmbedding(slices.Clone(saved.Table), saved.D, saved.Training.Objective); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// UseTrainingPoints gives a table that was saved without its training points [n, p]
// these, as its graph saw them.
func (e *Embedding) UseTrainingPoints(points *data.Matrix) error {
	if err := checkPoints(points); err != nil {
		return err
	}
	if points.CSR != nil {
		return fmt.Errorf("%w: the training points are sparse; give their principal components, or make them dense", ErrPoints)
	}
	if e.mapper == nil && e.Positions == nil {
		return errEmpty
	}
	if e.Positions == nil || points.N != e.learntPositions().N {
		return fmt.Errorf("%w: %d training points for a table of others", ErrPoints, points.N)
	}
	if p := e.Description.Preprocessing; p != nil && p.Out() != points.D {
		return fmt.Errorf("%w: the training points have %d values, but points are prepared to have %d", ErrPoints, points.D, p.Out())
	}
	e.beside, e.mapper = points, nil
	return nil
}

// UseDevice has a network of float32, or a table, place points on a device from now on,
// which must stay open (nil: the CPU); networks of float64 stay on the CPU.
func (e *Embedding) UseDevice(d *model.Device) error {
	switch mapper := e.mapper.(type) {
	case *model.MLP[float32]:
		return mapper.UseDevice(d)
	case *train.Projector: // which searches where it was made
		if d != e.device && !(d.OnHost() && e.device.OnHost()) {
			e.mapper = nil
		}
	}
	e.device = d
	return nil
}

// HasTrainingPoints reports whether a table has the training points beside which it
// places others; networks need none.
func (e *Embedding) HasTrainingPoints() bool {
	return e.mapper != nil || e.Positions == nil || e.beside != nil
}

// Mapper returns what maps points, prepared as Description.Preprocessing says, to
// their positions: the network, or for a table what finds a place beside its
// training points, of which there must be some (ErrNoTrainingPoints). For a table the
// first call prepares the search among these; if ctx ends before, the error is ctx's.
func (e *Embedding) Mapper(ctx context.Context) (model.Mapper, error) {
	if e.mapper != nil {
		return e.mapper, nil
	}
	if e.model == nil || e.Positions == nil {
		return nil, errEmpty
	}
	if e.beside == nil {
		return nil, ErrNoTrainingPoints
	}
	table := e.learntPositions()
	p, err := train.NewProjectorOn(ctx, e.device, e.beside, table.X, table.D, e.Description.Training)
	if err != nil {
		return nil, err
	}
	e.mapper = p
	return p, nil
}

// Width returns how many values the points have that Project takes.
func (e *Embedding) Width() (int, error) {
	if before := e.Description.Preprocessing; before != nil {
		return before.Width, nil
	}
	switch {
	case e.mapper != nil:
		width, _ := e.mapper.Size()
		return width, nil
	case e.model == nil || e.Positions == nil:
		return 0, errEmpty
	case e.beside == nil:
		return 0, ErrNoTrainingPoints
	}
	return e.beside.D, nil
}

// Dim returns how many dimensions the embedding has; an empty one has none.
func (e *Embedding) Dim() int {
	switch {
	case e.Positions != nil:
		return e.Positions.D
	case e.mapper == nil:
		return 0
	}
	_, d := e.mapper.Size()
	return d
}

// projectedRows is how many points are placed between two looks at the context; of sparse
// points so many that about denseValues are dense at a time.
const (
	projectedRows = 1 << 11
	denseValues   = 1 << 22
	// A device is busy with so many rows alone, whose values are bounded, too.
	projectedOnDevice = 1 << 15
	valuesOnDevice    = 1 << 24
)

// Project places points [r, D] of the kind that the embedding was learnt from, and
// returns their positions [r, Dim]. A network maps them; beside a table each starts
// among its nearest training points and is then optimised, while all others stay.
// The position of a point does not depend on the others. The points stay as they
// are. A point of another width, or with a value that is no finite number, is an
// error that wraps ErrPoints; its row counts from 0.
//
// Where the columns of both have names, the values are found by them, in any order,
// and others left out; it is an error that wraps ErrPoints if one is missing.
// Otherwise they are taken as they come.
func (e *Embedding) Project(ctx context.Context, points *data.Matrix) (*data.Matrix, error) {
	mapper, err := e.Mapper(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	_, d := mapper.Size()
	positions := data.NewMatrix(points.N, d)
	rows := projectedRows
	if !e.device.OnHost() {
		rows = max(rows, min(projectedOnDevice, valuesOnDevice/points.D))
	}
	if points.CSR != nil {
		rows = min(rows, max(1, denseValues/points.D))
	}
	block := data.NewMatrix(min(points.N, rows), points.D)
	block.Offset, block.Columns = points.Offset, points.Columns
	for lo := 0; lo < points.N; lo += rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hi := min(points.N, lo+rows)
		points.CopyRows(block.X[:(hi-lo)*points.D], lo)
		if _, err := e.ProjectBlock(ctx, positions.Rows(lo, hi), block.Rows(0, hi-lo), nil); err != nil {
			if bad, ok := err.(*PointError); ok {
				bad.Row += lo
			}
			return nil, err
		}
	}
	return positions, nil
}

// ProjectPrepared writes to dst the positions of points that are prepared as
// Description.Preprocessing says, dense or sparse. Points or positions of other sizes are
// an error that wraps ErrPoints.
func (e *Embedding) ProjectPrepared(ctx context.Context, dst, points *data.Matrix) error {
	mapper, err := e.Mapper(ctx)
	if err != nil {
		return err
	}
	width, d := mapper.Size()
	if points.D != width || dst.N != points.N || dst.D != d {
		return fmt.Errorf("%w: %d of %d values for a matrix of %d positions of %d, which takes points of %d", ErrPoints, points.N, points.D, dst.N, dst.D, width)
	}
	network, ok := mapper.(*model.MLP[float32])
	switch {
	case points.CSR == nil:
		return mapper.ProjectTo(dst.X, points.X)
	case ok:
		return network.ProjectMatrixTo(dst.X, points)
	}
	return fmt.Errorf("%w: they are sparse, which a network of float32 alone takes; prepare dense ones", ErrPoints)
}

// A PointError is about a point that cannot be placed. It wraps ErrPoints.
type PointError struct {
	Row   int // counted from 0
	Fault string
}

func (e *PointError) Error() string { return fmt.Sprintf("%v: row %d: %s", ErrPoints, e.Row, e.Fault) }

// Unwrap returns ErrPoints.
func (e *PointError) Unwrap() error { return ErrPoints }

// ProjectBlock writes the positions of a block of points to dst, for callers who read
// dense points block by block; it prepares them where they are, unless their columns have
// to be put in order first (see Project). Without skipped, the first
// point that cannot be placed is an error (*PointError); with it, of one element for
// each point, such points are marked there, get NaNs as positions, and are counted.
func (e *Embedding) ProjectBlock(ctx context.Context, dst, points *data.Matrix, skipped []bool) (bad int, err error) {
	mapper, err := e.Mapper(ctx)
	if err != nil {
		return 0, err
	}
	width, err := e.Width()
	if err != nil {
		return 0, err
	}
	if err := checkPoints(points); err != nil {
		return 0, err
	}
	if points.CSR != nil {
		return 0, fmt.Errorf("%w: the block is sparse; Project takes sparse points", ErrPoints)
	}
	if dst == nil || dst.N != points.N || dst.D != e.Dim() || len(dst.X) != dst.N*dst.D || skipped != nil && len(skipped) != points.N {
		return 0, fmt.Errorf("%w: %d of them need a matrix of %d rows of %d for their positions, and as many marks", ErrPoints, points.N, points.N, e.Dim())
	}
	before := e.Description.Preprocessing
	if before != nil {
		if points, _, err = points.Select(before.Columns); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrPoints, err)
		}
	}
	if points.D != width {
		return 0, fmt.Errorf("%w: they have %d values, but the embedding was learnt from points of %d; give points of the same kind", ErrPoints, points.D, width)
	}
	clear(skipped)
	if err := reject(points, skipped, func(row []float32) string {
		at := slices.IndexFunc(row, func(v float32) bool { return !finite.Is(v) })
		return fmt.Sprintf("value %d (counted from 1) is %v", at+1, row[at])
	}); err != nil {
		return 0, err
	}
	tooLarge := func([]float32) string { return "the values are too large for this model" }
	x := points
	if before != nil {
		var noDirection *data.DirectionError
		if x, err = before.ApplySkipping(ctx, points, nil, skipped); errors.As(err, &noDirection) {
			return 0, &PointError{Row: noDirection.Rows[0], Fault: noDirection.Metric.NoDirection()}
		}
		if err != nil {
			return 0, err
		}
		if err := reject(x, skipped, tooLarge); err != nil {
			return 0, err
		}
	}
	if err := mapper.ProjectTo(dst.X, x.X); err != nil {
		return 0, err
	}
	if err := reject(dst, skipped, tooLarge); err != nil {
		return 0, err
	}
	for i, skip := range skipped {
		if !skip {
			continue
		}
		bad++
		for j, row := 0, dst.Row(i); j < len(row); j++ {
			row[j] = float32(math.NaN())
		}
	}
	return bad, nil
}

// reject marks the rows of m with a value that is not finite in skipped, and clears
// them; or, where skipped is nil, returns the first as a PointError with its fault.
func reject(m *data.Matrix, skipped []bool, fault func(row []float32) string) error {
	grain := max(1, 1<<16/m.D)
	first := make([]int, parallel.Pieces(m.N, grain))
	parallel.For(m.N, grain, func(piece, lo, hi int) {
		first[piece] = -1
		for i := lo; i < hi; i++ {
			row := m.Row(i)
			if finite.All(row) {
				continue
			}
			if first[piece] < 0 {
				first[piece] = i
			}
			if skipped != nil {
				skipped[i] = true
				clear(row)
			}
		}
	})
	at := slices.IndexFunc(first, func(i int) bool { return i >= 0 })
	if at < 0 || skipped != nil {
		return nil
	}
	return &PointError{first[at], fault(m.Row(first[at]))}
}
