package train_test

import (
	"errors"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train"
)

// What is nil, unknown or does not fit is an error of its package, of a kind.
func TestNothing(t *testing.T) {
	_, noModel := train.Fit(t.Context(), nil, nil, nil, train.Options{})
	_, noPoints := train.NewProjector(t.Context(), nil, nil, 2, model.FitInfo{})
	_, noNetwork := model.NewParametric[float32](nil, make([]float32, 4), op.ContrastiveOptions{})
	_, noTable := model.NewEmbedding[float32](nil, 2, op.ContrastiveOptions{})
	_, noLoss := model.NewEmbedding(make([]float32, 4), 2, op.ContrastiveOptions{Loss: 9})
	_, noDevice := model.OpenDevice("abacus")
	table, err := model.NewEmbedding(make([]float32, 4), 2, op.ContrastiveOptions{})
	must(t, err)
	_, noPoint := train.Fit(t.Context(), table, []int32{0}, []int32{2}, train.Options{})
	for name, x := range map[string]struct{ got, want error }{
		"model":    {noModel, train.ErrInput},
		"point":    {noPoint, train.ErrInput},
		"points":   {noPoints, train.ErrInput},
		"network":  {noNetwork, model.ErrInput},
		"table":    {noTable, model.ErrInput},
		"loss":     {noLoss, op.ErrInput},
		"word":     {new(op.Loss).UnmarshalText([]byte("tsne")), op.ErrInput},
		"schedule": {new(train.Anneal).UnmarshalText([]byte("steps")), train.ErrInput},
		"device":   {noDevice, model.ErrDevice},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("no such %s: the error is %v", name, x.got)
		}
	}
}
