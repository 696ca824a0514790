package train

// A Retry is about a phase that diverged and begins again (Options.Retries).
type Retry struct {
	// Phase counts from 0, Epoch from 1: the first epoch of the phase, which comes next.
	Phase, Epoch int
	// LR is the phase's new learning rate.
	LR float64
	// Cause says how the phase ended.
	Cause *DivergedError
}

// retryFactor is the factor of a phase's learning rate when it begins again. Three retries
// cover rates that are 27 times too large.
const retryFactor = 1. / 3

// keepStart keeps the state at the start of a phase for beginAgain, if the run is there.
func (r *run) keepStart(first position) (err error) {
	if r.Retries > 0 && r.epochState.position == first {
		r.start, err = r.checkpoint().Clone()
	}
	return err
}

// beginAgain returns to the start of a phase that ended with err because it diverged, with a
// lower learning rate. It returns err if there are no retries left.
func (r *run) beginAgain(phase int, cause *DivergedError, err error) error {
	if cause.Phase, cause.Retries = phase, r.retries[phase]; r.start == nil || cause.Retries >= r.Retries {
		return err
	}
	closed := r.engine.close(nil)
	if r.engine = nil; closed != nil {
		return closed
	}
	next, err := r.newEngine()
	if err != nil {
		return err
	}
	r.engine = next
	r.lowerRate(phase)
	elapsed := r.result.Elapsed
	if err := r.copyFrom(r.start); err != nil {
		return err
	}
	r.result.Elapsed = elapsed
	if r.OnRetry == nil {
		return nil
	}
	return r.OnRetry(Retry{Phase: phase, Epoch: r.epochState.epoch + 1, LR: r.Phases[phase].LR, Cause: cause})
}

// lowerRate lowers the learning rate of a phase once.
func (r *run) lowerRate(phase int) {
	r.retries[phase]++
	r.Phases[phase].LR *= retryFactor
	r.result.Retries++
}
