package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"cne/data"
	"cne/model"
	"cne/model/op"
	"cne/train"
)

// withOneOutside calls f with numbers, all but one below n: enough of them for the vector
// kernels, which would read or write anywhere, and some more.
func withOneOutside(n int, f func(name string, index []int32)) {
	for _, bad := range []int32{-1, int32(n), math.MaxInt32, math.MinInt32} {
		for _, at := range []int{0, 40, 66} {
			index := numbersBelow(n)
			index[at] = bad
			f(fmt.Sprintf("%d at %d", bad, at), index)
		}
	}
}

func numbersBelow(n int) []int32 {
	index := make([]int32, 67)
	for i := range index {
		index[i] = int32(i % n)
	}
	return index
}

// Edges, the parts of a batch, and the rows of a step are checked where they come in.
func TestNumbersOutOfRange(t *testing.T) {
	const n = 80
	newTable := func() *model.Embedding[float32] {
		return tableOf[float32](t, n, 2, 1, op.ContrastiveOptions{Clamp: 1e-10})
	}
	other := numbersBelow(n)
	for i := range other {
		other[i] = (other[i] + 1) % n
	}
	options := train.Options{BatchSize: 64, Phases: []train.Phase{{Epochs: 1, LR: 1, Negatives: 5}}}
	withOneOutside(n, func(name string, index []int32) {
		if _, err := train.Fit(context.Background(), newTable(), index, other, options); err == nil {
			t.Errorf("heads, %s: no error", name)
		}
		if _, err := train.Fit(context.Background(), newTable(), other, index, options); err == nil {
			t.Errorf("tails, %s: no error", name)
		}
	})

	const b = 67
	for name, m := range map[string]model.Model{
		"table":   newTable(),
		"network": networkOf(t, normal[float32](n, 3, 1), 3, []int{4}, 2, 1, op.ContrastiveOptions{Clamp: 1e-10}),
	} {
		good := func() *model.Batch {
			return &model.Batch{Rows: numbersBelow(n), Local: append(numbersBelow(b), numbersBelow(b)...), Negatives: numbersBelow(2 * b)}
		}
		if _, err := m.Step(good(), 0); err != nil {
			t.Fatal(err)
		}
		for part, rows := range map[string]int{"rows": n, "local": b, "negatives": 2 * b} {
			withOneOutside(rows, func(which string, index []int32) {
				batch := good()
				switch part {
				case "rows":
					batch.Rows = index
				case "local":
					copy(batch.Local[b:], index)
				case "negatives":
					batch.Negatives = index
				}
				if _, err := m.Step(batch, 0); err == nil {
					t.Errorf("%s, %s, %s: no error", name, part, which)
				}
			})
		}
	}

	for name, make := range optimizers {
		withOneOutside(n, func(which string, index []int32) {
			m := make()
			initOptimizer(t, m, model.Parameter{Name: "w", Value: arrayOf(t, normal[float32](n, 2, 1), n, 2),
				Grad: arrayOf(t, normal[float32](len(index), 2, 2), len(index), 2), Sparse: true})
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "rows of w, which has 80") {
					t.Errorf("%s, %s: %v", name, which, r)
				}
			}()
			m.Step(index, 0.1, 4)
		})
	}

	// New points are placed among the positions of as many points as there are.
	points := &data.Matrix{N: n, D: 3, X: normal[float32](n, 3, 1)}
	for _, positions := range []int{n - 1, n + 1} {
		if _, err := train.NewProjector(t.Context(), nil, points, normal[float32](positions, 2, 1), 2, projectorOptions()[op.Neg.String()]); err == nil {
			t.Errorf("%d positions of %d points: no error", positions, n)
		}
	}
}

// errorOf drops what comes with an error.
func errorOf[T any](_ T, err error) error { return err }

// What is nil, unknown or does not fit is an error of its package, of a kind.
func TestNothing(t *testing.T) {
	table, err := model.NewEmbedding(make([]float32, 4), 2, op.ContrastiveOptions{})
	must(t, err)
	for name, x := range map[string]struct{ got, want error }{
		"model":    {errorOf(train.Fit(t.Context(), nil, nil, nil, train.Options{})), train.ErrInput},
		"point":    {errorOf(train.Fit(t.Context(), table, []int32{0}, []int32{2}, train.Options{})), train.ErrInput},
		"points":   {errorOf(train.NewProjector(t.Context(), nil, nil, nil, 2, model.FitInfo{})), train.ErrInput},
		"network":  {errorOf(model.NewParametric[float32](nil, make([]float32, 4), op.ContrastiveOptions{})), model.ErrInput},
		"table":    {errorOf(model.NewEmbedding[float32](nil, 2, op.ContrastiveOptions{})), model.ErrInput},
		"loss":     {errorOf(model.NewEmbedding(make([]float32, 4), 2, op.ContrastiveOptions{Loss: 9})), op.ErrInput},
		"word":     {new(op.Loss).UnmarshalText([]byte("tsne")), op.ErrInput},
		"schedule": {new(train.Schedule).UnmarshalText([]byte("steps")), train.ErrInput},
		"device":   {errorOf(model.OpenDevice("abacus")), model.ErrDevice},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("no such %s: the error is %v", name, x.got)
		}
	}
}
