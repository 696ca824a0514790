package train

// SetEpochs sets how often each of a point's edges is used; with 0, points stay where they
// start.
func (p *Projector) SetEpochs(n int) { p.epochs = n }
