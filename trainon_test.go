package cne_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/internal/rng"
)

// someOf returns points and those of some rows.
func someOf(t *testing.T, n, d int, rows []int) (all, some *data.Matrix) {
	t.Helper()
	s := rng.New(3, rng.Sample)
	all = data.NewMatrix(n, d)
	for i := range all.X {
		all.X[i] = float32(s.Normal() + 8*float64(i/d%3*(i%d%3)))
	}
	set, err := (&data.Dataset{Points: all}).Take(rows)
	must(t, err)
	return all, set.Points
}

// What Embed learns from some points is what it makes of these alone, and the others lie
// where that places them; a file that is read in blocks gives the same.
func TestTrainOn(t *testing.T) {
	const n, d = 90, 6
	rows, err := data.DrawRows(n, 40, 5)
	must(t, err)
	all, some := someOf(t, n, d, rows)
	path := written(t, all)
	for name, o := range map[string]cne.Options{
		"table":      {Neighbors: 5, Epochs: 3, BatchSize: 64},
		"network":    {Neighbors: 5, Epochs: 2, BatchSize: 64, Hidden: []int{8}},
		"components": {Neighbors: 5, Epochs: 2, BatchSize: 64, Components: new(3)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			alone := embed(t, some, o)
			want := project(t, alone, all)
			for k, i := range rows {
				copy(want.Row(i), alone.Positions.Row(k))
			}
			o.TrainOn = rows
			e := embed(t, all, o)
			if !slices.Equal(e.Positions.X, want.X) || !slices.Equal(e.Rows, rows) || e.Neighborhood.Graph.N != len(rows) {
				t.Error("it is another embedding than that of the rows alone, with the others placed")
			}
			same(t, "it places further points elsewhere", project(t, e, all.Rows(3, 9)).X, project(t, alone, all.Rows(3, 9)).X)
			// From the CPU to the CPU there is nothing to prepare again.
			before, err := e.Mapper(ctx)
			if errDevice := e.UseDevice(nil); err != nil || errDevice != nil {
				t.Fatal(err, errDevice)
			}
			if after, err := e.Mapper(ctx); err != nil || after != before {
				t.Errorf("on the same device it is prepared again (%v)", err)
			}

			o.TrainOn = nil
			set, err := data.OpenRows(ctx, []string{path}, data.Options{}, rows, n)
			must(t, err)
			h, err := cne.PrepareSet(ctx, set, o)
			must(t, err)
			e = fit(t, h, o)
			blocks, err := data.OpenBlocks(ctx, []string{path}, e.Description.Preprocessing.Reading(data.Options{}))
			must(t, err)
			defer blocks.Close()
			got := data.NewMatrix(n, e.Dim())
			put := func(lo int, positions *data.Matrix) error {
				copy(got.X[lo*got.D:], positions.X)
				return nil
			}
			count, err := e.PlaceAll(ctx, blocks, rows, put)
			if err != nil || count != n || !slices.Equal(got.X, want.X) {
				t.Errorf("PlaceAll of %d points: %v, or other positions", count, err)
			}

			// A point is not placed where it was learnt, whatever it has become; one that
			// cannot be placed is told by its row.
			known, other := rows[len(rows)/2], 0
			for slices.Contains(rows, other) || other < known {
				other++
			}
			spoilt := &matrixBlocks{Matrix: &data.Matrix{N: n, D: d, X: slices.Clone(all.X)}}
			nan := float32(math.NaN())
			spoilt.Row(known)[0] = nan
			if count, err = e.PlaceAll(ctx, spoilt, rows, put); err != nil || count != n || !slices.Equal(got.X, want.X) {
				t.Errorf("a row that was learnt and is none any more: %v, or other positions", err)
			}
			spoilt.at = 0
			spoilt.Row(other)[0] = nan
			var bad *cne.PointError
			if _, err = e.PlaceAll(ctx, spoilt, rows, put); !errors.As(err, &bad) || bad.Row != other {
				t.Errorf("row %d cannot be placed: %v", other, err)
			}
		})
	}
}

func TestTrainOnRefuses(t *testing.T) {
	all, _ := someOf(t, 40, 3, []int{1})
	ctx := t.Context()
	for name, o := range map[string]cne.Options{
		"none":      {TrainOn: []int{}},
		"twice":     {TrainOn: []int{1, 1}},
		"falling":   {TrainOn: []int{2, 1}},
		"outside":   {TrainOn: []int{1, 40}},
		"negative":  {TrainOn: []int{-1, 4}},
		"a start":   {TrainOn: []int{1, 2}, Init: cne.InitGiven, Start: data.NewMatrix(40, 2)},
		"too large": {TrainOn: []int{39, 40, 41}},
	} {
		if _, err := cne.Embed(ctx, all, o); !errors.Is(err, cne.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cne.Embed(ctx, all, cne.Options{TrainOn: []int{1, 2, 3}}); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("fewer points than neighbours: %v", err)
	}
	o := cne.Options{TrainOn: []int{1, 2, 3}}
	if _, err := cne.Prepare(ctx, all, o); !errors.Is(err, cne.ErrOption) {
		t.Errorf("Prepare: %v", err)
	}
	e := embed(t, all, cne.Options{Neighbors: 3, Epochs: 1})
	ended, end := context.WithCancel(ctx)
	end()
	rows := make([]int, 40)
	for i := range rows {
		rows[i] = i
	}
	for name, x := range map[string]struct {
		ctx   context.Context
		width int
		rows  []int
		want  error
	}{
		"other rows":  {ctx, 3, rows[:39], cne.ErrPoints},
		"other width": {ctx, 4, rows, cne.ErrPoints},
		"no points":   {ctx, 3, rows, cne.ErrPoints},
		"ended":       {ended, 3, rows, context.Canceled},
	} {
		if _, err := e.PlaceAll(x.ctx, &matrixBlocks{Matrix: data.NewMatrix(0, x.width)}, x.rows, func(int, *data.Matrix) error { return nil }); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// matrixBlocks delivers the points of a matrix, seven at a time.
type matrixBlocks struct {
	*data.Matrix
	at int
}

func (m *matrixBlocks) D() int { return m.Matrix.D }

func (m *matrixBlocks) Next(dst *data.Matrix) (int, error) {
	if m.at == m.N {
		return 0, io.EOF
	}
	n := min(7, m.N-m.at)
	m.CopyRows(dst.X[:n*dst.D], m.at)
	m.at += n
	return n, nil
}
