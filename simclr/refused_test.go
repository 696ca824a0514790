package simclr_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"cne/data"
	"cne/data/images"
	"cne/model"
	"cne/simclr"
)

// Numbers of images are checked wherever they come in.
func TestImagesOutOfRange(t *testing.T) {
	const n = 40
	im := noise(n, 8, 8)
	p := simclr.PaperPretraining()
	p.Augmentation.Size, p.BatchSize, p.Epochs, p.WarmUp, p.Network = 8, 20, 1, 0, model.ResNetOptions{Width: 1, Hidden: 4, Out: 2}
	a := p.Augmentation
	features := data.NewMatrix(n, 3)
	classes := make([]int32, n)
	for i := range n {
		classes[i] = int32(i % 2)
		features.Row(i)[i%3] = float32(i)
	}
	logistic, err := simclr.FitLogistic(t.Context(), features, classes, nil, 2, simclr.LogisticOptions{})
	must(t, err)
	for _, bad := range []int32{0, -1, n, math.MaxInt32, math.MinInt32} { // 0 is in its place
		for _, at := range []int{0, 20, n - 1} {
			if bad == 0 && at > 0 {
				continue
			}
			rows := make([]int32, n)
			for i := range rows {
				rows[i] = int32(i)
			}
			rows[at] = bad
			dst := make([]float32, n*3*a.Size*a.Size)
			for name, use := range map[string]func() error{
				"Features":    func() error { return errorOf(simclr.Features(t.Context(), &average{}, &a, im, rows, nil)) },
				"Pixels":      func() error { return errorOf(simclr.Pixels(im, rows)) },
				"BatchTo":     func() error { return a.BatchTo(dst, im, rows, 0, 0, 1) },
				"EvalBatchTo": func() error { return a.EvalBatchTo(dst, im, rows) },
				"FitLogistic": func() error {
					return errorOf(simclr.FitLogistic(t.Context(), features, classes, rows, 2, simclr.LogisticOptions{}))
				},
				"Classify": func() error { return errorOf(logistic.Classify(features, rows)) },
				"KNNAccuracy": func() error {
					return errorOf(simclr.KNNAccuracy(t.Context(), features, classes, simclr.Split{Train: rows[:30], Test: rows[30:]}, 3, nil))
				},
				"Run": func() error {
					_, _, err := p.Run(context.Background(), im, rows)
					return err
				},
			} {
				if err := use(); (err == nil) != (bad == 0) {
					t.Errorf("%s, %d at %d: %v", name, bad, at, err)
				}
			}
		}
	}
}

// Arguments that are nil are errors of the package, of a kind.
func TestNothing(t *testing.T) {
	ctx, a := t.Context(), simclr.Paper()
	e := new(simclr.Evaluation)
	p := simclr.PaperPretraining()
	_, _, noPretraining := p.Run(ctx, nil, nil)
	for name, x := range map[string]struct{ got, want error }{
		"encoder":               {errorOf(simclr.Features(ctx, nil, &a, new(images.Set), nil, nil)), simclr.ErrOption},
		"augmentation":          {(*simclr.Augmentation)(nil).Check(), simclr.ErrOption},
		"pixels":                {errorOf(simclr.Pixels(nil, nil)), simclr.ErrShape},
		"features":              {errorOf(simclr.KNNAccuracy(ctx, nil, nil, simclr.Split{}, 3, nil)), simclr.ErrShape},
		"features to fit":       {errorOf(simclr.FitLogistic(ctx, nil, nil, nil, 2, simclr.LogisticOptions{})), simclr.ErrShape},
		"images to evaluate":    {errorOf(e.Run(ctx, nil, nil)), simclr.ErrLabels},
		"official split":        {errorOf(simclr.OfficialSplit(nil)), simclr.ErrSplit},
		"drawn split":           {errorOf(new(simclr.Evaluation).Draw(nil, 0)), simclr.ErrLabels},
		"images to view":        {a.BatchTo(nil, nil, nil, 0, 0, 0), simclr.ErrShape},
		"images to monitor":     {errorOf(new(simclr.Monitor).Hook(ctx)), simclr.ErrShape},
		"images to pretrain on": {noPretraining, simclr.ErrShape},
	} {
		if !errors.Is(x.got, x.want) {
			t.Errorf("no %s: the error is %v", name, x.got)
		}
	}
}
