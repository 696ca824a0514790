package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"

	"cne/data"
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

// none reports whether a search has no result.
func none(result any, err error) (bool, error) { return reflect.ValueOf(result).IsNil(), err }

// testContext ends the context of each search at many of the calls of Err, at least
// least: the error is then the context's, and there is no result.
func testContext(t *testing.T, opt Options, least int, sets ...*data.Matrix) {
	t.Helper()
	for _, m := range sets {
		index := someOthers(m.N, 2, rand.New(rand.NewPCG(1, 1)))
		for name, search := range map[string]func(ctx context.Context) (none bool, err error){
			"KNN":    func(ctx context.Context) (bool, error) { return none(KNN(ctx, m, 5, opt)) },
			"Search": func(ctx context.Context) (bool, error) { return none(Search(ctx, m, m, 5, opt)) },
			"Ranks":  func(ctx context.Context) (bool, error) { return none(Ranks(ctx, m, index, 2, opt)) },
		} {
			t.Run(fmt.Sprintf("%s, D=%d", name, m.D), func(t *testing.T) {
				ended := 0
				for left := int64(0); ; left = 2*left + 1 {
					ctx := &expiring{Context: t.Context()}
					ctx.left.Store(left)
					none, err := search(ctx)
					if err == nil && !none {
						break
					}
					ended++
					if !none || !errors.Is(err, context.Canceled) {
						t.Fatalf("after %d looks at the context the error is %v, no result: %v", left, err, none)
					}
				}
				if ended < least && name != "Ranks" || ended < 2 {
					t.Errorf("the context is looked at %d times", ended)
				}
			})
		}
	}
}

// hundreds are sets of points that take a short while.
func hundreds() []*data.Matrix {
	return []*data.Matrix{normal(700, 12, 1), normal(700, 3, 2), data.NewMatrix(700, 12)}
}

func TestContext(t *testing.T) {
	testContext(t, Options{}, 2, hundreds()...)
	testContext(t, Options{Search: Approximate}, 5, normal(3000, 12, 1))
}

// TestContextOfCandidates: the candidates of millions of points take seconds, too.
func TestContextOfCandidates(t *testing.T) {
	d, _, err := descend(t.Context(), normal(3000, 12, 1), descentSettingsFor(5), 1)
	if err != nil {
		t.Fatal(err)
	}
	for left := range int64(3 * d.n / descentGrain) {
		ctx := &expiring{Context: t.Context()}
		ctx.left.Store(left)
		if _, err := d.findCandidates(ctx, 0, d.n, 1); !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d calls of Err: got the error %v, want the context's", left, err)
		}
	}
}
