package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cne/configs"
	"cne/data"
	"cne/internal/rundir"
	"cne/internal/version"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// A trainable is a model that a run can train and save.
type trainable interface {
	model.Model
	Save(path string, d *model.Description) error
}

// newModel returns the model of a run at its start.
func newModel(ctx context.Context, c *configs.Config, in *inputs, near *neighbourhood) (trainable, error) {
	if c.Model.DType == "float64" {
		return newModelOf[float64](ctx, c, in, near)
	}
	return newModelOf[float32](ctx, c, in, near)
}

func newModelOf[T op.Float](ctx context.Context, c *configs.Config, in *inputs, near *neighbourhood) (trainable, error) {
	if c.Model.Kind == "table" {
		table, err := startingTable[T](ctx, c, near.points)
		if err != nil {
			return nil, err
		}
		return model.NewEmbedding(table, c.Model.Dim, c.Loss.Options())
	}
	points := networkInput(c, in, near)
	network, err := model.NewMLP[T](points.D, c.Model.Hidden, c.Model.Dim, c.Seed)
	if err != nil {
		return nil, err
	}
	x, ok := any(points.X).([]T)
	if !ok {
		x = make([]T, len(points.X))
		for i, v := range points.X {
			x[i] = T(v)
		}
	}
	return model.NewParametric(network, x, c.Loss.Options())
}

// networkInput returns what a network sees of the training points.
func networkInput(c *configs.Config, in *inputs, near *neighbourhood) *data.Matrix {
	if c.Model.SeesPoints() {
		return in.points.Points
	}
	return near.points
}

func startingTable[T op.Float](ctx context.Context, c *configs.Config, points *data.Matrix) ([]T, error) {
	if c.Model.Init == "random" {
		return model.InitNormal[T](points.N, c.Model.Dim, c.Model.InitStd, c.Seed)
	}
	components, err := leadingComponents(ctx, points, c.Model.Dim)
	if err != nil {
		return nil, err
	}
	return model.InitFrom[T](components.X, components.D, c.Model.Dim, c.Model.InitStd, c.Seed)
}

// leadingComponents returns the first d principal components of the points, or
// as many as there are. Points that are principal components already come out
// as they are.
func leadingComponents(ctx context.Context, points *data.Matrix, d int) (*data.Matrix, error) {
	pca, err := data.FitPCA(ctx, points, min(d, points.D, points.N), nil)
	if err != nil {
		return nil, err
	}
	return pca.Transform(ctx, points, nil)
}

// preprocessing returns what is done to points before the model sees them; of
// a table, before their neighbours are looked for.
func (t *training) preprocessing() *data.Preprocessing {
	p := &data.Preprocessing{Counts: t.in.counts, Width: t.in.width, Scaler: t.in.scaler}
	if !t.config.Model.SeesPoints() {
		p.PCA = t.near.pca
	}
	return p
}

// describe returns what is saved with the model.
func (t *training) describe() (*model.Description, error) {
	config, err := t.configText()
	if err != nil {
		return nil, err
	}
	return &model.Description{
		Preprocessing: t.preprocessing(), Training: t.trained(), Labels: classNames(t.in.points.Labels), Config: config, Version: version.String(),
	}, nil
}

// classNames returns the names of the classes of points, nil if their labels
// are quantities, or names of the points themselves.
func classNames(l *data.Labels) []string {
	if l == nil || !l.Categorical() {
		return nil
	}
	members := make([]int, len(l.Names))
	for _, c := range l.Class {
		members[c]++
	}
	var names []string
	for c, n := range members {
		if n > 0 {
			names = append(names, l.Names[c])
		}
	}
	if 2*len(names) > len(l.Class) {
		return nil
	}
	return names
}

// trained returns what the end of the run leaves to new points.
func (t *training) trained() model.FitInfo {
	stages := t.config.Stages()
	lr := stages[len(stages)-1].LR
	if t.config.Loss.Reduction == "mean" { // new points are placed by the sum
		lr /= float64(min(t.config.Train.BatchSize, t.near.graph.Edges()))
	}
	return model.FitInfo{
		Objective: t.model.Objective(), Theta: t.result.Theta, Negatives: t.result.Negatives,
		Neighbors: t.config.Graph.K, LR: lr, Clip: t.config.Train.Clip, Seed: t.config.Seed,
	}
}

// projectHeld places the points that were held out, and writes them; it returns
// nil if there are none.
func (t *training) projectHeld(ctx context.Context) (*data.Matrix, error) {
	if t.in.held == nil {
		return nil, nil
	}
	start := time.Now()
	defer func() { t.projectTime = time.Since(start) }()
	network, err := t.network()
	if err != nil {
		return nil, err
	}
	points, err := t.heldPoints(ctx, t.preprocessing())
	if err != nil {
		return nil, err
	}
	_, d := network.Size()
	held := data.NewMatrix(points.N, d)
	_, err = await(ctx, func() (struct{}, error) { return struct{}{}, network.ProjectTo(held.X, points.X) })
	if ctx.Err() != nil {
		return nil, errors.New("interrupted while the held-out points were placed")
	}
	if err != nil {
		return nil, err
	}
	if err := t.writeEmbedding("holdout", held, t.in.held.Labels); err != nil {
		return nil, err
	}
	if t.in.heldRows == nil {
		return held, nil
	}
	return held, t.writeRows(rundir.HeldRowsFile, t.in.heldRows)
}

// writeRows writes which rows of the input some points are.
func (t *training) writeRows(name string, rows []int) error {
	return t.dir.WriteFile(name, func(w io.Writer) error {
		if _, err := fmt.Fprintln(w, "row"); err != nil {
			return err
		}
		for _, i := range rows {
			if _, err := fmt.Fprintln(w, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// heldPoints returns the points that were held out, which are scaled already,
// as p leaves them.
func (t *training) heldPoints(ctx context.Context, p *data.Preprocessing) (_ *data.Matrix, err error) {
	if p.PCA == nil {
		return t.in.held.Points, nil
	}
	if t.in.heldComponents == nil {
		t.in.heldComponents, err = p.PCA.Transform(ctx, t.in.held.Points, nil)
	}
	return t.in.heldComponents, err
}

// network returns what places new points.
func (t *training) network() (model.Mapper, error) {
	switch m := t.model.(type) {
	case *model.Parametric[float32]:
		return m.Network(), nil
	case *model.Parametric[float64]:
		return m.Network(), nil
	}
	n, d := t.model.Points()
	table := make([]float32, n*d)
	if err := t.model.EmbedTo(table); err != nil {
		return nil, err
	}
	return train.NewProjector(t.near.points, table, d, t.trained())
}
