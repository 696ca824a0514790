package cne

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"cne/data"
	"cne/internal/parallel"
)

// embedSome is Embed for Options.TrainOn.
func embedSome(ctx context.Context, points *data.Matrix, o Options) (*Embedding, error) {
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	rows := slices.Clone(o.TrainOn)
	o.TrainOn = nil
	if err := data.CheckRows(rows, points.N); err != nil {
		return nil, badOption("TrainOn: %v", err)
	}
	if o.Graph != nil || o.Start != nil {
		return nil, badOption("TrainOn together with Graph or Start; prepare and fit those points alone, and place the others with PlaceAll")
	}
	of := &data.Dataset{Points: points}
	some, err := of.Take(rows)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	e, err := Embed(ctx, some.Points, o)
	if err != nil || len(rows) == points.N {
		return e, err
	}
	if e.mapper == nil { // a table
		e.device = o.Device
		defer func() { _ = e.UseDevice(nil) }() // which cannot fail: the caller may close the device
	}
	if _, err := e.Mapper(ctx); err != nil {
		return e, err
	}
	others := make([]int, 0, points.N-len(rows))
	for i, k := 0, 0; i < points.N; i++ {
		if k < len(rows) && rows[k] == i {
			k++
		} else {
			others = append(others, i)
		}
	}
	rest, err := of.Take(others)
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrPoints, err)
	}
	placed, err := e.Project(ctx, rest.Points)
	if bad := new(PointError); errors.As(err, &bad) {
		bad.Row = others[bad.Row]
	}
	if err != nil {
		return e, err
	}
	all := data.NewMatrix(points.N, e.Positions.D)
	for k, i := range rows {
		copy(all.Row(i), e.Positions.Row(k))
	}
	for k, i := range others {
		copy(all.Row(i), placed.Row(k))
	}
	e.learnt, e.Positions, e.Rows = e.Positions, all, rows
	return e, nil
}

// A BlockReader delivers points a block at a time, as *data.Blocks does.
type BlockReader interface {
	// D returns the number of values of a point.
	D() int
	// Next fills dst with the points that come next and returns their number, with
	// io.EOF after the last.
	Next(dst *data.Matrix) (int, error)
}

// Bounds of the points that PlaceAll has at a time.
const (
	placedValues = 1 << 21
	placedRows   = 1 << 13
)

// PlaceAll goes through all points of which the embedding was learnt from some alone,
// those of the given rows (ascending): it calls write with the positions of one block after
// the other, in the order of the points, of the rows as they were learnt and of others as
// Project has them. lo is the row of a block's first point. Two blocks are in memory, one
// being read while the other is placed. The points are of the kind that Project takes, and
// not changed yet; those of files are opened with Description.Preprocessing.Reading.
//
// It returns the number of the points. An error of write, or of from, ends it, and so does
// the end of ctx. A point that cannot be placed is a *PointError. Fewer points than rows
// tell of give ErrPoints.
func (e *Embedding) PlaceAll(ctx context.Context, from BlockReader, rows []int, write func(lo int, positions *data.Matrix) error) (n int, err error) {
	learnt := e.learntPositions()
	if learnt == nil || learnt.N != len(rows) {
		return 0, fmt.Errorf("%w: %d rows for an embedding that was learnt from others", ErrPoints, len(rows))
	}
	width := from.D()
	if want, err := e.Width(); err != nil {
		return 0, err
	} else if width != want {
		return 0, fmt.Errorf("%w: they have %d values, but the embedding was learnt from points of %d; give points of the same kind", ErrPoints, width, want)
	}
	size := min(max(1, placedValues/width), placedRows)
	type block struct {
		points, positions *data.Matrix
		n                 int
		err               error
	}
	newBlock := func() *block {
		return &block{points: data.NewMatrix(size, width), positions: data.NewMatrix(size, learnt.D)}
	}
	at := 0          // of rows
	var others []int // which of a block are not of the rows
	place := func(b *block) error {
		// The points of the rows are moved out of the way, since a table takes long to
		// place one, and others need not be placed in a block of the same size.
		others = others[:0]
		known := at
		for i := range b.n {
			if known < len(rows) && rows[known] == n+i {
				known++
				continue
			}
			copy(b.points.Row(len(others)), b.points.Row(i))
			others = append(others, i)
		}
		if len(others) > 0 {
			if _, err := e.ProjectBlock(ctx, b.positions.Rows(0, len(others)), b.points.Rows(0, len(others)), nil); err != nil {
				if bad := new(PointError); errors.As(err, &bad) {
					bad.Row = n + others[bad.Row]
				}
				return err
			}
		}
		for i, k := b.n-1, len(others)-1; i >= 0; i-- {
			if k >= 0 && others[k] == i {
				copy(b.positions.Row(i), b.positions.Row(k))
				k--
			} else {
				known--
				copy(b.positions.Row(i), learnt.Row(known))
			}
		}
		at += b.n - len(others)
		return nil
	}
	current, next := newBlock(), newBlock()
	for current.err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var failed error
		parallel.For(2, 1, func(piece, _, _ int) {
			if piece == 0 {
				next.n, next.err = from.Next(next.points)
			} else {
				failed = place(current)
			}
		})
		if failed != nil {
			return n, failed
		}
		if current.n > 0 {
			if err := write(n, current.positions.Rows(0, current.n)); err != nil {
				return n, err
			}
			n += current.n
		}
		current, next = next, current
	}
	switch {
	case current.err != io.EOF:
		return n, current.err
	case at < len(rows):
		return n, fmt.Errorf("%w: there are %d, but row %d was learnt from; give those of which it was one", ErrPoints, n, rows[at])
	}
	return n, nil
}

// learntPositions returns the positions of the points that the embedding was learnt from.
func (e *Embedding) learntPositions() *data.Matrix {
	if e.learnt != nil {
		return e.learnt
	}
	return e.Positions
}
