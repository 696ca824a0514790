package simclr_test

import (
	"errors"
	"testing"

	"cne/data"
	"cne/simclr"
)

// Arguments that are nil are errors of the package, of a kind.
func TestNothing(t *testing.T) {
	ctx, a := t.Context(), simclr.Paper()
	e := new(simclr.Evaluation)
	p := simclr.PaperPretraining()
	_, _, noPretraining := p.Run(ctx, nil, nil)
	for name, x := range map[string]struct{ got, want error }{
		"encoder":               {errorOf(simclr.Features(ctx, nil, &a, new(data.Images), nil, nil)), simclr.ErrOption},
		"augmentation":          {(*simclr.Augmentation)(nil).Check(), simclr.ErrOption},
		"pixels":                {errorOf(simclr.Pixels(nil, nil)), simclr.ErrShape},
		"features":              {errorOf(simclr.KNNAccuracy(ctx, nil, nil, simclr.Split{}, 3, nil)), simclr.ErrShape},
		"features to fit":       {errorOf(simclr.FitLogistic(ctx, nil, nil, nil, 2, simclr.LogisticOptions{})), simclr.ErrShape},
		"images to evaluate":    {errorOf(e.Run(ctx, nil, nil)), simclr.ErrLabels},
		"official split":        {errorOf(simclr.OfficialSplit(nil)), simclr.ErrSplit},
		"stratified split":      {errorOf(simclr.StratifiedSplit(nil, 3, 0)), simclr.ErrLabels},
		"images to view":        {a.BatchTo(nil, nil, nil, 0, 0, 0), simclr.ErrShape},
		"images to monitor":     {errorOf(new(simclr.Monitor).Hook(ctx)), simclr.ErrShape},
		"images to pretrain on": {noPretraining, simclr.ErrShape},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("no %s: the error is %v", name, x.got)
		}
	}
}
