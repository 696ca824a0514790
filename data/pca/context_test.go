package pca

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// expiring is a context that ends after a number of calls of Err.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (e *expiring) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestPCAContext ends the context at each place where it is looked at: the error
// is then the context's, and there is no result.
func TestPCAContext(t *testing.T) {
	fit := func(m *data.Matrix) func(ctx context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			p, err := Fit(ctx, m, 2)
			return p == nil, err
		}
	}
	tall, wide := data.NewMatrix(20000, 3), data.NewMatrix(20, 300)
	for _, m := range []*data.Matrix{tall, wide} {
		s := rng.New(1, rng.Init)
		for i := range m.X {
			m.X[i] = float32(s.Normal())
		}
	}
	p, err := Fit(t.Context(), tall, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, compute := range map[string]func(ctx context.Context) (none bool, err error){
		"tall": fit(tall), "wide": fit(wide),
		"Transform": func(ctx context.Context) (bool, error) {
			y, err := p.Transform(ctx, tall)
			return y == nil, err
		},
	} {
		for left := int64(0); ; left++ {
			ctx := &expiring{Context: t.Context()}
			ctx.left.Store(left)
			none, err := compute(ctx)
			if err == nil && !none && left > 0 {
				break
			}
			if !none || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: after %d looks at the context the error is %v, no result: %v", name, left, err, none)
			}
		}
	}
}

// Package eigen does not look at the context, but is not waited for.
func TestLargestEigenContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const n = 300
	a := make([]float64, n*n)
	for i := range n {
		a[i*n+i] = float64(i)
	}
	if values, vectors, err := largestEigen(ctx, a, n, 2); values != nil || vectors != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
