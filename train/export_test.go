package train

// SetSteps sets how often a new point moves, at most as often as before; with 0, points stay
// where they start.
func (p *Projector) SetSteps(n int) { p.steps = n }
