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
	_, noEncoder := simclr.Features(ctx, nil, &a, new(data.Images), nil, nil)
	_, noPixels := simclr.Pixels(nil, nil)
	_, noFeatures := simclr.KNNAccuracy(ctx, nil, nil, simclr.Split{}, 3, nil)
	_, noLogistic := simclr.FitLogistic(ctx, nil, nil, nil, 2, simclr.LogisticOptions{})
	_, noImages := e.Run(ctx, nil, nil)
	_, noOfficial := simclr.OfficialSplit(nil)
	_, noStratified := simclr.StratifiedSplit(nil, 3, 0)
	_, noMonitor := new(simclr.Monitor).Hook(ctx)
	p := simclr.PaperPretraining()
	_, _, noPretraining := p.Run(ctx, nil, nil)
	for name, x := range map[string]struct{ got, want error }{
		"encoder":               {noEncoder, simclr.ErrOption},
		"augmentation":          {(*simclr.Augmentation)(nil).Check(), simclr.ErrOption},
		"pixels":                {noPixels, simclr.ErrShape},
		"features":              {noFeatures, simclr.ErrShape},
		"features to fit":       {noLogistic, simclr.ErrShape},
		"images to evaluate":    {noImages, simclr.ErrLabels},
		"official split":        {noOfficial, simclr.ErrSplit},
		"stratified split":      {noStratified, simclr.ErrLabels},
		"images to view":        {a.BatchTo(nil, nil, nil, 0, 0, 0), simclr.ErrShape},
		"images to monitor":     {noMonitor, simclr.ErrShape},
		"images to pretrain on": {noPretraining, simclr.ErrShape},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("no %s: the error is %v", name, x.got)
		}
	}
}
