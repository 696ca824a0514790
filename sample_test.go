package cne_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/internal/rng"
)

// someOf returns points and their given rows.
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

// With Sample, Embed gives the embedding of only these points and places the others; a
// file that is read in blocks gives the same.
func TestSample(t *testing.T) {
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
			o.Division = &cne.Division{Trained: rows}
			e := embed(t, all, o)
			if !slices.Equal(e.Positions.X, want.X) || e.Division != o.Division || e.Neighborhood.Graph.N != len(rows) {
				t.Error("it is another embedding than that of the rows alone, with the others placed")
			}
			same(t, "it places further points elsewhere", project(t, e, all.Rows(3, 9)).X, project(t, alone, all.Rows(3, 9)).X)
			// From the CPU to the CPU there is nothing to prepare again.
			before, err := e.Projector(ctx)
			if errDevice := e.UseDevice(nil); err != nil || errDevice != nil {
				t.Fatal(err, errDevice)
			}
			if after, err := e.Projector(ctx); err != nil || after != before {
				t.Errorf("on the same device it is prepared again (%v)", err)
			}

			o.Division = nil
			set, err := file.ReadRows(ctx, []string{path}, file.Options{}, rows, n)
			must(t, err)
			h, err := cne.Prepare(ctx, set, o)
			must(t, err)
			e = fit(t, h, o)
			blocks, err := file.Open(ctx, []string{path}, e.Description.Preprocessing.Reading(file.Options{}))
			must(t, err)
			defer blocks.Close()
			got := data.NewMatrix(n, e.Dim())
			put := func(b *cne.ProjectedBlock) error {
				copy(got.X[b.First*got.D:], b.Positions.X)
				return nil
			}
			trained := cne.Projection{Division: &cne.Division{Trained: rows}}
			if err := e.ProjectRows(ctx, blocks, trained, put); err != nil || !slices.Equal(got.X, want.X) {
				t.Errorf("going through the file: %v, or other positions", err)
			}

			// A training point keeps its position, whatever its values; an error names
			// the row of a point that cannot be placed.
			known, other := rows[len(rows)/2], 0
			for slices.Contains(rows, other) || other < known {
				other++
			}
			spoilt := &data.Matrix{N: n, D: d, X: slices.Clone(all.X)}
			nan := float32(math.NaN())
			spoilt.Row(known)[0] = nan
			if err := e.ProjectRows(ctx, &sevenRows{matrix: spoilt}, trained, put); err != nil || !slices.Equal(got.X, want.X) {
				t.Errorf("a row that was learnt and is none any more: %v, or other positions", err)
			}
			spoilt.Row(other)[0] = nan
			var bad *cne.PointError
			if err := e.ProjectRows(ctx, &sevenRows{matrix: spoilt}, trained, put); !errors.As(err, &bad) || bad.Row != other || bad.Name == "" {
				t.Errorf("row %d cannot be placed: %v", other, err)
			}
			bads := 0
			trained.SkipBad = true
			if err := e.ProjectRows(ctx, &sevenRows{matrix: spoilt}, trained, func(b *cne.ProjectedBlock) error {
				bads += b.Bad
				return put(b)
			}); err != nil || bads != 1 || !math.IsNaN(float64(got.Row(other)[1])) || !slices.Equal(got.Row(known), want.Row(known)) {
				t.Errorf("row %d is to be skipped: %v", other, err)
			}
		})
	}
}

func TestSampleRefuses(t *testing.T) {
	all, _ := someOf(t, 40, 3, []int{1})
	ctx := t.Context()
	for name, o := range map[string]cne.Division{
		"none":      {},
		"twice":     {Trained: []int{1, 1}},
		"falling":   {Trained: []int{2, 1}},
		"outside":   {Trained: []int{1, 40}},
		"negative":  {Trained: []int{-1, 4}},
		"too large": {Trained: []int{39, 40, 41}},
		"held out":  {Trained: []int{1, 2, 3, 4}, Held: []int{4}},
		"left out":  {Trained: []int{1, 2, 3, 4}, Left: []int{9, 8}},
	} {
		if _, err := cne.Embed(ctx, all, cne.Options{Neighbors: 2, Division: &o}); !errors.Is(err, cne.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cne.Embed(ctx, all, cne.Options{Division: &cne.Division{Trained: []int{1, 2, 3}}}); !errors.Is(err, cne.ErrPoints) {
		t.Errorf("fewer points than neighbours: %v", err)
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
		rows := &sevenRows{matrix: data.NewMatrix(0, x.width)}
		if err := e.ProjectRows(x.ctx, rows, cne.Projection{Division: &cne.Division{Trained: x.rows}}, func(*cne.ProjectedBlock) error { return nil }); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sevenRows delivers the points of a matrix, seven at a time.
type sevenRows struct {
	file.Rows
	matrix *data.Matrix
	at     int
}

func (r *sevenRows) Width() int { return r.matrix.D }

func (r *sevenRows) Len() (int, bool) { return 0, false }

func (r *sevenRows) Labels() []string { return nil }

func (r *sevenRows) RowName(i int) string { return fmt.Sprint("row ", i) }

func (r *sevenRows) Next(dst *data.Matrix) (int, error) {
	if r.at == r.matrix.N {
		return 0, io.EOF
	}
	n := min(7, r.matrix.N-r.at)
	r.matrix.CopyRows(dst.X[:n*dst.D], r.at)
	r.at += n
	return n, nil
}
