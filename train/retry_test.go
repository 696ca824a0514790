package train_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/train"
)

// retried returns the options of a run of which the second phase diverges at the rate lr,
// and does not at a third of it or less.
func (r resumable) retried(t *testing.T) (o train.Options, lr float64) {
	t.Helper()
	heads, tails := resumeEdges()
	for lr = 1; lr < 1e30; lr *= 3 {
		o = r.options()
		o.Phases = slices.Clone(o.Phases)
		o.Phases[1].LR = lr
		_, err := train.Fit(context.Background(), r.model(t), heads, tails, o)
		if diverged := new(train.DivergedError); errors.As(err, &diverged) {
			if diverged.Phase != 1 || diverged.Retries != 0 {
				t.Fatalf("%v in phase %d after %d retries, want phase 1 and none", err, diverged.Phase, diverged.Retries)
			}
			return o, lr
		}
		must(t, err)
	}
	t.Fatal("no rate is too large")
	return o, lr
}

// A phase that diverges begins again with a third of its rate: the run ends like one that
// had this rate from the beginning, wherever it was saved and resumed in between.
func TestRetriedRunEndsLikeOneWithTheLowerRate(t *testing.T) {
	for name, r := range resumables() {
		if strings.Contains(name, "cosine") {
			continue // only angles count, so that no rate is too large
		}
		t.Run(name, func(t *testing.T) {
			o, lr := r.retried(t)
			o.Phases[1].LR = 9 * lr // so that it begins again three times
			var retries []train.Retry
			o.Retries, o.OnRetry = 10, func(x train.Retry) error {
				retries = append(retries, x)
				return nil
			}
			dir, saved := t.TempDir(), 0
			o.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error {
				saved++
				return c.WriteFile(filepath.Join(dir, strconv.Itoa(saved)))
			}}
			got := r.outcome(t, o)
			if len(retries) < 3 {
				t.Fatalf("%d retries, want 3 or more", len(retries))
			}
			for i, x := range retries {
				if rate := 9 * lr * math.Pow(3, -float64(i+1)); x.Phase != 1 || x.Epoch != o.Phases[0].Epochs+1 || math.Abs(x.LR/rate-1) > 1e-12 || x.Cause.Retries != i {
					t.Errorf("retry %d: phase %d in epoch %d with rate %g, after %d retries, want phase 1, epoch %d, rate %g and %d",
						i+1, x.Phase, x.Epoch, x.LR, x.Cause.Retries, o.Phases[0].Epochs+1, rate, i)
				}
			}
			straight := r.options()
			straight.Phases = slices.Clone(o.Phases)
			straight.Phases[1].LR = retries[len(retries)-1].LR
			sameOutcome(t, "the run with the lower rate", got, r.outcome(t, straight))

			o.Checkpoints = nil
			for k := 1; k <= saved; k += 1 + saved/8 {
				resumed := r.options()
				resumed.Phases, resumed.Retries, resumed.Resume = o.Phases, o.Retries, readCheckpoint(t, filepath.Join(dir, strconv.Itoa(k)))
				sameOutcome(t, "resumed at "+strconv.Itoa(k), r.outcome(t, resumed), got)
			}
		})
	}
}

// A run without retries left ends with the error of the last, and does not change the
// caller's phases.
func TestRetriesEnd(t *testing.T) {
	r := resumables()["table, sgd"]
	o, lr := r.retried(t)
	o.Phases[1].LR, o.Retries = 1e9*lr, 2
	given := slices.Clone(o.Phases)
	heads, tails := resumeEdges()
	result, err := train.Fit(context.Background(), r.model(t), heads, tails, o)
	var diverged *train.DivergedError
	if !errors.As(err, &diverged) || diverged.Retries != 2 || result.Retries != 2 || math.Abs(result.LR/(1e9*lr/9)-1) > 1e-12 {
		t.Errorf("got %v with the result %+v, want an error after two retries, at a ninth of the rate", err, result)
	}
	for i, p := range o.Phases {
		if p.LR != given[i].LR {
			t.Errorf("the caller's phase %d has the rate %g, want %g", i, p.LR, given[i].LR)
		}
	}
	failed := errors.New("no more")
	o.OnRetry = func(train.Retry) error { return failed }
	if _, err := train.Fit(context.Background(), r.model(t), heads, tails, o); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of OnRetry", err)
	}
}
